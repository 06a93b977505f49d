"""Small stories of what the kill loop and its checker brought to light, on both stores."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from mainspring import Complete, Context, Decisions, Event, Mainspring, Received, Replied, Send, Workflow
from mainspring.stores.sqlite.place import Place
from mainspring.stores.sqlite.schema import migrate
from tests.proof.crash.journey import Account, Ask, Balance, Deposit
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class Go:
    id: str


@dataclass(frozen=True)
class Trip:
    id: str
    breaks: bool = False


@dataclass(frozen=True)
class Finish:
    id: str


@dataclass(frozen=True)
class Idle:
    pass


@dataclass(frozen=True)
class Going:
    trips: int = 0


class Walk(Workflow[Go | Trip | Finish, Idle | Going, Finish]):
    begins = Go
    initial_state = Idle()

    def route(self, message: Go | Trip | Finish) -> str | None:
        return message.id

    def evolve(self, state: Idle | Going, event: Event[Go | Trip | Finish, Finish]) -> Idle | Going | None:
        match state, event:
            case Idle(), Received(Go()):
                return Going()
            case Going(trips), Received(Trip()):
                return Going(trips + 1)

    def decide(self, message: Go | Trip | Finish, state: Idle | Going) -> Decisions[Go | Trip | Finish, Finish] | None:
        match message, state:
            case Go(), Idle():
                return []
            case Trip(breaks=True), Going():
                raise ZeroDivisionError("broken on purpose")
            case Trip(), Going():
                return []
            # The first Finish after an even number of trips ends it.
            case Finish(), Going(trips):
                return [Complete()] if trips % 2 == 0 else []


class QueuedWalk(Walk):
    mode = "inbox"


class Outing(Workflow[Trip, Going, Go]):
    """Goes out twice."""

    initial_state = Going()

    def route(self, message: Trip) -> str | None:
        return message.id

    def evolve(self, state: Going, event: Event[Trip, Go]) -> Going | None:
        return Going(state.trips + 1) if isinstance(event, Received) else None

    def decide(self, message: Trip, state: Going) -> Decisions[Trip, Go] | None:
        return [Send(Go(message.id))] if state.trips < 2 else [Complete()]


async def started(app: Mainspring, workflow: Workflow, *, work: bool = True) -> Mainspring:
    app.add(workflow)
    await app.start(work=work)
    return app


def test_what_was_decided_on_a_state_that_lost_its_race_is_never_committed(make_app: MakeApp) -> None:
    async def main() -> None:
        one = await started(make_app(), Account())
        await asyncio.gather(*(one.send(Deposit("a", 1)) for _ in range(26)))
        await until(lambda: _has_version(one, "Account", 27))
        # A process that knows nothing of the account yet takes it for new. Of what it decides on that, one step would
        # stand exactly behind version 27.
        other = await started(make_app(), Account(), work=False)
        await asyncio.gather(*(other.send(Ask("a", f"j-{n}")) for n in range(20)))
        stream = [entry.event for entry in await other.instance(Account, "a").stream()]
        assert {event.message.total for event in stream if isinstance(event, Replied)} == {26}
        assert await other.instance(Account, "a").state() == Balance(26, 20)
        await other.stop()
        await one.stop()

    run(main)


def test_what_was_sent_already_is_a_duplicate_even_where_it_could_not_be_decided_any_more(make_app: MakeApp) -> None:
    async def main() -> None:
        app = await started(make_app(), Walk())
        await app.send(Go("w"), id="go")
        assert (await app.send(Go("w"), id="go")).status == "duplicate"
        assert await app.instance(Walk, "w").state() == Going()
        await app.stop()

    run(main)


def test_what_was_sent_already_is_a_duplicate_even_after_the_end(make_app: MakeApp) -> None:
    async def main() -> None:
        app = await started(make_app(), Walk())
        await app.send(Go("w"), id="go")
        await app.send(Finish("w"), id="finish")
        assert (await app.send(Finish("w"), id="finish")).status == "duplicate"
        assert (await app.send(Go("w"), id="go")).status == "duplicate"
        assert await app.dead_letters() == []
        await app.stop()

    run(main)


def test_an_input_that_fails_on_its_way_out_of_the_inbox_stays_there(make_app: MakeApp) -> None:
    async def main() -> None:
        app = await started(make_app(), QueuedWalk())
        await app.send(Go("w"))
        await app.send(Trip("w", breaks=True), id="broken")
        instance = app.instance(QueuedWalk, "w")
        await until(lambda: _is(app, "QueuedWalk", "suspended"))
        assert [row.message_id for row in await instance.waiting()] == ["broken"]
        await app.stop()

    run(main)


def test_nothing_is_called_late_because_of_an_end_that_lost_its_race(make_app: MakeApp) -> None:
    async def main() -> None:
        one = await started(make_app(), Walk())
        other = await started(make_app(), Walk(), work=False)
        await other.send(Go("w"))
        await one.send(Trip("w"))
        # To the other process the walk has made no trip: it decides to end it, and calls late what comes next.
        await asyncio.gather(other.send(Finish("w")), other.send(Trip("w"), id="second"))
        assert await other.dead_letters() == []
        assert await one.instance(Walk, "w").state() == Going(2)
        await other.stop()
        await one.stop()

    run(main)


def test_an_instance_that_was_missed_once_is_found_when_another_process_has_begun_it(make_app: MakeApp) -> None:
    async def main() -> None:
        one = await started(make_app(), Walk())
        other = await started(make_app(), Walk(), work=False)
        assert (await other.send(Trip("w"))).status == "dead letter"
        await one.send(Go("w"))
        assert (await other.send(Trip("w"))).status == "stepped"
        await other.stop()
        await one.stop()

    run(main)


async def _has_version(app: Mainspring, workflow: str, version: int) -> bool:
    return any(row.position >= version for row in await app.instances(workflow=workflow))


async def _is(app: Mainspring, workflow: str, status: str) -> bool:
    return any(row.status == status for row in await app.instances(workflow=workflow))


def test_an_output_names_its_cause_to_whoever_takes_it_over(make_app: MakeApp) -> None:
    told: list[str | None] = []

    def app() -> Mainspring:
        made = make_app()
        made.add(Outing())

        @made.handler
        async def walk(command: Go, context: Context) -> Trip:
            told.append(context.envelope.causation_id)
            return Trip(command.id)

        return made

    async def main() -> None:
        sender, worker = app(), app()
        await sender.start(work=False)
        await sender.send(Trip("o"), id="first")
        # Begun elsewhere, so each output is claimed from the store and none is born in the worker's hands.
        async with worker:
            await worker.instance(Outing, "o").result()
        await sender.stop()

    run(main)
    assert told == ["first", "Outing/o/3/1"]


def test_two_processes_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    place = Place(tmp_path / "new.db", busy_seconds=5.0)
    one, other = place.connect(writes=True), place.connect(writes=True)
    one.execute("SELECT count(*) FROM sqlite_schema").get  # noqa: B018  from now on it knows an empty schema
    migrate(other, place, 0)
    migrate(one, place, 0)
    one.close()
    other.close()
