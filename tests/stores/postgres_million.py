"""`python -m tests.stores.postgres_million`: at 1,000,000 instances, does every hot statement use an index?

It is asked twice, of the planner (`EXPLAIN`) and of the server's own counters while a worker works: before anybody has
told the planner how full the tables are, and after.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from mainspring.port.records import Committed, EventRow, OutputKey
from mainspring.stores.commit.rows import event_values
from mainspring.stores.postgres import PostgresStore
from mainspring.stores.postgres.facts import PLACE_BITS
from mainspring.stores.postgres.statements import name_of
from mainspring.testing.store_contract.rig import ALL_DESTINATIONS, ORDERS, accept, order, send, step, timer
from tests.stores.test_postgres_schema import scans
from tests.support.postgres.server import Server

SCHEMA: Final = "mainspring"
PER_TRANSACTION: Final = 200_000
LARGE: Final = ("instances", "events")
NUMBER: Final = "SELECT pg_current_xact_id()::text::bigint + base FROM mainspring.feed"
SESSIONS: Final = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mainspring'"
COUNTERS: Final = """
SELECT relname, seq_scan, seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'mainspring' AND relname = ANY ($1)
ORDER BY relname
"""


def finished(time_us: int) -> tuple[EventRow, ...]:
    """Return the stream of an instance that began with one message and ended at once."""
    return (
        EventRow(1, "Began", time_us),
        EventRow(2, "InitiatedBy", time_us, "Go", 1, b"{}", kind="command", message_id="m-1", state="Done"),
        EventRow(3, "Completed", time_us),
    )


def rows(first: int, number: int, time_us: int) -> tuple[Iterator[tuple[Any, ...]], Iterator[tuple[Any, ...]]]:
    """Return the rows of some finished instances, and those of their events."""
    keys, events = range(first, first + PER_TRANSACTION), finished(time_us)
    position = number << PLACE_BITS

    def instances() -> Iterator[tuple[Any, ...]]:
        for at, key in enumerate(keys, 1):
            fixed = (key, len(events), 1, time_us, time_us, None, position + at * len(events))
            yield *fixed, name_of(ORDERS, f"old-{key}"), ORDERS, f"old-{key}", "completed", "Done", None, b"{}"

    def recorded() -> Iterator[tuple[Any, ...]]:
        place = position
        for key in keys:
            for event in events:
                place += 1
                yield place, *event_values(key, event)

    return instances(), recorded()


EVENTS: Final = ("position", "instance", *EventRow.__struct_fields__, "checksum")
INSTANCES: Final = (
    *("key", "version", "definition_version", "created_us", "updated_us", "context_version", "position"),
    *("name", "workflow", "id", "status", "state", "error", "context"),
)


async def fill(connection: Any, instances: int) -> None:
    """Write finished instances, as a long time of work would have left them."""
    for first in range(1, instances, PER_TRANSACTION):
        async with connection.transaction():
            number = await connection.fetchval(NUMBER)
            begun, recorded = rows(first, number, time.time_ns() // 1000)
            copy = connection.copy_records_to_table
            await copy("instances", records=begun, columns=INSTANCES, schema_name=SCHEMA)
            await copy("events", records=recorded, columns=EVENTS, schema_name=SCHEMA)
    await connection.execute(f"SELECT setval('mainspring.instance_keys', {instances})")


async def work(store: PostgresStore, round: str) -> float:
    """Do what workers and clients do all day. Return how many seconds it took."""
    begun = time.monotonic()
    worker = await store.register_worker(round, 30_000_000)
    ids = [f"{round}-{n}" for n in range(200)]
    units = [step("m-1", send(), send(claimed=True), timer(), on=id, direct=True) for id in ids]
    keys = [one.key for one in await store.commit(worker, units) if isinstance(one, Committed)]
    await store.commit(worker, [accept("w-1", on=id) for id in ids])
    claims = await store.claim(worker, ALL_DESTINATIONS, [ORDERS], 500)
    assert (len(claims.outputs), len(claims.inputs)) == (200, 200), "a claim found other things than were there"
    moves = [
        step(
            "w-1",
            after=5,
            on=id,
            consumes=row.position,
            settles=(OutputKey(key, 3), OutputKey(key, 4)),
            cancels=("Timeout",),
        )
        for id, key, row in zip(ids, keys, claims.inputs, strict=True)
    ]
    assert {type(one) for one in await store.commit(worker, moves)} == {Committed}
    loaded = await store.load([order("old-77"), order(ids[0])])
    assert [one and one.row.version for one in loaded] == [3, 6]
    assert len(await store.stream(order("old-99"), 0, 10)) == 3
    assert len(await store.feed(0, 1_000)) == 1_000
    await store.heartbeat(worker)
    await store.relieve()
    seconds = time.monotonic() - begun
    await store.release_worker(worker)
    return seconds


async def judge(url: str, connection: Any, round: str) -> list[str]:
    """Return what went wrong, in words."""
    store = PostgresStore(url)
    await store.open()
    try:
        complaints = [f"{name}: {what}" for name, what in await scans(store, SCHEMA)]
        before = [tuple(row) for row in await connection.fetch(COUNTERS, LARGE)]
        seconds = await work(store, round)
    finally:
        await store.close()  # at its end at the latest, a session tells what it has counted
    while await connection.fetchval(SESSIONS):  # noqa: ASYNC110  of another process
        await asyncio.sleep(0.05)  # rows of another process, which send no signal
    after = [tuple(row) for row in await connection.fetch(COUNTERS, LARGE)]
    if before != after:
        complaints.append(f"the server counted scans of whole tables: {before}, then {after}")
    told = "; ".join(complaints) or "every hot statement uses an index"
    sys.stdout.write(f"  {round}: {told}; 200 instances begun, claimed and stepped in {seconds * 1000:.0f} ms\n")
    return complaints


async def main(server: Server, instances: int) -> int:
    library: Any = asyncpg
    store = PostgresStore(server.url)
    await store.open()
    await store.close()
    connection = await library.connect(server.url)
    try:
        started = time.monotonic()
        await fill(connection, instances)
        sys.stdout.write(f"{instances:,} finished instances in {time.monotonic() - started:.0f} s\n")
        complaints = await judge(server.url, connection, "unanalyzed")
        await connection.execute("VACUUM ANALYZE")
        complaints += await judge(server.url, connection, "analyzed")
        return int(bool(complaints))
    finally:
        await connection.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.stores.postgres_million", description=__doc__)
    parser.add_argument("--instances", type=int, default=1_000_000, help=f"a multiple of {PER_TRANSACTION}")
    own = Server(settings={"fsync": "off", "max_wal_size": "4GB"})
    try:
        own.start()
        sys.exit(asyncio.run(main(own, parser.parse_args().instances)))
    finally:
        own.remove()
