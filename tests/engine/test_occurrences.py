"""What an evolve sees that asks when its events were recorded: live it is what their rows say ever after."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest

from mainspring import Ask, Compensate, Decisions, Event, Mainspring, Schedule, Send, Workflow
from mainspring.analysis.replay.counterfactual import counterfactual
from mainspring.analysis.replay.explain import explain
from mainspring.analysis.replay.retelling import Edit
from mainspring.analysis.what_if.comparison import Comparison
from mainspring.app.internals import internals_of
from mainspring.core.events import Occurrence
from mainspring.core.fold import fold
from mainspring.core.step import step
from mainspring.core.workflow import Mode
from mainspring.engine.inputs.branches import live
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.recording.redecision import redecided_rows
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.recording.walk import Journey, turns_of
from mainspring.port.records import EventRow, Ref
from mainspring.testing import Rehearsal
from mainspring.testing.clock import VirtualClock
from mainspring.testing.envelopes import envelope
from tests.engine.coordination.dying import dies_after
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

DIARY = Ref("Diary", "d-1")


@dataclass(frozen=True)
class Open:
    diary: str


@dataclass(frozen=True)
class Note:
    diary: str
    text: str


@dataclass(frozen=True)
class Bound:
    diary: str


@dataclass(frozen=True)
class Reminder:
    diary: str


@dataclass(frozen=True)
class Bind:
    diary: str


@dataclass(frozen=True)
class Unbind:
    diary: str


Line = tuple[int, str, str, int | None]


@dataclass(frozen=True)
class Written:
    """Every event that evolve saw: its position, its name, when it was recorded, what it answers."""

    lines: tuple[Line, ...] = ()


Input = Open | Note | Bound | Reminder


class Diary(Workflow[Input, Written, Bind | Unbind]):
    """Writes down what it sees. Its snapshots hold what it saw live."""

    begins = Open
    initial_state = Written()
    snapshot_every = 1
    again = "anew"
    mode: ClassVar[Mode | Mapping[type[Any], Mode]] = {Note: "inbox"}

    def route(self, message: Input) -> str | None:
        return message.diary

    def decide(self, message: Input, state: Written) -> Decisions[Input, Bind | Unbind]:
        match message:
            case Open(diary):
                reminder = Schedule(Reminder(diary), after=timedelta(hours=1))
                return [Send(Bind(diary), compensate=Unbind(diary)), reminder]
            case Note(diary, "no more"):
                return [Compensate("no more", then=Note(diary, "undone"))]
            case Note(_, "who knows?"):
                return [Ask("Who knows?", Note, "reader")]
            case _:
                return []

    def evolve(self, state: Written, event: Occurrence[Event[Input, Bind | Unbind]]) -> Written:  # type: ignore[override]
        return Written((*state.lines, line_of(event)))


def line_of(seen: Occurrence[Any]) -> Line:
    return seen.position, type(seen.event).__name__, seen.time.isoformat(), seen.cause


def office(app: Mainspring) -> Mainspring:
    app.add(Diary())

    @app.handler
    async def bind(command: Bind) -> Bound:
        return Bound(command.diary)

    @app.handler
    async def unbind(command: Unbind) -> None: ...

    return app


async def rows_of(app: Mainspring) -> list[EventRow]:
    return list(await whole_stream(internals_of(app).engine.store, DIARY))


async def has(app: Mainspring, event: str, kind: str | None = None) -> bool:
    """Tell whether an event is recorded, and all that was asked for is done."""
    engine = internals_of(app).engine
    recorded = any(row.event == event and kind in (None, row.kind) for row in await rows_of(app))
    return recorded and engine.committer.idle and not engine.dispatcher.in_hand and not engine.stepper.lanes.busy()


async def seen_live(app: Mainspring) -> tuple[Line, ...]:
    """Return what the worker saw: the snapshot of the last step, which it took from its own memory."""
    loaded = (await internals_of(app).engine.store.load([DIARY]))[0]
    assert loaded is not None
    assert loaded.snapshot is not None
    assert loaded.snapshot.version == loaded.row.version
    state: Written = internals_of(app).registry.workflows["Diary"].recorder.state(loaded.snapshot)
    return state.lines


async def folded(app: Mainspring) -> tuple[Line, ...]:
    """Return what a fold of the stored rows sees."""
    entry = internals_of(app).registry.workflows["Diary"]
    events = entry.recorder.folded(DIARY, live(await rows_of(app)))
    return fold(entry.workflow, Written(), events).lines


async def written_in_rows(app: Mainspring) -> list[tuple[int, str, str]]:
    return [(row.version, row.event, moment(row.time_us).isoformat()) for row in live(await rows_of(app))]


async def bound(app: Mainspring) -> None:
    await app.send(Open("d-1"))
    await until(lambda: has(app, "Received", "result"))


def test_what_is_seen_live_is_what_the_stored_rows_say(make_app: MakeApp) -> None:
    async def main() -> None:
        async with office(make_app()) as app:
            await bound(app)
            lines = await seen_live(app)
            assert lines == await folded(app)
            assert [line[:3] for line in lines] == await written_in_rows(app)
            assert [line[3] for line in lines] == [None, None, None, None, 3]

    run(main)


def test_a_timer_says_what_it_answers_and_when_it_was_taken(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with office(make_app(clock)) as app:
            await bound(app)
            clock.advance(3600)
            await until(lambda: has(app, "Received", "timer"))
            lines = await seen_live(app)
            assert lines == await folded(app)
            assert lines[-1][3] == 4
            began = datetime.fromisoformat(lines[0][2])
            assert datetime.fromisoformat(lines[-1][2]) - began >= timedelta(hours=1)

    run(main)


def test_an_answer_says_which_task_it_answers_though_its_row_does_not(make_app: MakeApp) -> None:
    async def main() -> None:
        async with office(make_app()) as app:
            await bound(app)
            await app.send(Note("d-1", "who knows?"))
            await until(lambda: has(app, "Asked"))
            (task,) = await app.tasks.list()
            await app.tasks.complete(task.id, Note("d-1", "I do"), actor="ann", roles=["reader"])
            await until(lambda: has(app, "Received", "answer"))
            lines = await seen_live(app)
            assert lines == await folded(app)
            (asked,) = [line[0] for line in lines if line[1] == "Asked"]
            assert [line[3] for line in lines if line[1] == "Received"][-1] == asked

    run(main)


def test_an_input_that_waited_is_seen_at_the_time_of_its_step_and_not_of_its_coming(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with office(make_app(clock)) as app:
            await bound(app)
            await app.pauses.pause(Diary)
            await app.send(Note("d-1", "waits"))
            clock.advance(600)
            came = internals_of(app).engine.store.now_us()
            await app.pauses.resume(Diary)
            await until(lambda: has(app, "Received", "command"))
            lines = await seen_live(app)
            assert lines == await folded(app)
            assert datetime.fromisoformat(lines[-1][2]) >= moment(came)

    run(main)


@pytest.mark.parametrize("commits", [1, 2])
def test_whoever_takes_over_sees_what_the_dead_worker_saw(make_app: MakeApp, commits: int) -> None:
    async def story(app: Mainspring) -> Any:
        return await app.send(Open("d-1"), id="m-1")

    async def main() -> None:
        await dies_after(commits, office(make_app()), story)
        async with office(make_app()) as app:
            await until(lambda: has(app, "Received", "result"))
            await app.send(Note("d-1", "goes on"))
            await until(lambda: has(app, "Received", "command"))
            lines = await seen_live(app)
            assert lines == await folded(app)
            assert [line[:3] for line in lines] == await written_in_rows(app)

    run(main)


def test_behind_a_reset_all_that_counts_is_seen_once_and_in_its_place(make_app: MakeApp) -> None:
    async def main() -> None:
        async with office(make_app()) as app:
            await bound(app)
            await app.send(Note("d-1", "gone"))
            await until(lambda: has(app, "Received", "command"))
            await app.instance(Diary, "d-1").reset(5)
            await app.send(Note("d-1", "stays"))
            await until(lambda: written(app, "stays"))
            assert (await app.instance(Diary, "d-1").state()).lines == await folded(app)
            names = [(position, name) for position, name, _, _ in await folded(app)]
            assert names[-3:] == [(5, "Received"), (8, "Scheduled"), (9, "Received")]

    run(main)


async def written(app: Mainspring, text: str) -> bool:
    return any(row.event == "Received" and text in (row.body or b"").decode() for row in await rows_of(app))


def test_what_is_undone_is_seen_with_what_it_undoes(make_app: MakeApp) -> None:
    async def main() -> None:
        async with office(make_app()) as app:
            await bound(app)
            await app.send(Note("d-1", "no more"))
            await until(lambda: written(app, "undone"))
            lines = await seen_live(app)
            assert lines == await folded(app)
            assert [line[:3] for line in lines] == await written_in_rows(app)
            compensated = next(line for line in lines if line[1] == "Compensated")
            assert compensated[3] == compensated[0] - 1

    run(main)


# ---- who looks back at a stream sees the same


def looked_back(make_app: MakeApp, look: Callable[[Mainspring], Awaitable[None]]) -> None:
    async def main() -> None:
        async with office(make_app()) as app:
            await bound(app)
            await app.send(Note("d-1", "first"))
            await until(lambda: has(app, "Received", "command"))
            await look(app)

    run(main)


def test_moments_and_decisions_that_are_made_once_more_see_it(make_app: MakeApp) -> None:
    async def look(app: Mainspring) -> None:
        entry, rows = internals_of(app).registry.workflows["Diary"], await rows_of(app)
        again = list(redecided_rows(entry, DIARY, rows))
        assert [each.error for each in again] == [None] * 3
        assert again[-1].after.lines == await folded(app)
        moments = list(Journey(entry, DIARY, turns_of(rows)).moments(rows))
        assert moments[-1].after.lines == await folded(app)
        for each in moments:
            if each.envelope is not None:
                told = explain(entry, each)
                assert told is not None
                assert told.error is None

    looked_back(make_app, look)


def test_a_comparison_with_todays_code_comes_to_the_same_states(make_app: MakeApp) -> None:
    async def look(app: Mainspring) -> None:
        entry, rows = internals_of(app).registry.workflows["Diary"], await rows_of(app)
        walk = Comparison(entry, DIARY)
        walk.take(rows)
        walk.end()
        assert walk.found == {}
        assert walk.state.lines == await folded(app)

    looked_back(make_app, look)


def test_a_story_told_otherwise_has_the_times_at_which_it_would_have_been_recorded(make_app: MakeApp) -> None:
    async def look(app: Mainspring) -> None:
        entry, rows = internals_of(app).registry.workflows["Diary"], await rows_of(app)
        edit = Edit("replace", 2, Open("d-1"))
        found = counterfactual(entry, DIARY, rows, edit, rows[-1].time_us)
        assert found.error is None
        assert found.recorded_state.lines == await folded(app)
        assert found.state.lines == await folded(app)

    looked_back(make_app, look)


def test_a_rehearsal_records_outputs_at_the_time_of_their_input() -> None:
    rehearsal, at = Rehearsal(Diary()), datetime(2026, 5, 1, tzinfo=UTC)
    rehearsal.take(Open("d-1"), time=at)
    rehearsal.take(Bound("d-1"), command=Bind("d-1"), time=at + timedelta(minutes=1))
    rehearsal.take(Reminder("d-1"), time=at + timedelta(hours=1))

    assert [entry.time for entry in rehearsal.entries[:4]] == [at] * 4
    assert [(line[0], line[3]) for line in rehearsal.state.lines] == [
        (1, None),
        (2, None),
        (3, None),
        (4, None),
        (5, 3),
        (6, 4),
    ]


def test_a_step_without_a_time_is_refused_where_evolve_asks_for_it() -> None:
    with pytest.raises(TypeError, match="Diary asks when its events were recorded"):
        step(Diary(), Written(), 0, envelope(Open("d-1")), begins=True)
