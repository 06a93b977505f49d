from __future__ import annotations

import asyncio

from examples.group_checkout.handlers import check_out_guest
from examples.group_checkout.workflow import (
    PATIENCE,
    CheckOutGuest,
    Finished,
    GroupCheckout,
    GroupCheckoutCompleted,
    GroupCheckoutFailed,
    GroupCheckoutOverdue,
    GroupCheckoutTimedOut,
    GuestCheckedOut,
    GuestCheckoutFailed,
    InitiateGroupCheckout,
    Pending,
)
from mainspring import Complete, Publish, Received, Schedule, Send
from mainspring.errors import CannotBeginError, InstanceEndedError, UnknownTransitionError
from mainspring.testing import given

INITIATED = InitiateGroupCheckout("g-1", ("ann", "bob"))
ANN = GuestCheckedOut("g-1", "ann")
BOB = GuestCheckedOut("g-1", "bob")
BOB_HAS_NOT_PAID = GuestCheckoutFailed("g-1", "bob", "42.00 is not paid")
OVERDUE = GroupCheckoutOverdue("g-1")


def test_decide_and_evolve_are_called_like_any_function() -> None:
    workflow, state = GroupCheckout(), Pending(awaited=("bob",), checked_out=("ann",))

    assert workflow.decide(BOB_HAS_NOT_PAID, state) == [
        Publish(GroupCheckoutFailed("g-1", checked_out=("ann",), failed=("bob",))),
        Complete(),
    ]
    assert workflow.evolve(state, Received(BOB_HAS_NOT_PAID)) == Pending((), checked_out=("ann",), failed=("bob",))


def test_every_guest_is_checked_out_and_the_group_has_ten_minutes() -> None:
    (
        given(GroupCheckout())
        .when(INITIATED)
        .then(
            Send(CheckOutGuest("g-1", "ann")),
            Send(CheckOutGuest("g-1", "bob")),
            Schedule(OVERDUE, after=PATIENCE),
        )
        .then_state(Pending(awaited=("ann", "bob")))
    )


def test_a_group_of_nobody_completes_at_once() -> None:
    (
        given(GroupCheckout())
        .when(InitiateGroupCheckout("g-1", ()))
        .then(Publish(GroupCheckoutCompleted("g-1", ())), Complete())
        .then_state(Finished())
    )


def test_the_group_waits_for_its_last_guest() -> None:
    (given(GroupCheckout(), INITIATED).when(BOB).then().then_state(Pending(awaited=("ann",), checked_out=("bob",))))


def test_a_failed_guest_does_not_stop_the_others() -> None:
    (
        given(GroupCheckout(), INITIATED)
        .when(BOB_HAS_NOT_PAID)
        .then()
        .then_state(Pending(awaited=("ann",), failed=("bob",)))
    )


def test_the_group_is_checked_out_when_all_its_guests_are() -> None:
    (
        given(GroupCheckout(), INITIATED, BOB)
        .when(ANN)
        .then(Publish(GroupCheckoutCompleted("g-1", ("bob", "ann"))), Complete())
        .then_state(Finished())
    )


def test_one_failed_guest_fails_the_group_once_all_have_answered() -> None:
    (
        given(GroupCheckout(), INITIATED, BOB_HAS_NOT_PAID)
        .when(ANN)
        .then(Publish(GroupCheckoutFailed("g-1", checked_out=("ann",), failed=("bob",))), Complete())
        .then_state(Finished())
    )


def test_the_last_guest_may_be_the_one_who_fails() -> None:
    (
        given(GroupCheckout(), INITIATED, ANN)
        .when(BOB_HAS_NOT_PAID)
        .then(Publish(GroupCheckoutFailed("g-1", checked_out=("ann",), failed=("bob",))), Complete())
    )


def test_the_first_answer_of_a_guest_counts() -> None:
    (
        given(GroupCheckout(), INITIATED, BOB_HAS_NOT_PAID)
        .when(BOB)
        .then()
        .then_state(Pending(awaited=("ann",), failed=("bob",)))
    )


def test_a_stay_that_nobody_asked_about_changes_nothing() -> None:
    (
        given(GroupCheckout(), INITIATED)
        .when(GuestCheckedOut("g-1", "cleo"))
        .then()
        .then_state(Pending(awaited=("ann", "bob")))
    )


def test_after_ten_minutes_the_clerk_is_told_who_is_through_and_who_is_not() -> None:
    (
        given(GroupCheckout(), InitiateGroupCheckout("g-1", ("ann", "bob", "cleo")), ANN, BOB_HAS_NOT_PAID)
        .when(OVERDUE)
        .then(
            Publish(GroupCheckoutTimedOut("g-1", checked_out=("ann",), failed=("bob",), unanswered=("cleo",))),
            Complete(),
        )
        .then_state(Finished())
    )


def test_a_timer_that_comes_after_the_last_guest_finds_the_checkout_ended() -> None:
    given(GroupCheckout(), INITIATED, ANN, BOB).when(OVERDUE).then_raises(InstanceEndedError)


def test_a_guest_who_comes_after_the_timeout_finds_the_checkout_ended() -> None:
    given(GroupCheckout(), INITIATED, ANN, OVERDUE).when(BOB).then_raises(InstanceEndedError)


def test_a_group_is_checked_out_once() -> None:
    given(GroupCheckout(), INITIATED).when(INITIATED).then_raises(UnknownTransitionError, match="Pending")


def test_a_guest_cannot_begin_a_group_checkout() -> None:
    given(GroupCheckout()).when(ANN).then_raises(CannotBeginError, match="InitiateGroupCheckout")


def test_what_the_desk_answers_completes_or_fails_the_group() -> None:
    initiated = InitiateGroupCheckout("g-1", ("stay-1", "stay-3"))
    paid = asyncio.run(check_out_guest(CheckOutGuest("g-1", "stay-1")))
    unpaid = asyncio.run(check_out_guest(CheckOutGuest("g-1", "stay-3")))

    assert unpaid == GuestCheckoutFailed("g-1", "stay-3", "42.00 is not paid")
    (
        given(GroupCheckout(), initiated, paid)
        .when(unpaid)
        .then(Publish(GroupCheckoutFailed("g-1", checked_out=("stay-1",), failed=("stay-3",))), Complete())
    )
