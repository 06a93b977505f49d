"""Workflows run without history, by configuration alone (A14): the state is stored, and what it took and owes."""

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from mainspring import (
    Complete,
    Decisions,
    DoNotRetryError,
    Event,
    Mainspring,
    NotKept,
    Received,
    Send,
    StartChild,
    Workflow,
    message,
)
from mainspring.app.internals import internals_of
from mainspring.core.events import Kept
from mainspring.errors import (
    DuplicateIdError,
)
from mainspring.port.records import Ref
from mainspring.port.trims import VERSIONS_PER_BLOCK
from mainspring.testing.clock import VirtualClock
from tests.engine.coordination.dying import dies_after
from tests.engine.coordination.meters import (
    AskTotal,
    Bill,
    Install,
    KeptMeter,
    Meter,
    Read,
    Reading,
    Remove,
    StateMeter,
    Total,
    metering,
)
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.soaking import some_of
from tests.support.waiting import until

METER = Ref("StateMeter", "m-1")


async def rows(app: Mainspring) -> int:
    return len(await internals_of(app).engine.store.stream(METER, 0, 100_000))


async def lived(make_app: MakeApp, workflow: Meter, seed: int) -> list[Any]:
    """Let a meter take random messages, some twice, in processes that come and go. Return all that can be seen."""
    choices, sent, seen = random.Random(seed), [], []  # noqa: S311  it must be the same again

    def bill(command: Bill, key: str, attempt: int) -> None:
        if choices_of_bank.random() < 0.3:
            raise ConnectionError
        seen.append((command, key.partition("/")[2]))

    choices_of_bank = random.Random(seed)  # noqa: S311  as above
    sent.append((Install("m-1"), "id-0"))
    for number in range(1, 30):
        sent.append(
            choices.choice(sent) if choices.random() < 0.3 else (Read("m-1", choices.randrange(16)), f"id-{number}")
        )
    sent.append((Remove("m-1"), "id-end"))
    left = list(sent)
    while left:
        async with metering(make_app(), workflow, bill) as app:
            for what, id in left[: (count := choices.randrange(1, 12))]:
                seen.append((await app.send(what, id=id)).status)
                await until(lambda app=app: _nothing_but_timers(app))
            del left[:count]
            instance = app.instance(type(workflow), "m-1")
            row = await instance.row()
            seen += [await instance.state(), row.status, row.position, row.state]
            if not left:
                seen.append(await instance.result())
    return seen


async def _nothing_but_timers(app: Mainspring) -> bool:
    stats = await app.stats()
    return stats.outbox == stats.inbox == 0


async def _nothing_to_do(app: Mainspring) -> bool:
    return await _nothing_but_timers(app) and not await internals_of(app).engine.store.outputs(
        None, timers=True, limit=1
    )


async def state_of(app: Mainspring) -> Reading:
    state = await app.instance(StateMeter, "m-1").state()
    assert isinstance(state, Reading)
    return state


@pytest.mark.parametrize("seed", some_of(range(2), [0]))
def test_it_decides_and_ends_as_with_its_history(make_app: MakeApp, seed: int) -> None:
    async def main() -> None:
        kept = await lived(make_app, KeptMeter(), seed)
        assert await lived(make_app, StateMeter(), seed) == kept
        assert "duplicate" in kept
        assert any(isinstance(each, tuple) for each in kept)

    run(main)


def test_an_old_message_is_known_again_and_another_under_its_id_refused(make_app: MakeApp) -> None:
    async def main() -> None:
        async with metering(make_app(), StateMeter()) as app:
            await app.send(Install("m-1"), id="install")
            await app.send_many([Read("m-1", 1) for _ in range(50)])
        async with metering(make_app(), StateMeter()) as app:
            assert (await app.send(Install("m-1"), id="install")).status == "duplicate"
            await app.send(Read("m-1", 1), id="read")
            await app.send(Read("m-1", 1))
            assert (await app.send(Read("m-1", 1), id="read")).status == "duplicate"
            with pytest.raises(DuplicateIdError):
                await app.send(Read("m-1", 2), id="read")
            assert (await state_of(app)).total == 52

    run(main)


class Ping(Workflow[Install | Total, Reading, Bill]):
    """Talks to its handler only."""

    begins = Install
    initial_state = Reading()
    history = "state"
    rounds: ClassVar[int] = 150

    def route(self, message: Install | Total) -> str | None:
        return message.meter if isinstance(message, Install) else None

    def evolve(self, state: Reading, event: Event[Install | Total, Bill]) -> Reading | None:
        match event:
            case Received(Total(units)):
                return Reading(units)

    def decide(self, message: Install | Total, state: Reading) -> Decisions[Install | Total, Bill] | None:
        match message:
            case Total(units):
                return [Complete()] if units == self.rounds else [Send(Bill("p-1", units))]
            case Install():
                return [Send(Bill("p-1", 0))]


def test_what_is_stored_does_not_grow_with_the_steps(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Ping())
        counts: list[int] = []

        @app.handler
        async def pong(command: Bill) -> Total:
            counts.append(len(await internals_of(app).engine.store.stream(Ref("Ping", "p-1"), 0, 10_000)))
            return Total(command.units + 1)

        async with app:
            await (await app.send(Install("p-1"))).result()
            assert (await app.instance(Ping, "p-1").row()).position > 2 * Ping.rounds
            assert max(counts) <= 5
            assert len(counts) == Ping.rounds

    run(main)


def test_of_a_message_from_outside_only_its_identity_stays(make_app: MakeApp) -> None:
    async def main() -> None:
        async with metering(make_app(), StateMeter()) as app:
            await app.send(Install("m-1"), id="install", actor="ann")
            for number in range(20):
                await app.send(Read("m-1", 0), id=f"read-{number}")
            # One for each message, and the timer that waits.
            assert await rows(app) == 22
            stream = await app.instance(StateMeter, "m-1").stream()
            assert [stream[0].position, stream[0].message_id, stream[0].actor] == [2, "install", "ann"]
            assert [stream[-1].event, stream[-1].message_id] == [Received(NotKept("Read")), "read-19"]
            log = await app.instance(StateMeter, "m-1").log()
            assert [(line.what, line.about) for line in log[:2]] == [("Started", "Install"), ("Stepped", "Read")]
            stored = await internals_of(app).engine.store.stream(METER, 0, 100)
            assert not any(b'"units"' in (row.body or b"") for row in stored)

    run(main)


def test_of_an_event_that_comes_after_the_end_only_its_identity_stays(make_app: MakeApp) -> None:
    async def main() -> None:
        async with metering(make_app(), StateMeter()) as app:
            await app.send(Install("m-1"))
            await app.send(Remove("m-1"))
            for status in ("kept", "duplicate"):
                assert [each.status for each in await app.publish(Read("m-1", 7), id="late")] == [status]
            with pytest.raises(DuplicateIdError):
                await app.publish(Read("m-1", 8), id="late")
            entry = (await app.instance(StateMeter, "m-1").stream())[-1]
            assert [entry.event, entry.message_id] == [Kept(NotKept("Read")), "late"]
            line = (await app.instance(StateMeter, "m-1").log())[-1]
            assert (line.what, line.about) == ("Kept", "Read")
            stored = await internals_of(app).engine.store.stream(METER, 0, 100)
            assert not any(b'"units"' in (row.body or b"") for row in stored if row.event == "Kept")

    run(main)


def test_a_long_batch_leaves_nothing_behind(make_app: MakeApp) -> None:
    async def main() -> None:
        count = 3 * VERSIONS_PER_BLOCK
        async with metering(make_app(), StateMeter()) as app:
            await app.send_many([Install("m-1"), *(Read("m-1", 11) for _ in range(count))])
            await until(lambda: _nothing_but_timers(app))
            version = (await app.instance(StateMeter, "m-1").row()).position
            # To the beginning of a block whose number a large power of two divides.
            block = 1 << (version // VERSIONS_PER_BLOCK).bit_length()
            await app.send_many([Read("m-1", 0) for _ in range(block * VERSIONS_PER_BLOCK - version + 1)])
            left = await internals_of(app).engine.store.stream(METER, 0, 100_000)
            assert [row.event for row in left if row.message_id is None] == ["Scheduled"]
            assert (await state_of(app)).billed == 11 * count

    run(main)


def test_an_output_is_retried_long_after_its_step_was_trimmed(make_app: MakeApp) -> None:
    async def main() -> None:
        tried: list[tuple[Bill, str]] = []
        works = False

        def bill(command: Bill, key: str, attempt: int) -> None:
            tried.append((command, key))
            if not works:
                raise ConnectionError

        async with metering(make_app(), StateMeter(), bill) as app:
            await app.send(Install("m-1"))
            await app.send(Read("m-1", 12))
            for _ in range(20):
                await app.send(Read("m-1", 0))
            await until(lambda: len(tried) > 1)
        works = True
        async with metering(make_app(), StateMeter(), bill) as app:
            await until(lambda: _nothing_but_timers(app))
            assert (await state_of(app)).billed == 12
            assert set(tried) == {(Bill("m-1", 12), "StateMeter/m-1/5")}

    run(main)


def test_a_dead_letter_of_a_trimmed_step_can_be_retried(make_app: MakeApp) -> None:
    async def main() -> None:
        works = False

        def bill(command: Bill, key: str, attempt: int) -> None:
            if not works:
                raise DoNotRetryError("no such account")

        async with metering(make_app(), StateMeter(), bill) as app:
            await app.send(Install("m-1"))
            receipt = await app.send(Read("m-1", 12))
            await until(lambda: _has(app, "suspended"))
            await receipt.resume(actor="ann")
            for _ in range(5):
                await app.send(Read("m-1", 0))
            works = True
            (letter,) = await app.dead_letters()
            await app.retry_dead_letter(letter.id)
            await until(lambda: _nothing_but_timers(app))
            assert await receipt.state() == Reading(12, 0, 12)
            assert [line.actor for line in await receipt.log() if line.what == "Resumed"] == ["ann"]

    run(main)


async def _has(app: Mainspring, status: str) -> bool:
    return (await app.instance(StateMeter, "m-1").row()).status == status


def test_timers_fire_and_replies_come(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with metering(make_app(clock), StateMeter()) as app:
            await app.send(Install("m-1"))
            await app.send(Read("m-1", 3))
            assert await app.request(AskTotal("m-1")) == Total(3)
            clock.advance(timedelta(days=31).total_seconds())
            await until(lambda: _nothing_to_do(app))
            log = await app.instance(StateMeter, "m-1").log()
            assert log[-1].kind == "timer"

    run(main)


@pytest.mark.parametrize("commits", [1, 2, 3])
def test_nothing_is_lost_or_doubled_whenever_the_worker_dies(make_app: MakeApp, commits: int) -> None:
    keys: set[str] = set()

    def bill(command: Bill, key: str, attempt: int) -> None:
        keys.add(key)

    async def story(app: Mainspring) -> None:
        for number in range(3):
            await app.send(Read("m-1", 12), id=f"read-{number}")

    async def main() -> None:
        async with metering(make_app(), StateMeter()) as app:
            await app.send(Install("m-1"))
        await dies_after(commits, metering(make_app(), StateMeter(), bill), story)
        async with metering(make_app(), StateMeter(), bill) as app:
            await story(app)
            await until(lambda: _nothing_but_timers(app))
            assert await state_of(app) == Reading(36, 0, 36)
            assert len(keys) == 3

    run(main)


@dataclass(frozen=True)
class Build:
    meter: str


class Estate(Workflow[Build | Total, Reading, Install]):
    """Has a meter as its child, and ends with it."""

    begins = Build
    initial_state = Reading()

    def route(self, message: Build | Total) -> str | None:
        return "estate"

    def evolve(self, state: Reading, event: Event[Build | Total, Install]) -> Reading | None:
        match event:
            case Received(Total(units)):
                return Reading(units)

    def decide(self, message: Build | Total, state: Reading) -> Decisions[Build | Total, Install] | None:
        return [StartChild(Install(message.meter))] if isinstance(message, Build) else [Complete()]


async def _purged(app: Mainspring) -> int:
    return (await app.purge(older_than=timedelta(microseconds=1), workflow="Child")).instances


def test_a_parent_is_told_how_it_ended_and_a_purge_leaves_nothing(make_app: MakeApp) -> None:
    class Child(StateMeter):
        def decide(self, message: Any, state: Any) -> Any:
            return [Complete(Total(7))] if isinstance(message, Remove) else []

    async def main() -> None:
        app = make_app()
        app.add(Child())
        app.add(Estate())
        async with app:
            await app.send(Build("m-1"))
            await until(lambda: _nothing_to_do(app))
            for _ in range(3):
                await app.send(AskTotal("m-1"))
            await app.send(Remove("m-1"))
            await app.instance(Estate, "estate").result()
            assert await app.instance(Estate, "estate").state() == Reading(7)
            await until(lambda: _nothing_to_do(app))
            # The database's clock may be ahead of what this process takes it for.
            assert await until(lambda: _purged(app)) == 1
            assert await internals_of(app).engine.store.stream(Ref("Child", "m-1"), 0, 100) == []

    run(main)


def test_changed_code_goes_on_from_the_state(make_app: MakeApp) -> None:
    @message(name="Reading", version=2, upcasters=[lambda body: body | {"place": "cellar"}])
    @dataclass(frozen=True)
    class Placed:
        total: int
        open: int
        billed: int
        place: str

    class Changed(Workflow[Install | Read, Placed, Bill]):
        name = "StateMeter"
        begins = Install
        initial_state = Placed(0, 0, 0, "")
        history = "state"

        def route(self, message: Install | Read) -> str | None:
            return message.meter

        def evolve(self, state: Placed, event: Event[Install | Read, Bill]) -> Placed | None:
            match event:
                case Received(Read(_, units)):
                    return Placed(state.total + 2 * units, state.open, state.billed, state.place)

        def decide(self, message: Install | Read, state: Placed) -> Decisions[Install | Read, Bill] | None:
            return []

    async def main() -> None:
        async with metering(make_app(), StateMeter()) as app:
            await app.send_many([Install("m-1"), *(Read("m-1", 1) for _ in range(5))])
        app = make_app()
        app.add(Changed())
        async with app:
            assert await app.instance(Changed, "m-1").state() == Placed(5, 5, 0, "cellar")
            await app.send(Read("m-1", 1))
            assert await app.instance(Changed, "m-1").state() == Placed(7, 5, 0, "cellar")

    run(main)


def test_an_instance_stays_as_it_began(make_app: MakeApp) -> None:
    class Kept(Meter):
        name = "StateMeter"
        again = "anew"

    async def main() -> None:
        async with metering(make_app(), StateMeter()) as app:
            await app.send_many([Install("m-1"), *(Read("m-1", 1) for _ in range(5))])
        async with metering(make_app(), Kept()) as app:
            await app.send(Install("m-2"))
            await app.send_many([Read(id, 1) for id in ("m-1", "m-2") for _ in range(9)])
            await until(lambda: _nothing_but_timers(app))
            assert await app.instance(Kept, "m-1").state() == Reading(14, 4, 10)
        async with metering(make_app(), StateMeter()) as app:
            await app.send_many([Read(id, 1) for id in ("m-1", "m-2")])
            await until(lambda: _nothing_but_timers(app))
            assert (await state_of(app)).total == 15
            whole = await app.instance(StateMeter, "m-2").stream()
            assert [entry.position for entry in whole] == list(range(1, len(whole) + 1))
            assert len(await app.instance(StateMeter, "m-1").stream()) < 18 + 3
        async with metering(make_app(), Kept()) as app:
            await app.send(Remove("m-1"))
            assert (await app.send(Install("m-1"), id="again")).status == "dead letter"
            assert "its history is not kept" in ((await app.dead_letters())[0].error or "")
            assert await app.instance(Kept, "m-1").result() == Total(15)

    run(main)
