"""A state of older code beside today's of the same type: the fields that only one of them has, and what both have.

Values are compared in what both have. So a field that only today's code has takes today's value in the old state, and
is named instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from mainspring.analysis.findings import Stored
from mainspring.core.changes import fields_of
from mainspring.core.messages import type_of
from mainspring.engine.recording.recorder import Recorder
from mainspring.errors import CodecError
from mainspring.port.records import Snapshot

FIELDS_NAMED: Final = 5

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


def named(fields: tuple[str, ...]) -> str:
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
