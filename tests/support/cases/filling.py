"""Cases into a store: into a SQLite file row by row, as the engine would have written them; into others by commits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, Final

import apsw

from mainspring.engine.runtime import SystemClock
from mainspring.port.records import EventRow, Unit
from mainspring.port.store import Store
from mainspring.stores.commit.rows import event_values
from mainspring.stores.sqlite.store import SqliteStore
from tests.support.cases.logs import SECOND_US, Case

CASES_PER_TRANSACTION: Final = 10_000
UNITS_PER_COMMIT: Final = 500
EVENT_COLUMNS: Final = ", ".join(("instance", *EventRow.__struct_fields__, "checksum"))
EVENT_MARKS: Final = ", ".join("?" * (len(EventRow.__struct_fields__) + 2))
INSTANCE_COLUMNS: Final = (
    "key, workflow, id, version, status, state, error, definition_version, context, created_us, updated_us"
)


def fill_file(path: Path, cases: Iterable[Case]) -> int:
    """Write cases into a file of which nothing is open, and return how many. They have the times of their inputs.

    Events lie there in the order in which they happened, those of many cases mixed, as in a file that grew for years.
    A file that is not there yet is made.
    """
    asyncio.run(_made(path))
    database: Any = apsw.Connection(str(path))  # Any: half of its types are unknown
    database.pragma("synchronous", 0)
    database.execute(f"CREATE TEMP TABLE unsorted AS SELECT {EVENT_COLUMNS} FROM events LIMIT 0")  # noqa: S608  names
    [[key]] = database.execute("SELECT ifnull(max(key), 0) FROM instances")
    count, rest = 0, iter(cases)
    while portion := list(islice(rest, CASES_PER_TRANSACTION)):
        keyed = list(enumerate(portion, key + 1))
        with database:
            _write(database, keyed)
        key += len(portion)
        count += len(portion)
    with database:
        database.execute(
            f"INSERT INTO events ({EVENT_COLUMNS}) SELECT {EVENT_COLUMNS} FROM unsorted ORDER BY time_us, instance, version"  # noqa: E501, S608  names
        )
    database.execute("DROP TABLE unsorted")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return count


def _write(database: Any, keyed: list[tuple[int, Case]]) -> None:
    database.executemany(
        f"INSERT INTO instances ({INSTANCE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  names
        [
            (
                *(key, case.workflow, case.id, len(case.events), case.status, case.state),
                *("dismissed" if case.status == "failed" else None, 1, case.events[1].context),
                *(case.events[0].time_us, case.events[-1].time_us),
            )
            for key, case in keyed
        ],
    )
    database.executemany(
        f"INSERT INTO unsorted ({EVENT_COLUMNS}) VALUES ({EVENT_MARKS})",  # noqa: S608  names
        [tuple(event_values(key, event)) for key, case in keyed for event in case.events],
    )
    database.executemany(
        "INSERT INTO endings (workflow, ended_us, instance) VALUES (?, ?, ?)",
        [(case.workflow, case.events[-1].time_us, key) for key, case in keyed if case.status != "running"],
    )
    database.executemany(
        "INSERT INTO attributes (instance, name, kind, text, number) VALUES (?, ?, ?, ?, ?)",
        [(key, row.name, row.kind, row.text, row.number) for key, case in keyed for row in case.attributes],
    )


async def _made(path: Path) -> None:
    store = SqliteStore(path, SystemClock())
    await store.open()
    await store.close()


async def fill_store(store: Store, cases: Iterable[Case]) -> int:
    """Commit cases into an open store, each at once, and return how many. Their rows say that they began just now."""
    worker = await store.register_worker("filler", 600 * SECOND_US)
    count, rest = 0, iter(cases)
    while portion := list(islice(rest, UNITS_PER_COMMIT)):
        await store.commit(worker, [_unit(case) for case in portion])
        count += len(portion)
    await store.release_worker(worker)
    return count


def _unit(case: Case) -> Unit:
    return Unit(
        case.workflow,
        case.id,
        expected_version=0,
        events=case.events,
        status=case.status,
        state=case.state,
        error="dismissed" if case.status == "failed" else None,
        context=case.events[1].context,
        attributes=case.attributes,
    )
