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
    Received,
    Scheduled,
    Send,
    Sent,
    Workflow,
)
from mainspring.core.deadlines import compared, is_set_by
from mainspring.core.decisions import LONGEST_DELAY
from mainspring.core.definition import definition_of
from mainspring.errors import CannotBeginError, DefinitionError
from mainspring.testing import Rehearsal, given
from tests.engine.stays import Arrive, CloseRoom, Input, Leave, OpenEnded, OpenRoom, Output, State, Stay
from tests.unit.core.test_definition import A, B, Methods, S

SET = Scheduled(DeadlinePassed(), after=timedelta(days=1), at=None, key="mainspring.DeadlinePassed")
OPENS = Send(OpenRoom("ann"), compensate=CloseRoom("ann"))
OPENED, FULL = Sent(OpenRoom("ann"), CloseRoom("ann")), Failed("we are full")
LONGER = Scheduled(DeadlinePassed(), after=timedelta(days=30), at=None, key="mainspring.DeadlinePassed")
CHECKOUT = Scheduled(Leave("ann"), after=timedelta(days=1), at=None, key="Leave")


def test_it_is_set_before_all_else_and_decide_need_not_say_so() -> None:
    began = given(Stay()).when(Arrive("ann")).then(OPENS)
    began.then_events(Began(), InitiatedBy(Arrive("ann")), SET, OPENED)


def test_a_step_that_ends_at_once_sets_none() -> None:
    class Full(Stay):
        def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
            return [Fail("we are full")]

    given(Full()).when(Arrive("ann")).then_events(Began(), InitiatedBy(Arrive("ann")), FULL)


def test_a_later_step_sets_no_other_one() -> None:
    class Cleaned(Stay):
        def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
            return [] if isinstance(message, Leave) else super().decide(message, state)

    given(Cleaned(), Arrive("ann")).when(Leave("ann")).then_events(Received(Leave("ann")))


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


def test_it_may_lie_as_far_ahead_as_any_timer() -> None:
    class Hermit(Stay):
        deadline = LONGEST_DELAY

    assert definition_of(Hermit).deadline == LONGEST_DELAY


def test_a_deadline_that_nobody_would_hear_of_is_refused() -> None:
    class Dark(Methods, Workflow[A, S, B]):
        deadline = timedelta(days=1)

    with pytest.raises(DefinitionError, match="DeadlinePassed is not one of its inputs"):
        given(Dark())


def test_nothing_begins_with_it_and_nobody_is_told_to_let_it() -> None:
    with pytest.raises(CannotBeginError, match=r"only instances that have begun get DeadlinePassed\."):
        Rehearsal(Stay()).take(DeadlinePassed())


@pytest.mark.parametrize(
    ("workflow", "events", "expected"),
    [
        (Stay, [SET, OPENED], True),
        (Stay, [LONGER], True),
        (Stay, [OPENED, SET], False),
        (Stay, [CHECKOUT], False),
        (Stay, [FULL], False),
        (Stay, [], False),
        (OpenEnded, [SET, OPENED], False),
    ],
)
def test_the_deadline_of_a_class_stands_before_all_else(workflow: Any, events: list[Any], expected: bool) -> None:
    assert is_set_by(definition_of(workflow), events) is expected


@pytest.mark.parametrize(
    ("workflow", "recorded", "decided", "expected"),
    [
        pytest.param(Stay, [LONGER, OPENED], [SET, FULL], ([OPENED], [FULL]), id="another"),
        pytest.param(Stay, [OPENED], [SET, FULL], ([OPENED], [FULL]), id="added"),
        pytest.param(OpenEnded, [SET, OPENED], [FULL], ([OPENED], [FULL]), id="taken away"),
        pytest.param(Stay, [FULL], [FULL], ([FULL], [FULL]), id="ended at once"),
        pytest.param(OpenEnded, [SET, OPENED], [LONGER], ([SET, OPENED], [LONGER]), id="of decide"),
        pytest.param(Stay, [SET, SET, OPENED], [SET, LONGER], ([SET, OPENED], [LONGER]), id="of both"),
    ],
)
def test_only_the_deadline_of_the_class_is_left_out_of_what_is_compared(
    workflow: Any, recorded: list[Any], decided: list[Any], expected: Any
) -> None:
    assert compared(definition_of(workflow), recorded, decided) == expected
