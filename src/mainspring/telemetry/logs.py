"""Log lines that say what they are about: fields of the message at hand, in lines of the engine and of handlers.

Inside a handler, its own lines have them as well, in threads and in processes too. Nothing here changes how an app
logs: who wants the fields adds the filter, or uses the formatter.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, cast

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

Fields: TypeAlias = Mapping[str, str | int | None]

at_hand: ContextVar[Fields | None] = ContextVar("mainspring_fields", default=None)
"""What the handler that runs now is at."""


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
        # Half a character, which no stream could write, is as JSON would escape it.
        return json.dumps(document, ensure_ascii=False).encode(errors="backslashreplace").decode()
