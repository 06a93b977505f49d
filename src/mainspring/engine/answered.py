"""What an input answers: the output at a place in its own instance's stream."""

from __future__ import annotations

from typing import Final

from mainspring.core.messages import Kind
from mainspring.engine.pending import read_context
from mainspring.port.records import EventRow, Ref

VERSION_DIGITS: Final = 18


def answered_by(ref: Ref, row: EventRow) -> int | None:
    """Return the version of what an input answers. A reply and a task's answer name it as what caused them.

    >>> answered_by(Ref("W", "i"), EventRow(5, "Received", 0, kind="result", cause=3))
    3
    """
    if row.cause is not None or row.kind not in (Kind.REPLY, Kind.ANSWER) or row.context is None:
        return row.cause
    instance, _, version = (read_context(row.context).causation_id or "").rpartition("/")
    return int(version) if instance == str(ref) and is_version(version) else None


def is_version(text: str) -> bool:
    """Tell whether a part of an id, which others may have given, can be a place in a stream.

    >>> is_version("17"), is_version("m-17")
    (True, False)
    """
    return text.isascii() and text.isdigit() and len(text) <= VERSION_DIGITS
