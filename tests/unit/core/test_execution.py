from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring.core import events
from mainspring.core.execution import LogLine, execution_log, unbegun, with_attempts
from mainspring.core.messages import Kind
from mainspring.core.story import Entry
from mainspring.core.unkept import NotKept
from tests.unit.core.orders import PlaceOrder

ORDER = PlaceOrder("o-1", 1)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.mark.parametrize(
    ("event", "what", "about"),
    [
        (events.InitiatedBy(ORDER), "Started", "PlaceOrder"),
        (events.Received(ORDER), "Stepped", "PlaceOrder"),
        (events.Received(NotKept("PlaceOrder")), "Stepped", "PlaceOrder"),
        (events.Suspended("it failed"), "Faulted", "it failed"),
        (events.Skipped(ORDER), "Skipped", "PlaceOrder"),
        (events.Kept(ORDER), "Kept", "PlaceOrder"),
        (events.Resumed(), "Resumed", ""),
        (events.Retried(3), "Retried", "position 3"),
        (events.Resent(ORDER), "Resent", "PlaceOrder"),
        (events.Reset(3, "again"), "Reset", "to 3: again"),
        (events.Migrated(2), "Migrated", "to workflow version 2"),
        (events.Completed(), "Completed", ""),
        (events.Completed(ORDER), "Completed", "PlaceOrder"),
        (events.Failed("no"), "Failed", "no"),
        (events.Cancelled("no"), "Cancelled", "no"),
        (events.Compensating("no"), "Compensating", "no"),
        (events.Compensated(ORDER), "Compensated", "PlaceOrder"),
        (events.Terminated("no"), "Terminated", "no"),
    ],
)
def test_what_happened_to_an_instance_is_one_line(event: Any, what: Any, about: str) -> None:
    assert execution_log([Entry(4, event)]) == [LogLine(4, what, None, about)]


def test_a_refused_answer_is_a_line_with_its_type_and_the_reason() -> None:
    (line,) = execution_log([Entry(4, events.AnswerRefused(ORDER, "approval", "no note"), actor="bob")])
    assert (line.what, line.about, line.command, line.actor) == ("Refused", "no note", "PlaceOrder", "bob")


@pytest.mark.parametrize("event", [events.Began(), events.Sent("x"), events.Became("x"), events.TaskClosed("k")])
def test_what_was_only_decided_is_no_line(event: Any) -> None:
    assert execution_log([Entry(4, event)]) == []


def test_a_line_about_nothing_in_particular_needs_no_text() -> None:
    assert execution_log([Entry(4, events.Resumed())]) == [LogLine(4, "Resumed", None)]


def test_an_instance_that_somebody_stopped_did_not_fault() -> None:
    assert execution_log([Entry(4, events.Suspended("wait"), actor="ann")])[0].what == "Suspended"


def test_a_line_has_all_that_its_entry_knows() -> None:
    moment, took = datetime(2026, 1, 1, tzinfo=UTC), timedelta(seconds=2)
    entry = Entry(
        4, events.Received(ORDER), Kind.RESULT, time=moment, actor="ann", state="Paid", attempt=3, duration=took
    )
    assert execution_log([Entry(3, events.Sent("x")), entry]) == [
        LogLine(4, "Stepped", moment, "PlaceOrder", "Paid", "ann", Kind.RESULT, 3, took.total_seconds())
    ]


def test_spans_are_read_as_such_and_none_stays_none() -> None:
    line = LogLine(4, "Stepped", None, duration_seconds=2.5, answered_after_seconds=60.0, waited_seconds=0.0)
    assert (line.duration, line.answered_after, line.waited) == (timedelta(seconds=2.5), MINUTE, timedelta(0))
    assert (LogLine(4, "Stepped", None).duration, LogLine(4, "Stepped", None).waited) == (None, None)


def times(asked: Entry, answer: Entry) -> tuple[timedelta | None, timedelta | None]:
    """Return what the last line of a stream of the two says of its times."""
    line = execution_log([asked, answer])[-1]
    return line.answered_after, line.waited


@pytest.mark.parametrize(
    "answer",
    [
        events.Received(ORDER),
        events.Kept(ORDER),
        events.Skipped(ORDER),
        events.AnswerRefused(ORDER, "approval", "no note"),
        events.Compensated(ORDER),
        events.Suspended("it failed", failed=3),
    ],
)
def test_an_answer_says_how_long_after_the_question_it_came(answer: Any) -> None:
    asked = Entry(3, events.Sent("x"), time=NOON, cause=2)
    assert times(asked, Entry(4, answer, time=NOON + MINUTE, cause=3)) == (MINUTE, None)


@pytest.mark.parametrize(
    ("timer", "taken_after", "waited"),
    [
        (events.Scheduled("late", after=HOUR, at=None, key="k"), HOUR + MINUTE, MINUTE),
        (events.Scheduled("late", after=None, at=NOON + HOUR, key="k"), HOUR + MINUTE, MINUTE),
        (events.Scheduled("late", after=HOUR, at=None, key="k"), HOUR - MINUTE, timedelta(0)),
    ],
    ids=["after a time", "at a time", "before it was due"],
)
def test_a_timer_says_for_how_long_it_was_due(timer: Any, taken_after: timedelta, waited: timedelta) -> None:
    taken = Entry(4, events.Received(ORDER), time=NOON + taken_after, cause=3)
    assert times(Entry(3, timer, time=NOON), taken) == (taken_after, waited)


def test_a_clock_that_was_set_back_takes_no_time_away() -> None:
    answer = Entry(4, events.Received(ORDER), time=NOON - MINUTE, cause=3)
    assert times(Entry(3, events.Sent("x"), time=NOON), answer) == (timedelta(0), None)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (Entry(3, events.Received("x"), time=NOON), Entry(4, events.Kept(ORDER), time=NOON, cause=3)),
        (Entry(3, events.Compensated("x"), time=NOON), Entry(4, events.Failed("no"), time=NOON, cause=3)),
        (Entry(3, events.Sent("x"), time=NOON), Entry(4, events.Received(ORDER), time=NOON)),
        (Entry(3, events.Sent("x"), time=NOON), Entry(4, events.Received(ORDER), time=NOON, cause=2)),
        (Entry(3, events.Sent("x")), Entry(4, events.Received(ORDER), time=NOON, cause=3)),
        (Entry(3, events.Sent("x"), time=NOON), Entry(4, events.Received(ORDER), cause=3)),
    ],
    ids=["behind an input", "an end", "nothing asked", "the question is not there", "never asked", "never answered"],
)
def test_what_answers_nothing_at_a_known_time_has_no_such_times(asked: Entry, answer: Entry) -> None:
    assert times(asked, answer) == (None, None)


def test_a_part_of_a_stream_may_answer_what_was_asked_before_it() -> None:
    asked, answer = Entry(3, events.Sent("x"), time=NOON), Entry(7, events.Received(ORDER), time=NOON + HOUR, cause=3)
    [line] = execution_log([answer], before=[asked])
    assert (line.position, line.answered_after) == (7, HOUR)


def test_an_attempt_that_failed_stands_behind_the_lines_up_to_its_position() -> None:
    lines = [LogLine(2, "Started", None), LogLine(3, "Stepped", None), LogLine(5, "Stepped", None)]
    attempts = [LogLine(3, "Attempted", None, "first"), LogLine(3, "Attempted", None, "second")]
    assert with_attempts(lines, attempts) == [*lines[:2], *attempts, lines[2]]


@pytest.mark.parametrize(
    ("status", "reason", "waits", "what"),
    [
        ("suspended", "no", True, "Faulted"),
        ("suspended", "no", False, "Suspended"),
        ("cancelled", "no", False, "Cancelled"),
        ("terminated", "no", True, "Terminated"),
        ("running", "no", False, "Skipped"),
    ],
)
def test_what_kept_an_instance_from_beginning_is_one_line(status: str, reason: str, waits: bool, what: Any) -> None:
    assert unbegun(status, NOON, reason, "New", waits=waits) == [LogLine(0, what, NOON, reason, "New")]


def test_who_ended_what_had_not_begun_need_not_say_why() -> None:
    assert unbegun("cancelled", NOON, None, None, waits=False) == [LogLine(0, "Cancelled", NOON)]


@pytest.mark.parametrize("status", ["running", "completed"])
def test_where_nothing_kept_it_from_beginning_there_is_no_line(status: str) -> None:
    assert unbegun(status, NOON, None, None, waits=True) == []
