import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Complete, Fail, Mainspring, Receipt, Schedule, Send
from mainspring.codec import Codec
from mainspring.core.definition import definition_of
from mainspring.core.events import Completed, Failed, Scheduled, Sent
from mainspring.core.failures import SendFailed
from mainspring.core.fold import fold, placed
from mainspring.core.messages import Kind
from mainspring.core.route import route
from mainspring.core.step import step
from mainspring.errors import DefinitionError, InvalidDecisionError
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_events import History
from mainspring.styles.history_words import (
    CompleteWorkflow,
    ExternalEventReceived,
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
from mainspring.testing.envelopes import EPOCH, envelope
from tests.support.waiting import until

DAY = timedelta(days=1)


class Order(HistoryWorkflow):
    """Validates, waits for an approval for a day at most, then completes. It repeats itself, as this style does."""

    def decide(self, events: Sequence[HistoryEvent]) -> list[HistoryCommand]:
        started = events[0]
        assert isinstance(started, WorkflowStarted)
        commands: list[HistoryCommand] = [ScheduleTask("validate-1", "validate", started.input)]
        for event in events:
            match event:
                case TaskCompleted("validate-1"):
                    commands += [StartTimer("approval", DAY), WaitForEvent("approved")]
                case ExternalEventReceived(_, "approved", by):
                    commands.append(CompleteWorkflow({"approved by": by}))
                case TaskFailed(_, error):
                    commands.append(FailWorkflow(error))
                case TimerFired():
                    commands.append(FailWorkflow("nobody approved"))
                case _:
                    pass
        return commands


STARTED = StartWorkflow("o-1", {"sku": "A-1"})
VALIDATED = TaskCompleted("validate-1", {"ok": True})
APPROVED = ExternalEventReceived("o-1", "approved", "ann")


def test_a_scheduled_task_is_sent_to_its_handler() -> None:
    given(Order()).when(STARTED).then(Send(RunTask("validate-1", "validate", {"sku": "A-1"})))


def test_a_command_that_is_in_the_history_already_is_not_given_again() -> None:
    given(Order(), STARTED).when(VALIDATED).then(Schedule(TimerFired("approval"), after=DAY, key="approval"))


def test_the_same_command_twice_in_one_answer_is_given_once() -> None:
    class Stutter(HistoryWorkflow):
        def decide(self, events: Sequence[HistoryEvent]) -> list[HistoryCommand]:
            return [ScheduleTask("t", "t", None), ScheduleTask("t", "t", None)]

    given(Stutter()).when(STARTED).then(Send(RunTask("t", "t", None)))


def test_an_external_event_completes_with_a_result() -> None:
    given(Order(), STARTED, VALIDATED).when(APPROVED).then(Complete(WorkflowResult({"approved by": "ann"})))


def test_a_failed_task_and_a_fired_timer_fail_the_workflow() -> None:
    given(Order(), STARTED).when(TaskFailed("validate-1", "no stock")).then(Fail("no stock"))
    given(Order(), STARTED, VALIDATED).when(TimerFired("approval")).then(Fail("nobody approved"))


def test_the_same_timer_twice_is_started_once_and_no_task_stands_in_its_way() -> None:
    class Stutter(HistoryWorkflow):
        def decide(self, events: History) -> tuple[HistoryCommand, ...]:
            return ScheduleTask("x", "t", None), StartTimer("x", 1), StartTimer("x", 2), StartTimer("y", 3)

    x, y = (Schedule(TimerFired(id), after=timedelta(seconds=s), key=id) for id, s in (("x", 1), ("y", 3)))
    given(Stutter()).when(STARTED).then(Send(RunTask("x", "t", None)), x, y)


def test_nothing_follows_an_end() -> None:
    class Chatty(HistoryWorkflow):
        def decide(self, events: Sequence[HistoryEvent]) -> list[HistoryCommand]:
            return [CompleteWorkflow(None), ScheduleTask("late", "late", None)]

    given(Chatty()).when(STARTED).then(Complete(WorkflowResult(None)))


def test_the_history_tells_everything_in_the_styles_own_words() -> None:
    rehearsal = Rehearsal(Order())
    for message in (STARTED, VALIDATED, APPROVED):
        rehearsal.take(message)

    assert list(rehearsal.state.events) == [
        WorkflowStarted("o-1", {"sku": "A-1"}),
        TaskScheduled("validate-1", "validate", {"sku": "A-1"}),
        VALIDATED,
        TimerScheduled("approval", (EPOCH + DAY).timestamp()),
        APPROVED,
        WorkflowCompleted({"approved by": "ann"}),
    ]


def test_a_failure_is_told_too() -> None:
    rehearsal = Rehearsal(Order())
    rehearsal.take(STARTED)
    rehearsal.take(TaskFailed("validate-1", "no stock"))

    assert rehearsal.state.events[-1] == WorkflowFailed("no stock")


def test_a_replay_gives_the_same_history() -> None:
    rehearsal = Rehearsal(Order())
    for message in (STARTED, VALIDATED, APPROVED):
        rehearsal.take(message)

    order = Order()
    events = placed(definition_of(Order), rehearsal.events, 0, EPOCH)
    assert fold(order, Order.initial_state, events) == rehearsal.state


def folded(*events: Any) -> list[HistoryEvent]:
    return list(fold(Order(), History(), placed(definition_of(Order), events, 0, EPOCH)))


def test_what_is_recorded_twice_is_told_once_and_a_timer_without_a_delay_is_none_of_the_style() -> None:
    task, timer = Sent(RunTask("t", "t", 1)), Scheduled(TimerFired("n"), DAY, None, "n")
    moment = Scheduled(TimerFired("m"), None, EPOCH, "m")
    told = [TaskScheduled("t", "t", 1), TimerScheduled("n", (EPOCH + DAY).timestamp())]
    assert folded(task, timer, task, timer, moment) == told


def test_an_end_without_a_result_is_told_with_none() -> None:
    assert folded(Completed()) == [WorkflowCompleted(None)]
    assert Order().result_of(None) is None


def test_what_the_style_leaves_to_its_author_is_not_there() -> None:
    with pytest.raises(NotImplementedError):
        HistoryWorkflow().decide(History())


def test_what_starts_it_and_what_happens_outside_may_come_from_there_and_no_end_of_a_task() -> None:
    assert definition_of(Order).from_outside == {StartWorkflow, ExternalEventReceived}


def test_a_class_beside_it_is_told_of_its_subclasses() -> None:
    told: list[str] = []

    class Told:
        def __init_subclass__(cls) -> None:
            told.append(cls.__name__)

    class Both(HistoryWorkflow, Told): ...

    assert told == [Both.__name__]


def test_messages_from_outside_are_routed_and_results_come_back_by_themselves() -> None:
    assert route(Order(), STARTED) == "o-1"
    assert route(Order(), APPROVED) == "o-1"
    assert route(Order(), VALIDATED) is None


def test_histories_that_branch_do_not_mix() -> None:
    base = History().appended(WorkflowStarted("o-1", None))
    left = base.appended(TimerFired("left"))
    right = base.appended(TimerFired("right"))

    assert [len(h.events) for h in (base, left, right)] == [1, 2, 2]
    assert left.events[1] == TimerFired("left")
    assert right.events[1] == TimerFired("right")


@pytest.mark.parametrize("returned", [None, CompleteWorkflow(1), "text", [Send(RunTask("t", "t", None))], ["x"]])
def test_what_is_no_list_of_commands_is_refused(returned: Any) -> None:
    class Wrong(HistoryWorkflow):
        def decide(self, events: Sequence[HistoryEvent]) -> Any:
            return returned

    given(Wrong()).when(STARTED).then_raises(InvalidDecisionError, match="Wrong decided")


def test_it_runs_durably_like_any_other(tmp_path: Path) -> None:
    app = Mainspring(f"sqlite:///{tmp_path / 'history.db'}")
    app.add(Order())

    @app.handler
    async def run(task: RunTask) -> TaskCompleted:
        return TaskCompleted(task.task_id, {"ok": True})

    async def main() -> None:
        async with app:
            receipt = await app.send(STARTED)
            await until(lambda: _waits(receipt))
            await app.send(APPROVED)
            assert await receipt.result() == {"approved by": "ann"}
            assert (await app.instance(Order, "o-1").state()).events[-1] == WorkflowCompleted({"approved by": "ann"})

    async def _waits(receipt: Receipt[Any]) -> bool:
        return len(await receipt.outputs(timers=True)) == 1

    asyncio.run(main())


# ---- times, ends, addresses


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def test_every_event_says_when_it_was_recorded_and_a_timer_when_it_is_due() -> None:
    rehearsal = Rehearsal(Order())
    rehearsal.take(STARTED, time=at(1_000))
    rehearsal.take(TaskCompleted("validate-1", {"ok": True}, timestamp=7.0), time=at(1_060.5))
    rehearsal.take(APPROVED, time=at(2_000))

    assert [event.timestamp for event in rehearsal.state] == [1_000, 1_000, 1_060.5, 1_060.5, 2_000, 2_000]
    timer = rehearsal.state[3]
    assert isinstance(timer, TimerScheduled)
    assert timer.fire_at == 1_060.5 + DAY.total_seconds()


def test_decide_sees_the_time_of_what_is_being_taken() -> None:
    seen: list[float] = []

    class Watch(HistoryWorkflow):
        def decide(self, events: History) -> list[HistoryCommand]:
            seen.append(events[-1].timestamp)
            return []

    given(Watch(), guard=False).when(STARTED, time=at(1_234))
    assert seen == [1_234]


def test_a_timestamp_that_a_sender_writes_is_not_recorded() -> None:
    rehearsal = Rehearsal(Order())
    rehearsal.take(STARTED, time=at(5))
    rehearsal.take(TaskCompleted("validate-1", None, 99.0, workflow_id="o-1"), time=at(6))

    end = rehearsal.state.end_of("validate-1")
    assert (end.timestamp, end.workflow_id) == (6, None) if end else False


def test_the_first_end_of_a_task_counts_and_what_ends_no_task_is_passed_over() -> None:
    rehearsal = Rehearsal(Order())
    rehearsal.take(STARTED)
    rehearsal.take(TaskCompleted("another-1", "?"))
    rehearsal.take(VALIDATED)
    count = len(rehearsal.state)
    for late in (TaskCompleted("validate-1", {"ok": False}), TaskFailed("validate-1", "no stock")):
        assert rehearsal.take(late).events[1:] == []

    assert rehearsal.take(GAVE_UP, kind=Kind.RESULT).events[1:] == []
    assert len(rehearsal.state) == count
    assert rehearsal.state.result_of("validate-1") == {"ok": True}
    assert rehearsal.state.of(TaskCompleted) == [VALIDATED]


def test_decide_is_not_asked_about_what_is_passed_over() -> None:
    asked: list[HistoryEvent] = []

    class Watch(HistoryWorkflow):
        def decide(self, events: History) -> list[HistoryCommand]:
            asked.append(events[-1])
            return []

    rehearsal = Rehearsal(Watch())
    rehearsal.take(STARTED)
    asked.clear()
    rehearsal.take(VALIDATED)
    assert asked == []


def test_an_end_that_comes_from_elsewhere_says_which_workflow_it_is_for() -> None:
    assert route(Order(), TaskCompleted("validate-1", None, workflow_id="o-1")) == "o-1"
    assert route(Order(), TaskFailed("validate-1", "no", workflow_id="o-1")) == "o-1"


def test_what_is_stored_of_a_message_holds_nothing_that_has_its_default() -> None:
    codec = Codec()
    codec.register(TaskCompleted, TimerFired, RunTask)
    assert codec.encode(VALIDATED).body == b'{"task_id":"validate-1","result":{"ok":true}}'
    assert codec.encode(TimerFired("approval")).body == b'{"timer_id":"approval"}'
    assert codec.decode("RunTask", 1, b'{"task_id":"t","task_name":"n","input":1}') == RunTask("t", "n", 1)


def test_who_carries_a_task_out_learns_whose_it_is() -> None:
    rehearsal = Rehearsal(Order())
    sent = next(event for event in rehearsal.take(STARTED).events if isinstance(event, Sent))
    assert (sent.message.workflow, sent.message.workflow_id) == ("Order", "o-1")  # type: ignore[union-attr]


def test_a_history_that_does_not_begin_with_a_start_names_no_workflow_in_its_commands() -> None:
    class Late(HistoryWorkflow):
        def decide(self, events: History) -> list[HistoryCommand]:
            return [ScheduleTask("t", "t", None)]

    state = History([TimerFired("early")])
    taken = step(Late(), state, 1, envelope(APPROVED), begins=False, now=EPOCH)
    sent = next(event for event in taken.events if isinstance(event, Sent))
    assert sent.message.workflow_id == ""  # type: ignore[union-attr]


# ---- failures of handlers


GAVE_UP = SendFailed("RunTask", "Order/o-1/3", "TimeoutError: no answer", 3, command={"task_id": "validate-1"})


def test_a_task_whose_handler_gave_up_has_failed() -> None:
    given(Order(), STARTED).when(GAVE_UP).then(Fail("TimeoutError: no answer"))


def test_which_task_failed_stands_in_its_command_whatever_place_is_known() -> None:
    state = History([WorkflowStarted("o-1", 1), TaskScheduled("validate-1", "validate", 1)])
    taken = step(Order(), state, 3, envelope(GAVE_UP), begins=False, now=EPOCH)
    assert taken.events[1:] == [Failed("TimeoutError: no answer")]


def test_a_failure_of_what_is_no_task_is_passed_over() -> None:
    nameless = History([WorkflowStarted("o-1", 1), TaskScheduled("", "nameless", 1)])
    for command in (None, {}, {"task_id": "another"}):
        failed = SendFailed("RunTask", "Order/o-1/3", "no", 3, command=command)
        assert step(Order(), nameless, 3, envelope(failed), begins=False, now=EPOCH).events[1:] == []


def test_that_there_are_no_more_attempts_is_no_part_of_why_a_task_failed() -> None:
    command = {"task_id": "validate-1"}
    failed = SendFailed("RunTask", "Order/o-1/3", "DoNotRetryError: ValueError: no", 3, command=command)
    given(Order(), STARTED).when(failed).then(Fail("ValueError: no"))


def test_which_task_failed_is_known_by_its_place_where_the_command_is_too_large_to_be_told() -> None:
    failed = SendFailed("RunTask", "Order/o-1/3", "too large", 3)
    given(Order(), STARTED).when(failed, kind=Kind.RESULT).then(Fail("too large"))


def test_an_instance_may_be_suspended_instead() -> None:
    class Careful(Order):
        on_task_error = "suspend"

    class Careless(Careful):
        on_task_error = "fail"

    assert SendFailed not in definition_of(Careful).inputs
    assert SendFailed in definition_of(Careless).inputs
    assert list(definition_of(Careful).inputs) == list(definition_of(Order).inputs)[:-1]


def test_another_way_with_failures_is_refused() -> None:
    with pytest.raises(DefinitionError, match="on_task_error = 'retry'"):

        class Wrong(HistoryWorkflow):
            on_task_error = "retry"  # type: ignore[assignment]
