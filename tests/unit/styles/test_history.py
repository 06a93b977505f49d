import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Complete, Fail, Mainspring, Receipt, Schedule, Send
from mainspring.core.fold import fold
from mainspring.core.route import route
from mainspring.errors import InvalidDecisionError
from mainspring.styles.history import History, HistoryWorkflow
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
        TimerScheduled("approval", DAY),
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

    assert fold(Order(), Order.initial_state, rehearsal.events) == rehearsal.state


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
            assert await receipt.result() == WorkflowResult({"approved by": "ann"})
            assert (await app.instance(Order, "o-1").state()).events[-1] == WorkflowCompleted({"approved by": "ann"})

    async def _waits(receipt: Receipt[Any]) -> bool:
        return len(await receipt.outputs(timers=True)) == 1

    asyncio.run(main())
