"""What was published or sent before, written bare; the test that the design document of such workflows gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import Complete, Decisions, Event, Publish, Published, Received, Replied, Send, Sent, Workflow
from mainspring.core.decisions import Become
from mainspring.errors import UnknownTransitionError
from mainspring.styles.state_returning import StateReturningWorkflow
from mainspring.testing import given


@dataclass(frozen=True)
class InitiateGroupCheckout:
    group_id: str
    guest_ids: tuple[str, ...]


@dataclass(frozen=True)
class GuestCheckedOut:
    group_id: str
    guest_id: str


@dataclass(frozen=True)
class GuestCheckoutFailed:
    group_id: str
    guest_id: str
    reason: str


@dataclass(frozen=True)
class GroupCheckoutInitiated:
    guest_ids: tuple[str, ...]


@dataclass(frozen=True)
class CheckOut:
    guest_id: str


@dataclass(frozen=True)
class GroupCheckoutCompleted:
    completed_checkouts: tuple[str, ...]


@dataclass(frozen=True)
class GroupCheckoutFailed:
    completed_checkouts: tuple[str, ...]
    failed_checkouts: tuple[str, ...]


@dataclass(frozen=True)
class NotExisting:
    pass


@dataclass(frozen=True)
class Pending:
    awaited: tuple[str, ...]
    completed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finished:
    pass


Input = InitiateGroupCheckout | GuestCheckedOut | GuestCheckoutFailed
Output = GroupCheckoutInitiated | CheckOut | GroupCheckoutCompleted | GroupCheckoutFailed
State = NotExisting | Pending | Finished


class GroupCheckout(Workflow[Input, State, Output]):
    """The document's own: its state begins with what it has published, and not with the command."""

    begins = InitiateGroupCheckout
    initial_state = NotExisting()

    def route(self, message: Input) -> str | None:
        return message.group_id

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case NotExisting(), Published(GroupCheckoutInitiated(guests)):
                return Pending(guests)
            case Pending(awaited, completed, failed), Received(GuestCheckedOut(_, guest)):
                return Pending(tuple(g for g in awaited if g != guest), (*completed, guest), failed)
            case Pending(awaited, completed, failed), Received(GuestCheckoutFailed(_, guest)):
                return Pending(tuple(g for g in awaited if g != guest), completed, (*failed, guest))
            case Pending(), Published(GroupCheckoutCompleted() | GroupCheckoutFailed()):
                return Finished()

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case InitiateGroupCheckout(_, guests), NotExisting():
                return [Publish(GroupCheckoutInitiated(guests)), *(Send(CheckOut(guest)) for guest in guests)]
            case GuestCheckedOut(_, guest), Pending((last,), completed, ()) if last == guest:
                return [Publish(GroupCheckoutCompleted((*completed, guest))), Complete()]
            case GuestCheckedOut(_, guest), Pending((last,), completed, failed) if last == guest:
                return [Publish(GroupCheckoutFailed((*completed, guest), failed)), Complete()]
            case GuestCheckoutFailed(_, guest), Pending((last,), completed, failed) if last == guest:
                return [Publish(GroupCheckoutFailed(completed, (*failed, guest))), Complete()]
            case GuestCheckedOut() | GuestCheckoutFailed(), Pending():
                return []


INITIATED = GroupCheckoutInitiated(("g1", "g2"))


def test_a_partial_failure_is_written_as_the_document_writes_it() -> None:
    (
        given(GroupCheckout(), [INITIATED, GuestCheckedOut("123", "g1")])
        .when(GuestCheckoutFailed("123", "g2", "BalanceNotSettled"))
        .then(Publish(GroupCheckoutFailed(completed_checkouts=("g1",), failed_checkouts=("g2",))), Complete())
        .then_state(Finished())
    )


def test_an_output_is_the_event_by_which_the_state_moves() -> None:
    bare = given(GroupCheckout(), INITIATED).when(GuestCheckedOut("123", "g1"))
    bare.then().then_state(Pending(("g2",), ("g1",)))
    bare.then_events(Received(GuestCheckedOut("123", "g1")))


def test_a_list_may_stand_among_others_and_hold_events_too() -> None:
    past: list[Any] = [Published(INITIATED), Sent(CheckOut("g1"))]
    (
        given(GroupCheckout(), past, GuestCheckedOut("123", "g1"))
        .when(GuestCheckedOut("123", "g2"))
        .then(Publish(GroupCheckoutCompleted(("g1", "g2"))), Complete())
    )


def test_what_was_sent_or_published_counts_as_a_beginning() -> None:
    with pytest.raises(AssertionError, match="UnknownTransitionError"):
        given(GroupCheckout(), INITIATED).when(InitiateGroupCheckout("123", ("g3",))).then()
    given(GroupCheckout(), INITIATED).when(InitiateGroupCheckout("123", ("g3",))).then_raises(UnknownTransitionError)


def test_an_output_that_moves_no_state_is_written_as_what_became_of_it() -> None:
    with pytest.raises(TypeError) as mistake:
        given(GroupCheckout(), INITIATED, CheckOut("g1"))
    assert str(mistake.value) == (
        "CheckOut is an output: write Published(CheckOut(…)) if it was published, Sent(…) if it was sent."
    )


class Choosy(GroupCheckout):
    """Goes to one state by what was published, to another by what was sent, and has no case for a reply."""

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match event:
            case Published(GroupCheckoutInitiated(guests)):
                return Pending(guests)
            case Sent(GroupCheckoutInitiated()):
                return Finished()
            case Replied():
                raise LookupError("nobody asks")
            case _:
                return super().evolve(state, event)


def test_an_output_that_means_two_things_is_written_as_what_became_of_it() -> None:
    with pytest.raises(TypeError, match=r"^GroupCheckoutInitiated is an output: write Published\(Group"):
        given(Choosy(), INITIATED)
    given(Choosy(), Sent(INITIATED)).when(GuestCheckedOut("123", "g1")).then_raises(UnknownTransitionError)


class Agreeing(Choosy):
    """Goes to the same state, however it went out, where evolve has a case for that at all."""

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match event:
            case Sent(GroupCheckoutInitiated() as out):
                return super().evolve(state, Published(out))
            case _:
                return super().evolve(state, event)


def test_an_output_that_means_the_same_either_way_is_taken() -> None:
    given(Agreeing(), INITIATED).when(GuestCheckedOut("123", "g1")).then_state(Pending(("g2",), ("g1",)))


@dataclass(frozen=True)
class Knock:
    door: str


@dataclass(frozen=True)
class Opened:
    door: str


@dataclass(frozen=True)
class Knocked:
    times: int


class Door(StateReturningWorkflow[Knock, Knocked, Opened]):
    initial_state = Knocked(0)

    def route(self, message: Knock) -> str | None:
        return message.door

    def decide(self, message: Knock, state: Knocked) -> tuple[Knocked, Decisions[Knock, Opened]] | None:
        return Knocked(state.times + 1), [Publish(Opened(message.door))] if state.times else []


def test_the_state_that_decide_returns_is_for_then_state() -> None:
    knock = Knock("front")
    given(Door()).when(knock).then().then_state(Knocked(1))
    given(Door(), [knock]).when(knock).then(Publish(Opened("front"))).then_state(Knocked(2))


def test_a_wrong_decision_beside_a_state_is_told_without_the_state() -> None:
    with pytest.raises(AssertionError) as failed:
        given(Door(), Knock("front")).when(Knock("front")).then(Publish(Opened("back")))
    assert "~ Publish(Opened): door: expected 'back', decided 'front'" in str(failed.value)
    assert "Become" not in str(failed.value)


def test_a_test_that_writes_the_state_among_the_decisions_means_it() -> None:
    given(Door()).when(Knock("front")).then(Become(Knocked(1)))
    with pytest.raises(AssertionError, match="Become"):
        given(Door()).when(Knock("front")).then(Become(Knocked(2)))
