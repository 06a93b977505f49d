"""What W1 leaves, row by row: the rows that the bare limit writes, whatever the store."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import json, msgpack

from bench.workflows import Charge, Charged, Order, Ship, Shipped, Validate, Validated, order

STEPS = 4
EVENTS = 9

# What is done with a row.
BEGIN, MOVE, APPEND, RECORD, SETTLE, END = "begin", "move", "append", "record", "settle", "end"

Change = tuple[str, tuple[Any, ...]]
Tables = dict[str, list[tuple[Any, ...]]]

# What the second, third and fourth step receive, which state that makes, and what they send.
_RESULTS = ((Validated, "validate", "Charging", Charge), (Charged, "charge", "Shipping", Ship))
_encode = json.Encoder().encode
_pack = msgpack.Encoder().encode


def tables(numbers: Sequence[int], step: int) -> Tables:
    """Return what one step of some orders writes, by what is done with it."""
    found: Tables = {}
    for number in numbers:
        for change, values in changes(number, step):
            found.setdefault(change, []).append(values)
    return found


def changes(number: int, step: int) -> Iterator[Change]:
    """Return what one step of one order writes."""
    key, now_us, placed = number + 1, time.time_ns() // 1_000, order(number)
    if step == 0:
        yield from _first(key, now_us, placed)
    elif step < 3:
        result, did, state, command = _RESULTS[step - 1]
        version = 2 + 2 * step
        yield from _received(key, now_us, version, result(placed.id, did, ok=True), state)
        yield _event(key, now_us, version + 1, "Sent", command(placed), cause=version)
        yield RECORD, (key, version + 1, command.__name__, now_us)
        yield MOVE, (version + 1, "running", state, now_us, key)
    else:
        yield from _received(key, now_us, 8, Shipped(placed.id, "ship", ok=True), "Shipping")
        yield _event(key, now_us, 9, "Completed")
        yield MOVE, (9, "completed", "Shipping", now_us, key)
        yield END, (now_us, key)


def _first(key: int, now_us: int, placed: Order) -> Iterator[Change]:
    message_id = f"{key:032x}"
    context = _encode({"correlation_id": message_id})
    yield BEGIN, (key, placed.id, context, now_us, now_us)
    yield _event(key, now_us, 1, "Began")
    yield _event(
        key,
        now_us,
        2,
        "InitiatedBy",
        placed,
        kind="command",
        message_id=message_id,
        context=context,
        state="Validating",
    )
    yield _event(key, now_us, 3, "Sent", Validate(placed), cause=2)
    yield RECORD, (key, 3, "Validate", now_us)


def _received(key: int, now_us: int, version: int, message: object, state: str) -> Iterator[Change]:
    yield _event(
        key,
        now_us,
        version,
        "Received",
        message,
        kind="result",
        cause=version - 1,
        state=state,
        attempt=1,
        duration_us=0,
    )
    yield SETTLE, (key, version - 1)


def _event(
    key: int,
    now_us: int,
    version: int,
    event: str,
    message: object = None,
    *,
    kind: str | None = None,
    message_id: str | None = None,
    cause: int | None = None,
    context: bytes | None = None,
    state: str | None = None,
    attempt: int | None = None,
    duration_us: int | None = None,
) -> Change:
    name, body = (None, None) if message is None else (type(message).__name__, _encode(message))
    envelope = (kind, message_id, cause, context, state, attempt, duration_us)
    checksum = zlib.crc32(_pack((key, version, event, now_us, name, body, *envelope)))
    return APPEND, (key, version, event, now_us, name, body, *envelope, checksum)
