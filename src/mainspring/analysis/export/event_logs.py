"""Streams as an XES log (IEEE 1849-2016): a trace for each instance, an event for each of its events.

What happened is `concept:name`, the message's type or else the event's name; how far it came is `lifecycle:transition`:
what was sent, scheduled or asked is scheduled, what was received is complete. Who did it is `org:resource`.

What happened, in as many words as the code has: not one for each key that was made of an order's number.

Streams as an object-centric event log (OCEL 2.0, JSON): events, and the objects that they are about.

    object          id                   related to
    an instance     Orders/o-1           the instance that began it: `child of`
    a Task          task:Orders/o-1/7    the instance that asked: `asked by`
    a Person        person:ann

An event is about its instance (`of`), and about the sender of its message (`from`), the task that it asks, answers or
closes, and the person who acted (`by`). The states of an instance are attributes of it that change in time.

Objects are only known when all events are: until then they are kept in a temporary database, not in memory.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final, cast
from xml.sax.saxutils import quoteattr

import apsw
from msgspec import json

from mainspring.analysis.export.redaction import Outgoing, Redaction
from mainspring.analysis.texts import legal
from mainspring.engine.recording.event_details import Detail, read_detail
from mainspring.engine.recording.event_rows import message_id_of
from mainspring.engine.recording.stored_values import moment, read_context
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
        """Do nothing: the caller reports what cannot be read."""

    def end(self) -> None:
        """Close the log."""
        self._close()
        self._write(["</log>"])

    def close(self) -> None:
        """Nothing to release."""

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


TASK: Final = "Task"
PERSON: Final = "Person"
ROWS_AT_ONCE: Final = 5_000

_SCHEMA: Final = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
CREATE TABLE objects (id TEXT PRIMARY KEY, type TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE attributes (object TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, time TEXT NOT NULL);
CREATE TABLE relations (object TEXT NOT NULL, other TEXT NOT NULL, qualifier TEXT NOT NULL);
"""
_INDEXES: Final = """
CREATE INDEX attributes_of ON attributes (object);
CREATE INDEX relations_of ON relations (object);
"""
_PAGE: Final = "SELECT id, type FROM objects WHERE id > ? ORDER BY id LIMIT ?"
_TYPES: Final = {bool: "boolean", int: "integer", float: "float", str: "string"}
_encode = json.Encoder().encode


class OcelWriter:
    """Writes such a log: events as they come, then the objects, then the types of both."""

    def __init__(self, file: IO[bytes], redaction: Redaction) -> None:
        self._file = file
        self._folder = tempfile.TemporaryDirectory(prefix="mainspring-ocel-")
        self._objects = _Objects(Path(self._folder.name) / "objects.db")
        self._event_types: dict[str, dict[str, str]] = {}
        self._tasks: dict[str, str] = {}
        self._activities = Activities()
        self._state: str | None = None
        self._any = False

    def begin(self, now: datetime) -> None:
        """Open the log."""
        self._file.write(b'{"events":[')

    def instance(self, row: InstanceRow) -> None:
        """Make an object of an instance."""
        id, parent = f"{row.workflow}/{row.id}", read_context(row.context).parent
        self._tasks, self._activities, self._state = {}, Activities(), None
        self._objects.add(id, row.workflow)
        self._objects.attribute(id, "status", row.status, _time(row.updated_us))
        if parent is not None:
            self._relate_to_instance(id, parent.rpartition("/")[0], "child of")

    def event(self, ref: Ref, row: EventRow, outgoing: Outgoing) -> None:
        """Write an event, and remember what it says of objects."""
        id, detail = str(ref), read_detail(outgoing.detail)
        name = self._activities.name(row, outgoing, detail)
        verb = "Received" if row.event == "InitiatedBy" else row.event
        type = verb if name == row.event else f"{verb} {name}"
        attributes = dict(_attributes(row, outgoing, detail))
        declared = self._event_types.setdefault(type, {})
        for field, value in attributes.items():
            kind = _TYPES[value.__class__]
            declared[field] = kind if declared.get(field, kind) == kind else "string"
        document = {
            "id": f"{id}/{row.version}",
            "type": type,
            "time": _time(row.time_us),
            "attributes": [{"name": field, "value": _text(value)} for field, value in attributes.items()],
            "relationships": [
                {"objectId": other, "qualifier": qualifier} for other, qualifier in self._about(id, row, detail)
            ],
        }
        self._file.write((b",\n" if self._any else b"\n") + _encode(document))
        self._any = True
        if row.state is not None and row.state != self._state:
            self._state = row.state
            self._objects.attribute(id, "state", row.state, _time(row.time_us))

    def cut(self, ref: Ref, why: str) -> None:
        """Do nothing: the caller reports what cannot be read."""

    def end(self) -> None:
        """Write objects and types, and close the log."""
        self._file.write(b'\n],\n"objects":[')
        object_types: dict[str, dict[str, str]] = {}
        for place, document in enumerate(self._objects.documents()):
            declared = object_types.setdefault(document["type"], {})
            declared.update((attribute["name"], "string") for attribute in document["attributes"])
            self._file.write((b",\n" if place else b"\n") + _encode(document))
        types = {"eventTypes": _declared(self._event_types), "objectTypes": _declared(object_types)}
        self._file.write(b"\n],\n" + _encode(types)[1:] + b"\n")

    def close(self) -> None:
        """Remove what was kept for the end."""
        self._objects.close()
        self._folder.cleanup()

    def _about(self, id: str, row: EventRow, detail: Detail) -> Iterator[tuple[str, str]]:
        yield id, "of"
        context = None if row.context is None else read_context(row.context)
        if context is not None and context.sender is not None:
            self._objects.add(context.sender, context.sender.partition("/")[0])
            yield context.sender, "from"
        yield from self._tasks_of(id, row, detail, None if context is None else context.task)
        if row.actor is not None:
            person = f"person:{row.actor}"
            self._objects.add(person, PERSON)
            yield person, "by"

    def _tasks_of(self, id: str, row: EventRow, detail: Detail, answered: str | None) -> Iterator[tuple[str, str]]:
        if row.event == "Asked" and detail.key is not None:
            task = self._tasks[detail.key] = f"task:{id}/{row.version}"
            self._objects.add(task, TASK)
            self._objects.relate(task, id, "asked by")
            yield task, "asks"
        elif row.event == "TaskClosed" and detail.key in self._tasks:
            yield self._tasks.pop(detail.key), "closes"
        elif answered is not None and answered in self._tasks:
            yield self._tasks[answered], "answers"

    def _relate_to_instance(self, id: str, other: str, qualifier: str) -> None:
        self._objects.add(other, other.partition("/")[0])
        self._objects.relate(id, other, qualifier)


class _Objects:
    """Objects with their attributes and relations, in a temporary database: there may be more than memory holds."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        self._execute(_SCHEMA)
        self._waiting: list[tuple[str, tuple[str, ...]]] = []

    def add(self, id: str, type: str) -> None:
        self._later("INSERT OR IGNORE INTO objects VALUES (?, ?)", id, type)

    def attribute(self, id: str, name: str, value: str, time: str) -> None:
        self._later("INSERT INTO attributes VALUES (?, ?, ?, ?)", id, name, value, time)

    def relate(self, id: str, other: str, qualifier: str) -> None:
        self._later("INSERT INTO relations VALUES (?, ?, ?)", id, other, qualifier)

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield all objects, by their ids."""
        self._flush()
        self._execute(_INDEXES)
        after = ""
        while page := self._execute(_PAGE, after, ROWS_AT_ONCE):
            yield from (self._document(id, type) for id, type in page)
            after = page[-1][0]

    def _document(self, id: str, type: str) -> dict[str, Any]:
        attributes = self._execute("SELECT name, value, time FROM attributes WHERE object = ? ORDER BY rowid", id)
        relations = self._execute("SELECT other, qualifier FROM relations WHERE object = ? ORDER BY rowid", id)
        return {
            "id": id,
            "type": type,
            "attributes": [{"name": name, "value": value, "time": time} for name, value, time in attributes],
            "relationships": [{"objectId": other, "qualifier": qualifier} for other, qualifier in relations],
        }

    def close(self) -> None:
        self._connection.close()

    def _later(self, statement: str, *values: str) -> None:
        self._waiting.append((statement, values))
        if len(self._waiting) >= ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        with self._connection:
            for statement, values in waiting:
                self._execute(statement, *values)

    def _execute(self, statement: str, *values: str | int) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _attributes(row: EventRow, outgoing: Outgoing, detail: Detail) -> Iterator[tuple[str, str | int | float | bool]]:
    yield "version", row.version
    for name, text in (("kind", row.kind), ("key", detail.key), ("state", row.state), ("actor", row.actor)):
        if text is not None:
            yield name, text
    if outgoing.body is not None:
        yield from ((f"message.{name}", value) for name, value in scalars(outgoing.body))


def _declared(types: dict[str, dict[str, str]]) -> list[dict[str, Any]]:
    return [
        {"name": name, "attributes": [{"name": field, "type": type} for field, type in fields.items()]}
        for name, fields in types.items()
    ]


def _text(value: str | float) -> str:
    # The standard's schema knows texts only; what they mean, the declared type says.
    return str(value).lower() if isinstance(value, bool) else str(value)


def _time(time_us: int) -> str:
    return moment(time_us).isoformat(timespec="microseconds").replace("+00:00", "Z")
