"""Failures that a workflow has taken are settled; what is left as a dead letter is carried out by nobody unasked."""

from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import (
    Complete,
    Context,
    DoNotRetryError,
    Event,
    Fail,
    Mainspring,
    Received,
    Send,
    SendFailed,
    Workflow,
)
from mainspring.app.internals import internals_of
from mainspring.codec import BODY_LIMIT_BYTES
from mainspring.core.events import Kept, Sent, Skipped
from mainspring.errors import InstanceFailedError, OperationError
from mainspring.port.records import DeadLetter, OutputKey, Unit
from tests.engine.jobs import Done, Listening, Start, Work, Working
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


class Calm(Listening):
    """Takes a failure, and does nothing."""

    def decide(self, message: Any, state: Working) -> Any:
        return [] if isinstance(message, SendFailed) else super().decide(message, state)


class Careless(Listening):
    """Has no case for a failure, and goes on."""

    unknown_transition = "ignore"

    def decide(self, message: Any, state: Working) -> Any:
        return None if isinstance(message, SendFailed) else super().decide(message, state)


class Puzzled(Listening):
    """Does not know what to do about a failure until somebody has mended it."""

    mended = False

    def decide(self, message: Any, state: Working) -> Any:
        if isinstance(message, SendFailed) and not self.mended:
            raise LookupError("what now")
        return super().decide(message, state)


class Hasty(Listening):
    """Ends before what it asked for is done."""

    def decide(self, message: Any, state: Working) -> Any:
        return [Send(Work(message.id, 0)), Complete()] if isinstance(message, Start) else []


class Renewed(Workflow[Start | Done, Working, Work]):
    """Ends at once, does not listen, and can begin anew."""

    begins = Start
    again = "anew"
    initial_state = Working()

    def route(self, message: Any) -> str | None:
        return message.id

    def evolve(self, state: Working, event: Event[Any, Any]) -> Working | None:
        return None

    def decide(self, message: Any, state: Working) -> Any:
        return [Send(Work(message.id, message.times)), Complete()] if isinstance(message, Start) else []


def failing(
    app: Mainspring,
    workflow: Workflow[Any, Any, Any],
    does: list[str] | None = None,
    tries: list[str] | None = None,
) -> Mainspring:
    """Return an app whose handler refuses its first command, and carries out all others."""
    done = [] if does is None else does
    tried = [] if tries is None else tries
    refused: set[str] = set()
    app.add(workflow)

    @app.handler
    async def work(command: Work, context: Context) -> Done:
        tried.append(context.idempotency_key)
        if not refused or (context.idempotency_key in refused and not done):
            refused.add(context.idempotency_key)
            raise DoNotRetryError("no")
        done.append(context.idempotency_key)
        return Done(command.id, command.part)

    return app


async def has(app: Mainspring, workflow: type[Any], kind: type[Any], message: type[Any] = SendFailed) -> bool:
    events: list[Any] = [entry.event for entry in await app.instance(workflow, "j-1").stream()]
    return any(isinstance(event, kind) and isinstance(event.message, message) for event in events)


async def is_(app: Mainspring, workflow: type[Any], status: str) -> bool:
    return (await app.instance(workflow, "j-1").row()).status == status


def test_a_failure_that_a_case_has_taken_is_no_dead_letter_even_if_nothing_follows(make_app: MakeApp) -> None:
    async def main() -> None:
        async with failing(make_app(), Calm()) as app:
            await app.send(Start("j-1"))
            await until(lambda: has(app, Calm, Received))
            assert await app.dead_letters() == []
            assert (await app.stats()).dead_letters == 0
            assert await app.instance(Calm, "j-1").outputs() == []

    run(main)


def test_a_failure_without_a_case_stays_a_dead_letter_that_can_be_retried(make_app: MakeApp) -> None:
    async def main() -> None:
        async with failing(make_app(), Careless()) as app:
            await app.send(Start("j-1"))
            await until(lambda: has(app, Careless, Received))
            (letter,) = await app.dead_letters()
            assert (letter.type, letter.reason) == ("Work", "its handler gave up")

    run(main)


def test_a_failure_waits_where_decide_raises_and_is_handled_when_it_is_taken(make_app: MakeApp) -> None:
    puzzled, done = Puzzled(), list[str]()

    async def main() -> None:
        async with failing(make_app(), puzzled, done) as app:
            await app.send(Start("j-1"))
            await until(lambda: is_(app, Puzzled, "suspended"))
            (letter,) = await app.dead_letters()
            for message in (None, Work("j-1", 7)):
                with pytest.raises(OperationError, match="its failure waits to be taken by Puzzled/j-1"):
                    await app.retry_dead_letter(letter.id, message)
            puzzled.mended = True
            await app.instance(Puzzled, "j-1").resume()
            await until(lambda: is_(app, Puzzled, "failed"))
            assert await app.dead_letters() == []
            assert done == []

    run(main)


def test_a_failure_that_waited_and_was_skipped_stays_a_dead_letter(make_app: MakeApp) -> None:
    tried = list[str]()

    async def main() -> None:
        async with failing(make_app(), Puzzled(), tries=tried) as app:
            await app.send(Start("j-1"))
            await until(lambda: is_(app, Puzzled, "suspended"))
            await app.instance(Puzzled, "j-1").skip()
            assert await has(app, Puzzled, Skipped)
            (letter,) = await app.dead_letters()
            await app.retry_dead_letter(letter.id)
            await until(lambda: tried == [letter.message_id] * 2)  # and refused, so it becomes a letter once more

    run(main)


def test_a_failure_that_waited_for_an_ended_instance_stays_a_dead_letter(make_app: MakeApp) -> None:
    async def main() -> None:
        async with failing(make_app(), Puzzled()) as app:
            await app.send(Start("j-1"))
            await until(lambda: is_(app, Puzzled, "suspended"))
            await app.instance(Puzzled, "j-1").terminate("enough")
            await until(lambda: has(app, Puzzled, Kept))
            assert len(await app.dead_letters()) == 1

    run(main)


def test_what_belongs_to_an_ended_instance_is_retried_only_by_force(make_app: MakeApp) -> None:
    done = list[str]()

    async def main() -> None:
        async with failing(make_app(), Hasty(), done) as app:
            await app.send(Start("j-1"))
            await until(lambda: has(app, Hasty, Kept))
            (letter,) = await app.dead_letters()
            for message in (None, Work("j-1", 7)):
                with pytest.raises(OperationError, match="cannot be retried: Hasty/j-1 has completed"):
                    await app.retry_dead_letter(letter.id, message)
            assert (await app.dead_letters(), done) == ([letter], [])
            await app.retry_dead_letter(letter.id, Work("j-1", 7), force=True)
            await until(lambda: bool(done))
            assert await app.dead_letters() == []

    run(main)


def test_what_belongs_to_a_former_run_is_retried_only_by_force(make_app: MakeApp) -> None:
    done = list[str]()

    async def main() -> None:
        async with failing(make_app(), Renewed(), done) as app:
            await app.send(Start("j-1"))
            await until(lambda: is_letter(app))
            await app.send(Start("j-1", times=2))
            (letter,) = await app.dead_letters()
            with pytest.raises(OperationError, match="Renewed/j-1 has begun anew since"):
                await app.retry_dead_letter(letter.id)
            await app.retry_dead_letter(letter.id, force=True)
            assert await app.dead_letters() == []
            await until(lambda: letter.message_id in done)

    run(main)


async def is_letter(app: Mainspring) -> bool:
    return bool(await app.dead_letters())


def test_a_letter_from_before_the_upgrade_is_not_retried_where_its_failure_was_taken(make_app: MakeApp) -> None:
    done = list[str]()

    async def main() -> None:
        async with failing(make_app(), Calm(), done) as app:
            await app.send(Start("j-1"))
            await until(lambda: has(app, Calm, Received))
            row = await app.instance(Calm, "j-1").row()
            letter = DeadLetter(
                *(
                    "Calm",
                    "j-1",
                    "Calm/j-1/3",
                    "send",
                    "Work",
                    1,
                    b'{"id":"j-1","part":0}',
                    0,
                    b'{"correlation_id":"c"}',
                ),
                reason="its handler gave up",
                output=OutputKey(row.key, 3),
            )
            await internals_of(app).engine.committer.commit(Unit("Calm", "j-1", dead_letters=(letter,)))
            (kept,) = await app.dead_letters()
            with pytest.raises(OperationError, match="Calm/j-1 has taken its failure, at position 4"):
                await app.retry_dead_letter(kept.id)

    run(main)


def test_an_instance_that_ends_while_a_letter_of_it_is_retried_keeps_it_a_letter(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = list[str]()

    async def main() -> None:
        async with failing(make_app(), Careless(), done) as app:
            await app.send(Start("j-1"))
            await until(lambda: is_letter(app))
            await until(lambda: has(app, Careless, Received))
            (letter,) = await app.dead_letters()
            store, instance = internals_of(app).engine.store, app.instance(Careless, "j-1")
            original, looked = store.restore_output, list[int | None]()

            async def restore_output(id: int, expected_version: int | None = None) -> bool:
                if not looked:
                    await instance.terminate("meanwhile")
                looked.append(expected_version)
                return await original(id, expected_version)

            monkeypatch.setattr(store, "restore_output", restore_output)
            with pytest.raises(OperationError, match="Careless/j-1 has terminated"):
                await app.retry_dead_letter(letter.id)
            assert (len(looked), done, await app.dead_letters()) == (1, [], [letter])

    run(main)


def test_an_instance_that_goes_on_while_a_letter_of_it_is_retried_does_not_hinder_it(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = list[str]()

    async def main() -> None:
        async with failing(make_app(), Careless(), tries=tried) as app:
            await app.send(Start("j-1"))
            await until(lambda: has(app, Careless, Received))
            (letter,) = await app.dead_letters()
            store, instance = internals_of(app).engine.store, app.instance(Careless, "j-1")
            original, looked = store.restore_output, list[int | None]()

            async def restore_output(id: int, expected_version: int | None = None) -> bool:
                if not looked:
                    await instance.suspend("meanwhile")
                looked.append(expected_version)
                return await original(id, expected_version)

            monkeypatch.setattr(store, "restore_output", restore_output)
            await app.retry_dead_letter(letter.id)
            assert [at is not None for at in looked] == [True, True]
            await until(lambda: tried == [letter.message_id] * 2)

    run(main)


@dataclass(frozen=True)
class Note:
    id: str
    text: str


@dataclass(frozen=True)
class Say:
    id: str
    text: str


@dataclass(frozen=True)
class Left:
    parts: tuple[int, ...] = ()
    last: SendFailed | None = None


class Several(Workflow[Start | Say | SendFailed, Left, Work | Note]):
    """Sends several commands of one type, and keeps in mind which of them failed."""

    begins = (Start, Say)
    initial_state = Left()

    def route(self, message: Any) -> str | None:
        return message.id

    def evolve(self, state: Left, event: Event[Any, Any]) -> Left | None:
        match event:
            case Received(SendFailed("Work", command={"part": part}) as failed):
                return Left((*state.parts, part), failed)
            case Received(SendFailed() as failed):
                return Left(state.parts, failed)
            case _:
                return None

    def decide(self, message: Any, state: Left) -> Any:
        match message:
            case Start(id, times):
                return [Send(Work(id, part)) for part in range(times)]
            case Say(id, text):
                return [Send(Note(id, text))]
            case SendFailed(command=command):
                lost = command is None or len(state.parts) == 1
                return [Fail(f"{command} too")] if lost else []


def several(app: Mainspring) -> Mainspring:
    app.add(Several())

    @app.handler
    async def work(command: Work) -> None:
        if command.part % 2:
            raise DoNotRetryError("odd")

    @app.handler
    async def note(command: Note) -> None:
        raise DoNotRetryError("no")

    return app


def test_a_failure_tells_which_of_several_commands_it_is_of(make_app: MakeApp) -> None:
    """To decide and to evolve, in the step and in every replay of it, also where a state holds the failure."""

    async def main() -> None:
        async with several(make_app()) as app:
            await app.send(Start("j-1", 4))
            with pytest.raises(InstanceFailedError, match=r"'part': [13]} too"):
                await app.instance(Several, "j-1").result()
            stream: list[Any] = await app.instance(Several, "j-1").stream()
            failed = [e.event.message for e in stream if isinstance(e.event, Received)][1:]
            assert sorted(each.command["part"] for each in failed) == [1, 3]
            assert {each.message_id: each.command for each in failed} == {
                f"Several/j-1/{e.position}": {"id": "j-1", "part": e.event.message.part}
                for e in stream
                if isinstance(e.event, Sent) and e.event.message.part % 2
            }
            state = await app.instance(Several, "j-1").state()
            assert (sorted(state.parts), state.last) == ([1, 3], failed[-1])

    run(main)


def test_a_command_too_large_for_another_message_is_not_told_in_its_failure(make_app: MakeApp) -> None:
    async def main() -> None:
        async with several(make_app()) as app:
            await app.send(Say("j-1", "x" * (BODY_LIMIT_BYTES - 100)))
            with pytest.raises(InstanceFailedError, match="None too"):
                await app.instance(Several, "j-1").result()

    run(main)
