"""What is known of each event without looking into it: how it is shown, and whether a state takes it in."""

from datetime import timedelta
from typing import Any

import pytest

from mainspring.core import events
from mainspring.core.events import ENDS, OUTPUTS
from mainspring.core.messages import Kind

MADE: list[tuple[Any, str, Kind | None]] = [
    (events.Began(), "lifecycle", None),
    (events.Received("paid"), "input", None),
    (events.InitiatedBy("placed"), "input", None),
    (events.Sent("charge"), "output", Kind.COMMAND),
    (events.Published("done"), "output", Kind.EVENT),
    (events.Replied("yes"), "output", Kind.REPLY),
    (events.Scheduled("late", timedelta(1), None, "k"), "output", Kind.TIMER),
    (events.ScheduleCancelled("k"), "output", Kind.TIMER),
    (events.Asked("k", "?", ("Yes",)), "output", Kind.TASK),
    (events.TaskClosed("k"), "output", Kind.TASK),
    (events.ChildStarted("ship"), "output", Kind.COMMAND),
    (events.FannedOut((1,), "Joined", "k"), "output", Kind.COMMAND),
    (events.Became("waiting"), "lifecycle", None),
    (events.Completed(), "lifecycle", None),
    (events.Failed("no"), "lifecycle", None),
    (events.Compensating("no"), "lifecycle", None),
    (events.Compensated("refund"), "input", Kind.RESULT),
]
OPERATED: list[tuple[Any, str, Kind | None]] = [
    (events.Suspended("no"), "lifecycle", None),
    (events.Resumed(), "lifecycle", None),
    (events.Cancelled("no"), "lifecycle", None),
    (events.Terminated("no"), "lifecycle", None),
    (events.Reset(1, "again"), "lifecycle", None),
    (events.Migrated(2), "lifecycle", None),
    (events.Retried(2), "lifecycle", None),
    (events.Resent("charge"), "output", Kind.COMMAND),
    (events.Skipped("paid"), "input", None),
    (events.AnswerRefused("yes", "approval", "no note"), "input", None),
    (events.Kept("paid"), "input", None),
]


@pytest.mark.parametrize(("event", "direction", "kind"), MADE + OPERATED)
def test_an_event_has_its_direction_and_kind(event: Any, direction: str, kind: Kind | None) -> None:
    assert (event.direction, event.kind) == (direction, kind)


def test_a_state_takes_in_what_was_decided_and_neither_what_operators_did_nor_what_was_refused() -> None:
    assert [event for event, _, _ in MADE if not event.folded] == []
    assert [event for event, _, _ in OPERATED if event.folded] == []


def test_what_is_to_be_carried_out_is_every_output_that_was_decided() -> None:
    assert [type(event) for event, direction, _ in MADE if direction == "output"] == list(OUTPUTS)
    assert list(ENDS) == [events.Completed, events.Failed]


@pytest.mark.parametrize("event", [event for event, _, _ in MADE + OPERATED if event.__struct_fields__])
def test_what_is_recorded_cannot_be_changed(event: Any) -> None:
    with pytest.raises(AttributeError):
        setattr(event, event.__struct_fields__[0], "changed")


def test_what_is_left_out_means_the_plain_case() -> None:
    sent, asked = events.Sent("x"), events.Asked("k", "?", ("Yes",))
    assert (sent.compensate, sent.undoes, events.Resent("x").compensate) == (None, None, None)
    assert (events.ChildStarted("x").when_parent_ends, events.Suspended("x").failed) == ("cancel", None)
    assert (events.Compensating("x").then, events.Compensating("x").cancelled) == (None, False)
    assert (asked.excludes, asked.data, asked.due, asked.reject) == ((), {}, None, None)


def test_an_event_of_a_saga_is_written_without_what_is_not_said() -> None:
    assert repr(events.Sent("x")) == "Sent(message='x')"
    assert repr(events.Resent("x")) == "Resent(message='x')"
    assert repr(events.Compensating("x")) == "Compensating(reason='x')"
    assert repr(events.Compensated("x")) == "Compensated(message='x')"
    assert repr(events.Suspended("x")) == "Suspended(reason='x')"
