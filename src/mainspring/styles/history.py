"""The history style: decide looks at the whole history and says which commands should exist by now.

A command that is in the history already is filtered out, and nothing follows the end. The words task, timer and
external event belong to this style alone: its tasks are what handlers do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast

from mainspring.core.decisions import LONGEST_DELAY, Complete, Decision, Fail, Schedule, Send
from mainspring.core.definition import definition_of
from mainspring.core.events import Completed, Event, Failed, Occurrence, Received, Scheduled, Sent
from mainspring.core.failures import SendFailed
from mainspring.core.workflow import Workflow
from mainspring.errors import DefinitionError, InvalidDecisionError, UnknownTransitionError, shown
from mainspring.styles.history_events import History
from mainspring.styles.history_words import (
    CompleteWorkflow,
    ExternalEventReceived,
    FailWorkflow,
    HistoryCommand,
    HistoryEvent,
    HistoryInput,
    HistoryOutput,
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

_Decision: TypeAlias = Decision[HistoryInput, HistoryOutput]
_Event: TypeAlias = Event[HistoryInput, HistoryOutput]

_INPUTS_OF_THE_DEAF: Final[Any] = StartWorkflow | TaskCompleted | TaskFailed | TimerFired | ExternalEventReceived

# What says that there are no more attempts says nothing of why.
_NO_MORE: Final = "DoNotRetryError: "

_UNHEEDED: Final = (
    "Nothing is under way any more, and it would wait for ever: give decide a case for TaskFailed, "
    "return [WaitForEvent(…)] there if it waits for something outside"
)


class HistoryWorkflow(Workflow[HistoryInput, History, HistoryOutput, Any]):
    """A workflow whose decide takes the history and returns commands.

    >>> from mainspring.testing import given
    >>> class Greeting(HistoryWorkflow):
    ...     def decide(self, events):
    ...         match events[-1]:
    ...             case WorkflowStarted(_, name):
    ...                 return [ScheduleTask("greet-1", "greet", name)]
    ...             case _:
    ...                 return [CompleteWorkflow("greeted")]
    >>> _ = given(Greeting()).when(StartWorkflow("g-1", "Ada")).then(Send(RunTask("greet-1", "greet", "Ada")))
    """

    begins = StartWorkflow
    # Ends of tasks come from the app's own code. Who lets others send them names them too.
    from_outside = (StartWorkflow, ExternalEventReceived)
    initial_state = History()
    snapshot_every = None  # the state is the history: each copy of it is as long, and saves reading only

    on_task_error: ClassVar[Literal["fail", "suspend"]] = "fail"
    """What a task means whose handler gave up: `fail`, it is in the history as TaskFailed; `suspend`, the instance
    stops, the task is a dead letter, and the instance goes on when that was retried."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.on_task_error not in ("fail", "suspend"):
            problem = f"has on_task_error = {shown(cls.on_task_error, 80)}"
            raise DefinitionError(cls.__name__, problem, 'Use "fail" or "suspend".')
        # A workflow with SendFailed among its inputs gets it; one without is suspended.
        inputs: Any = HistoryInput if cls.on_task_error == "fail" else _INPUTS_OF_THE_DEAF
        cls.__orig_bases__ = (Workflow[inputs, History, HistoryOutput],)

    def route(self, message: HistoryInput, /) -> str | None:
        match message:
            case StartWorkflow(workflow_id) | ExternalEventReceived(workflow_id):
                return workflow_id
            case TaskCompleted() | TaskFailed():
                return message.workflow_id  # without one it comes back to the instance that asked, past route
            case _:
                return None

    def decide(self, events: History, /) -> Sequence[HistoryCommand]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the commands that should exist by now, those already given among them."""
        raise NotImplementedError

    def meaning_of(self, word: Any, state: History, /) -> Any:
        meant = _meaning_of(word, state)
        timestamp: float = getattr(word, "timestamp", 0.0)
        if meant is None or not timestamp:
            return meant
        return Occurrence(meant, datetime.fromtimestamp(timestamp, UTC), 0)

    def word_for(self, decision: Any, /) -> Any:
        match decision:
            case Send(RunTask(task_id, task_name, input)):
                return ScheduleTask(task_id, task_name, input)
            case Schedule(TimerFired(timer_id), timedelta() as after):
                return StartTimer(timer_id, after)
            case Complete(WorkflowResult(result)):
                return CompleteWorkflow(result)
            case Fail(reason):
                return FailWorkflow(reason)
            case _:
                return decision

    def result_of(self, result: Any, /) -> Any:
        return result.value if isinstance(result, WorkflowResult) else result

    def decide_on(self, asked: Occurrence[Received[Any]], state: History, /) -> list[_Decision] | None:
        happened = _entered(asked.event.message, asked, state)
        if happened is None:
            return []
        events, definition = state.before(happened), definition_of(type(self))
        commands = self.decide(events)
        decided = list(_new_decisions(definition.name, events, commands))
        if decided or isinstance(happened, ExternalEventReceived) or any(isinstance(c, WaitForEvent) for c in commands):
            return decided
        failed = events.unheeded()
        if failed is None or definition.unknown_transition == "ignore":
            return [] if failed is None else None
        raise UnknownTransitionError(definition.name, failed, events, _UNHEEDED)

    def evolve(self, state: History, event: Occurrence[_Event], /) -> History | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        happened = _happened(event, state)
        return None if happened is None else state.appended(happened, event.position)


def _entered(message: HistoryInput, at: Occurrence[Any], before: History) -> HistoryEvent | None:
    """Return the event that an input is; None for what is passed over: the end of no task, or of one that has ended."""
    time = at.time.timestamp()
    match message:
        case StartWorkflow(workflow_id, input):
            return WorkflowStarted(workflow_id, input, time)
        case ExternalEventReceived(workflow_id, event_name, payload):
            return ExternalEventReceived(workflow_id, event_name, payload, time)
        case TimerFired(timer_id):
            return TimerFired(timer_id, time)
        case TaskCompleted(task_id, result):
            return TaskCompleted(task_id, result, time) if _is_open(before, task_id) else None
        case TaskFailed(task_id, error):
            return TaskFailed(task_id, error, time) if _is_open(before, task_id) else None
        case SendFailed():
            failed = _task_of(message, at, before)
            if failed is None or not _is_open(before, failed):
                return None
            return TaskFailed(failed, message.error.removeprefix(_NO_MORE), time)


def _is_open(events: History, task_id: str) -> bool:
    return events.has_scheduled(task_id) and events.end_of(task_id) is None


def _task_of(failed: SendFailed, at: Occurrence[Any], before: History) -> str | None:
    """Return the id of the task that failed. A command that is too large does not stand in the failure."""
    command = failed.command
    if not isinstance(command, dict):
        return before.task_at(at.cause)
    return cast("dict[str, Any]", command).get("task_id")


def _happened(at: Occurrence[_Event], before: History) -> HistoryEvent | None:
    time = at.time.timestamp()
    match at.event:
        case Received(message):
            return _entered(message, at, before)
        case Sent(RunTask(task_id, task_name, input)) if not before.has_scheduled(task_id):
            return TaskScheduled(task_id, task_name, input, time)
        case Scheduled(TimerFired(timer_id), after) if after is not None and not before.has_started(timer_id):
            return TimerScheduled(timer_id, (at.time + after).timestamp(), time)
        case Completed(result):
            return WorkflowCompleted(result.value if isinstance(result, WorkflowResult) else None, time)
        case Failed(reason):
            return WorkflowFailed(reason, time)
        case _:
            return None


def _new_decisions(name: str, events: History, commands: Any) -> Iterator[_Decision]:
    """Yield the decisions for what the history does not hold yet; nothing follows an end."""
    if not isinstance(commands, (list, tuple)):
        problem = f"{name} decided {shown(commands)}, which is no list of commands"
        raise InvalidDecisionError(problem, "Return a list, as in [CompleteWorkflow(…)], or [] to wait.")
    given: set[tuple[str, str]] = set()
    for command in cast("Sequence[HistoryCommand]", commands):
        match command:
            case ScheduleTask(task_id, task_name, input):
                if not events.has_scheduled(task_id) and ("task", task_id) not in given:
                    given.add(("task", task_id))
                    yield Send(RunTask(task_id, task_name, input, _workflow_id(events), name))
            case StartTimer(timer_id, delay):
                after = _delay(name, timer_id, delay)
                if not events.has_started(timer_id) and ("timer", timer_id) not in given:
                    given.add(("timer", timer_id))
                    yield Schedule(TimerFired(timer_id), after=after, key=timer_id)
            case CompleteWorkflow(result):
                yield Complete(WorkflowResult(result))
                return
            case FailWorkflow(error):
                yield Fail(error)
                return
            case WaitForEvent():
                pass
            case _:
                problem = f"{name} decided {shown(command)}, which is no command of this style"
                raise InvalidDecisionError(
                    problem, "Use ScheduleTask, StartTimer, WaitForEvent, Complete… or FailWorkflow."
                )


def _workflow_id(events: History) -> str:
    first = events[0]
    return first.workflow_id if isinstance(first, WorkflowStarted) else ""


def _delay(name: str, timer_id: str, delay: Any) -> timedelta:
    """Return how long a timer runs; a number is seconds."""
    seconds: Any = delay.total_seconds() if isinstance(delay, timedelta) else delay
    if type(seconds) in (int, float) and 0 <= seconds <= LONGEST_DELAY.total_seconds():
        return delay if isinstance(delay, timedelta) else timedelta(seconds=seconds)
    problem = f"{name} starts the timer {shown(timer_id, 80)} with a delay of {shown(delay, 80)}"
    raise InvalidDecisionError(problem, "Give seconds from 0 on, as in 90 or 0.5, or a timedelta.")


def _meaning_of(word: Any, before: History) -> Any:
    """Return what a word stands for in a test; None for what follows by itself, and is in the history already."""
    match word:
        case WorkflowStarted(workflow_id, input):
            return StartWorkflow(workflow_id, input)
        case TaskScheduled(task_id, task_name, input):
            return None if before.has_scheduled(task_id) else Sent(RunTask(task_id, task_name, input))
        case TimerScheduled(timer_id, fire_at, timestamp):
            after = timedelta(seconds=fire_at - timestamp)
            return None if before.has_started(timer_id) else Scheduled(TimerFired(timer_id), after, None, timer_id)
        case WorkflowCompleted(result):
            return None if before.of(WorkflowCompleted) else Completed(WorkflowResult(result))
        case WorkflowFailed(error):
            return None if before.of(WorkflowFailed) else Failed(error)
        case ScheduleTask(task_id, task_name, input):
            return Send(RunTask(task_id, task_name, input))
        case StartTimer(timer_id, delay):
            return Schedule(TimerFired(timer_id), after=_delay("The test", timer_id, delay), key=timer_id)
        case CompleteWorkflow(result):
            return Complete(WorkflowResult(result))
        case FailWorkflow(error):
            return Fail(error)
        case WaitForEvent():
            return None
        case _:
            return word
