"""The bare limit: a script that writes the rows that W1 leaves, durably and in group commits, with no engine around it.

They are the engine's own tables, columns, indexes and checksums.

`throughput` goes step by step, as any program must that decides one step after the other: it encodes the messages of a
step and executes one statement for each row. `bulk` has all rows of a batch at hand beforehand and gives them to SQLite
table by table; no engine can, so it shows how much of the limit is SQLite's own work. Neither checks anything.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any

import apsw
from msgspec import json, msgpack

from bench.measure import Figures, Meter, disk_bytes, percentiles, rss_mb
from bench.settings import Settings
from bench.workflows import Charge, Charged, Order, Ship, Shipped, Validate, Validated, order

STEPS = 4
EVENTS = 9

SCHEMA = (resources.files("mainspring.stores.sqlite") / "schema.sql").read_text()
INSERT_INSTANCE = """
INSERT INTO instances (key, workflow, id, version, status, state, definition_version, context, created_us, updated_us)
VALUES (?, 'Orders', ?, 3, 'running', 'Validating', 1, ?, ?, ?)
"""
UPDATE_INSTANCE = "UPDATE instances SET version = ?, status = ?, state = ?, updated_us = ? WHERE key = ?"
INSERT_EVENT = """
INSERT INTO events (
    instance, version, event, time_us, type, type_version, body, kind, message_id, cause, context, state, attempt,
    duration_us, checksum
) VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
INSERT_OUTPUT = """
INSERT INTO outbox (instance, version, kind, destination, due_us, priority, owner, attempts)
VALUES (?, ?, 'send', ?, ?, 0, 1, 0)
"""
DELETE_OUTPUT = "DELETE FROM outbox WHERE instance = ? AND version = ?"

COUNTS = """
SELECT
    (SELECT count(*) FROM instances WHERE status = 'completed'),
    (SELECT count(*) FROM events),
    (SELECT count(*) FROM outbox)
"""

Statement = tuple[str, tuple[Any, ...]]

# What the second, third and fourth step receive, which state that makes, and what they send.
_RESULTS = ((Validated, "validate", "Charging", Charge), (Charged, "charge", "Shipping", Ship))
_encode = json.Encoder().encode
_pack = msgpack.Encoder().encode


def throughput(settings: Settings) -> Figures:
    """Write what n orders leave, step by step, in transactions of `batch` steps."""
    n, connection = settings.n, _connect(settings)
    with Meter() as meter:
        for begin in range(0, n, settings.batch):
            numbers = range(begin, min(n, begin + settings.batch))
            for step in range(STEPS):
                _commit(connection, numbers, step)
    return _closed(connection, settings, meter, meter.seconds)


def bulk(settings: Settings) -> Figures:
    """Write what n orders leave, table by table, in transactions of `batch` steps; only the writing is timed."""
    n, connection = settings.n, _connect(settings)
    writing = 0.0
    with Meter() as meter:
        for begin in range(0, n, settings.batch):
            numbers = range(begin, min(n, begin + settings.batch))
            for step in range(STEPS):
                tables = _tables(numbers, step)
                begun = time.perf_counter()
                _commit_tables(connection, tables)
                writing += time.perf_counter() - begun
    return _closed(connection, settings, meter, writing)


def latency(settings: Settings) -> Figures:
    """Write n orders one after the other, each in the four commits that its steps need."""
    connection = _connect(settings)
    took: list[float] = []
    with Meter() as meter:
        for number in range(settings.n):
            begun = time.perf_counter()
            for step in range(STEPS):
                _commit(connection, (number,), step)
            took.append(time.perf_counter() - begun)
    _check(connection, settings.n)
    connection.close()
    return {**percentiles(took), **meter.figures(settings.n), "rss_mb": rss_mb()}


def _connect(settings: Settings) -> Any:
    """Return a connection whose commits are on the disk when they return."""
    connection: Any = apsw.Connection(str(settings.path / "limit.db"))  # Any: half of its types are unknown
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(SCHEMA)
    return connection


def _closed(connection: Any, settings: Settings, meter: Meter, seconds: float) -> Figures:
    n = settings.n
    _check(connection, n)
    connection.close()
    return {
        "instances_per_s": round(n / seconds, 1),
        "steps_per_s": round(STEPS * n / seconds, 1),
        **meter.figures(n),
        "batches": STEPS * -(-n // settings.batch),
        "units_per_batch": settings.batch,
        "rss_mb": rss_mb(),
        "disk_bytes_per_instance": round(disk_bytes(settings.path) / n),
    }


def _commit(connection: Any, numbers: Sequence[int], step: int) -> None:
    execute = connection.execute
    execute("BEGIN IMMEDIATE")
    for number in numbers:
        for sql, values in _statements(number, step):
            execute(sql, values)
    execute("COMMIT")


def _tables(numbers: Sequence[int], step: int) -> dict[str, list[tuple[Any, ...]]]:
    tables: dict[str, list[tuple[Any, ...]]] = {}
    for number in numbers:
        for sql, values in _statements(number, step):
            tables.setdefault(sql, []).append(values)
    return tables


def _commit_tables(connection: Any, tables: dict[str, list[tuple[Any, ...]]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for sql, rows in tables.items():
        connection.executemany(sql, rows)
    connection.execute("COMMIT")


def _statements(number: int, step: int) -> Iterator[Statement]:
    """Return what one step of one order writes."""
    key, now_us, placed = number + 1, time.time_ns() // 1_000, order(number)
    if step == 0:
        yield from _first(key, now_us, placed)
    elif step < 3:
        result, did, state, command = _RESULTS[step - 1]
        version = 2 + 2 * step
        yield from _received(key, now_us, version, result(placed.id, did, ok=True), state)
        yield _event(key, now_us, version + 1, "Sent", command(placed), cause=version)
        yield INSERT_OUTPUT, (key, version + 1, command.__name__, now_us)
        yield UPDATE_INSTANCE, (version + 1, "running", state, now_us, key)
    else:
        yield from _received(key, now_us, 8, Shipped(placed.id, "ship", ok=True), "Shipping")
        yield _event(key, now_us, 9, "Completed")
        yield UPDATE_INSTANCE, (9, "completed", "Shipping", now_us, key)


def _first(key: int, now_us: int, placed: Order) -> Iterator[Statement]:
    message_id = f"{key:032x}"
    context = _encode({"correlation_id": message_id})
    yield INSERT_INSTANCE, (key, placed.id, context, now_us, now_us)
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
    yield INSERT_OUTPUT, (key, 3, "Validate", now_us)


def _received(key: int, now_us: int, version: int, message: object, state: str) -> Iterator[Statement]:
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
    yield DELETE_OUTPUT, (key, version - 1)


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
) -> Statement:
    name, body = (None, None) if message is None else (type(message).__name__, _encode(message))
    envelope = (kind, message_id, cause, context, state, attempt, duration_us)
    checksum = zlib.crc32(_pack((key, version, event, now_us, name, body, *envelope)))
    return INSERT_EVENT, (key, version, event, now_us, name, body, *envelope, checksum)


def _check(connection: Any, n: int) -> None:
    found = connection.execute(COUNTS).get
    assert found == (n, EVENTS * n, 0), found
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == 2, "FULL"
