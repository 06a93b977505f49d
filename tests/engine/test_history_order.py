"""An order in the history style, in the real engine: its whole history, its failure, and a crash after any commit."""

from collections.abc import Sequence
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.errors import InstanceFailedError
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_words import (
    CompleteWorkflow,
    FailWorkflow,
    HistoryCommand,
    HistoryEvent,
    RunTask,
    ScheduleTask,
    StartWorkflow,
    TaskCompleted,
    TaskFailed,
    TaskScheduled,
    WorkflowCompleted,
    WorkflowFailed,
    WorkflowResult,
    WorkflowStarted,
)
from tests.engine.coordination.dying import dies_after
from tests.support.apps import MakeApp
from tests.support.running import run

WAY = ("validate", "charge", "ship")
ORDER = {"sku": "teapot", "pieces": 2}
START = StartWorkflow("o-1", ORDER)


class Order(HistoryWorkflow):
    """Has an order validated, charged and shipped, one after the other, and ends when one of them fails."""

    def decide(self, events: Sequence[HistoryEvent]) -> list[HistoryCommand]:
        done = 0
        for event in events:
            match event:
                case TaskFailed(_, error):
                    return [FailWorkflow(error)]
                case TaskCompleted():
                    done += 1
                case _:
                    pass
        if done == len(WAY):
            return [CompleteWorkflow("delivered")]
        return [ScheduleTask(f"{WAY[done]}-1", WAY[done], ORDER)]


def office(app: Mainspring, calls: list[str], refused: str | None = None) -> Mainspring:
    """An app with one handler for all tasks, which goes by their names."""
    app.add(Order())

    async def run_task(task: RunTask) -> TaskCompleted | TaskFailed:
        calls.append(task.task_name)
        if task.task_name == refused:
            return TaskFailed(task.task_id, "not today")
        return TaskCompleted(task.task_id, {"by": task.task_name})

    app.handler(run_task)
    return app


def whole_history() -> list[HistoryEvent]:
    history: list[HistoryEvent] = [WorkflowStarted("o-1", ORDER)]
    for name in WAY:
        history += [TaskScheduled(f"{name}-1", name, ORDER), TaskCompleted(f"{name}-1", {"by": name})]
    return [*history, WorkflowCompleted("delivered")]


async def history_of(app: Mainspring) -> list[HistoryEvent]:
    return list((await app.instance(Order, "o-1").state()).events)


def test_an_order_is_validated_charged_and_shipped_and_its_history_tells_it(make_app: MakeApp) -> None:
    calls: list[str] = []

    async def main() -> None:
        async with office(make_app(), calls) as app:
            assert await (await app.send(START)).result() == WorkflowResult("delivered")
            assert await history_of(app) == whole_history()

    run(main)
    assert calls == list(WAY)


def test_a_task_that_fails_ends_the_order_and_no_other_is_begun(make_app: MakeApp) -> None:
    calls: list[str] = []

    async def main() -> None:
        async with office(make_app(), calls, refused="charge") as app:
            with pytest.raises(InstanceFailedError, match="not today"):
                await (await app.send(START)).result()
            assert (await history_of(app))[-2:] == [TaskFailed("charge-1", "not today"), WorkflowFailed("not today")]

    run(main)
    assert calls == ["validate", "charge"]


@pytest.mark.parametrize("commits", [1, 2, 3, 4])
def test_an_order_goes_on_where_a_dead_worker_left_it_and_repeats_no_task(make_app: MakeApp, commits: int) -> None:
    """Whoever dies right behind a commit has begun nothing of what it ordered: so each task is done once."""
    before: list[str] = []
    after: list[str] = []

    async def story(app: Mainspring) -> Any:
        return await app.send(START, id="m-1")

    async def main() -> None:
        await dies_after(commits, office(make_app(), before), story)
        async with office(make_app(), after) as app:
            assert await app.instance(Order, "o-1").result() == WorkflowResult("delivered")
            assert await history_of(app) == whole_history()

    run(main)
    assert before == list(WAY[: commits - 1])
    assert after == list(WAY[commits - 1 :])
