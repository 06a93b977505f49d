"""Streams as an object-centric event log (OCEL 2.0, JSON): events, and the objects that they are about.

    object          id                   related to
    an instance     Orders/o-1           the instance that began it: `child of`
    a Task          task:Orders/o-1/7    the instance that asked: `asked by`
    a Person        person:ann

An event is about its instance (`of`), and about whoever sent its message (`from`), the task that it asks, answers or
closes, and the person who acted (`by`). The states of an instance are attributes of it that change in time.

Objects are only known when all events are: until then they are kept in a temporary database, not in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final

import apsw
from msgspec import json

from mainspring.analysis.export.redaction import Outgoing, Redaction
from mainspring.analysis.export.xes import Activities, scalars
from mainspring.engine.recording.event_details import Detail, read_detail
from mainspring.engine.recording.stored_values import moment, read_context
from mainspring.port.records import EventRow, InstanceRow, Ref

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
        """Say nothing: what cannot be read is told by who writes."""

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
