"""Rows to records and back, with a checksum over every record that is read again to decide or to deliver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol
from zlib import crc32

from msgspec import msgpack
from msgspec.structs import astuple

from mainspring.errors import DamagedRecordError, shown
from mainspring.port.records import Cause, DeadLetter, EventRow, InputRow, InstanceRow, OutputClaim, OutputKey, Snapshot

# Where, in a row of an output, its causing input and its event begin.
_INPUT, _EVENT = 10, 14

# The columns of `events` between `instance` and `checksum` are the fields of EventRow, in its order.
EVENT_COLUMNS: Final = 17
INPUT_FIELDS: Final = 12
POSTED_FIELDS: Final = 10
DEAD_LETTER_FIELDS: Final = 13
NAME_CHARACTERS: Final = 120

# MessagePack says the type and the length of everything, so that no two rows have the same bytes.
_bytes_of = msgpack.Encoder().encode


def event_values(instance: int, event: EventRow) -> list[Any]:
    """Return the row of an event.

    >>> event_values(7, EventRow(1, "Began", 0))[:3]
    [7, 1, 'Began']
    """
    values = [instance, *astuple(event)]
    values.append(crc32(_bytes_of(values)))
    return values


def read_event(row: Sequence[Any]) -> EventRow:
    """Return the event of a row, or raise DamagedRecordError.

    >>> read_event(event_values(7, EventRow(1, "Began", 0))).event
    'Began'
    """
    if crc32(_bytes_of(row[:-1])) != row[-1]:
        raise DamagedRecordError("events", f"instance {row[0]}, version {row[1]}")
    return EventRow(*row[1:-1])


def input_values(position: int, input: InputRow, owner: int | None) -> tuple[Any, ...]:
    """Return the row of an accepted input.

    >>> input_values(5, InputRow("W", "i", "m-1", "command", "Go", 1, b"{}", 0, b"{}"), None)[:4]
    (5, 'W', 'i', 'm-1')
    """
    values = (position, *astuple(input)[:INPUT_FIELDS])
    return (*values, owner, crc32(_bytes_of(values)))


def read_input(row: Sequence[Any]) -> InputRow:
    """Return the input of a row, or raise DamagedRecordError. It says `claimed` if a worker holds it.

    >>> row = input_values(5, InputRow("W", "i", "m-1", "command", "Go", 1, b"{}", 0, b"{}"), None)
    >>> read_input(row).position
    5
    """
    if crc32(_bytes_of(row[:-2])) != row[-1]:
        raise DamagedRecordError("inbox", f"position {row[0]}")
    return InputRow(*row[1:-2], claimed=(row[-2] or 0) > 0, position=row[0])


def posted_checksum(input: InputRow) -> int:
    """Return the checksum of a message that is posted: of all but its position, which is not known yet."""
    return crc32(_bytes_of(astuple(input)[:POSTED_FIELDS]))


def read_posted(row: Sequence[Any]) -> InputRow:
    """Return the message of a row of `posted`, or raise DamagedRecordError.

    >>> input = InputRow("W", "i", "m-1", "command", "Go", 1, b"{}", 0, b"{}")
    >>> read_posted((5, "W", "i", "m-1", "command", "Go", 1, b"{}", 0, b"{}", None, posted_checksum(input))).message_id
    'm-1'
    """
    input = InputRow(*row[1:-1])
    if posted_checksum(input) != row[-1]:
        raise DamagedRecordError("posted", f"position {row[0]}")
    return input


def posted_letter(input: InputRow, reason: str) -> DeadLetter:
    """Return a posted message that cannot be an input as a dead letter, whole.

    >>> posted_letter(InputRow("W", "i", "m-1", "command", "Go", 1, b"{}", 0, b"{}"), "its id was used").reason
    'its id was used'
    """
    return DeadLetter(*astuple(input)[: POSTED_FIELDS - 1], reason=reason, actor=input.actor)


class Kept(Protocol):
    """What a dead letter keeps of the output that it was."""

    kind: Any
    destination: Any
    priority: Any
    key: Any


def dead_letter_values(letter: DeadLetter, output: Kept | None) -> tuple[Any, ...]:
    """Return the row of a dead letter, with what is kept of the output that it was, if it was one.

    >>> letter = DeadLetter("W", "i", "m-1", "command", "Go", 1, b"{}", 0, b"{}", reason="no instance")
    >>> dead_letter_values(letter, None)[:4]
    ('W', 'i', 'm-1', 'command')
    """
    key = (None, None) if letter.output is None else (letter.output.instance, letter.output.version)
    kept = (None,) * 4 if output is None else (output.kind, output.destination, output.priority, output.key)
    values = (*astuple(letter)[:DEAD_LETTER_FIELDS], *key, *kept)
    return (*values, crc32(_bytes_of(values)))


def read_dead_letter(row: Sequence[Any]) -> DeadLetter:
    """Return the dead letter of a row, or raise DamagedRecordError.

    >>> letter = DeadLetter("W", "i", "m-1", "command", "Go", 1, b"{}", 0, b"{}", reason="no instance")
    >>> read_dead_letter((*dead_letter_values(letter, None), 9)).id
    9
    """
    if crc32(_bytes_of(row[:-2])) != row[-2]:
        raise DamagedRecordError("dead_letters", f"id {row[-1]}")
    output = None if row[DEAD_LETTER_FIELDS] is None else OutputKey(*row[DEAD_LETTER_FIELDS : DEAD_LETTER_FIELDS + 2])
    return DeadLetter(*row[:DEAD_LETTER_FIELDS], output=output, id=row[-1])


def snapshot_values(instance: int, snapshot: Snapshot) -> tuple[Any, ...]:
    """Return the row of a snapshot.

    >>> snapshot_values(7, Snapshot(100, "f", "Waiting", 1, b"{}"))[:3]
    (7, 100, 'f')
    """
    values = (instance, *astuple(snapshot))
    return (*values, crc32(_bytes_of(values)))


def read_snapshot(row: Sequence[Any]) -> Snapshot | None:
    """Return the snapshot of a row, or None where there is none. A damaged one is none: the stream has it all.

    >>> read_snapshot(snapshot_values(7, Snapshot(100, "f", "Waiting", 1, b"{}"))).version
    100
    >>> read_snapshot((7, 100, "f", "Waiting", 1, b"{}", 0)) is None
    True
    """
    if row[0] is None or crc32(_bytes_of(row[:-1])) != row[-1]:
        return None
    return Snapshot(*row[1:-1])


def born_checksum(key: int, workflow: str, id: str, definition_version: int, context: bytes, created_us: int) -> int:
    """Return the checksum of what a step leaves as it is in the row of an instance."""
    return crc32(_bytes_of((key, workflow, id, definition_version, context, created_us)))


def moved_checksum(key: int, version: int, status: str, state: str | None, error: str | None, updated_us: int) -> int:
    """Return the checksum of what a step writes into the row of an instance."""
    return crc32(_bytes_of((key, version, status, state, error, updated_us)))


def read_instance(row: Sequence[Any]) -> InstanceRow:
    """Return the instance of a row that ends with its two checksums, or raise DamagedRecordError.

    >>> born, moved = born_checksum(7, "W", "i", 1, b"{}", 0), moved_checksum(7, 3, "running", None, None, 0)
    >>> read_instance((7, "W", "i", 3, "running", None, None, 1, b"{}", 0, 0, None, born, moved)).version
    3
    """
    *fields, born, moved = row
    found = InstanceRow(*fields)
    if born is not None and born != born_checksum(
        found.key, found.workflow, found.id, found.definition_version, found.context, found.created_us
    ):
        raise _damaged(found)
    if moved is not None and moved != moved_checksum(
        found.key, found.version, found.status, found.state, found.error, found.updated_us
    ):
        raise _damaged(found)
    return found


def _damaged(row: InstanceRow) -> DamagedRecordError:
    name = shown(f"{row.workflow}/{row.id}", NAME_CHARACTERS)
    return DamagedRecordError("instances", f"key {row.key}, {name}")


def output_checksum(
    instance: int, version: int, kind: str, destination: str, due_us: int, priority: int, key: str | None, attempts: int
) -> int:
    """Return the checksum of an outbox row."""
    return crc32(_bytes_of((instance, version, kind, destination, due_us, priority, key, attempts)))


def check_complete(events: list[EventRow], after: int, key: int, version: int) -> None:
    """Refuse a stream with gaps: a fold over it would be a wrong state.

    >>> check_complete([EventRow(1, "Began", 0)], after=0, key=7, version=1)
    """
    expected = after
    for event in events:
        expected += 1
        if event.version != expected:
            break
    else:
        if expected == version:
            return
        expected += 1
    raise DamagedRecordError("events", f"instance {key}, version {expected} is missing")


def check_behind(events: list[EventRow], after: int, key: int, trimmed: int) -> None:
    """Refuse a stream with gaps behind the version up to which it was trimmed.

    >>> check_behind([EventRow(4, "Received", 0), EventRow(9, "Received", 0)], after=0, key=7, trimmed=8)
    """
    after = max(after, trimmed)
    behind = [event for event in events if event.version > after]
    check_complete(behind, after, key, after + len(behind))


def read_output(row: Sequence[Any]) -> OutputClaim:
    """Return the output of a row that a claim or a look at the outbox returns, or raise DamagedRecordError."""
    instance, version, workflow, id, kind, destination, attempts, due_us, priority, context = row[:_INPUT]
    input, *cause = row[_INPUT:_EVENT]
    if row[_EVENT] is None:
        raise DamagedRecordError("events", f"instance {instance}, version {version} is missing")
    event, error = read_event(row[_EVENT:-1]), row[-1]
    return OutputClaim(
        OutputKey(instance, version),
        workflow,
        id,
        kind,
        destination,
        attempts,
        due_us,
        priority,
        event.type or "",
        event.type_version,
        event.body or b"",
        event.detail,
        context,
        None if input is None else Cause(*cause),
        error,
    )
