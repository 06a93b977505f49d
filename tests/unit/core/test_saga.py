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
    Reset,
    Resumed,
    Sent,
    Suspended,
)
from mainspring.core.failures import SendFailed
from mainspring.core.saga import NAMED, Ledger, ledger_of
from mainspring.core.story import Entry, tell


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
