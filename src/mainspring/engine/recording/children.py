"""Parents and children: which began which, which children are open, and how a child's end comes to its parent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mainspring.core.messages import Kind
from mainspring.engine.recording.event_details import Ending, encode_detail, read_detail
from mainspring.engine.recording.stored_values import instance_id, read_context
from mainspring.port.records import EventRow, Loaded, OutputRow, Ref, Unit

CHILDREN_MARK: Final = "+children"
"""Behind the fingerprint of a snapshot: the events before it may have started children."""

STARTS: Final = ("ChildStarted", "FannedOut")


class Parent(Struct, frozen=True, gc=False):
    """Who waits for a child's end: an instance, and the version at which it started the child.

    >>> Parent(Ref("Orders", "o/1"), 3).output_id
    'Orders/o/1/3'
    """

    ref: Ref
    version: int

    @property
    def output_id(self) -> str:
        """The id of the message that began the child."""
        return f"{self.ref}/{self.version}"


def parent_at(output_id: str) -> Parent:
    """Return the parent that an output's id names.

    >>> parent_at("Orders/o/1/3").ref.id
    'o/1'
    """
    instance, _, version = output_id.rpartition("/")
    own = instance_id(instance)
    return Parent(Ref(own.workflow, own.id), int(version))


def parent_of(context: bytes | None) -> str | None:
    """Return the id of the output that began an instance as a child, from the context in which it began.

    >>> parent_of(b'{"correlation_id":"c-1","parent":"Orders/o-1/3"}')
    'Orders/o-1/3'
    """
    # Most instances have no parent: a look at the bytes is cheaper than to read them. Quotes in values are escaped.
    if context is None or b'"parent":"' not in context:
        return None
    return read_context(context).parent


def has_children(loaded: Loaded) -> bool:
    """Return True if an instance has ever started a child.

    >>> from mainspring.port.records import InstanceRow
    >>> row = InstanceRow(7, "W", "i", 2, "running", None, None, 1, b"{}", 0, 0)
    >>> has_children(Loaded(row, None, [EventRow(1, "Began", 0), EventRow(2, "ChildStarted", 0)]))
    True
    """
    if loaded.snapshot is not None and loaded.snapshot.fingerprint.endswith(CHILDREN_MARK):
        return True
    return any(row.event in STARTS for row in loaded.events)


def open_children(rows: Iterable[EventRow]) -> list[EventRow]:
    """Return the starts in a stream that no end has answered, but for those that were to be abandoned.

    >>> [row.version for row in open_children([EventRow(2, "ChildStarted", 0), EventRow(3, "ChildStarted", 0),
    ...     EventRow(4, "Received", 0, kind="result", cause=2)])]
    [3]
    """
    open: dict[int, EventRow] = {}
    for row in rows:
        if row.event in STARTS:
            if not read_detail(row.detail).abandon:
                open[row.version] = row
        elif row.kind == Kind.RESULT and row.cause is not None:
            open.pop(row.cause, None)
    return list(open.values())


def end_output(
    row: EventRow, own: str, status: str, context: bytes | None, *, children: bool, tell: bool = True
) -> tuple[EventRow, OutputRow] | None:
    """Return the event that ends an instance with the output that reports it, or None if none is to be notified.

    `own` is the instance's workflow. Notified are the parent, where `tell`; and children, where there are any.
    """
    parent = parent_of(context) if tell else None
    if parent is None and not children:
        return None
    detail = replace(read_detail(row.detail), end=Ending(status, parent, children))
    # Its queue is one of the workers that know the parent's workflow.
    destination = f"reply:{own if parent is None else parent_at(parent).ref.workflow}"
    return replace(row, detail=encode_detail(detail)), OutputRow(row.version, "end", destination)


def ended_by_operator(unit: Unit, loaded: Loaded, *, tell: bool = True) -> Unit:
    """Return a unit that ends an instance from outside together with the output that reports it."""
    if not unit.events:
        return unit
    children = has_children(loaded)
    ended = end_output(unit.events[-1], unit.workflow, unit.status, loaded.row.context, children=children, tell=tell)
    if ended is None:
        return unit
    return replace(unit, events=(*unit.events[:-1], ended[0]), outputs=(*unit.outputs, ended[1]))
