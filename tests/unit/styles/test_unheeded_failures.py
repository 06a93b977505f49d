"""Failures in the history style that decide has no case for: nothing waits for ever without a word."""

from mainspring.errors import UnknownTransitionError
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_events import History
from mainspring.styles.history_words import (
    CompleteWorkflow,
    ExternalEventReceived,
    HistoryCommand,
    ScheduleTask,
    StartTimer,
    TaskCompleted,
    TaskFailed,
    TimerFired,
    WaitForEvent,
    WorkflowStarted,
)
from mainspring.testing import given


class Heedless(HistoryWorkflow):
    """Has two tasks done at once, and says nothing of failures."""

    def decide(self, events: History) -> list[HistoryCommand]:
        if events.has_fired("late") or events.of(ExternalEventReceived):
            return [CompleteWorkflow(None)]
        return [ScheduleTask("t-1", "t", None), ScheduleTask("t-2", "t", None)]


BEGUN = WorkflowStarted("o-1", None)


def test_a_failure_without_a_case_is_no_transition_once_nothing_else_is_under_way() -> None:
    one = given(Heedless(), BEGUN)
    one.when(TaskFailed("t-1", "no stock")).then()  # t-2 may still bring something
    both = given(Heedless(), BEGUN, TaskFailed("t-1", "no stock")).when(TaskCompleted("t-2", None))
    both.then_raises(UnknownTransitionError, match=r"no transition for TaskFailed.*(\n.*)*no stock")
    both.then_raises(UnknownTransitionError, match="give decide a case for TaskFailed")


def test_a_failure_is_heeded_by_a_timer_a_task_or_a_word_that_says_what_is_waited_for() -> None:
    class Heeding(Heedless):
        def decide(self, events: History) -> list[HistoryCommand]:
            match events[0]:
                case WorkflowStarted(_, list(commands)) if events.of(TaskFailed):
                    return commands
                case _:
                    return [ScheduleTask("t-1", "t", None)]

    for command in (ScheduleTask("t-2", "t", None), StartTimer("late", 1), WaitForEvent("mended")):
        failed = given(Heeding(), WorkflowStarted("o-1", [command])).when(TaskFailed("t-1", "no"))
        failed.then(command)
    late = given(Heeding(), WorkflowStarted("o-1", [StartTimer("late", 1)]), TaskFailed("t-1", "no"))
    late.when(TimerFired("late")).then()  # it was heeded
    late.when(ExternalEventReceived("o-1", "mended", None)).then()


def test_a_class_may_ignore_what_it_has_no_case_for() -> None:
    class Careless(Heedless):
        unknown_transition = "ignore"

    given(Careless(), BEGUN, TaskCompleted("t-1", None)).when(TaskFailed("t-2", "no")).then()
