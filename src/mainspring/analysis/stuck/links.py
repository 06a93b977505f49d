"""Which other instances an instance has to do with: its parent, its children, its senders and its receivers.

A stream names those that a message came from. Where a message went, `route` says: today's code is asked, as the engine
asked when it carried the message out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

from msgspec import Struct

from mainspring.engine.recording.children import parent_at, parent_of
from mainspring.engine.recording.event_details import read_detail
from mainspring.engine.recording.stored_values import instance_id, read_context
from mainspring.engine.registry import Registry, WorkflowEntry
from mainspring.errors import MainspringError
from mainspring.port.records import FAN_OUT, EventRow, InstanceRow, Ref

EVENTS_LOOKED_AT: Final = 10_000
LINKS_MOST: Final = 200

Relation: TypeAlias = Literal["parent", "child", "sender", "receiver"]

_GIVES: Final = ("Sent", "Resent", "Published", "ChildStarted", "FannedOut", "Replied")


class Link(Struct, frozen=True):
    """Another instance, by which event of this one's stream, and by which type of message."""

    relation: Relation
    ref: Ref
    position: int | None = None
    type: str | None = None


class Links(Struct, frozen=True):
    """The links of an instance, each once. `cut`: there may be more. `unread` messages could not be read or routed."""

    links: tuple[Link, ...]
    cut: bool
    unread: int


def links_of(registry: Registry, entry: WorkflowEntry | None, row: InstanceRow, rows: Sequence[EventRow]) -> Links:
    """Return the links of an instance; `rows` are the first of its stream, `entry` the code that reads them."""
    own = Ref(row.workflow, row.id)
    found: dict[tuple[Relation, Ref], Link] = {}
    unread = 0
    for link in _came_from(row, rows):
        found.setdefault((link.relation, link.ref), link)
    for event in rows:
        if event.event not in _GIVES:
            continue
        try:
            for link in _went_to(registry, entry, own, event):
                found.setdefault((link.relation, link.ref), link)
        except MainspringError:
            # A type that this app has lost, or an erased message: where it went is not known any more.
            unread += 1
    others = tuple(link for link in found.values() if link.ref != own)
    cut = len(others) > LINKS_MOST or len(rows) >= EVENTS_LOOKED_AT
    return Links(others[:LINKS_MOST], cut, unread)


def _came_from(row: InstanceRow, rows: Sequence[EventRow]) -> Iterator[Link]:
    parent = parent_of(row.context)
    if parent is not None:
        yield Link("parent", parent_at(parent).ref, 1)
    for event in rows:
        if event.context is None:
            continue
        context = read_context(event.context)
        if context.sender is not None and context.parent is None:
            sender = instance_id(context.sender)
            yield Link("sender", Ref(sender.workflow, sender.id), event.version, event.type)


def child_of(registry: Registry, entry: WorkflowEntry | None, own: Ref, row: EventRow) -> Ref | None:
    """Return the instance that an event has begun; None where that is not known any more."""
    try:
        return next((link.ref for link in _went_to(registry, entry, own, row)), None)
    except MainspringError:
        return None


def _went_to(registry: Registry, entry: WorkflowEntry | None, own: Ref, row: EventRow) -> Iterator[Link]:
    if row.event == "FannedOut":
        yield Link("child", Ref(FAN_OUT, f"{own}/{row.version}"), row.version)
    elif row.event == "Replied":
        scheme, _, address = (read_detail(row.detail).reply_to or "").partition(":")
        if scheme == "instance":  # else a caller waits for it, who is none, or a message that names its sender
            asked = instance_id(address)
            yield Link("receiver", Ref(asked.workflow, asked.id), row.version, row.type)
    elif entry is not None:
        message: Any = cast("Any", entry.recorder.event(row)).message
        relation: Relation = "child" if row.event == "ChildStarted" else "receiver"
        takers = registry.takers(message)
        for taker in takers if row.event == "Published" else takers[:1]:
            id = taker.route(message)
            if id is not None:
                yield Link(relation, Ref(taker.name, id), row.version, row.type)
