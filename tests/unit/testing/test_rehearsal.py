from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mainspring import InitiatedBy, Kind, Send
from mainspring.core.messages import InstanceId
from mainspring.core.story import Entry
from mainspring.errors import InstanceEndedError, UnknownTransitionError
from mainspring.testing import Rehearsal, envelope
from tests.unit.testing.paid_orders import CHARGED, PLACE, SHIPPED, TIMED_OUT, ChargeCard, Input, Orders, Output, State


def rehearsed(*messages: Input) -> Rehearsal[Input, State, Output]:
    rehearsal = Rehearsal(Orders())
    for message in messages:
        rehearsal.take(message)
    return rehearsal


def test_a_scheduled_message_waits() -> None:
    assert [scheduled.message for scheduled in rehearsed(PLACE).waiting()] == [TIMED_OUT]


def test_a_cancelled_message_waits_no_more() -> None:
    assert rehearsed(PLACE, CHARGED).waiting() == []


def test_a_fired_timer_waits_no_more() -> None:
    assert rehearsed(PLACE, TIMED_OUT).waiting() == []


def test_a_scheduled_message_is_taken_as_a_timer() -> None:
    rehearsal = rehearsed(PLACE, CHARGED, TIMED_OUT)
    assert rehearsal.entries[-1].kind is Kind.TIMER


def test_an_envelope_is_taken_and_recorded_whole() -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    rehearsal = Rehearsal(Orders())
    rehearsal.take(envelope(PLACE, id="m-7", time=noon, kind=Kind.EVENT, actor="ann"))
    assert rehearsal.entries[1] == Entry(2, InitiatedBy(PLACE), Kind.EVENT, "m-7", noon, "ann")


def test_an_envelope_has_the_context_of_a_message_from_another_instance() -> None:
    asked = InstanceId("Shop", "s-1")
    sealed = envelope(CHARGED, sender=asked, correlation_id="c-1", causation_id="m-3")
    assert (sealed.sender, sealed.correlation_id, sealed.causation_id) == (asked, "c-1", "m-3")
    assert envelope(CHARGED, id="m-4").correlation_id == "m-4"


def test_the_decisions_of_the_last_step_are_kept_as_decide_returned_them() -> None:
    assert rehearsed(PLACE).decisions[0] == Send(ChargeCard("o-1", 4200))


def test_a_step_without_a_transition_leaves_no_decisions_of_the_step_before() -> None:
    assert rehearsed(PLACE, CHARGED, TIMED_OUT).decisions == ()


def test_an_instance_that_has_ended_takes_nothing_more() -> None:
    rehearsal = rehearsed(PLACE, CHARGED, SHIPPED)
    with pytest.raises(InstanceEndedError, match="has already ended"):
        rehearsal.take(CHARGED)


def test_a_refused_message_leaves_no_trace() -> None:
    rehearsal = rehearsed(PLACE)
    before = (rehearsal.state, rehearsal.events)
    with pytest.raises(UnknownTransitionError, match="has no transition"):
        rehearsal.take(PLACE)
    assert (rehearsal.state, rehearsal.events) == before


def test_the_authors_own_object_is_left_alone() -> None:
    workflow = Orders()
    Rehearsal(workflow).take(PLACE)
    assert vars(workflow) == {}
