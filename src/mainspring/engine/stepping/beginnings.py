"""Messages that begin instances, and what they find there."""

from __future__ import annotations

from mainspring.core.messages import Kind
from mainspring.engine.inputs.lanes import Lane
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.outputs.children import parent_of


def begins_again(lane: Lane, pending: Pending) -> bool:
    """Tell whether a message that begins instances has come to one that has begun, and that is no input to it."""
    definition = lane.entry.definition
    asked_for = pending.cause is not None or pending.kind in (Kind.ANSWER, Kind.REPLY)
    if asked_for or lane.elsewhere or not lane.version or type(pending.message) not in definition.begins:
        return False
    # Whether it is a redelivery of what began a purged instance before, nobody knows any more.
    return definition.again == "refuse" or (lane.ended and lane.purged_us is None)


def is_no_new_child(lane: Lane, pending: Pending) -> bool:
    """Tell whether a child's start finds an instance, or cannot begin one."""
    if lane.ended and lane.entry.definition.again == "anew":
        return parent_of(lane.context) == pending.context.parent or not begins_again(lane, pending)
    return bool(lane.version or lane.ended) or type(pending.message) not in lane.entry.definition.begins


def is_kept_late(lane: Lane, pending: Pending) -> bool:
    """Tell whether an event that came after the end is recorded; one that never began has no stream for it."""
    late = lane.ended and lane.version > 0 and pending.kind is Kind.EVENT
    return late and lane.entry.definition.late_events == "kept"
