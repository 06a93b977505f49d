"""Workers of the release before beside new ones: they leave alone what the history style means otherwise since."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from mainspring import Mainspring, Retry
from mainspring.core.messages import TYPE_ATTRIBUTE
from mainspring.errors import InstanceFailedError
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_events import History
from mainspring.styles.history_words import (
    CompleteWorkflow,
    FailWorkflow,
    HistoryCommand,
    RunTask,
    ScheduleTask,
    StartWorkflow,
    TaskCompleted,
    TaskFailed,
)
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

WORDS = (StartWorkflow, RunTask, TaskCompleted, TaskFailed)


class Errand(HistoryWorkflow):
    """Has two tasks done, one after the other, and fails with the first that fails."""

    def decide(self, events: History) -> list[HistoryCommand]:
        if failed := events.of(TaskFailed):
            return [FailWorkflow(failed[0].error)]
        open = [id for id in ("t-1", "t-2") if events.end_of(id) is None]
        return [ScheduleTask(open[0], "walk", None)] if open else [CompleteWorkflow("walked")]


class ErrandBefore(HistoryWorkflow):
    """The same as it was: an instance is suspended by a task whose handler gave up."""

    name = "Errand"
    on_task_error = "suspend"

    def decide(self, events: History) -> list[HistoryCommand]:
        return Errand.decide(self, events)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@contextmanager
def release_before() -> Generator[None]:
    """Let the words be of their first version, as they were in the release before."""
    with pytest.MonkeyPatch.context() as older:
        for word in WORDS:
            older.delattr(word, TYPE_ATTRIBUTE, raising=False)
        yield


def errands(app: Mainspring, *, before: bool = False, fails: bool = False) -> Mainspring:
    app.add(ErrandBefore() if before else Errand())

    async def walk(task: RunTask) -> TaskCompleted:
        if fails:
            raise ValueError("it rains")
        return TaskCompleted(task.task_id, task.task_id)

    app.handler(retry=Retry(max_attempts=1))(walk)
    return app


async def are(app: Mainspring, status: str) -> bool:
    return [row.status for row in await app.instances()] == [status]


def test_what_a_new_worker_began_is_left_alone_by_an_old_one(make_app: MakeApp) -> None:
    async def main() -> None:
        sender = errands(make_app())
        await sender.start(work=False)
        await sender.send(StartWorkflow("e-1", None))
        await sender.stop()
        with release_before():
            async with errands(make_app(), before=True, fails=True) as old:
                rounds = old.engine.claimer.rounds
                old.engine.wakeups.due_at(0)
                await until(lambda: old.engine.claimer.rounds > rounds and old.engine.claimer.idle)
                assert (await are(old, "running"), await old.dead_letters()) == (True, [])
        async with errands(make_app(), fails=True) as new:
            with pytest.raises(InstanceFailedError, match="it rains"):
                await new.instance(Errand, "e-1").result()

    run(main)


def test_an_end_from_outside_is_left_to_new_workers_in_the_inbox_and_in_the_stream(make_app: MakeApp) -> None:
    async def main() -> None:
        with release_before():
            begun = errands(make_app(), before=True)
            await begun.start(work=False)
            await begun.send(StartWorkflow("e-1", None))
            await begun.stop()
        new = errands(make_app())
        await new.start(work=False)
        await new.send(TaskCompleted("t-1", "done elsewhere", workflow_id="e-1"))
        await new.send(TaskCompleted("t-1", "once more", workflow_id="e-1"))
        await new.stop()
        with release_before():
            async with errands(make_app(), before=True) as old:
                # Its own task is carried out there, and what comes of that waits.
                await until(lambda: bool(old.engine.claimer.strangers.leaves().instances))
                assert await are(old, "running")
        async with errands(make_app()) as new:
            assert await new.instance(Errand, "e-1").result() == "walked"

    run(main)


def test_what_an_old_worker_began_goes_on_in_a_new_one(make_app: MakeApp) -> None:
    async def main() -> None:
        with release_before():
            old = errands(make_app(), before=True)
            await old.start(work=False)
            await old.send(StartWorkflow("e-1", None))
            await old.stop()
        async with errands(make_app()) as new:
            assert await new.instance(Errand, "e-1").result() == "walked"

    run(main)
