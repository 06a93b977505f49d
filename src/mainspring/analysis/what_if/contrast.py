"""What a walk along one stream finds: what has changed in a decision or a state, in few words.

The same words are used wherever the same has changed.

A state of older code beside today's of the same type: the fields that only one of them has, and what both have.

Values are compared in what both have. So a field that only today's code has takes today's value in the old state, and
is named instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct

from mainspring.core.changes import fields_of
from mainspring.core.difference import diff, value_diff
from mainspring.core.events import StreamEvent
from mainspring.core.messages import type_of
from mainspring.engine.recording.recorder import Recorder
from mainspring.engine.recording.redecision import row_of
from mainspring.errors import CodecError, shown
from mainspring.port.records import Snapshot

SHOWN_CHARACTERS: Final = 400
FIELDS_NAMED: Final = 5

_CARRIED: Final = ("message", "result", "state")


What: TypeAlias = Literal["decision", "error", "state", "unreadable", "evolve"]
Key: TypeAlias = tuple[What, str]
"""What differs, and how, in the words that are the same wherever the same differs."""
Lines: TypeAlias = tuple[str, ...]


class Stored(Struct, frozen=True, gc=False):
    """A state as it was stored: of a snapshot, or of an exported file."""

    type: str
    type_version: int
    body: bytes


class Found(Struct):
    """A kind of difference in one instance: at which versions, and the story of the first of them.

    >>> Found([4, 9], ()).steps
    2
    """

    versions: list[int]
    lines: Lines

    @property
    def steps(self) -> int:
        """In how many steps it was found."""
        return len(self.versions)


class Compared(Struct):
    """How much was compared: decisions step by step, names of states, and whole states where there are any.

    `states` are those of `states_passed` of which the whole is known: by a snapshot, or by old code to compare with.
    """

    decisions: int = 0
    state_names: int = 0
    states: int = 0
    before_migration: int = 0
    unreadable_snapshots: int = 0
    states_passed: int = 0


class StopWalkError(Exception):
    """The stream cannot be walked any further: what comes behind cannot be known."""


def changes(recorder: Recorder, recorded: Sequence[Any], decided: Sequence[Any]) -> list[str]:
    """Return what is decided otherwise, by what both would be in the store; nothing if they would be the same.

    >>> from mainspring.codec import Codec
    >>> from mainspring.core.events import Completed, Failed
    >>> changes(Recorder(Codec(), Codec()), [Completed()], [Failed("late")])
    ['Completed is not decided any more', 'Failed is decided']
    """
    was = [(_stored(recorder, event), event) for event in recorded]
    now = [(_stored(recorder, event), event) for event in decided]
    if len(was) == len(now) and all(map(_is_same, was, now)):
        return []
    gone = list(was)
    new: list[Any] = []
    for each in now:
        same = next((i for i, other in enumerate(gone) if _is_same(other, each)), None)
        if same is None:
            new.append(each[1])
        else:
            del gone[same]
    return list(_told([event for _, event in gone], new)) or ["the same is decided in another order"]


def _is_same(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    """Return True if two are stored alike, or equal: what was read is stored again without defaults that it had not."""
    return bool(one[0] == other[0] or one[1] == other[1])


def _told(gone: Sequence[Any], new: list[Any]) -> Iterator[str]:
    for event in gone:
        alike = next((i for i, other in enumerate(new) if label(other) == label(event)), None)
        if alike is None:
            yield f"{label(event)} is not decided any more"
        else:
            yield f"{label(event)} {_differs(event, new.pop(alike))}"
    yield from (f"{label(event)} is decided" for event in new)


def state_changes(recorder: Recorder, was: Any, now: Any) -> str | None:
    """Return how two states differ, by what both would be in the store; None if they do not.

    A record that was read is stored again without the defaults that it did not have, and is the same all the same.
    """
    if type(was) is not type(now):
        return f"was {type(was).__name__}"
    if recorder.snapshot(was, 0, "").body == recorder.snapshot(now, 0, "").body:
        return None
    if fields_of(was) and not list(_differing(was, now)):
        return None
    return _differs(was, now)


def decision_lines(recorded: Sequence[Any], decided: Sequence[Any]) -> list[str]:
    """Return both as the lines of a diff."""
    return diff(recorded, decided, text=lambda event: shown(event, SHOWN_CHARACTERS), verb="decided")


def state_lines(was: Any, now: Any) -> list[str]:
    """Return both as the lines of a diff."""
    return value_diff(was, now, "is")


def label(event: object) -> str:
    """Return an event without what it says, but for the type of its message.

    >>> from mainspring.core.events import Completed, Sent
    >>> from mainspring.testing.samples import Count
    >>> label(Sent(Count("c-1"))), label(Completed())
    ('Sent(Count)', 'Completed')
    """
    carried = _carried(event)
    name = type(event).__name__
    return name if carried is None else f"{name}({type(carried).__name__})"


def _differs(was: Any, now: Any) -> str:
    fields = list(_differing(was, now))
    return f"differs in {named(fields)}" if fields else "differs"


def _differing(was: Any, now: Any) -> Iterator[str]:
    """Yield the fields in which two records of one type differ; those of what they carry, too."""
    left, right = fields_of(was) or {}, fields_of(now) or {}
    for name, value in left.items():
        other = right.get(name)
        if value != other:
            nested = name in _CARRIED and type(value) is type(other) and bool(fields_of(value))
            yield from _differing(value, other) if nested else (name,)


def _carried(event: object) -> object:
    """Return the message, result or state in an event, if it is a record."""
    fields = fields_of(event) or {}
    carried = next((fields[name] for name in _CARRIED if name in fields), None)
    return None if fields_of(carried) is None else carried


def _stored(recorder: Recorder, event: StreamEvent[Any, Any]) -> tuple[Any, ...]:
    row = row_of(recorder, event)
    return (row.event, row.type, row.type_version, row.body, row.detail)


_VERSION: Final = "$version"
_MARK: Final = "$"


class Shape(Struct, frozen=True):
    """Which fields of the old state are gone and which are new; and whether today's code can read the old one.

    >>> print(Shape(("n",), ("total",)), Shape(new=("total",), readable=False), sep=chr(10))
    n is gone, total is new
    total is new and has no default
    """

    gone: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    readable: bool = True

    @property
    def differs(self) -> bool:
        """Whether something of the old state is lost, or cannot be read. A new field with a default takes nothing."""
        return bool(self.gone) or not self.readable

    def __str__(self) -> str:
        parts = [f"{named(self.gone)} {_are(self.gone)} gone"] if self.gone else []
        if self.new:
            default = "" if self.gone or self.readable else f" and {'has' if len(self.new) == 1 else 'have'} no default"
            parts.append(f"{named(self.new)} {_are(self.new)} new{default}")
        return ", ".join(parts)


def named(fields: Sequence[str]) -> str:
    """Return the names of some fields, of many the first.

    >>> named(("a", "b")), named(tuple("abcdefg"))
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    more = len(fields) - FIELDS_NAMED
    return ", ".join(fields[:FIELDS_NAMED]) + (f" and {more} more" if more > 0 else "")


def as_today(recorder: Recorder, stored: Stored, state: object, now: Snapshot) -> tuple[Any, Shape]:
    """Return an old state as today's code has it beside `state`, which is stored as `now`; and how its shape differs.

    What an upcaster leads over, it answers for: such states are compared as it leaves them.
    """
    snapshot = Snapshot(now.version, "", stored.type, stored.type_version, stored.body)
    old, today = msgspec.json.decode(stored.body), msgspec.json.decode(now.body)
    of_one_type = stored.type in (now.type, *type_of(type(state)).aliases) and stored.type_version == now.type_version
    if not of_one_type or fields_of(state) is None or not (isinstance(old, dict) and isinstance(today, dict)):
        return recorder.state(snapshot), Shape()
    had, has = cast("dict[str, Any]", old), cast("dict[str, Any]", today)
    new = tuple(name for name in has if name not in had)
    try:
        was, readable = recorder.state(snapshot), True
        # Where defaults are not stored, a field that is missing says nothing of the shape.
        new = () if _omits_defaults(type(state)) else new
    except CodecError:
        had_too = {name: had.get(name, value) for name, value in has.items()}
        was, readable = recorder.state(_with_body(snapshot, had_too)), False
    gone = tuple(dict.fromkeys(_gone(had, msgspec.json.decode(recorder.snapshot(was, 0, "").body))))
    if new and readable:
        was = recorder.state(_with_body(snapshot, had | {name: has[name] for name in new}))
    return was, Shape(gone, new, readable)


def _gone(old: Any, read: Any, within: str = "") -> Iterator[str]:
    """Yield the fields that are lost when today's code reads an old state and writes it again."""
    if isinstance(old, dict) and isinstance(read, dict):
        had, has = cast("dict[str, Any]", old), cast("dict[str, Any]", read)
        if had.get(_VERSION) != has.get(_VERSION):
            return
        for name, value in had.items():
            if name in has:
                yield from _gone(value, has[name], within or name)
            elif not name.startswith(_MARK):
                yield f"{name} in {within}" if within else name
    elif isinstance(old, list) and isinstance(read, list):
        for one, other in zip(cast("list[Any]", old), cast("list[Any]", read), strict=False):
            yield from _gone(one, other, within)


def _omits_defaults(cls: type[Any]) -> bool:
    return issubclass(cls, Struct) and cls.__struct_config__.omit_defaults


def _with_body(snapshot: Snapshot, body: dict[str, Any]) -> Snapshot:
    return msgspec.structs.replace(snapshot, body=msgspec.json.encode(body))


def _are(fields: tuple[str, ...]) -> str:
    return "is" if len(fields) == 1 else "are"
