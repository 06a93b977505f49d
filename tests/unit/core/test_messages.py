from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from mainspring import Envelope, message
from mainspring.core.events import Began, Compensated, Kept, Published, Received, Resent, Skipped
from mainspring.core.failures import ChildCompleted, ChildFailed, SendFailed, Undone
from mainspring.core.feed import FeedEntry
from mainspring.core.messages import InstanceId, Kind, MessageType, output_id, type_of
from mainspring.errors import DefinitionError

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@message(name="shop.Order", version=3, aliases=["Order", "Placed"], upcasters=[dict, dict])
@dataclass(frozen=True)
class Order:
    id: str


class Child(Order):
    pass


def test_a_type_is_known_by_what_it_was_marked_with() -> None:
    assert type_of(Order) == MessageType("shop.Order", 3, ("Order", "Placed"), (dict, dict))


def test_a_type_that_is_not_marked_has_its_own_name_at_version_1() -> None:
    assert type_of(Child) == MessageType("Child", 1, (), ())
    assert type_of(message()(type("Bare", (), {}))).name == "Bare"


@pytest.mark.parametrize(("version", "upcasters"), [(0, 0), (1, 1), (2, 0), (3, 1), (0, -1)])
def test_a_version_has_one_upcaster_for_each_older_one(version: int, upcasters: int) -> None:
    with pytest.raises(DefinitionError, match=f"Give one for each older version: {max(version - 1, 0)}"):
        message(version=version, upcasters=[dict] * upcasters)(type("Bad", (), {}))


def test_an_envelope_knows_the_type_of_its_message() -> None:
    envelope = Envelope(Order("1"), id="m-1", time=MOMENT, correlation_id="c-1")
    assert (envelope.type, envelope.type_version, envelope.kind) == ("shop.Order", 3, Kind.COMMAND)


def test_ids_are_written_with_slashes() -> None:
    instance = InstanceId("Orders", "o-1")
    assert (str(instance), output_id(instance, 3)) == ("Orders/o-1", "Orders/o-1/3")


def test_the_kinds_of_messages_are_stored_by_these_words() -> None:
    assert [kind.value for kind in Kind] == ["command", "event", "reply", "result", "timer", "task", "answer"]


def test_what_a_workflow_listens_for_is_stored_under_these_names() -> None:
    told = [type_of(cls).name for cls in (SendFailed, ChildCompleted, ChildFailed, Undone)]
    assert told == ["SendFailed", "mainspring.ChildCompleted", "mainspring.ChildFailed", "mainspring.Undone"]
    assert (SendFailed("t", "m", "e", 1).definite, ChildFailed("c", "failed", "no").part) == (False, None)


def test_the_error_of_a_child_is_stored_under_its_first_name() -> None:
    assert msgspec.to_builtins(ChildFailed("c", "failed", "no"))["reason"] == "no"


def test_failures_can_stand_in_a_set_with_whatever_was_sent() -> None:
    failed = SendFailed("t", "m", "e", 1, command={"part": [2]})
    assert {failed} == {SendFailed("t", "m", "e", 1, command={"part": [2]})}


@pytest.mark.parametrize(
    "record",
    [
        SendFailed("t", "m", "e", 1),
        ChildCompleted("c"),
        ChildFailed("c", "failed", "no"),
        InstanceId("w", "i"),
        MessageType("t"),
        Envelope(Order("1"), "m-1", MOMENT, "c-1"),
        FeedEntry(1, "w", "i", 1, Began(), MOMENT),
    ],
)
def test_what_travels_cannot_be_changed(record: Any) -> None:
    name = next(iter(record.__annotations__))
    with pytest.raises(AttributeError):
        setattr(record, name, "changed")


def test_an_entry_of_the_feed_tells_what_its_instance_took_from_what_it_gave() -> None:
    taken, given, begun = (
        FeedEntry(7, "Orders", "o-1", 2, event, MOMENT) for event in (Received("placed"), Published("done"), Began())
    )
    assert (taken.input, taken.output) == ("placed", None)
    assert (given.input, given.output) == (None, "done")
    assert (begun.input, begun.output) == (None, None)
    # The last two are of commands that the instance has sent before.
    for untaken in (Kept("placed"), Skipped("placed"), Compensated("refund"), Resent("charge")):
        late = FeedEntry(9, "Orders", "o-1", 4, untaken, MOMENT)
        assert (late.input, late.output) == (None, None)
    # Whoever folded `message` counted what one instance sent to another in both of their streams.
    assert not hasattr(taken, "message")
