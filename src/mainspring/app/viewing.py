"""What is stored, as documents for programs: the same on the command line and over HTTP.

Their field names are promised in docs/reference/cli.md and docs/reference/http.md.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, json, to_builtins

from mainspring.app.undelivered import undelivered_in
from mainspring.codec.strict import scan
from mainspring.core import events
from mainspring.engine.recording.event_details import read_detail
from mainspring.engine.recording.event_rows import message_id_of
from mainspring.engine.recording.stored_values import moment
from mainspring.errors import DecodeError
from mainspring.port.ids import plain
from mainspring.port.records import EDGE, DeadLetter, EventRow, InputRow, InstanceRow, OutputClaim, Ref, Stats


def instance_document(row: InstanceRow) -> dict[str, Any]:
    """Return an instance's row for programs."""
    return {
        "instance": f"{row.workflow}/{row.id}",
        "workflow": row.workflow,
        "id": row.id,
        "status": row.status,
        "state": row.state,
        "workflow_version": row.definition_version,
        "position": row.version,
        "error": row.error,
        "began": moment(row.created_us),
        "updated": moment(row.updated_us),
        "key": row.key,
    }


def input_document(row: InputRow) -> dict[str, Any]:
    """Return a waiting input for programs."""
    return {
        "message_id": plain(row.message_id),
        "kind": row.kind,
        "type": row.type,
        "message": Raw(row.body),
        "time": moment(row.time_us),
        "actor": row.actor,
    }


def output_document(claim: OutputClaim, key: str | None) -> dict[str, Any]:
    """Return an output that is not carried out yet for programs."""
    return {
        "instance": f"{claim.workflow}/{claim.instance}",
        "position": claim.output.version,
        "kind": claim.kind,
        "key": key,
        "type": claim.type,
        "message": Raw(claim.body),
        "due": moment(claim.due_us),
        "attempts": claim.attempts,
    }


def letter_document(letter: DeadLetter) -> dict[str, Any]:
    """Return a dead letter for programs. One of an edge has the headers that came with it, too."""
    message, more = (Raw(letter.body), {}) if letter.workflow != EDGE else _undelivered(letter)
    return {
        "id": letter.id,
        "instance": f"{letter.workflow}/{letter.instance}",
        "message_id": plain(letter.message_id),
        "kind": letter.kind,
        "type": letter.type,
        "message": message,
        "time": moment(letter.time_us),
        "reason": letter.reason,
        "error": letter.error,
        "attempts": letter.attempts,
        "actor": letter.actor,
        **more,
    }


def _undelivered(letter: DeadLetter) -> tuple[Raw, dict[str, Any]]:
    """Return what came: as JSON if it is any, else as text, else as base64."""
    came = undelivered_in(letter)
    try:
        scan(letter.type, came.bytes)
        message = came.bytes
    except DecodeError:
        message = json.encode(came.text if came.text is not None else {"base64": came.base64})
    return Raw(message), {"headers": came.headers}


def event_document(ref: Ref, row: EventRow) -> dict[str, Any]:
    """Return an event for programs, from its row: readable even where the app has lost the message's type."""
    detail = read_detail(row.detail)
    return {
        "position": row.version,
        "time": moment(row.time_us),
        "event": row.event,
        "direction": direction_of(row),
        "kind": kind_of(row),
        "type": detail.unkept or row.type,
        "message": None if row.body is None or row.type is None else Raw(row.body),
        "message_id": message_id_of(ref, row),
        "actor": row.actor,
        "state": row.state,
        "attempt": row.attempt,
        "key": detail.key,
        "after_seconds": None if detail.after_us is None else detail.after_us / 1e6,
        "at": detail.at,
        "to": detail.to,
        "reason": detail.reason,
    }


def direction_of(row: EventRow) -> str:
    """Return whether an event is an input, an output or neither."""
    return getattr(events, row.event).direction


def kind_of(row: EventRow) -> str | None:
    """Return the kind of an event's message, if it has one."""
    kind = row.kind or getattr(events, row.event).kind
    return None if kind is None else str(kind)


def stats_document(stats: Stats) -> dict[str, Any]:
    """Return how much there is of everything, for programs."""
    document: dict[str, Any] = to_builtins(stats)
    oldest_us = document.pop("oldest_due_us")
    return {**document, "oldest_due": None if oldest_us is None else moment(oldest_us)}
