"""Answered commands: the output at a place in an instance's own stream that an input answers."""

from __future__ import annotations

from typing import Final

from mainspring.core.messages import Kind
from mainspring.engine.recording.stored_values import read_context
from mainspring.errors import ERASED_TYPE
from mainspring.port.records import Context, EventRow, Ref

VERSION_DIGITS: Final = 18
NO_COMMAND: Final = b"null"

COMMANDS: Final = ("Sent", "Resent", "ChildStarted")


def answered_by(ref: Ref, row: EventRow) -> int | None:
    """Return the version of what an input answers. A reply and a task's answer name it as what caused them.

    >>> answered_by(Ref("W", "i"), EventRow(5, "Received", 0, kind="result", cause=3))
    3
    """
    if row.cause is not None or row.kind not in (Kind.REPLY, Kind.ANSWER) or row.context is None:
        return row.cause
    return caused_by(ref, read_context(row.context))


class Commands:
    """The commands of a stream, for the envelopes of what answers them: kept where decide `wants` envelopes.

    >>> asked = Commands(wants=True)
    >>> asked.note(EventRow(3, "Sent", 0, "Charge", 1, b"{}"))
    >>> asked.by(Ref("W", "i"), EventRow(5, "Received", 0, kind="result", cause=3)).type
    'Charge'
    """

    __slots__ = ("_rows", "_wants")

    def __init__(self, *, wants: bool) -> None:
        self._wants = wants
        self._rows: dict[int, EventRow] = {}

    def note(self, row: EventRow) -> None:
        """Take the next event of the stream."""
        if self._wants and row.event in COMMANDS:
            self._rows[row.version] = row

    def by(self, ref: Ref, row: EventRow) -> EventRow | None:
        """Return the command that an input answers."""
        return self._rows.get(answered_by(ref, row) or 0) if self._rows else None


def command_in(row: EventRow | None) -> bytes:
    """Return the data of the command in a row; where there is none, or it was erased, that of nothing.

    >>> command_in(EventRow(3, "Sent", 0, "Charge", 1, b"{}"))
    b'{}'
    >>> command_in(EventRow(3, "Sent", 0, "erased:Charge", 1, b"{}")), command_in(EventRow(3, "Asked", 0))
    (b'null', b'null')
    """
    if row is None or row.event not in COMMANDS or row.type is None or row.type.startswith(ERASED_TYPE):
        return NO_COMMAND
    return row.body or NO_COMMAND


def caused_by(ref: Ref, context: Context) -> int | None:
    """Return the version of what a reply or a task's answer answers: its context names it as its cause."""
    instance, _, version = (context.causation_id or "").rpartition("/")
    return int(version) if instance == str(ref) and is_version(version) else None


def is_version(text: str) -> bool:
    """Return True if a part of an id, which others may have given, can be a place in a stream.

    >>> is_version("17"), is_version("m-17")
    (True, False)
    """
    return text.isascii() and text.isdigit() and len(text) <= VERSION_DIGITS
