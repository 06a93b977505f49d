"""Log lines that say what they are about: fields of the current message, in lines of the engine and of handlers.

Inside a handler, its own lines have them as well, in threads and in processes too. Nothing here changes how an app
logs: to have the fields, add the filter, or use the formatter.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from traceback import TracebackException
from typing import Any, Final, TypeAlias, cast

from mainspring.errors import visible
from mainspring.logs import logger

FIELDS: Final = (
    "workflow",
    "instance",
    "message_id",
    "message_type",
    "correlation_id",
    "handler",
    "attempt",
    "trace_id",
)
"""All that a line may have."""
EXTRA: Final = "mainspring"
"""Under this name the engine's own lines carry their fields."""
LINES: Final = 30
LINES_SECONDS: Final = 60.0
"""How many lines of one cause, in how long, are enough to see it."""
CAUSES: Final = 1_000
CAUSE_CHARACTERS: Final = 200

TEXT: Final = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
# A frame of a traceback, also one inside a group.
_FRAME: Final = re.compile(r'[ |+-]*File "')

Fields: TypeAlias = Mapping[str, str | int | None]

at_hand: ContextVar[Fields | None] = ContextVar("mainspring_fields", default=None)
"""What the current handler is working on."""


def fields_of(record: logging.LogRecord) -> Fields:
    """Return what a record is about: what it says itself, else what the handler that wrote it was at.

    >>> fields_of(logging.makeLogRecord({"mainspring": {"workflow": "Orders"}}))
    {'workflow': 'Orders'}
    """
    own: Any = getattr(record, EXTRA, None)
    if isinstance(own, Mapping):
        return cast("Fields", own)
    return at_hand.get() or {}


class MessageFields(logging.Filter):
    """Gives every record the fields, None where there is nothing to say, for a format of one's own.

    >>> record = logging.makeLogRecord({"mainspring": {"workflow": "Orders"}})
    >>> MessageFields().filter(record), record.workflow, record.attempt
    (True, 'Orders', None)
    """

    def filter(self, record: logging.LogRecord) -> bool:
        found = fields_of(record)
        for name in FIELDS:
            if not hasattr(record, name):
                setattr(record, name, found.get(name))
        return True


class TextLines(logging.Formatter):
    r"""A log record as text: an error may quote untrusted input, which must not control a terminal.

    Whatever cannot be seen is escaped, line breaks too: no line can forge the beginning of a record.

    >>> TextLines("%(message)s").format(logging.makeLogRecord({"msg": "no \x1b[2J\n2026-01-31 all is well"}))
    'no \\x1b[2J\\n2026-01-31 all is well'
    """

    def __init__(self, format: str = TEXT) -> None:
        super().__init__(format)

    def format(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage()
        record.asctime = self.formatTime(record)
        lines = [visible(self.formatMessage(record))]
        if record.exc_info:
            lines.append(self.formatException(record.exc_info))
        if record.stack_info:
            lines += [f"  {visible(line)}" for line in record.stack_info.splitlines()]
        return "\n".join(lines)

    def formatException(self, ei: Any) -> str:  # noqa: N802  logging's own name
        parts = (part.strip("\n") for part in TracebackException(*ei).format())
        # Of a traceback only the lines of code are the author's; the rest may be untrusted.
        lines = (line for part in parts for line in (part.split("\n") if _FRAME.match(part) else [part]))
        # Notes on an error come line by line: so each is moved in, and none begins as a record does.
        return "\n".join(f"  {visible(line)}" for line in lines)


class JsonLines(logging.Formatter):
    """A log record as a JSON document in one line, with the fields that it has.

    >>> record = logging.makeLogRecord({"name": "a", "levelname": "INFO", "msg": "b", "mainspring": {"attempt": 2}})
    >>> JsonLines().format(record)[-61:]
    '"level": "info", "logger": "a", "message": "b", "attempt": 2}'
    """

    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        found = fields_of(record)
        document |= {name: found[name] for name in FIELDS if found.get(name) is not None}
        if record.exc_info:
            document["error"] = self.formatException(record.exc_info)
        line = json.dumps(document, ensure_ascii=False)
        # What cannot be seen, and half a character, which no stream could write, is as JSON would escape it.
        return line if line.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)


class Seldom(logging.Filter):
    """Lets a few warnings and errors of one cause through in a minute, and counts how many more there were.

    A cause is what the line says before its values are put in, and the type of its exception. What is below a warning
    passes: a user who turns it on wants all of it.

    >>> seldom, line = Seldom(lines=1), {"levelno": logging.WARNING, "msg": "no room for %s"}
    >>> [seldom.filter(logging.makeLogRecord(line | {"args": (name,), "created": 0.0})) for name in ("ann", "bob")]
    [True, False]
    >>> later = logging.makeLogRecord(line | {"args": ("cem",), "created": 61.0})
    >>> seldom.filter(later), later.getMessage()
    (True, 'no room for cem (1 more like it was left out before; more of them within 60 s are left out)')
    """

    def __init__(self, lines: int = LINES, seconds: float = LINES_SECONDS) -> None:
        super().__init__()
        self._lines, self._seconds = lines, seconds
        self._causes: dict[Any, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        cause = (record.name, record.levelno, str(record.msg)[:CAUSE_CHARACTERS], (record.exc_info or (None,))[0])
        with self._lock:
            since, seen = self._causes.pop(cause, (record.created, 0))
            before = 0
            if record.created >= since + self._seconds:
                since, before, seen = record.created, max(0, seen - self._lines), 0
            self._causes[cause] = (since, seen + 1)
            if len(self._causes) > CAUSES:
                del self._causes[next(iter(self._causes))]
        notes = [f"{before:,} more like it {'was' if before == 1 else 'were'} left out before"] if before else []
        if seen + 1 == self._lines:
            notes.append(f"more of them within {self._seconds:g} s are left out")
        if notes:
            record.msg, record.args = f"{record.getMessage()} ({'; '.join(notes)})", ()
        return seen < self._lines


@contextmanager
def bounded_logging(*names: str) -> Generator[None]:
    """Keep clients from filling a log, however it is set up, by what they send or by connections beyond the files."""
    seldom = Seldom()
    for name in names:
        logger(name).addFilter(seldom)
    try:
        yield
    finally:
        for name in names:
            logger(name).removeFilter(seldom)
