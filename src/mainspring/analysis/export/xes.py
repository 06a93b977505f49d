"""Streams as an XES log (IEEE 1849-2016): a trace for each instance, an event for each of its events.

What happened is `concept:name`, the message's type or else the event's name; how far it came is `lifecycle:transition`:
what was sent, scheduled or asked is scheduled, what was received is complete. Who did it is `org:resource`.

What happened, in as many words as the code has: not one for each key that somebody made of an order's number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import IO, Any, Final, cast
from xml.sax.saxutils import quoteattr

from msgspec import json

from mainspring.analysis.export.redaction import Outgoing, Redaction
from mainspring.analysis.texts import legal
from mainspring.engine.recording.event_details import Detail, read_detail
from mainspring.engine.recording.event_rows import message_id_of
from mainspring.engine.recording.stored_values import moment
from mainspring.port.records import EventRow, InstanceRow, Ref

EXTENSIONS: Final = (
    ("Concept", "concept", "http://www.xes-standard.org/concept.xesext"),
    ("Lifecycle", "lifecycle", "http://www.xes-standard.org/lifecycle.xesext"),
    ("Organizational", "org", "http://www.xes-standard.org/org.xesext"),
    ("Time", "time", "http://www.xes-standard.org/time.xesext"),
)
TRANSITIONS: Final = {
    "Began": "start",
    "Sent": "schedule",
    "Resent": "schedule",
    "Scheduled": "schedule",
    "ScheduleCancelled": "withdraw",
    "Asked": "schedule",
    "TaskClosed": "complete",
    "ChildStarted": "schedule",
    "FannedOut": "schedule",
    "Suspended": "suspend",
    "Resumed": "resume",
    "AnswerRefused": "unknown",
    "Skipped": "manualskip",
    "Failed": "pi_abort",
    "Cancelled": "pi_abort",
    "Terminated": "pi_abort",
    "Reset": "unknown",
    "Migrated": "unknown",
    "Retried": "unknown",
    "Kept": "unknown",
}
"""How an event stands in the standard's model of a lifecycle; those that are not here are `complete`."""
LONG: Final = 2**63
"""The standard's integers are below this."""

_NOT_IN_A_NAME: Final = re.compile(r"[^\w.\-]")


class XesWriter:
    """Writes such a log, trace by trace."""

    def __init__(self, file: IO[bytes], redaction: Redaction) -> None:
        self._file = file
        self._payloads = redaction.payloads
        self._open = False
        self._activities = Activities()

    def begin(self, now: datetime) -> None:
        """Write what the log is about."""
        lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<log xes.version="1849.2016" xes.features="">']
        lines += [f'<extension name="{name}" prefix="{prefix}" uri="{uri}"/>' for name, prefix, uri in EXTENSIONS]
        lines += ['<global scope="trace">', _string("concept:name", "unknown"), "</global>"]
        lines += [
            '<global scope="event">',
            _string("concept:name", "unknown"),
            _string("lifecycle:transition", "complete"),
            _date("time:timestamp", moment(0)),
            "</global>",
            '<classifier name="Activity" scope="event" keys="concept:name lifecycle:transition"/>',
            _string("lifecycle:model", "standard"),
            _date("written", now),
        ]
        self._write(lines)

    def instance(self, row: InstanceRow) -> None:
        """Begin a trace."""
        self._close()
        self._open, self._activities = True, Activities()
        lines = [
            "<trace>",
            _string("concept:name", f"{row.workflow}/{row.id}"),
            _string("workflow", row.workflow),
            _string("status", row.status),
            *([] if row.state is None else [_string("state", row.state)]),
            f'<int key="definition_version" value="{row.definition_version}"/>',
        ]
        self._write(lines)

    def event(self, ref: Ref, row: EventRow, outgoing: Outgoing) -> None:
        """Write an event of the trace."""
        detail = read_detail(outgoing.detail)
        self._write(["<event>", *self._attributes(ref, row, outgoing, detail), "</event>"])

    def cut(self, ref: Ref, why: str) -> None:
        """Say nothing: what cannot be read is told by who writes."""

    def end(self) -> None:
        """Close the log."""
        self._close()
        self._write(["</log>"])

    def close(self) -> None:
        """Hold nothing."""

    def _attributes(self, ref: Ref, row: EventRow, outgoing: Outgoing, detail: Detail) -> Iterator[str]:
        yield _string("concept:name", self._activities.name(row, outgoing, detail))
        instance = message_id_of(ref, row)
        if instance is not None:
            yield _string("concept:instance", instance)
        yield _string("lifecycle:transition", TRANSITIONS.get(row.event, "complete"))
        yield _date("time:timestamp", moment(row.time_us))
        if row.actor is not None:
            yield _string("org:resource", row.actor)
        if detail.role is not None:
            yield _string("org:role", detail.role)
        yield f'<int key="version" value="{row.version}"/>'
        yield _string("event", row.event)
        gone = outgoing.gone if self._payloads else None
        optional = {"kind": row.kind, "key": detail.key, "state": row.state, "gone": gone}
        yield from (_string(name, text) for name, text in optional.items() if text is not None)
        if outgoing.body is not None:
            yield from _fields(outgoing.body)

    def _close(self) -> None:
        if self._open:
            self._write(["</trace>"])
        self._open = False

    def _write(self, lines: list[str]) -> None:
        self._file.write(("\n".join(lines) + "\n").encode())


def scalars(body: bytes) -> Iterator[tuple[str, str | int | float | bool]]:
    """Yield the fields of a message; what is not a single value as JSON.

    >>> list(scalars(b'{"id":"o-1","lines":[1,2],"note":null}'))
    [('id', 'o-1'), ('lines', '[1,2]')]
    """
    decoded: Any = json.decode(body)
    fields = cast("dict[str, Any]", decoded) if isinstance(decoded, dict) else {"value": decoded}
    for name, value in fields.items():
        if value is not None:
            yield name, value if isinstance(value, str | int | float) else json.encode(value).decode()


def _fields(body: bytes) -> Iterator[str]:
    for name, value in scalars(body):
        key = f"message.{_NOT_IN_A_NAME.sub('_', name)}"
        match value:
            case bool():
                yield f'<boolean key="{key}" value="{str(value).lower()}"/>'
            case int() if -LONG <= value < LONG:
                yield f'<int key="{key}" value="{value}"/>'
            case float():
                yield f'<float key="{key}" value="{value}"/>'
            case _:
                yield _string(key, str(value))


def _string(key: str, value: str) -> str:
    return f'<string key="{key}" value={quoteattr(legal(value))}/>'


def _date(key: str, value: datetime) -> str:
    return f'<date key="{key}" value="{value.isoformat(timespec="microseconds")}"/>'


KEYS_KEPT: Final = 10_000
"""Keys of timers and tasks of one instance of which it is remembered what they are for."""


class Activities:
    """Names the events of one instance, in their order: by the message's type, or else by the event's own name.

    A cancelled timer has the name of what was scheduled, a task the names of the messages that answer it.

    >>> activities = Activities()
    >>> activities.name(EventRow(3, "Scheduled", 0), Outgoing("TimedOut", None, None), Detail(key="o-1"))
    'TimedOut'
    >>> activities.name(EventRow(4, "ScheduleCancelled", 0), Outgoing(None, None, None), Detail(key="o-1"))
    'TimedOut'
    """

    def __init__(self) -> None:
        self._names: dict[tuple[str, str | None], str] = {}

    def name(self, row: EventRow, outgoing: Outgoing, detail: Detail) -> str:
        """Return the name of the next event."""
        match row.event:
            case "Scheduled":
                return self._remembered("timer", detail.key, outgoing.type or row.event)
            case "Asked":
                return self._remembered("task", detail.key, " or ".join(detail.answers) or row.event)
            case "ScheduleCancelled":
                return self._names.get(("timer", detail.key), row.event)
            case "TaskClosed":
                return self._names.get(("task", detail.key), row.event)
            case _:
                return outgoing.type or row.event

    def _remembered(self, kind: str, key: str | None, name: str) -> str:
        if len(self._names) >= KEYS_KEPT:
            del self._names[next(iter(self._names))]
        self._names[kind, key] = name
        return name
