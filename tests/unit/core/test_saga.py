"""The ledger: what is armed, dropped and undone, read off a stream."""

from typing import Any

import pytest

from mainspring.core.events import (
    Began,
    Cancelled,
    Compensated,
    Compensating,
    Failed,
    InitiatedBy,
    Kept,
    Received,
    Resent,
    Reset,
    Resumed,
    Retried,
    Sent,
    Suspended,
)
from mainspring.core.failures import SendFailed
from mainspring.core.saga import NAMED, Ledger, advanced, ledger_of
from mainspring.core.step import Step
from mainspring.core.story import Entry, tell
from tests.unit.core.orders import AwaitingPayment, New, OrderFulfilment, PlaceOrder


def ledger(*events: Any) -> Ledger:
    return ledger_of(enumerate(events, 1))


def failed(version: int, *, definite: bool) -> SendFailed:
    return SendFailed("Book", f"Trip/t/1/{version}", "no", 1, definite)


BOOKED = (InitiatedBy("go"), Sent("book a", "free a"), Sent("book b", "free b"), Sent("tell"))


def test_the_latest_step_is_undone_first_and_each_once() -> None:
    told: list[Any] = [*BOOKED, Compensating("no c")]
    sent: list[Any] = []
    while (onward := ledger(*told).onward()) != [Failed("no c")]:
        sent += onward
        told += [*onward, Compensated(ledger(*told, *onward).compensation)]
    assert sent == [Sent("free b", undoes=3), Sent("free a", undoes=2)]


def test_a_send_without_a_compensation_is_not_in_the_ledger() -> None:
    assert ledger(*BOOKED).remaining() == ["free b", "free a"]


@pytest.mark.parametrize("carrier", [Received, Kept])
def test_a_definite_failure_drops_the_compensation_and_an_unknown_outcome_does_not(carrier: Any) -> None:
    assert ledger(*BOOKED, carrier(failed(3, definite=True))).remaining() == ["free a"]
    assert ledger(*BOOKED, carrier(failed(3, definite=False))).remaining() == ["free b", "free a"]


def test_a_definite_failure_that_nobody_listened_to_drops_the_compensation_too() -> None:
    assert ledger(*BOOKED, Suspended("Book failed for good", failed=3)).remaining() == ["free a"]
    assert ledger(*BOOKED, Suspended("by an operator")).remaining() == ["free b", "free a"]


@pytest.mark.parametrize("id", ["", "t/", "Trip/t-1/x", "Trip/t-1/²", "Trip/t-1/99"])
def test_a_failure_with_a_strange_id_drops_nothing(id: str) -> None:
    strange = SendFailed("Book", id, "no", 1, definite=True)
    assert ledger(*BOOKED, Received(strange)).remaining() == ["free b", "free a"]


def test_what_is_being_undone_stays_though_it_fails_meanwhile() -> None:
    undoing = (*BOOKED, Compensating("no"), Sent("free b", undoes=3))
    assert ledger(*undoing, Kept(failed(3, definite=True))).compensation == "free b"
    assert ledger(*undoing, Kept(failed(2, definite=True))).remaining() == ["free b"]


def test_nothing_is_due_before_compensating_and_the_end_is_as_it_was_asked_for() -> None:
    assert ledger(*BOOKED).onward() == []
    assert ledger(Compensating("no")).onward() == [Failed("no")]
    assert ledger(Compensating("no", cancelled=True)).onward() == [Cancelled("no")]
    assert ledger(Compensating("no", then="replan")).onward() == []


def test_after_it_went_on_only_what_is_new_is_undone() -> None:
    first = (*BOOKED[:2], Compensating("no", then="replan"), Sent("free a", undoes=2), Compensated("free a"))
    again = ledger(*first, Received("replan"), Sent("book c", "free c"))
    assert (again.active, again.remaining(), again.undone) == (False, ["free c"], {2: 5, 4: 5})
    again.take(8, Compensating("no c"))
    assert again.active
    assert again.onward() == [Sent("free c", undoes=7)]


def test_a_failed_compensation_is_stuck_until_it_is_resumed_or_done() -> None:
    stuck = (*BOOKED, Compensating("no"), Sent("free b", undoes=3), Suspended("it failed", failed=6))
    assert ledger(*stuck).stuck
    assert ledger(*stuck).remaining() == ["free b", "free a"]
    assert not ledger(*stuck, Resumed()).stuck
    assert not ledger(*stuck, Compensated("free b")).stuck


def test_a_new_life_owes_nothing_for_the_one_before_and_a_new_branch_does() -> None:
    assert ledger(*BOOKED, Began()).remaining() == []
    back = ledger(*BOOKED, Compensating("no"), Sent("free b", undoes=3), Reset(2, "again"))
    assert (back.active, back.undoing, back.remaining()) == (False, None, ["free b", "free a"])


def test_names_of_what_remains_are_bounded() -> None:
    many = ledger(*[Sent("book", f"free {n}") for n in range(NAMED + 5)])
    assert many.names()[NAMED:] == ["and 5 more"]


def test_a_saga_is_told_in_a_table() -> None:
    events = (
        Sent("book", "free"),
        Compensating("no", "replan"),
        Sent("free", undoes=1),
        Compensated("free", "freed"),
        Compensated("free"),
    )
    assert [row.message for row in tell(Entry(n, event) for n, event in enumerate(events, 1))] == [
        "'book' undone by 'free'",
        "'no' then 'replan'",
        "'free' undoes 1",
        "'free': 'freed'",
        "'free'",
    ]


def test_what_is_tried_again_is_undone_in_its_old_place() -> None:
    again = ledger(*BOOKED, Received(failed(2, definite=True)), Retried(2))
    assert again.remaining() == ["free b", "free a"]
    again.take(8, Compensating("no"))
    assert again.onward() == [Sent("free b", undoes=3)]
    assert again.dropped == {}


def test_trying_again_what_never_failed_changes_nothing() -> None:
    assert ledger(*BOOKED, Retried(3), Retried(99)).remaining() == ["free b", "free a"]


def test_what_an_operator_sent_once_more_is_undone_too() -> None:
    assert ledger(*BOOKED, Resent("book c", "free c"), Resent("tell")).remaining() == ["free c", "free b", "free a"]


def test_going_back_tries_again_what_failed_behind_that_place_and_was_sent_before_it() -> None:
    failed_twice = (*BOOKED, Kept(failed(2, definite=True)), Kept(failed(3, definite=True)))
    assert ledger(*failed_twice, Reset(3, "again")).remaining() == ["free b", "free a"]
    assert ledger(*failed_twice, Reset(2, "again")).remaining() == ["free a"]
    assert ledger(*failed_twice, Reset(5, "again")).remaining() == ["free b"]
    assert ledger(*failed_twice, Reset(6, "again")).remaining() == []


def test_an_instance_that_begins_anew_has_nothing_to_undo() -> None:
    anew = ledger(*BOOKED, Kept(failed(2, definite=True)), Compensating("no"), Sent("free b", undoes=3), Began())
    assert (anew.remaining(), anew.dropped, anew.active, anew.undoing, anew.under) == ([], {}, False, None, None)
    anew.take(9, Retried(2))
    assert anew.remaining() == []


def test_a_ledger_says_how_far_it_has_come() -> None:
    empty = ledger_of([])
    assert (empty.version, empty.begun_at, empty.stuck, empty.reason, empty.compensation) == (0, 0, False, None, None)
    undoing = ledger(*BOOKED, Compensating("no c"), Sent("free b", undoes=3))
    assert (undoing.version, undoing.begun_at, undoing.reason) == (6, 5, "no c")
    assert (undoing.undoing, undoing.under, undoing.compensation, undoing.active) == (3, 6, "free b", True)
    assert not ledger(Compensating("no c")).active


def test_an_input_makes_it_go_forward_again() -> None:
    stuck = (*BOOKED, Compensating("no"), Sent("free b", undoes=3), Suspended("it failed", failed=6))
    on = ledger(*stuck, Received("replan"))
    assert (on.begun, on.undoing, on.under, on.stuck) == (None, None, None, False)
    assert (ledger(*stuck, Kept("late")).stuck, ledger(*stuck, Kept("late")).undoing) == (True, 3)


def test_an_instance_that_is_suspended_for_another_reason_is_not_stuck() -> None:
    assert not ledger(*BOOKED, Suspended("a bug")).stuck


def test_something_else_that_failed_does_not_make_a_compensation_stuck() -> None:
    undoing = (*BOOKED, Compensating("no"), Sent("free b", undoes=3))
    other = ledger(*undoing, Suspended("Book failed for good", failed=2))
    assert (other.stuck, other.remaining()) == (False, ["free b"])


def test_a_compensation_that_nobody_sent_undoes_nothing() -> None:
    assert ledger(*BOOKED, Compensated("free b")).remaining() == ["free b", "free a"]


def test_a_dropped_compensation_is_kept_with_the_version_that_dropped_it() -> None:
    assert ledger(*BOOKED, Kept(failed(3, definite=True))).dropped == {3: (5, "free b")}


def test_a_copy_goes_on_by_itself() -> None:
    told = (*BOOKED, Kept(failed(2, definite=True)), Compensating("no"), Sent("free b", undoes=3))
    first = ledger(*told)
    twin = first.copy()
    assert (twin.armed, twin.undone, twin.dropped) == ({3: "free b"}, {}, {2: (5, "free a")})
    twin.take(8, Compensated("free b"))
    twin.take(9, Retried(2))
    assert (first.armed, first.undone, first.dropped) == ({3: "free b"}, {}, {2: (5, "free a")})
    assert (twin.armed, twin.undone, twin.dropped) == ({2: "free a"}, {3: 8, 7: 8}, {})


def test_exactly_as_many_as_are_named_are_named() -> None:
    assert ledger(*[Sent("book", f"free {n}") for n in range(NAMED)]).names() == ["str"] * NAMED
    assert len(ledger(*[Sent("book", "free")] * (NAMED + 1)).names()) == NAMED + 1
    assert NAMED == 20


def test_a_step_that_compensates_is_followed_by_the_first_compensation_or_the_end() -> None:
    workflow = OrderFulfilment()
    book = ledger(*BOOKED)
    taken = Step([Received(PlaceOrder("o-1", 1)), Compensating("no c")], New(), 6)
    onward = advanced(workflow, book, taken)
    assert list(onward.events) == [*taken.events, Sent("free b", undoes=3)]
    assert (onward.version, onward.state, onward.no_case) == (7, New(), False)
    assert (book.version, book.undoing, book.under, book.begun_at) == (7, 3, 7, 6)
    end = advanced(workflow, ledger_of([]), taken)
    assert (end.events[-1], end.version) == (Failed("no c"), 7)


def test_the_state_takes_in_what_follows_a_step() -> None:
    class Ending(OrderFulfilment):
        def evolve(self, state: Any, event: Any) -> Any:
            return AwaitingPayment(event.reason) if isinstance(event, Failed) else None

    taken = Step([Compensating("no c")], New(), 6)
    assert advanced(Ending(), ledger_of([]), taken).state == AwaitingPayment("no c")


def test_what_was_sent_last_and_failed_is_dropped_and_nothing_is_stuck() -> None:
    last = ledger(*BOOKED[:3], Suspended("Book failed for good", failed=3))
    assert (last.remaining(), last.stuck, last.under) == (["free a"], False, None)
