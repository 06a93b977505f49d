"""What single events mean for the figures: resets, beginnings anew, gaps, faults, late results, ends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from mainspring import Mainspring
from mainspring.analysis.figures.account import Account
from mainspring.analysis.figures.figures import WorkflowFigures, figures_of, workflow_figures
from mainspring.analysis.figures.tally import CUT, PATH_STEPS, WorkflowTally
from mainspring.analysis.streams import OutlinePage
from mainspring.app.internals import internals_of
from mainspring.port.records import InstanceFilter, InstanceRow, Outline, OutlineSpot
from mainspring.sealing import Encrypted, StaticKeys
from mainspring.testing.samples import Count, Counter

SECOND_US = 1_000_000
WORKFLOW = "Orders"
BEGAN_US = 5 * SECOND_US


def outline(
    version: int,
    event: str,
    seconds: float,
    *,
    type: str | None = None,
    state: str | None = None,
    kind: str | None = None,
    cause: int | None = None,
    attempt: int | None = None,
    actor: str | None = None,
) -> Outline:
    duration_us = None if attempt is None else 70_000
    kind = kind or (None if state is None else "command")
    return (1, version, event, round(seconds * SECOND_US), type, kind, cause, state, attempt, duration_us, actor, 3)


def took(version: int, seconds: float, state: str, type: str = "Go") -> Outline:
    return outline(version, "Received", seconds, type=type, state=state)


def tally(
    *rows: Outline, resets: Mapping[OutlineSpot, int | None] | None = None, status: str = "running"
) -> WorkflowTally:
    row = InstanceRow(1, WORKFLOW, "o-1", rows[-1][1], status, "Any", None, 1, b"{}", BEGAN_US, 90 * SECOND_US)  # type: ignore[arg-type]
    account = Account(now_us=100 * SECOND_US)
    account.take(OutlinePage([row], rows, dict(resets or {})))
    return account.closed()[WORKFLOW]


def told(*rows: Outline, **more: object) -> WorkflowFigures:
    return workflow_figures(WORKFLOW, tally(*rows, **more))  # type: ignore[arg-type]


def seconds(found: WorkflowTally) -> dict[str, list[float]]:
    return {state: [value / SECOND_US for value in sample.values] for state, sample in found.dwell.items()}


BEGAN = outline(1, "Began", 0)
TAKEN = outline(2, "InitiatedBy", 0, type="Place", state="A")
PLACED = ("Place", "A")


def test_after_a_reset_the_instance_stays_in_the_state_that_it_went_back_to() -> None:
    reset = outline(4, "Reset", 20, actor="ann")
    found = tally(BEGAN, TAKEN, took(3, 10, "B"), reset, took(5, 50, "C"), resets={(1, 4): 2})
    assert seconds(found) == {"A": [10, 30], "B": [10]}
    assert (found.resets, found.entered_again) == (1, {"A": 1})


def test_a_reset_to_nobody_knows_where_leaves_the_state_open() -> None:
    reset = outline(4, "Reset", 20, actor="ann")
    found = tally(BEGAN, TAKEN, took(3, 10, "B"), reset, took(5, 50, "C"), took(6, 60, "D"), resets={(1, 4): None})
    assert seconds(found) == {"A": [10], "B": [10], "C": [10]}


def test_a_reset_after_the_end_lets_the_instance_wait_again() -> None:
    rows = (BEGAN, TAKEN, took(3, 10, "B"), outline(4, "Completed", 10), outline(5, "Reset", 40, actor="ann"))
    found = tally(*rows, resets={(1, 5): 2})
    assert (seconds(found), len(found.waiting["A"])) == ({"A": [10]}, 1)


def test_one_that_begins_anew_is_another_run() -> None:
    rows = (
        BEGAN,
        TAKEN,
        outline(3, "Completed", 0),
        outline(4, "Began", 30),
        took(5, 30, "A"),
        outline(6, "Failed", 30),
    )
    found = told(*rows)
    assert (found.begun, found.ended, found.failure_rate) == (2, {"completed": 1, "failed": 1}, 0.5)
    assert [state.again for state in found.states] == []


def test_without_a_whole_history_only_duration_and_throughput_are_told() -> None:
    found = told(took(7, 20, "A"), took(9, 30, "B"), outline(10, "Completed", 30))
    assert (found.incomplete, found.states, found.variants.distinct) == (1, (), 0)
    assert found.durations["completed"].p50 == 30 - BEGAN_US / SECOND_US


def test_one_that_has_ended_waits_for_nothing_though_its_end_is_not_kept() -> None:
    rows = (took(7, 20, "A"), outline(9, "Kept", 30, type="Late", kind="result", cause=3))
    assert told(*rows, status="completed").states == ()
    (state,) = told(*rows, status="running").states
    assert (state.state, state.waiting) == ("A", 1)


def test_a_gap_makes_a_history_incomplete_once() -> None:
    found = tally(BEGAN, TAKEN, took(5, 10, "B"), took(8, 20, "C"))
    assert (found.incomplete, seconds(found)) == (1, {})


def test_a_fault_is_nobodys_and_a_suspension_somebodys() -> None:
    rows = (BEGAN, TAKEN, outline(3, "Suspended", 1), outline(4, "Resumed", 2), outline(5, "Suspended", 3, actor="ann"))
    found = told(*rows)
    assert (found.faults, found.suspensions) == (1, 1)


def test_the_state_of_the_last_step_was_not_waited_in() -> None:
    own = tally(BEGAN, TAKEN, took(3, 10, "B"), outline(4, "Completed", 10))
    assert seconds(own) == {"A": [10]}
    same_state = tally(BEGAN, TAKEN, took(3, 10, "A"), outline(4, "Completed", 10))
    assert seconds(same_state) == {"A": [10]}


def test_the_state_in_which_somebody_ended_it_was() -> None:
    found = tally(BEGAN, TAKEN, took(3, 10, "B"), outline(4, "Cancelled", 50, actor="ann"))
    assert seconds(found) == {"A": [10], "B": [40]}


def test_what_an_operators_cancelling_undoes_is_done_in_no_state_that_is_known() -> None:
    undoing, undone = outline(3, "Compensating", 10, actor="ann"), outline(4, "Compensated", 30, type="Refund", cause=3)
    found = tally(BEGAN, TAKEN, undoing, undone, outline(5, "Cancelled", 30, actor="ann"), status="cancelled")
    assert seconds(found) == {"A": [10]}
    assert seconds(tally(BEGAN, TAKEN, undoing)) == {"A": [10]}


def test_an_event_at_a_time_that_no_calendar_has_hides_no_other() -> None:
    found = told(BEGAN, TAKEN, took(3, 10, "B"), outline(4, "Completed", 2**60 / SECOND_US), status="completed")
    assert (found.begun, found.ended, found.events) == (1, {}, 3)
    assert [interval.begun for interval in found.throughput.intervals] == [1]


def test_an_instance_to_which_nothing_happened_in_a_window_is_not_in_its_figures() -> None:
    row = InstanceRow(1, WORKFLOW, "o-1", 3, "running", "B", None, 1, b"{}", BEGAN_US, 10 * SECOND_US)
    found: list[WorkflowTally] = []
    for since in (10, 11):
        account = Account(now_us=100 * SECOND_US, since_us=since * SECOND_US)
        account.take(OutlinePage([row], [BEGAN, TAKEN, took(3, 10, "B")]))
        found.append(account.closed()[WORKFLOW])
    assert [dict(tally.statuses) for tally in found] == [{"running": 1}, {}]
    assert [len(tally.waiting["B"]) for tally in found] == [1, 0]


def test_a_compensation_is_a_step_that_stays_in_its_state() -> None:
    sent = outline(3, "Sent", 0, type="Refund", cause=2)
    done = outline(4, "Compensated", 25, type="Refund", kind="result", cause=3)
    found = tally(BEGAN, TAKEN, sent, done, outline(5, "Failed", 25))
    assert seconds(found) == {"A": [25]}
    assert (found.commands["Refund"].answered, found.commands["Refund"].calls) == (1, 0)


def test_the_way_of_one_that_failed_behind_its_compensations_ends_where_it_stands() -> None:
    done = outline(3, "Compensated", 25, type="Refund", kind="result", cause=2)
    failed, late = outline(4, "Failed", 25), outline(5, "Kept", 30, type="Late", kind="result", cause=2)
    anew = (outline(5, "Began", 40), outline(6, "InitiatedBy", 40, type="Place", state="A"))
    assert told(BEGAN, TAKEN, done, failed, late, status="failed").variants.top[0].steps == (PLACED, ("Refund", "Any"))
    # Of an earlier life no row tells where it ended.
    assert told(BEGAN, TAKEN, done, failed, *anew).variants.top[0].steps == (PLACED, ("Refund", "A"))
    back = outline(5, "Reset", 40)
    assert told(BEGAN, TAKEN, done, failed, back, resets={(1, 5): 2}).variants.top[0].steps == (PLACED, ("Refund", "A"))


def test_a_result_that_came_after_the_end_still_says_how_long_it_took() -> None:
    sent = outline(3, "Sent", 0, type="Charge", cause=2)
    kept = outline(5, "Kept", 9, type="Charged", kind="result", cause=3, attempt=2)
    (command,) = told(BEGAN, TAKEN, sent, outline(4, "Completed", 1), kept).commands
    assert (command.answered, command.attempts, command.retry_rate) == (1, 2, 1.0)
    assert command.handling is not None
    assert (command.handling.p50, command.until_answer and command.until_answer.p50) == (0.07, 9.0)


def test_a_command_that_is_sent_again_is_told() -> None:
    sends = [outline(3 + n, "Sent", n, type="Charge", cause=2) for n in range(3)]
    (command,) = told(BEGAN, TAKEN, *sends).commands
    assert (command.sent, command.again) == (3, 2)


def test_a_step_that_follows_itself_is_told_once() -> None:
    ticks = [took(3 + n, n, "A", "Tick") for n in range(5)]
    found = told(BEGAN, TAKEN, *ticks, outline(8, "Completed", 9))
    assert [variant.steps for variant in found.variants.top] == [(("Place", "A"), ("Tick", "A"))]


def test_a_long_path_is_cut_and_shows_it() -> None:
    ticks = [took(3 + n, n, "AB"[n % 2], "Tick") for n in range(2 * PATH_STEPS)]
    found = told(BEGAN, TAKEN, *ticks, outline(3 + len(ticks), "Completed", 999))
    (variant,) = found.variants.top
    assert (len(variant.steps), variant.steps[-1]) == (PATH_STEPS + 1, CUT)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_reset_of_a_real_instance_is_read_through_the_seal(tmp_path: Path, sealed: bool) -> None:
    app = Mainspring(
        f"sqlite:///{tmp_path / 'c.db'}", seal=Encrypted(StaticKeys({"2026": bytes(32)})) if sealed else None
    )
    app.add(Counter())

    async def run() -> WorkflowFigures:
        async with app:
            await app.send(Count("c-1"))
            await app.send(Count("c-1"))
            await app.instance(Counter, "c-1").reset(2, "once more", actor="ann")
            (found,) = (await figures_of(internals_of(app).engine.store, InstanceFilter())).workflows
            return found

    found = asyncio.run(run())
    assert (found.resets, found.begun, [state.state for state in found.states]) == (1, 1, ["Counted"])
    (state,) = found.states
    assert (state.waiting, state.again) == (1, 1)


# ---- timers and steps


def timer(version: int, seconds: float, type: str = "Late") -> Outline:
    return outline(version, "Scheduled", seconds, type=type)


def fired(version: int, seconds: float, cause: int, state: str = "A") -> Outline:
    return outline(version, "Received", seconds, type="Late", state=state, kind="timer", cause=cause)


def test_a_timer_fires_or_is_left_over_when_its_instance_ends() -> None:
    rows = (BEGAN, TAKEN, timer(3, 0), timer(4, 0), timer(5, 0, "Later"), fired(6, 10, cause=3))
    running = told(*rows)
    ended = told(*rows, outline(7, "Completed", 20), status="completed")
    assert [(each.type, each.set, each.fired, each.over) for each in running.timers] == [
        ("Late", 2, 1, 0),
        ("Later", 1, 0, 0),
    ]
    assert [(each.type, each.set, each.fired, each.over) for each in ended.timers] == [
        ("Late", 2, 1, 1),
        ("Later", 1, 0, 1),
    ]


def test_a_timer_that_a_reset_undid_is_not_left_over() -> None:
    rows = (BEGAN, TAKEN, timer(3, 0), took(4, 10, "B"), timer(5, 10), outline(6, "Reset", 20, actor="ann"))
    found = told(*rows, outline(7, "Completed", 30), resets={(1, 6): 3}, status="completed")
    assert [(each.set, each.fired, each.over) for each in found.timers] == [(2, 0, 1)]


def test_an_input_counts_as_a_step_from_the_state_in_which_it_came() -> None:
    found = told(BEGAN, TAKEN, took(3, 10, "B"), took(4, 20, "B"), took(5, 30, "B"))
    assert [(step.source, step.message, step.target, step.count) for step in found.steps] == [
        ("B", "Go", "B", 2),
        (None, "Place", "A", 1),
        ("A", "Go", "B", 1),
    ]


def test_an_input_in_a_state_that_nobody_knows_is_no_step() -> None:
    reset = outline(4, "Reset", 20, actor="ann")
    found = told(BEGAN, TAKEN, took(3, 10, "B"), reset, took(5, 50, "C"), resets={(1, 4): None})
    assert [(step.source, step.target) for step in found.steps] == [(None, "A"), ("A", "B")]
