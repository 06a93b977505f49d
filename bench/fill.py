"""Many instances at once: copies of one that the engine itself has put to sleep or ended, row by row as it wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import apsw
from msgspec import structs

from bench import apps
from bench.servers import checkpoint, connection
from bench.settings import Settings
from bench.workflows import Sleep, order, order_id
from mainspring.app.internals import internals_of
from mainspring.port.records import EventRow, Ref
from mainspring.stores.commit.rows import event_values
from mainspring.stores.postgres.facts import PLACE_BITS
from mainspring.stores.postgres.statements import name_of, within

# So many in one transaction.
COPIES = 10_000
EVENTS = 1_000
EVENT_COLUMNS = ("instance", *EventRow.__struct_fields__, "checksum")
# The tables that name an instance by its key, with at most one row for each that is copied.
OTHERS = ("outbox", "endings")
# The copies have no checksums of their own, as rows of an older release have none: a copied one would not fit.
UNCOPIED = {"name", "position", "born", "moved", "checksum"}
NUMBER = "SELECT pg_current_xact_id()::text::bigint + base FROM mainspring.feed"

Row = dict[str, Any]
Values = list[tuple[Any, ...]]


class Template(NamedTuple):
    """An instance as it stands in the tables."""

    instance: Row
    events: list[EventRow]
    others: dict[str, Row]


class Table(NamedTuple):
    """Rows to be written."""

    name: str
    columns: Sequence[str]
    rows: Values


async def fill(settings: Settings, until: datetime) -> int:
    """Let n instances sleep until a moment, in an empty store. Return the last one's key; they have no gaps."""
    return await (await sleepers(settings, until)).grow(settings.n)


async def sleepers(settings: Settings, until: datetime) -> Copies:
    """Let one instance sleep until a moment, of which there may be copies."""
    app = apps.everything(settings.url)
    await app.start(work=False)
    try:
        await app.send(Sleep(order(0), until))
        events = await internals_of(app).engine.store.stream(Ref("Sleeper", order_id(0)), 0, EVENTS)
    finally:
        await app.stop()
    return Copies(settings, "Sleeper", events)


async def finished(settings: Settings) -> Copies:
    """Carry out one order, of which there may be copies."""
    async with apps.everything(settings.url) as app:
        await (await app.send(order(0))).result()
        events = await internals_of(app).engine.store.stream(Ref("Orders", order_id(0)), 0, EVENTS)
    return Copies(settings, "Orders", events)


class Copies:
    """An instance and its copies: number 0 is the instance itself."""

    def __init__(self, settings: Settings, workflow: str, events: list[EventRow]) -> None:
        self._settings = settings
        self._workflow = workflow
        self._events = events
        self.count = 1

    async def grow(self, n: int) -> int:
        """Let there be n. Return the last one's key."""
        numbers, self.count = range(self.count, n), max(n, self.count)
        if self._settings.store == "postgres":
            return await self._in_postgres(numbers)
        return self._in_sqlite(numbers)

    def _in_sqlite(self, numbers: range) -> int:
        opened: Any = apsw.Connection(str(self._settings.path / "bench.db"))  # Any: half of its types are unknown

        def row(sql: str, *values: Any) -> Row | None:
            cursor = opened.execute(sql, values)
            found = cursor.fetchone()
            if found is None:
                return None
            return dict(zip((column[0] for column in cursor.get_description()), found, strict=True))

        instance = row("SELECT * FROM instances WHERE workflow = ? AND id = ?", self._workflow, order_id(0)) or {}
        others = {
            name: found
            for name in OTHERS
            if (found := row(f"SELECT * FROM {name} WHERE instance = ?", instance["key"]))  # noqa: S608  names
        }
        written = Written(Template(instance, self._events, others))
        [last] = (row("SELECT max(key) AS last FROM instances") or {}).values()
        for portion in _portions(numbers):
            with opened:
                for table in written.tables(portion, last):
                    columns, marks = ", ".join(table.columns), ", ".join("?" * len(table.columns))
                    opened.executemany(f"INSERT INTO {table.name} ({columns}) VALUES ({marks})", table.rows)  # noqa: S608  names
            last += len(portion)
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        opened.close()
        return last

    async def _in_postgres(self, numbers: range) -> int:
        schema = self._settings.schema
        async with connection(self._settings) as opened:

            async def row(sql: str, *values: Any) -> Row | None:
                found = await opened.fetchrow(within(schema, sql), *values)
                return None if found is None else dict(found)

            await opened.execute("SET statement_timeout = 0")
            name = name_of(self._workflow, order_id(0))
            instance = await row("SELECT * FROM mainspring.instances WHERE name = $1", name) or {}
            others: dict[str, Row] = {}
            for table in OTHERS:
                found = await row(f"SELECT * FROM mainspring.{table} WHERE instance = $1", instance["key"])  # noqa: S608  names
                others |= {} if found is None else {table: found}
            written = Written(Template(instance, self._events, others))
            [last] = (await row("SELECT max(key) AS last FROM mainspring.instances") or {}).values()
            for portion in _portions(numbers):
                async with opened.transaction():
                    first = await opened.fetchval(within(schema, NUMBER)) << PLACE_BITS
                    for table in self._placed(written.tables(portion, last), first):
                        await opened.copy_records_to_table(
                            table.name, schema_name=schema, columns=table.columns, records=table.rows
                        )
                last += len(portion)
            await opened.execute(within(schema, f"SELECT setval('mainspring.instance_keys', {last})"))
            # As it is after a while: what is done once for new rows is no part of what is measured.
            for table in ("instances", "events", *OTHERS):
                await opened.execute(within(schema, f"VACUUM (ANALYZE) mainspring.{table}"))
        await checkpoint(self._settings)
        return last

    def _placed(self, tables: Sequence[Table], first: int) -> Iterator[Table]:
        """Return the rows with what they have on PostgreSQL only: digests of names, and places in the feed."""
        instances, events, *others = tables
        id_at, each = instances.columns.index("id"), len(self._events)
        named = [
            (*row, name_of(self._workflow, row[id_at]), first + each * number)
            for number, row in enumerate(instances.rows, 1)
        ]
        yield Table(instances.name, (*instances.columns, "name", "position"), named)
        placed = [(*row, first + place) for place, row in enumerate(events.rows, 1)]
        yield Table(events.name, (*events.columns, "position"), placed)
        yield from others


class Written:
    """A template's rows, ready to be written under other keys and ids."""

    def __init__(self, template: Template) -> None:
        names = (template.instance["id"], template.events[1].message_id or "")
        self._columns = [name for name in template.instance if name not in UNCOPIED]
        self._instance = _renaming(tuple(template.instance[name] for name in self._columns), names)
        self._key_at = self._columns.index("key")
        self._events = [_renaming(structs.astuple(event), names) for event in template.events]
        self._others = {
            table: (columns := [name for name in row if name not in UNCOPIED], tuple(row[name] for name in columns))
            for table, row in template.others.items()
        }

    def tables(self, numbers: range, last_key: int) -> list[Table]:
        """Return the rows of these copies, and the events' checksums that go with them."""
        instances: Values = []
        events: Values = []
        keys = range(last_key + 1, last_key + 1 + len(numbers))
        for key, number in zip(keys, numbers, strict=True):
            names = (order_id(number), f"{number:032x}")
            instances.append(_with(self._instance(names), self._key_at, key))
            for event in self._events:
                events.append(tuple(event_values(key, EventRow(*event(names)))))
        others = [
            Table(table, columns, [_with(values, columns.index("instance"), key) for key in keys])
            for table, (columns, values) in self._others.items()
        ]
        return [Table("instances", self._columns, instances), Table("events", EVENT_COLUMNS, events), *others]


def _renaming(values: tuple[Any, ...], names: tuple[str, str]) -> Callable[[tuple[str, str]], tuple[Any, ...]]:
    """Return a function that returns the values with other names in them. Only where a name stands is looked at."""
    places = [
        (place, name)
        for place, value in enumerate(values)
        for name in range(2)
        if (isinstance(value, str) and names[name] in value)
        or (isinstance(value, bytes) and names[name].encode() in value)
    ]

    def renamed(others: tuple[str, str]) -> tuple[Any, ...]:
        found = list(values)
        for place, name in places:
            value = found[place]
            old, new = names[name], others[name]
            found[place] = (
                value.replace(old, new) if isinstance(value, str) else value.replace(old.encode(), new.encode())
            )
        return tuple(found)

    return renamed


def _portions(numbers: range) -> Iterator[range]:
    """Return the numbers of the copies, a transaction's at a time."""
    for begin in range(0, len(numbers), COPIES):
        yield numbers[begin : begin + COPIES]


def _with(values: tuple[Any, ...], place: int, value: int) -> tuple[Any, ...]:
    return (*values[:place], value, *values[place + 1 :])
