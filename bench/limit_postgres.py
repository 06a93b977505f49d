"""The bare limit on PostgreSQL: the rows that W1 leaves, in the engine's own tables, with no engine around it.

A script on asyncpg with one connection, set up as the engine's are. A batch of steps, of any size, is a transaction
of three to five statements, each with an array per column. Default durability: a commit that returns is on the disk.
Nothing is checked: no locks, no versions, no duplicates, no leases.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from bench.limit_rows import APPEND, BEGIN, END, EVENTS, MOVE, RECORD, SETTLE, STEPS, Tables, tables
from bench.measure import Figures, Meter, percentiles, rss_mb
from bench.servers import connection, stored_bytes
from bench.settings import Settings
from mainspring.stores.postgres.statements import name_of, within
from mainspring.stores.postgres.store import PostgresStore

# A position in the feed is the transaction's number, and in 20 bits the place in it. The last place is the instance's.
SQL = {
    SETTLE: """
        DELETE FROM mainspring.outbox AS o USING unnest($1::bigint[], $2::bigint[]) AS n (instance, version)
        WHERE o.instance = n.instance AND o.version = n.version
    """,
    BEGIN: """
        INSERT INTO mainspring.instances (
            key, name, workflow, id, version, status, state, definition_version, context, created_us, updated_us,
            context_version, position
        )
        SELECT
            key, name, 'Orders', id, 3, 'running', 'Validating', 1, context, created_us, updated_us, 2,
            (pg_current_xact_id()::text::bigint << 20) + 3 * place
        FROM unnest($1::bigint[], $2::text[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bytea[])
            WITH ORDINALITY AS n (key, id, context, created_us, updated_us, name, place)
    """,
    MOVE: """
        UPDATE mainspring.instances AS i SET
            version = n.version, status = n.status, state = n.state, updated_us = n.updated_us,
            position = (pg_current_xact_id()::text::bigint << 20) + 2 * place
        FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
            WITH ORDINALITY AS n (version, status, state, updated_us, key, place)
        WHERE i.key = n.key
    """,
    APPEND: """
        INSERT INTO mainspring.events (
            position, instance, version, event, time_us, type, type_version, body, kind, message_id, cause, context,
            state, attempt, duration_us, checksum
        )
        SELECT
            (pg_current_xact_id()::text::bigint << 20) + place, instance, version, event, time_us, type, 1, body, kind,
            message_id, cause, context, state, attempt, duration_us, checksum
        FROM unnest(
            $1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::bytea[], $7::text[], $8::text[],
            $9::bigint[], $10::bytea[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[]
        ) WITH ORDINALITY AS n (
            instance, version, event, time_us, type, body, kind, message_id, cause, context, state, attempt,
            duration_us, checksum, place
        )
    """,
    RECORD: """
        INSERT INTO mainspring.outbox (instance, version, kind, destination, due_us, priority, owner, attempts)
        SELECT instance, version, 'send', destination, due_us, 0, 1, 0
        FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[]) AS n (instance, version, destination, due_us)
    """,
    END: """
        INSERT INTO mainspring.endings (workflow, ended_us, instance)
        SELECT 'Orders', ended_us, instance FROM unnest($1::bigint[], $2::bigint[]) AS n (ended_us, instance)
    """,
}
COUNTS = """
SELECT
    (SELECT count(*) FROM mainspring.instances WHERE status = 'completed'),
    (SELECT count(*) FROM mainspring.events),
    (SELECT count(*) FROM mainspring.endings),
    (SELECT count(*) FROM mainspring.outbox)
"""

Columns = list[tuple[str, list[Sequence[Any]]]]


def throughput(settings: Settings) -> Figures:
    """Write what n orders leave, step by step, in transactions of `batch` steps."""
    return asyncio.run(_in_batches(settings, only_writing=False))


def bulk(settings: Settings) -> Figures:
    """Write what n orders leave in transactions of `batch` steps; only the writing is timed."""
    return asyncio.run(_in_batches(settings, only_writing=True))


def latency(settings: Settings) -> Figures:
    """Write n orders one after the other, each in the four commits that its steps need."""
    return asyncio.run(_one_by_one(settings))


async def _in_batches(settings: Settings, *, only_writing: bool) -> Figures:
    n, writing = settings.n, 0.0
    statements = await _statements(settings)
    async with connection(settings) as opened:
        with Meter(settings.server_pid) as meter:
            for begin in range(0, n, settings.batch):
                numbers = range(begin, min(n, begin + settings.batch))
                for step in range(STEPS):
                    columns = _columns(statements, tables(numbers, step))
                    begun = time.perf_counter()
                    await _commit(opened, columns)
                    writing += time.perf_counter() - begun
        await _check(opened, settings)
    seconds = writing if only_writing else meter.seconds
    return {
        "instances_per_s": round(n / seconds, 1),
        "steps_per_s": round(STEPS * n / seconds, 1),
        **meter.figures(n),
        "batches": STEPS * -(-n // settings.batch),
        "units_per_batch": settings.batch,
        "rss_mb": rss_mb(),
        "disk_bytes_per_instance": round(await stored_bytes(settings) / n),
    }


async def _one_by_one(settings: Settings) -> Figures:
    took: list[float] = []
    statements = await _statements(settings)
    async with connection(settings) as opened:
        with Meter(settings.server_pid) as meter:
            for number in range(settings.n):
                begun = time.perf_counter()
                for step in range(STEPS):
                    await _commit(opened, _columns(statements, tables((number,), step)))
                took.append(time.perf_counter() - begun)
        await _check(opened, settings)
    return {**percentiles(took), **meter.figures(settings.n), "rss_mb": rss_mb()}


async def _statements(settings: Settings) -> dict[str, str]:
    """Return the statements for a run's schema. The store makes the tables: the engine's, with all their indexes."""
    store = PostgresStore(settings.url)
    await store.open()
    await store.close()
    return {change: within(settings.schema, sql) for change, sql in SQL.items()}


def _columns(statements: dict[str, str], rows: Tables) -> Columns:
    """Return each statement of a batch with an array per column."""
    if begun := rows.get(BEGIN):
        rows[BEGIN] = [(*row, name_of("Orders", row[1])) for row in begun]
    return [(sql, list(zip(*rows[change], strict=True))) for change, sql in statements.items() if change in rows]


async def _commit(opened: Any, columns: Columns) -> None:
    await opened.execute("BEGIN")
    for sql, values in columns:
        # Not `execute`: that does not keep the statement prepared.
        await opened.fetch(sql, *values)
    await opened.execute("COMMIT")


async def _check(opened: Any, settings: Settings) -> None:
    n = settings.n
    found = tuple(await opened.fetchrow(within(settings.schema, COUNTS)))
    assert found == (n, EVENTS * n, n, 0), found
    for name in ("fsync", "synchronous_commit"):
        assert await opened.fetchval("SELECT current_setting($1)", name) == "on", name
