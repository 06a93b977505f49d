"""A paused workflow takes nothing, loses nothing, and goes on in its order; what it decided before is carried out."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Decisions, Event, Mainspring, Received, Retry, Schedule, Workflow
from mainspring.app.internals import internals_of
from mainspring.engine.paused_work import PausedWork
from mainspring.errors import NoSuchInstanceError
from mainspring.port.records import Ref
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import Done, Job, Listening, Start, Work, has_status, job, look_for_work
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

ONCE = Retry(max_attempts=1)


class Hands:
    """A handler that says what it begins, and ends an attempt when it is told to."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.open = asyncio.Event()

    async def work(self, command: Work) -> Done:
        self.begun.append(command.part)
        await self.open.wait()
        return Done(command.id, command.part)


@dataclass(frozen=True)
class Wind:
    id: str


@dataclass(frozen=True)
class Note:
    id: str
    text: str


@dataclass(frozen=True)
class Struck:
    id: str


@dataclass(frozen=True)
class Ticking:
    heard: tuple[str, ...] = ()


class Clock(Workflow[Wind | Note | Struck, Ticking, Struck | Note]):
    """Strikes after a minute, and repeats what it hears."""

    begins = Wind
    initial_state = Ticking()

    def route(self, message: Wind | Note | Struck) -> str | None:
        return message.id

    def evolve(self, state: Ticking, event: Event[Wind | Note | Struck, Struck | Note]) -> Ticking | None:
        match event:
            case Received(Note(_, text)):
                return Ticking((*state.heard, text))
            case Received(Struck()):
                return Ticking((*state.heard, "struck"))

    def decide(
        self, message: Wind | Note | Struck, state: Ticking
    ) -> Decisions[Wind | Note | Struck, Struck | Note] | None:
        match message:
            case Wind(id):
                return [Schedule(Struck(id), after=timedelta(minutes=1))]
            case _:
                return []


async def heard(app: Mainspring, *texts: str) -> bool:
    try:
        return (await app.instance(Clock, "c-1").state()).heard == texts
    except NoSuchInstanceError:
        return False


def test_what_is_sent_to_a_paused_workflow_is_accepted_and_taken_in_its_order(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Clock())
        async with app:
            await app.send(Wind("c-1"))
            await app.pauses.pause(Clock)
            sent = [await app.send(Note("c-1", text)) for text in "abc"]
            assert [receipt.status for receipt in sent] == ["accepted"] * 3
            await look_for_work(app)
            assert await heard(app)
            assert [row.type for row in await app.instance(Clock, "c-1").waiting()] == ["Note"] * 3
            await app.pauses.resume(Clock)
            await until(lambda: heard(app, "a", "b", "c"))

    run(main)


def test_an_instance_begins_when_its_workflow_is_resumed(make_app: MakeApp) -> None:
    """Also where the first message to come then is none that begins one."""

    async def main() -> None:
        app = make_app()
        app.add(Clock())
        async with app:
            await app.pauses.pause(Clock)
            assert (await app.send(Wind("c-1"))).status == "accepted"
            assert (await app.send(Note("c-1", "a"))).status == "accepted"
            await app.pauses.resume(Clock)
            await app.send(Note("c-1", "b"))
            await until(lambda: heard(app, "a", "b"))
            assert await app.dead_letters() == []

    run(main)


def test_a_lane_that_breaks_while_it_is_loaded_is_not_loaded_twice(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What began between the two looks would be unknown again."""

    async def main() -> None:
        app = make_app()
        app.add(Clock())
        async with app:
            engine, store = internals_of(app).engine, internals_of(app).engine.store
            await app.pauses.pause(Clock)
            await app.send(Wind("c-1"))
            await app.send(Note("c-1", "a"))
            claims = await store.claim(engine.committer.worker, [], ["Clock"], 10)
            engine.stepper._paused = PausedWork()  # noqa: SLF001  but nobody claims by himself
            load, committing, looks = store.load, asyncio.Event(), list[asyncio.Event]()

            async def slow(refs: Any, most: int | None = None) -> Any:
                found = await load(refs, most)
                if Ref("Clock", "c-1") in refs:
                    looks.append(asyncio.Event())
                    await looks[-1].wait()
                return found

            async def commit(worker: int, units: Any) -> Any:
                await committing.wait()
                return await commits(worker, units)

            commits = store.commit
            monkeypatch.setattr(store, "load", slow)
            monkeypatch.setattr(store, "commit", commit)
            pending = engine.intake.sent(Note("c-1", "b"))
            sending = asyncio.create_task(engine.intake.answered(pending))
            await until(lambda: looks)
            looks[0].set()
            await until(lambda: not engine.committer.idle)  # it is to be a dead letter
            engine.claimer.take(claims)
            await until(lambda: len(looks) == 2)
            committing.set()
            assert await sending == "accepted"
            looks[1].set()
            await until(lambda: engine.committer.idle)
            assert len(looks) == 2
            monkeypatch.undo()
            await app.pauses.resume(Clock)
            await until(lambda: heard(app, "a", "b"))

    run(main)


def test_an_instance_that_is_there_is_not_taken_for_new_after_a_pause(make_app: MakeApp) -> None:
    async def main() -> None:
        first, second = make_app(), make_app()
        for app in (first, second):
            app.add(Clock())
        async with first:
            await first.send(Wind("c-1"))
            async with second:
                await second.pauses.pause(Clock)
                # What could begin one is taken for a beginning until a commit says otherwise.
                assert (await second.send(Wind("c-1"))).status == "accepted"
                await second.pauses.resume(Clock)
                await internals_of(first).engine.look_at_pauses()
                await second.send(Note("c-1", "a"))
                await until(lambda: heard(second, "a"))
                assert await second.dead_letters() == []

    run(main)


def test_a_timer_of_a_paused_workflow_stays_due_and_fires_when_it_is_resumed(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        app.add(Clock())
        async with app:
            await app.send(Wind("c-1"))
            await app.pauses.pause(Clock)
            clock.advance(61)
            await look_for_work(app)
            assert await heard(app)
            assert [claim.type for claim in await app.instance(Clock, "c-1").outputs(timers=True)] == ["Struck"]
            await app.pauses.resume(Clock)
            await until(lambda: heard(app, "struck"))

    run(main)


def test_a_result_waits_in_the_inbox_of_a_paused_workflow(make_app: MakeApp) -> None:
    async def main() -> None:
        hands = Hands()
        async with job(make_app(), hands.work) as app:
            await app.send(Start("j-1"))
            await until(lambda: hands.begun)
            await app.pauses.pause(Job)
            hands.open.set()
            await until(lambda: _waits(app, "Done"))
            # It was carried out, and is not again.
            assert await app.instance(Job, "j-1").outputs() == []
            await app.pauses.resume(Job)
            await until(lambda: has_status(app, "j-1", "completed"))
            assert hands.begun == [0]

    run(main)


async def _waits(app: Mainspring, type: str) -> bool:
    return [row.type for row in await app.instance(Job, "j-1").waiting()] == [type]


def test_what_was_claimed_before_the_pause_goes_back_to_its_place(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Clock())
        async with app:
            await app.send(Wind("c-1"))
            await app.pauses.pause(Clock)
            await app.send(Note("c-1", "a"))
            await app.send(Note("c-1", "b"))
            # As if it had not heard of the pause when it claimed.
            store, worker = internals_of(app).engine.store, internals_of(app).engine.committer.worker
            claims = await store.claim(worker, [], ["Clock"], 10)
            assert [row.type for row in claims.inputs] == ["Note", "Note"]
            internals_of(app).engine.claimer.take(claims)

            async def given_back() -> bool:
                return await store.holds_inputs(worker) == []

            await until(given_back)
            assert await heard(app)
            await app.pauses.resume(Clock)
            await until(lambda: heard(app, "a", "b"))

    run(main)


def test_what_a_paused_workflow_has_decided_is_carried_out(make_app: MakeApp) -> None:
    async def main() -> None:
        hands = Hands()
        async with job(make_app(), hands.work, concurrency=1) as app:
            await app.send(Start("j-1", 2))
            await until(lambda: hands.begun)
            await app.pauses.pause(Job)
            hands.open.set()
            await until(lambda: len(hands.begun) == 2)

    run(main)


def test_a_failure_for_good_suspends_an_instance_of_a_paused_workflow(make_app: MakeApp) -> None:
    """There is no message that could wait, and the handler is not called again for it."""

    async def main() -> None:
        begun, gate = list[int](), asyncio.Event()

        async def fail(command: Work) -> Done:
            begun.append(command.part)
            await gate.wait()
            raise ValueError("no")

        async with job(make_app(), fail, retry=ONCE) as app:
            await app.send(Start("j-1"))
            await until(lambda: begun)
            await app.pauses.pause(Job)
            gate.set()
            await until(lambda: has_status(app, "j-1", "suspended"))
            assert begun == [0]

    run(main)


def test_a_failure_that_its_workflow_takes_waits_and_leaves_no_dead_letter(make_app: MakeApp) -> None:
    async def main() -> None:
        begun, gate = list[int](), asyncio.Event()

        async def fail(command: Work) -> Done:
            begun.append(command.part)
            await gate.wait()
            raise ValueError("no")

        app = make_app()
        app.add(Listening())
        app.handler(retry=ONCE)(fail)
        async with app:
            instance = app.instance(Listening, "j-1")
            await app.send(Start("j-1"))
            await until(lambda: begun)
            await app.pauses.pause(Listening)
            gate.set()

            async def waits() -> bool:
                return [row.type for row in await instance.waiting()] == ["SendFailed"]

            await until(waits)
            await app.pauses.resume(Listening)

            async def failed() -> bool:
                return (await instance.row()).status == "failed"

            await until(failed)
            assert await app.dead_letters() == []

    run(main)


def test_operators_can_end_an_instance_of_a_paused_workflow(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Clock())
        async with app:
            await app.send(Wind("c-1"))
            await app.pauses.pause(Clock)
            await app.instance(Clock, "c-1").cancel()
            assert (await app.instance(Clock, "c-1").row()).status == "cancelled"

    run(main)
