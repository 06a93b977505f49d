from __future__ import annotations

from typing import Any

import pytest

from mainspring import (
    Asked,
    Compensating,
    Completed,
    Kind,
    Received,
    ScheduleCancelled,
    Scheduled,
    TaskClosed,
)
from mainspring.core.decisions import task_timer_key
from mainspring.core.events import Reset
from mainspring.core.open_work import OpenWork
from mainspring.core.story import Entry


def after(*events: Any) -> OpenWork:
    work = OpenWork()
    for position, event in enumerate(events, 1):
        work.take(Entry(position, event))
    return work


def asked(key: str, *answers: str) -> Asked:
    return Asked(key, f"What of {key}?", answers)


LATE = Scheduled("late", after=None, at=None, key="late")
OTHER = Scheduled("other", after=None, at=None, key="other")


def test_a_timer_is_open_until_its_key_is_cancelled() -> None:
    assert list(after(LATE, OTHER).timers) == [1, 2]
    assert list(after(LATE, OTHER, LATE, ScheduleCancelled("late")).timers) == [2]


def test_a_timer_that_an_input_answers_is_open_no_more() -> None:
    work = after(LATE, LATE)
    work.take(Entry(3, Received("late"), Kind.TIMER, cause=2))
    assert list(work.timers) == [1]


def test_an_input_that_answers_something_else_leaves_timers_alone() -> None:
    work = after(LATE, LATE)
    work.take(Entry(3, Received("late"), Kind.RESULT, cause=2))
    work.take(Entry(4, Received("late"), Kind.TIMER))
    assert list(work.timers) == [1, 2]


def test_of_timers_with_one_message_the_first_fires() -> None:
    work = after(LATE, OTHER, LATE)
    assert work.fire("late")
    assert list(work.timers) == [2, 3]
    assert not work.fire("never scheduled")
    assert list(work.timers) == [2, 3]


@pytest.mark.parametrize("event", [Compensating("no car"), Reset(1, "once more")])
def test_an_undoing_and_a_reset_leave_no_timer_and_every_task(event: Any) -> None:
    work = after(LATE, asked("a", "Yes"), event)
    assert (work.timers, list(work.tasks), work.ended) == ({}, ["a"], False)


def test_an_end_leaves_nothing_open() -> None:
    work = after(LATE, asked("a", "Yes"), Completed())
    assert (work.timers, work.tasks, work.ended) == ({}, {}, True)


def test_a_task_is_open_until_it_is_closed_and_its_reminders_with_it() -> None:
    reminder = Scheduled("remind", after=None, at=None, key=task_timer_key("a"))
    assert list(after(asked("a", "Yes"), reminder).timers) == [2]
    work = after(asked("a", "Yes"), reminder, LATE, TaskClosed("a"), TaskClosed("of no task"))
    assert (list(work.timers), work.tasks) == ([3], {})


def test_a_task_that_is_asked_again_stands_last_and_has_new_reminders() -> None:
    reminder = Scheduled("remind", after=None, at=None, key=task_timer_key("a"))
    work = after(asked("a", "Yes"), reminder, asked("b", "Yes"), asked("a", "Yes", "No"))
    assert (list(work.timers), list(work.tasks)) == ([], ["b", "a"])


def test_an_answer_is_for_the_first_open_task_that_takes_its_type() -> None:
    work = after(asked("a", "Yes"), asked("b", "Yes", "No"))
    assert [work.answered(name) for name in ("Yes", "No", "Perhaps")] == ["a", "b", None]
