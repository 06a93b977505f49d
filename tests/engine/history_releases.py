"""A workflow in the history style before and after its words came to mean more, for workers of both to meet.

A trip has three tasks, one after the other. Those whose ids begin with `new` fail in the second: the release before
would be suspended by that, and the next one takes it as a `TaskFailed` and goes on.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import pytest

from mainspring import Mainspring, Retry
from mainspring.core.messages import TYPE_ATTRIBUTE
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_events import History
from mainspring.styles.history_words import (
    CompleteWorkflow,
    HistoryCommand,
    RunTask,
    ScheduleTask,
    StartWorkflow,
    TaskCompleted,
    TaskFailed,
)

HistoryRelease: TypeAlias = Literal["history before", "history"]

WORDS: Final = (StartWorkflow, RunTask, TaskCompleted, TaskFailed)
TASKS: Final = ("t-1", "t-2", "t-3")


class Trip(HistoryWorkflow):
    """Has its tasks done, however they end."""

    def decide(self, events: History) -> list[HistoryCommand]:
        open = [id for id in TASKS if events.end_of(id) is None]
        failed = [event.error for event in events.of(TaskFailed)]
        return [ScheduleTask(open[0], "walk", None)] if open else [CompleteWorkflow(failed)]


class TripBefore(Trip):
    """The same as it was: a task whose handler gave up suspends it."""

    name = "Trip"
    on_task_error = "suspend"


def words_of_before(patch: pytest.MonkeyPatch) -> None:
    """Let the words be of their first version, as they were in the release before."""
    for word in WORDS:
        patch.delattr(word, TYPE_ATTRIBUTE, raising=False)


def history_release(app: Mainspring, release: HistoryRelease) -> Mainspring:
    """Return the app with what belongs to a release; where that is the one before, with the words of it."""
    app.add(Trip() if release == "history" else TripBefore())

    async def walk(task: RunTask) -> TaskCompleted:
        if task.workflow_id.startswith("new") and task.task_id == "t-2":
            raise ValueError("it rains")
        return TaskCompleted(task.task_id, task.task_id)

    app.handler(retry=Retry(max_attempts=1))(walk)
    return app
