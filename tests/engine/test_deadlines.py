"""Deadlines of whole instances, on a running engine: when they come, what they do, and what takes them away."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring import CancelSchedule, Compensate, DeadlinePassed, Decisions, Received, Schedule
from mainspring.analysis.replay.as_test import as_test
from mainspring.analysis.replay.counterfactual import counterfactual
from mainspring.analysis.replay.retelling import Edit
from mainspring.analysis.replay.travel import travel
from mainspring.analysis.what_if.check import check
from mainspring.app.instance import Instance
from mainspring.app.internals import internals_of
from mainspring.core.events import Kept
from mainspring.engine.inputs.branches import live
from mainspring.engine.inputs.outside_rule import check_outside
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.recording.redecision import redecided_rows
from mainspring.engine.recording.walk import Moment
from mainspring.errors import NotFromOutsideError
from mainspring.port.records import Ref
from mainspring.testing import Rehearsal
from mainspring.testing.clock import VirtualClock
from tests.engine.stays import Arrive, Input, Leave, OpenEnded, Output, State, Stay, Staying, hotel
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

HOURS = 3_600.0
PASSED = "its deadline has passed"


async def ended(stay: Instance[Any, Any]) -> None:
    async def has_ended() -> bool:
        return (await stay.row()).status in ("failed", "completed")

    await until(has_ended)


def test_who_has_not_ended_by_the_deadline_fails_and_what_was_done_is_undone(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        done = hotel(app)
        async with app:
            stay = await app.send(Arrive("ann"))
            await until(lambda: len(done) == 1)
            [timer] = await app.timers()
            assert (timer.type, timer.due) == ("mainspring.DeadlinePassed", datetime(2026, 1, 2, tzinfo=UTC))
            clock.advance(24 * HOURS - 1)
            assert (await stay.row()).status == "running"
            clock.advance(1)
            await ended(stay)
            row = await stay.row()
            assert (row.status, row.error, done) == ("failed", PASSED, ["opened for ann", "closed for ann"])

    run(main)


def test_who_ends_in_time_leaves_no_deadline_behind(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app(VirtualClock())
        hotel(app)
        async with app:
            stay = await app.send(Arrive("ann"))
            await app.send(Leave("ann"))
            await ended(stay)
            assert await app.timers() == []

    run(main)


def test_a_deadline_survives_a_restart(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        first, second = make_app(clock), make_app(clock)
        hotel(first)
        done = hotel(second)
        async with first:
            await first.send(Arrive("ann"))
        clock.advance(24 * HOURS)
        async with second:
            await ended(second.instance(Stay, "ann"))
            assert done[-1] == "closed for ann"

    run(main)


class Longer(Stay):
    """Of a release in which guests may stay for a month."""

    name = "Stay"
    deadline = timedelta(days=30)


def test_who_began_with_a_deadline_keeps_it_when_the_code_has_another(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        first, second = make_app(clock), make_app(clock)
        hotel(first)
        hotel(second, Longer())
        async with first:
            await first.send(Arrive("ann"))
        clock.advance(24 * HOURS)
        async with second:
            stay = second.instance(Longer, "ann")
            await ended(stay)
            assert (await stay.row()).error == PASSED

    run(main)


def test_who_takes_it_out_of_the_code_lifts_it_for_all_that_run(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        first, second = make_app(clock), make_app(clock)
        hotel(first)
        hotel(second, OpenEnded())
        async with first:
            await first.send_many([Arrive("ann"), Arrive("bob")])
        async with second:
            await second.send(Leave("bob"))
            stay = second.instance(OpenEnded, "ann")
            assert await stay.state() == Staying("ann")
            clock.advance(24 * HOURS)

            async def kept() -> bool:
                return (await stay.stream())[-1].event == Kept(DeadlinePassed())

            await until(kept)
            assert (await stay.log())[-1].what == "Kept"
            await second.send(Leave("ann"))
            rows = [await second.instance(OpenEnded, guest).row() for guest in ("ann", "bob")]
            assert [row.status for row in rows] == ["completed", "completed"]
            assert await second.timers() == []

    run(main)


@pytest.mark.parametrize("changed", [Longer, OpenEnded], ids=["longer", "none"])
def test_what_if_does_not_count_another_deadline_for_those_that_run(make_app: MakeApp, changed: Any) -> None:
    async def main() -> None:
        clock = VirtualClock()
        first, second, third = (make_app(clock) for _ in range(3))
        hotel(first)
        hotel(second, changed())
        hotel(third)
        async with first:
            await first.send(Arrive("ann"))
            assert (await check(first)).safe
        async with second:
            assert (await check(second)).safe
            entry, ref = internals_of(second).engine.registry.workflows["Stay"], Ref("Stay", "ann")
            rows = await whole_stream(internals_of(second).engine.store, ref)
            assert [step.changed for step in redecided_rows(entry, ref, rows)] == [False]
            await second.send(Arrive("bob"))
        async with third:
            assert (await check(third)).safe

    run(main)


class OwnDeadline(Stay):
    """Says itself by when it has to end, and how long depends on the guest."""

    name = "Stay"
    deadline = None

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message:
            case Arrive(guest):
                return [Schedule(DeadlinePassed(), after=timedelta(hours=len(guest)))]
            case _:
                return super().decide(message, state)


class OwnOther(OwnDeadline):
    name = "Stay"

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        return [Schedule(DeadlinePassed(), after=timedelta(hours=9))]


def test_a_deadline_that_decide_sets_is_compared_and_stands_in_its_test(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        first, second = make_app(clock), make_app(clock)
        hotel(first, OwnDeadline())
        hotel(second, OwnOther())
        async with first:
            await first.send(Arrive("ann"))
            entry = internals_of(first).engine.registry.workflows["Stay"]
            told = [each async for each in travel(internals_of(first).engine.store, entry, Ref("Stay", "ann"), 1, 100)]
            [step] = [each for each in told if isinstance(each, Moment) and each.envelope is not None]
            text = as_test(entry, [], step)
            assert ".then(Schedule(DeadlinePassed(), after=timedelta(seconds=10800)))" in text
        async with second:
            assert [each.what for each in (await check(second)).differences] != []

    run(main)


class Extended(Stay):
    """Gives one more hour, again and again."""

    name = "Stay"

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        if isinstance(message, DeadlinePassed):
            return [CancelSchedule(DeadlinePassed), Schedule(DeadlinePassed(), after=timedelta(hours=1))]
        return super().decide(message, state)


def test_a_case_for_it_has_the_word(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        hotel(app, Extended())
        async with app:
            stay = await app.send(Arrive("ann"))
            clock.advance(24 * HOURS)

            async def extended() -> bool:
                return [timer.due for timer in await app.timers()] == [datetime(2026, 1, 2, 1, tzinfo=UTC)]

            await until(extended)
            assert (await stay.row()).status == "running"

    run(main)


class Patient(Stay):
    """Has all the time from the first step on."""

    name = "Stay"

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        return [CancelSchedule(DeadlinePassed)] if isinstance(message, Arrive) else super().decide(message, state)


def test_who_takes_it_back_in_the_first_step_has_none_in_any_story(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        hotel(app, Patient())
        async with app:
            stay = await app.send(Arrive("ann"))
            assert await app.timers() == []
            await app.send(Leave("ann"))
            await stay.reset(4, "she had not left")
            assert await app.timers() == []
            entry = internals_of(app).engine.registry.workflows["Stay"]
            rows = live(await whole_stream(internals_of(app).engine.store, Ref("Stay", "ann")))
            without = counterfactual(entry, Ref("Stay", "ann"), rows, Edit("replace", 2, Arrive("ann")), 1 << 60)
            assert (without.differs_at, without.waiting) == (None, ())
        rehearsal = Rehearsal(Patient())
        rehearsal.take(Arrive("ann"))
        assert rehearsal.waiting() == []

    run(main)


class Moving(Stay):
    """Leaves its room for another, in which it may stay for ever."""

    name = "Stay"

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Leave(guest), Staying():
                return [Compensate("another room", then=Arrive(guest))]
            case Arrive(), Staying():
                return []
            case _:
                return super().decide(message, state)


def test_what_an_undoing_took_away_does_not_come_back_by_a_reset(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app(VirtualClock())
        done = hotel(app, Moving())
        async with app:
            stay = await app.send(Arrive("ann"))
            await until(lambda: len(done) == 1)
            await app.send(Leave("ann"))

            async def moved() -> bool:
                return (await stay.stream())[-1].event == Received(Arrive("ann"))

            await until(moved)
            before = (await stay.row()).position
            await stay.suspend("fire in the house")
            await stay.reset(before)
            assert await app.timers() == []
        rehearsal = Rehearsal(Moving())
        for message in (Arrive("ann"), Leave("ann")):
            rehearsal.take(message)
        assert rehearsal.waiting() == []

    run(main)


class Visit(Stay):
    """Takes no room: there is nothing to undo."""

    name = "Stay"

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        return [] if isinstance(message, Arrive) else super().decide(message, state)


def test_a_reset_after_the_deadline_gives_the_whole_time_once_more(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        hotel(app, Visit())
        async with app:
            stay = await app.send(Arrive("ann"))
            clock.advance(24 * HOURS)
            await ended(stay)
            await stay.reset(3, "she had called")
            assert [timer.due for timer in await app.timers()] == [datetime(2026, 1, 3, tzinfo=UTC)]

    run(main)


def test_nobody_outside_says_that_the_time_is_over(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app(VirtualClock())
        hotel(app)
        async with app:
            with pytest.raises(NotFromOutsideError, match="only the engine knows"):
                check_outside(internals_of(app).engine.registry.entries(), DeadlinePassed())

    run(main)


def test_what_if_finds_nothing_that_differs_and_a_step_becomes_a_test_that_passes(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        hotel(app)
        async with app:
            stay = await app.send(Arrive("ann"))
            clock.advance(24 * HOURS)
            await ended(stay)
            assert (await check(app)).differences == ()
            entry = internals_of(app).engine.registry.workflows["Stay"]
            told = [each async for each in travel(internals_of(app).engine.store, entry, Ref("Stay", "ann"), 1, 100)]
            steps = [each for each in told if isinstance(each, Moment) and each.envelope is not None]
            assert [type(step.envelope.message) for step in steps if step.envelope] == [Arrive, DeadlinePassed]
            for place, step in enumerate(steps):
                names: dict[str, object] = {}
                exec(as_test(entry, steps[:place], step), names)  # noqa: S102  it is what was made
                [made] = [each for name, each in names.items() if name.startswith("test_")]
                assert callable(made)
                made()

    run(main)
