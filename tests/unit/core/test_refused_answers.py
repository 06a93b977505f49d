"""What a step makes of an answer that the workflow refuses."""

from typing import Any

import pytest

from mainspring import Send
from mainspring.core import decisions as decide
from mainspring.core.events import AnswerRefused
from mainspring.core.step import step
from mainspring.errors import InvalidDecisionError
from mainspring.testing import envelope
from tests.unit.core.test_step import Answer, Ask, Idle, Joined, Later, Scripted


def test_an_answer_that_is_refused_is_all_that_is_recorded_and_moves_nothing() -> None:
    answered = envelope(Later("1"), task="review")
    before = Idle()
    taken = step(Scripted([decide.RefuseAnswer("not yet")], after=Joined()), before, 4, answered, begins=False)
    assert list(taken.events) == [AnswerRefused(Later("1"), "review", "not yet")]
    assert (taken.state is before, taken.version, taken.outputs) == (True, 5, [])


@pytest.mark.parametrize(
    ("decisions", "task", "begins", "told"),
    [
        ([decide.RefuseAnswer("no")], None, False, "which answers no task"),
        ([decide.RefuseAnswer("no")], "review", True, "which answers no task"),
        ([decide.RefuseAnswer("no"), Send(Answer("x"))], "review", False, "decides more with it"),
        ([Send(Answer("x")), decide.RefuseAnswer("no")], "review", False, "decides more with it"),
        ([decide.RefuseAnswer("no"), decide.RefuseAnswer("no")], "review", False, "decides more with it"),
    ],
)
def test_only_the_answer_to_a_task_is_refused_and_nothing_is_decided_beside_it(
    decisions: list[Any], task: str | None, begins: bool, told: str
) -> None:
    message = envelope(Ask("1"), task=task)
    with pytest.raises(InvalidDecisionError, match=told):
        step(Scripted(decisions), Idle(), 0 if begins else 4, message, begins=begins)
