"""Deadlines of whole instances, as the pure step decides them."""

from datetime import timedelta
from typing import Any

import pytest

from mainspring import (
    Began,
    Compensate,
    Complete,
    DeadlinePassed,
    Decisions,
    Fail,
    Failed,
    InitiatedBy,
    Scheduled,
    Send,
    Sent,
    Workflow,
)
from mainspring.core.decisions import LONGEST_DELAY
from mainspring.errors import CannotBeginError, DefinitionError
from mainspring.testing import Rehearsal, given
from tests.engine.stays import Arrive, CloseRoom, Input, Leave, OpenRoom, Output, State, Stay
from tests.unit.core.test_definition import A, B, Methods, S

SET = Scheduled(DeadlinePassed(), after=timedelta(days=1), at=None, key="mainspring.DeadlinePassed")
OPENS = Send(OpenRoom("ann"), compensate=CloseRoom("ann"))


def test_it_is_set_before_all_else_and_decide_need_not_say_so() -> None:
    began = given(Stay()).when(Arrive("ann")).then(OPENS)
    sent = Sent(OpenRoom("ann"), CloseRoom("ann"))
    began.then_events(Began(), InitiatedBy(Arrive("ann")), SET, sent)


def test_a_step_that_ends_at_once_sets_none() -> None:
    class Full(Stay):
        def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
            return [Fail("we are full")]

    given(Full()).when(Arrive("ann")).then_events(Began(), InitiatedBy(Arrive("ann")), Failed("we are full"))


def test_without_a_case_the_instance_is_undone_and_fails() -> None:
    late = given(Stay(), Arrive("ann")).when(DeadlinePassed())
    late.then(Compensate("its deadline has passed")).then_undone(CloseRoom("ann"))


def test_an_instance_without_history_only_fails() -> None:
    class Unkept(Stay):
        history = "state"

        def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
            return [] if isinstance(message, Arrive) else None

    given(Unkept(), Arrive("ann")).when(DeadlinePassed()).then(Fail("its deadline has passed"))


def test_a_case_for_it_has_the_word() -> None:
    class Lenient(Stay):
        def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
            return [] if isinstance(message, DeadlinePassed) else super().decide(message, state)

    given(Lenient(), Arrive("ann")).when(DeadlinePassed()).then()
    given(Lenient(), Arrive("ann"), DeadlinePassed()).when(Leave("ann")).then(Complete())


def test_it_is_no_unknown_transition_that_could_be_ignored() -> None:
    class Ignoring(Stay):
        unknown_transition = "ignore"

    given(Ignoring(), Arrive("ann")).when(DeadlinePassed()).then_undone(CloseRoom("ann"))


@pytest.mark.parametrize("deadline", [timedelta(0), timedelta(days=-1), 30, LONGEST_DELAY + timedelta(days=1)])
def test_what_is_no_deadline_is_refused(deadline: Any) -> None:
    class Wrong(Stay): ...

    Wrong.deadline = deadline
    with pytest.raises(DefinitionError, match="has deadline = "):
        given(Wrong())


def test_a_deadline_that_nobody_would_hear_of_is_refused() -> None:
    class Dark(Methods, Workflow[A, S, B]):
        deadline = timedelta(days=1)

    with pytest.raises(DefinitionError, match="DeadlinePassed is not one of its inputs"):
        given(Dark())


def test_nothing_begins_with_it_and_nobody_is_told_to_let_it() -> None:
    with pytest.raises(CannotBeginError, match=r"Send Arrive first: only what has begun is told of DeadlinePassed\."):
        Rehearsal(Stay()).take(DeadlinePassed())
