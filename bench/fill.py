"""Many waiting instances at once: copies of one that the engine itself has put to sleep, row by row as it wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import apsw
from msgspec import structs

from bench import apps
from bench.servers import checkpoint, connection
from bench.settings import Settings
from bench.workflows import Sleep, order, order_id
from mainspring.port.records import EventRow, Ref
from mainspring.stores.postgres.facts import PLACE_BITS
from mainspring.stores.postgres.sql import name_of, within
from mainspring.stores.rows import event_values

WORKFLOW = "Sleeper"
# So many in one transaction.
COPIES = 10_000
EVENT_COLUMNS = ("instance", *EventRow.__struct_fields__, "checksum")
NUMBER = "SELECT pg_current_xact_id()::text::bigint + base FROM mainspring.feed"

Row = dict[str, Any]
Values = list[tuple[Any, ...]]


class Template(NamedTuple):
    """An instance that waits for its timer, as it stands in the tables."""

    instance: Row
    events: list[EventRow]
    output: Row


class Table(NamedTuple):
    """Rows to be written."""

    name: str
    columns: Sequence[str]
    rows: Values


async def fill(settings: Settings, until: datetime) -> int:
    """Let n instances sleep until a moment, in an empty store. Return the last one's key; they have no gaps."""
    app = apps.everything(settings.url)
    await app.start(work=False)
    try:
        await app.send(Sleep(order(0), until))
        events = await app.engine.store.stream(Ref(WORKFLOW, order_id(0)), 0, 10)
    finally:
        await app.stop()
    if settings.store == "postgres":
        return await _fill_postgres(settings, events)
    return _fill_sqlite(settings, events)


def _fill_sqlite(settings: Settings, events: list[EventRow]) -> int:
    opened: Any = apsw.Connection(str(settings.path / "bench.db"))  # Any: half of its types are unknown
    template = Template(_sqlite_row(opened, "instances"), events, _sqlite_row(opened, "outbox"))
    for numbers in _portions(settings.n):
        with opened:
            for table in _copies(template, numbers):
                columns, marks = ", ".join(table.columns), ", ".join("?" * len(table.columns))
                opened.executemany(f"INSERT INTO {table.name} ({columns}) VALUES ({marks})", table.rows)  # noqa: S608  names
    opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    opened.close()
    return template.instance["key"] + settings.n - 1


def _sqlite_row(opened: Any, table: str) -> Row:
    cursor = opened.execute(f"SELECT * FROM {table}")  # noqa: S608  a name
    names = [column[0] for column in cursor.get_description()]
    return dict(zip(names, cursor.fetchone(), strict=True))


async def _fill_postgres(settings: Settings, events: list[EventRow]) -> int:
    schema = settings.schema
    async with connection(settings) as opened:
        await opened.execute("SET statement_timeout = 0")
        rows = [
            dict(await opened.fetchrow(within(schema, f"SELECT * FROM mainspring.{table}")))  # noqa: S608  a name
            for table in ("instances", "outbox")
        ]
        template = Template(rows[0], events, rows[1])
        for numbers in _portions(settings.n):
            async with opened.transaction():
                first = await opened.fetchval(within(schema, NUMBER)) << PLACE_BITS
                for table in _placed(_copies(template, numbers), first, len(events)):
                    await opened.copy_records_to_table(
                        table.name, schema_name=schema, columns=table.columns, records=table.rows
                    )
        last = template.instance["key"] + settings.n - 1
        await opened.execute(within(schema, f"SELECT setval('mainspring.instance_keys', {last})"))
        # As it is after a while: what is done once for new rows is no part of an idle worker's work.
        for table in ("instances", "events", "outbox"):
            await opened.execute(within(schema, f"VACUUM (ANALYZE) mainspring.{table}"))
    await checkpoint(settings)
    return last


def _placed(tables: Sequence[Table], first: int, events_each: int) -> Iterator[Table]:
    """Return the rows with what they have on PostgreSQL only: digests of names, and places in the feed."""
    instances, events, outbox = tables
    named = [
        (*row, name_of(WORKFLOW, row[instances.columns.index("id")]), first + events_each * number)
        for number, row in enumerate(instances.rows, 1)
    ]
    yield Table(instances.name, (*instances.columns, "name", "position"), named)
    placed = [(*row, first + place) for place, row in enumerate(events.rows, 1)]
    yield Table(events.name, (*events.columns, "position"), placed)
    yield outbox


def _portions(n: int) -> Iterator[range]:
    """Return the numbers of the copies, a transaction's at a time. The template itself is number 0."""
    for begin in range(1, n, COPIES):
        yield range(begin, min(n, begin + COPIES))


def _copies(template: Template, numbers: range) -> tuple[Table, Table, Table]:
    """Return the rows of these copies: other keys and ids, and the events' checksums that go with them."""
    # The copies have no checksums of their own, as rows of an older release have none: a copied one would not fit.
    columns = [name for name in template.instance if name not in ("name", "position", "born", "moved")]
    of_output = [name for name in template.output if name != "checksum"]
    begun = tuple(template.instance[name] for name in columns)
    output = tuple(template.output[name] for name in of_output)
    old_id = template.instance["id"]
    old_message_id = template.events[1].message_id or ""
    key_at, instance_at = columns.index("key"), of_output.index("instance")
    instances: Values = []
    events: Values = []
    outbox: Values = []
    for number in numbers:
        key = template.instance["key"] + number
        renamed = {old_id: order_id(number), old_message_id: f"{number:032x}"}
        instances.append(_with(_renamed(begun, renamed), key_at, key))
        outbox.append(_with(output, instance_at, key))
        for event in template.events:
            events.append(event_values(key, EventRow(*_renamed(structs.astuple(event), renamed))))
    return (
        Table("instances", columns, instances),
        Table("events", EVENT_COLUMNS, events),
        Table("outbox", of_output, outbox),
    )


def _renamed(values: tuple[Any, ...], names: dict[str, str]) -> tuple[Any, ...]:
    found: list[Any] = []
    for value in values:
        new = value
        for old, other in names.items():
            if isinstance(new, str):
                new = new.replace(old, other)
            elif isinstance(new, bytes):
                new = new.replace(old.encode(), other.encode())
        found.append(new)
    return tuple(found)


def _with(values: tuple[Any, ...], place: int, value: int) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1 :])
