"""A word is what has to be written of it: that makes it equal, and cannot be changed."""

from typing import Any

import pytest

from mainspring.styles import history_words as words
from mainspring.styles.history_words import RunTask, StartWorkflow, TaskCompleted, WorkflowStarted

MADE: list[Any] = [
    StartWorkflow("o-1", {}),
    TaskCompleted("t", 1),
    words.TaskFailed("t", "no"),
    words.TimerFired("t"),
    words.ExternalEventReceived("o-1", "approved", None),
    RunTask("t", "name", 1),
    words.WorkflowResult(1),
    WorkflowStarted("o-1", {}),
    words.TaskScheduled("t", "name", 1),
    words.TimerScheduled("t", 1.0),
    words.WorkflowCompleted(1),
    words.WorkflowFailed("no"),
    words.ScheduleTask("t", "name", 1),
    words.StartTimer("t", 1),
    words.WaitForEvent("approved"),
    words.CompleteWorkflow(1),
    words.FailWorkflow("no"),
]


@pytest.mark.parametrize("word", MADE, ids=lambda word: type(word).__name__)
def test_a_word_cannot_be_changed(word: Any) -> None:
    with pytest.raises(AttributeError):
        setattr(word, word.__struct_fields__[0], "changed")


def test_a_word_is_written_without_what_nobody_wrote() -> None:
    assert repr(TaskCompleted("t", 1)) == "TaskCompleted(task_id='t', result=1)"
    assert (RunTask("t", "name", 1).workflow_id, RunTask("t", "name", 1).workflow) == ("", "")


def test_a_word_is_equal_to_one_of_its_own_kind_only() -> None:
    assert StartWorkflow("o-1", 1) != WorkflowStarted("o-1", 1)
    assert (StartWorkflow("o-1", 1) == "o-1") is False


def test_words_have_a_hash_by_their_kind_and_first_field_whatever_else_they_hold() -> None:
    first = hash(StartWorkflow("o-1", {}))
    assert first == hash(StartWorkflow("o-1", {"n": [1]}))
    assert len({first, hash(StartWorkflow("o-2", {})), hash(WorkflowStarted("o-1", {}))}) == 3
