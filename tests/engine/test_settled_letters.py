"""Dead letters: one that is retried lets go on what waits for nothing else, shows its message, and is no late event."""

from typing import Any

import pytest

from mainspring import DoNotRetryError, Mainspring
from mainspring.errors import DefinitionError
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


def test_a_dead_letter_shows_its_message(make_app: MakeApp) -> None:
    async def main() -> None:
        async with mendable(make_app(), []) as app:
            await app.send(Start("j-1"))
            await app.send(Done("j-9", 3))
            await until(lambda: _letters(app, 2))
            found = {letter.instance: letter for letter in await app.dead_letters()}
            assert (found["j-1"].message, found["j-9"].message) == (Work("j-1", 0), Done("j-9", 3))
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
