"""Dead letters: one that is retried lets go on what waits for nothing else, shows its message, and is no late event."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mainspring import DoNotRetryError, Mainspring
from mainspring.app.internals import internals_of
from mainspring.errors import DefinitionError, OperationError
from mainspring.port.records import Unit
from tests.engine.jobs import Done, Job, Start, Work, has_status, job
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


class Strict(Job):
    """Wants to hear of events that come too late."""

    name = "Job"
    late_events = "dead letter"


def mendable(app: Mainspring, mended: list[int]) -> Mainspring:
    """A job whose parts fail for good until they are mended, or are corrected to 100 and more."""

    async def work(command: Work) -> Done:
        if command.part < 100 and command.part not in mended:
            raise DoNotRetryError(f"part {command.part} is broken")
        return Done(command.id, command.part)

    return job(app, work)


async def _letters(app: Mainspring, count: int) -> bool:
    return len(await app.dead_letters()) == count


async def _ended(app: Mainspring) -> bool:
    return await has_status(app, "j-1", "completed")


def test_a_letter_that_is_retried_lets_its_instance_go_on(make_app: MakeApp) -> None:
    async def main() -> None:
        mended: list[int] = []
        async with mendable(make_app(), mended) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))
            [letter] = await app.dead_letters()
            mended.append(0)
            await app.retry_dead_letter(letter.id, actor="ann")
            await until(lambda: _ended(app))
            log = await app.instance(Job, "j-1").log()
            assert [(line.what, line.actor) for line in log if line.what == "Resumed"] == [("Resumed", "ann")]

    run(main)


def test_a_letter_that_is_corrected_lets_its_instance_go_on(make_app: MakeApp) -> None:
    async def main() -> None:
        async with mendable(make_app(), []) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))
            [letter] = await app.dead_letters()
            await app.retry_dead_letter(letter.id, Work("j-1", 100), actor="ann")
            await until(lambda: _ended(app))

    run(main)


def test_an_instance_that_waits_for_several_letters_goes_on_with_the_last(make_app: MakeApp) -> None:
    async def main() -> None:
        mended: list[int] = []
        async with mendable(make_app(), mended) as app:
            await app.send(Start("j-1", times=2))
            await until(lambda: _letters(app, 2))
            await until(lambda: has_status(app, "j-1", "suspended"))
            first, second = await app.dead_letters()
            mended += [0, 1]
            await app.retry_dead_letter(first.id)
            assert await has_status(app, "j-1", "suspended")
            await app.retry_dead_letter(second.id)
            await until(lambda: _ended(app))

    run(main)


def test_an_instance_that_a_person_has_suspended_stays_so(make_app: MakeApp) -> None:
    async def main() -> None:
        mended: list[int] = []
        async with mendable(make_app(), mended) as app:
            await app.send(Start("j-1", times=2))
            await until(lambda: _letters(app, 2))
            first, second = await app.dead_letters()
            instance = app.instance(Job, "j-1")
            await until(lambda: has_status(app, "j-1", "suspended"))
            await instance.resume()
            await instance.suspend("let me look", actor="ann")
            mended += [0, 1]
            for letter in (first, second):
                await app.retry_dead_letter(letter.id)
            await until(lambda: _waits(app, 2))
            assert await has_status(app, "j-1", "suspended")

    async def _waits(app: Mainspring, count: int) -> bool:
        return len(await app.instance(Job, "j-1").waiting()) == count

    run(main)


def test_a_correction_that_is_refused_leaves_its_instance_suspended(make_app: MakeApp) -> None:
    async def main() -> None:
        async with mendable(make_app(), []) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))
            [letter] = await app.dead_letters()
            with pytest.raises(Exception, match="cannot become Done"):
                await app.retry_dead_letter(letter.id, Done("j-1", 0))
            assert await has_status(app, "j-1", "suspended")

    run(main)


def before_it_is_gone(app: Mainspring, monkeypatch: pytest.MonkeyPatch, do: Callable[[], Awaitable[object]]) -> None:
    """Do something each time that a dead letter is about to go, as it is or corrected."""
    store, committer = internals_of(app).engine.store, internals_of(app).engine.committer
    restore, original = store.restore_output, committer.commit

    async def restore_output(id: int, expected_version: int | None = None) -> bool:
        await do()
        return await restore(id, expected_version)

    async def commit(unit: Unit) -> Any:
        if unit.discards:
            await do()
        return await original(unit)

    monkeypatch.setattr(store, "restore_output", restore_output)
    monkeypatch.setattr(committer, "commit", commit)


@pytest.mark.parametrize("corrected", [0, 1, 2])
def test_an_instance_goes_on_whose_letters_are_retried_at_once(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, corrected: int
) -> None:
    async def main() -> None:
        mended: list[int] = []
        async with mendable(make_app(), mended) as app:
            await app.send(Start("j-1", times=2))
            await until(lambda: _letters(app, 2))
            await until(lambda: has_status(app, "j-1", "suspended"))
            letters = await app.dead_letters()
            mended += [0, 1]
            came, both = list[None](), asyncio.Event()

            async def meet() -> None:
                came.append(None)
                if len(came) == 2:
                    both.set()
                await both.wait()

            before_it_is_gone(app, monkeypatch, meet)
            messages = [Work("j-1", 100 + n) if n < corrected else None for n in range(2)]
            await asyncio.gather(
                *(app.retry_dead_letter(each.id, message) for each, message in zip(letters, messages, strict=True))
            )
            assert (await has_status(app, "j-1", "suspended"), await app.dead_letters()) == (False, [])
            await until(lambda: _ended(app))

    run(main)


@pytest.mark.parametrize("correction", [None, Work("j-1", 100)])
def test_an_instance_does_not_go_on_for_a_retry_that_is_refused(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, correction: Work | None
) -> None:
    async def main() -> None:
        async with mendable(make_app(), []) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))
            [letter] = await app.dead_letters()
            instance, found = app.instance(Job, "j-1"), list[str]()

            async def terminate() -> None:
                found.append((await instance.row()).status)
                await instance.terminate("meanwhile")

            before_it_is_gone(app, monkeypatch, terminate)
            with pytest.raises(OperationError, match="has terminated"):
                await app.retry_dead_letter(letter.id, correction)
            assert (found, await app.dead_letters()) == (["suspended"], [letter])
            assert "Resumed" not in [line.what for line in await instance.log()]

    run(main)


def test_a_retry_does_not_undo_what_a_person_has_done_meanwhile(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        tried, hold = list[Work](), asyncio.Event()

        async def work(command: Work) -> Done:
            tried.append(command)
            if len(tried) == 1:
                raise DoNotRetryError("broken")
            await hold.wait()  # only people move the instance until then
            return Done(command.id, command.part)

        async with job(make_app(), work) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))
            [letter] = await app.dead_letters()
            instance, committer = app.instance(Job, "j-1"), internals_of(app).engine.committer
            original, came = committer.commit, list[None]()

            async def commit(unit: Unit) -> Any:
                if not came and [event.event for event in unit.events] == ["Resumed"]:
                    came.append(None)
                    await instance.resume(actor="bob")
                    await instance.suspend("do not touch", actor="ann")
                return await original(unit)

            monkeypatch.setattr(committer, "commit", commit)
            await app.retry_dead_letter(letter.id, actor="carl")
            last = (await instance.stream())[-1]
            hold.set()
            assert came
            assert (type(last.event).__name__, last.actor) == ("Suspended", "ann")

    run(main)


def test_an_instance_whose_retried_command_fails_again_stays_suspended(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with mendable(make_app(), []) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))
            [letter] = await app.dead_letters()
            store = internals_of(app).engine.store
            restore = store.restore_output

            async def restore_output(id: int, expected_version: int | None = None) -> bool:
                restored = await restore(id, expected_version)
                internals_of(app).engine.wakeups.due_at(0)
                await until(lambda: _letters(app, 1))
                return restored

            monkeypatch.setattr(store, "restore_output", restore_output)
            await app.retry_dead_letter(letter.id)
            assert await has_status(app, "j-1", "suspended")
            assert "Resumed" not in [line.what for line in await app.instance(Job, "j-1").log()]

    run(main)


def test_a_dead_letter_shows_its_message(make_app: MakeApp) -> None:
    async def main() -> None:
        async with mendable(make_app(), []) as app:
            await app.send(Start("j-1"))
            await app.send(Done("j-9", 3))
            await until(lambda: _letters(app, 2))
            found = {letter.instance: letter for letter in await app.dead_letters()}
            assert (found["Job/j-1"].message, found["Job/j-9"].message) == (Work("j-1", 0), Done("j-9", 3))
            assert {letter.unreadable for letter in found.values()} == {None}
        async with make_app() as other:
            [letter, _] = await other.dead_letters()
            assert letter.message is None
            assert letter.type in (letter.unreadable or "")

    run(main)


def test_an_event_that_comes_after_the_end_is_recorded_and_no_dead_letter(make_app: MakeApp) -> None:
    async def main() -> None:
        async with mendable(make_app(), [0]) as app:
            receipt = await app.send(Start("j-1"))
            await receipt.result()
            [late] = await app.publish(Done("j-1", 0), id="again")
            assert (late.status, await app.dead_letters()) == ("kept", [])
            [again] = await app.publish(Done("j-1", 0), id="again")
            assert again.status == "duplicate"
            line = (await receipt.log())[-1]
            assert (line.what, line.about) == ("Kept", "Done")
            assert await has_status(app, "j-1", "completed")

    run(main)


def test_a_command_that_comes_after_the_end_is_a_dead_letter(make_app: MakeApp) -> None:
    async def main() -> None:
        async with mendable(make_app(), [0]) as app:
            await (await app.send(Start("j-1"))).result()
            assert (await app.send(Done("j-1", 0))).status == "dead letter"

    run(main)


def test_a_late_event_is_a_dead_letter_where_the_workflow_says_so(make_app: MakeApp) -> None:
    async def work(command: Work) -> Done:
        return Done(command.id, command.part)

    async def main() -> None:
        app = make_app()
        app.add(Strict())
        app.handler(work)
        async with app:
            await (await app.send(Start("j-1"))).result()
            [late] = await app.publish(Done("j-1", 0))
            assert (late.status, await _letters(app, 1)) == ("dead letter", True)

    run(main)


def test_late_events_says_what_it_may_be() -> None:
    wrong: Any = type("Wrong", (Job,), {"late_events": "drop"})
    with pytest.raises(DefinitionError, match="late_events"):
        Mainspring("memory://").add(wrong())
