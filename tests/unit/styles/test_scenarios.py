"""Tests of workflows in the history style, in that style's own words."""

from datetime import timedelta
from typing import Any

import pytest

from mainspring import Complete, Fail, Schedule, Send
from mainspring.core.events import Completed, Failed, Occurrence, Scheduled, Sent
from mainspring.errors import InstanceEndedError, InvalidDecisionError
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_events import History
from mainspring.styles.history_words import (
    CompleteWorkflow,
    FailWorkflow,
    HistoryCommand,
    HistoryEvent,
    RunTask,
    ScheduleTask,
    StartTimer,
    StartWorkflow,
    TaskCompleted,
    TaskFailed,
    TaskScheduled,
    TimerFired,
    TimerScheduled,
    WaitForEvent,
    WorkflowCompleted,
    WorkflowFailed,
    WorkflowResult,
    WorkflowStarted,
)
from mainspring.testing import Rehearsal, given
from tests.unit.styles.test_history import APPROVED, DAY, STARTED, VALIDATED, Order, at


def test_a_test_is_written_in_the_words_of_the_style_alone() -> None:
    begun = given(Order(), WorkflowStarted("o-1", {"sku": "A-1"}))
    begun.when(TaskCompleted("validate-1", {"ok": True})).then(StartTimer("approval", DAY), WaitForEvent("approved"))
    given(Order()).when(WorkflowStarted("o-1", 1)).then(ScheduleTask("validate-1", "validate", 1))
    given(Order(), WorkflowStarted("o-1", 1), VALIDATED).when(APPROVED).then(CompleteWorkflow({"approved by": "ann"}))
    given(Order(), STARTED, VALIDATED).when(TimerFired("approval")).then(FailWorkflow("nobody approved"))


def test_a_past_may_be_a_whole_history_with_its_times() -> None:
    past = (
        WorkflowStarted("o-1", {"sku": "A-1"}, 10.0),
        TaskScheduled("validate-1", "validate", {"sku": "A-1"}, 10.0),
        TaskCompleted("validate-1", {"ok": True}, 20.0),
        TimerScheduled("approval", 20.0 + DAY.total_seconds(), 20.0),
    )
    rehearsal = Rehearsal(Order())
    for word in past:
        rehearsal.live(word)

    assert list(rehearsal.state) == list(past)
    assert [event.timestamp for event in rehearsal.state] == [event.timestamp for event in past]
    given(Order(), *past).when(APPROVED).then(CompleteWorkflow({"approved by": "ann"}))


def test_what_the_code_does_not_order_by_itself_can_be_said_too() -> None:
    class Idle(HistoryWorkflow):
        def decide(self, events: History) -> list[HistoryCommand]:
            return [CompleteWorkflow("done")] if events.result_of("old-1") and events.has_fired("old") else []

    old = TaskScheduled("old-1", "old", None), TimerScheduled("old", 60.0, 0.0), TaskCompleted("old-1", True)
    given(Idle(), STARTED, *old).when(TimerFired("old")).then(CompleteWorkflow("done"))
    ended = given(Idle(), STARTED, WorkflowFailed("by hand")).when(APPROVED)
    ended.then_raises(InstanceEndedError)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        (WorkflowStarted("o-1", 1), StartWorkflow("o-1", 1)),
        (TaskScheduled("t", "name", 1), Sent(RunTask("t", "name", 1))),
        (TimerScheduled("t", 90.0, 30.0), Scheduled(TimerFired("t"), timedelta(seconds=60), None, "t")),
        (WorkflowCompleted(1), Completed(WorkflowResult(1))),
        (WorkflowFailed("no"), Failed("no")),
        (ScheduleTask("t", "name", 1), Send(RunTask("t", "name", 1))),
        (StartTimer("t", 5), Schedule(TimerFired("t"), after=timedelta(seconds=5), key="t")),
        (CompleteWorkflow(1), Complete(WorkflowResult(1))),
        (FailWorkflow("no"), Fail("no")),
        (WaitForEvent("approved"), None),
        (STARTED, STARTED),
    ],
)
def test_a_word_stands_for_a_message_an_event_or_a_decision(word: Any, meant: Any) -> None:
    found = Order().meaning_of(word, History())
    time = getattr(word, "timestamp", 0.0)
    assert found == (Occurrence(meant, at(time), 0) if time else meant)


@pytest.mark.parametrize(
    "word",
    [
        TaskScheduled("t", "name", 1, 7.0),
        TimerScheduled("t", 90.0, 7.0),
        WorkflowCompleted(1, 7.0),
        WorkflowFailed("no", 7.0),
    ],
)
def test_what_stands_in_the_history_already_stands_for_nothing_more(word: HistoryEvent) -> None:
    assert Order().meaning_of(word, History([word])) is None


def test_a_test_with_a_delay_that_is_none_is_told_so() -> None:
    with pytest.raises(InvalidDecisionError, match="The test starts the timer 'nap'"):
        Order().meaning_of(StartTimer("nap", -1), History())


def test_another_command_than_was_decided_fails_the_test_and_is_told() -> None:
    with pytest.raises(AssertionError, match="charge") as told:
        given(Order()).when(STARTED).then(ScheduleTask("validate-1", "charge", {"sku": "A-1"}))
    assert "validate" in str(told.value)


def test_a_test_that_fails_tells_it_in_the_words_of_the_style() -> None:
    with pytest.raises(AssertionError) as failed:
        given(Order(), STARTED).when(VALIDATED).then(CompleteWorkflow(1), ScheduleTask("t", "t", None))
    assert "- CompleteWorkflow(result=1)" in str(failed.value)
    assert "+ StartTimer(timer_id='approval', delay=datetime.timedelta(days=1))" in str(failed.value)
    with pytest.raises(AssertionError, match=r"~ ScheduleTask: input\['sku'\]: expected 'B', decided 'A-1'"):
        given(Order()).when(STARTED).then(ScheduleTask("validate-1", "validate", {"sku": "B"}))
    with pytest.raises(AssertionError, match=r"expected ValueError; it decided\n(.*\n)*\+ FailWorkflow\(error='no'\)"):
        given(Order(), STARTED).when(TaskFailed("validate-1", "no")).then_raises(ValueError)
