"""The bare limit: a script that writes the rows that W1 leaves, durably and in group commits, with no engine around it.

They are the engine's own tables, columns, indexes and checksums.

`throughput` goes step by step, as any program must that decides one step after the other: it encodes the messages of a
step and executes one statement for each row. `bulk` has all rows of a batch at hand beforehand and gives them to SQLite
table by table; no engine can, so it shows how much of the limit is SQLite's own work. Neither checks anything.
`bench.limit_postgres` does the same on PostgreSQL.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import resources
from typing import Any

import apsw

from bench import limit_postgres
from bench.limit_rows import APPEND, BEGIN, END, EVENTS, MOVE, RECORD, SETTLE, STEPS, Tables, changes, tables
from bench.measure import Figures, Meter, disk_bytes, percentiles, rss_mb
from bench.settings import Settings
from mainspring.stores.commit.rows import born_checksum, moved_checksum, output_checksum

SCHEMA = (resources.files("mainspring.stores.sqlite") / "schema.sql").read_text()
SQL = {
    BEGIN: """
        INSERT INTO instances (
            key, workflow, id, version, status, state, definition_version, context, created_us, updated_us,
            context_version, born, moved
        ) VALUES (?, 'Orders', ?, 3, 'running', 'Validating', 1, ?, ?, ?, 2, ?, ?)
    """,
    MOVE: "UPDATE instances SET version = ?1, status = ?2, state = ?3, updated_us = ?4, moved = ?6 WHERE key = ?5",
    APPEND: """
        INSERT INTO events (
            instance, version, event, time_us, type, type_version, body, kind, message_id, cause, context, state,
            attempt, duration_us, checksum
        ) VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    """,
    RECORD: """
        INSERT INTO outbox (instance, version, kind, destination, due_us, priority, owner, attempts, checksum)
        VALUES (?, ?, 'send', ?, ?, 0, 1, 0, ?)
    """,
    SETTLE: "DELETE FROM outbox WHERE instance = ? AND version = ?",
    END: "INSERT INTO endings (workflow, ended_us, instance) VALUES ('Orders', ?, ?)",
}
COUNTS = """
SELECT
    (SELECT count(*) FROM instances WHERE status = 'completed'),
    (SELECT count(*) FROM events),
    (SELECT count(*) FROM endings),
    (SELECT count(*) FROM outbox)
"""


def throughput(settings: Settings) -> Figures:
    """Write what n orders leave, step by step, in transactions of `batch` steps."""
    if settings.store == "postgres":
        return limit_postgres.throughput(settings)
    n, connection = settings.n, _connect(settings)
    with Meter() as meter:
        for begin in range(0, n, settings.batch):
            numbers = range(begin, min(n, begin + settings.batch))
            for step in range(STEPS):
                _commit(connection, numbers, step)
    return _closed(connection, settings, meter, meter.seconds)


def bulk(settings: Settings) -> Figures:
    """Write what n orders leave, table by table, in transactions of `batch` steps; only the writing is timed."""
    if settings.store == "postgres":
        return limit_postgres.bulk(settings)
    n, connection = settings.n, _connect(settings)
    writing = 0.0
    with Meter() as meter:
        for begin in range(0, n, settings.batch):
            numbers = range(begin, min(n, begin + settings.batch))
            for step in range(STEPS):
                rows = tables(numbers, step)
                begun = time.perf_counter()
                _commit_tables(connection, rows)
                writing += time.perf_counter() - begun
    return _closed(connection, settings, meter, writing)


def latency(settings: Settings) -> Figures:
    """Write n orders one after the other, each in the four commits that its steps need."""
    if settings.store == "postgres":
        return limit_postgres.latency(settings)
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
        for change, values in changes(number, step):
            execute(SQL[change], _sealed(change, values))
    execute("COMMIT")


def _commit_tables(connection: Any, rows: Tables) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for change, values in rows.items():
        connection.executemany(SQL[change], [_sealed(change, row) for row in values])
    connection.execute("COMMIT")


def _sealed(change: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row with the checksums that it has on SQLite alone."""
    if change == BEGIN:
        key, id, context, created_us, updated_us = values
        moved = moved_checksum(key, 3, "running", "Validating", None, updated_us)
        return (*values, born_checksum(key, "Orders", id, 1, context, created_us), moved)
    if change == MOVE:
        version, status, state, updated_us, key = values
        return (*values, moved_checksum(key, version, status, state, None, updated_us))
    if change == RECORD:
        key, version, destination, due_us = values
        return (*values, output_checksum(key, version, "send", destination, due_us, 0, None, 0))
    return values


def _check(connection: Any, n: int) -> None:
    found = connection.execute(COUNTS).get
    assert found == (n, EVENTS * n, n, 0), found
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == 2, "FULL"
