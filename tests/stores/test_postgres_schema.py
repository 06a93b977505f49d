"""The schema is the sum of its migrations, every hot statement finds its rows by an index, and a batch is few of them.

`python -m tests.stores.test_postgres_schema` writes `schema.sql` anew after a migration was added.
"""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from mainspring.errors import NewerSchemaError, SettingError, StoreUnreachableError
from mainspring.port.records import Committed, EventRow, OutputKey, Unit
from mainspring.stores.postgres import PostgresStore
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.facts import PLACE_BITS
from mainspring.stores.postgres.schema import migrations
from mainspring.stores.postgres.session import Session
from mainspring.stores.postgres.statements import FILES, QUERIES, statements
from mainspring.testing.store_contract.rig import accept, order, send, step, timer
from tests.stores.postgres_support import inside, opened, other_session, sql
from tests.support.postgres.proxy import Cable, Cut, serving
from tests.support.postgres.server import postgres_url
from tests.support.running import run

PACKAGE = Path(str(resources.files("mainspring.stores.postgres")))
KEPT = PACKAGE / "schema.sql"

DESCRIBED = """
SELECT format(
    E'CREATE TABLE mainspring.%I (\n%s\n);', c.relname,
    string_agg(
        format(
            '    %I %s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
            CASE WHEN l.collname = 'C' THEN ' COLLATE "C"' END, CASE WHEN a.attnotnull THEN ' NOT NULL' END
        ), E',\n' ORDER BY a.attnum
    )
), c.relname, 0
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r'
GROUP BY c.relname
UNION ALL
SELECT pg_get_indexdef(i.indexrelid) || ';', c.relname, 1
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid WHERE c.relnamespace = $1::regnamespace
UNION ALL
SELECT format('CREATE SEQUENCE mainspring.%I;', relname), relname, 2
FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'S'
ORDER BY 2, 3, 1
"""

# They read a whole table, for people or when a worker is gone; an index would cost at every step.
SCANS = {
    "all_outputs",
    "checkpoints",
    "depths",
    "free_inputs",
    "free_outputs",
    "gone_workers",
    "holds",
    "lose_inputs",
    "lose_outputs",
    "status_counts",
    "tally",
    "waiting",
}
# An index is followed from its beginning or from a position, as far as the limit.
IN_ORDER = {
    "dead_letters",
    "feed_is_ahead",
    "move_feed",
    "next_due",
    "claim_outputs",
    "schema_version",
    "newest",
    "suspects",
    "last_key",
    "attribute_names",
    "free_timers",
    "posted",
}

# What an index has found before.
BY_PLACE = {"Tid Scan", "Bitmap Heap Scan"}
TABLES = sorted(
    set(re.findall(r"CREATE TABLE mainspring\.(\w+)", KEPT.read_text())) - {"feed", "schema_migrations", "workers"}
)


async def described(folder: Path) -> str:
    async with opened(folder):
        pass
    schema = Address(postgres_url(folder)).schema
    async with other_session(folder) as connection:
        rows = await connection.fetch(DESCRIBED, f'"{schema}"')
    return "\n\n".join(row[0] for row in rows).replace(f"{schema}.", "mainspring.") + "\n"


def test_a_new_schema_is_the_one_that_is_described(tmp_path: Path) -> None:
    assert asyncio.run(described(tmp_path)) == KEPT.read_text()


def test_the_migrations_are_numbered_without_gaps_and_recorded(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path), other_session(tmp_path) as other:
            recorded = await other.fetch(sql(tmp_path, "SELECT version, name FROM mainspring.schema_migrations"))
            assert [tuple(row) for row in recorded] == [(m.version, m.name) for m in migrations()]
            assert [row[0] for row in recorded] == list(range(1, len(recorded) + 1))

    run(body)


def test_the_columns_of_events_are_those_of_the_port() -> None:
    columns = re.findall(r"\w+", QUERIES["append_events"].split("(")[1].split(")")[0])

    assert columns == ["position", "instance", *EventRow.__struct_fields__, "checksum"]


def test_a_newer_schema_is_left_alone(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path), other_session(tmp_path) as other:
            await other.execute(sql(tmp_path, "INSERT INTO mainspring.schema_migrations VALUES (99, 0, 'later')"))
        with pytest.raises(NewerSchemaError, match="99"):
            await PostgresStore(postgres_url(tmp_path)).open()

    run(body)


def test_processes_that_open_a_new_schema_at_once_make_it_once(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from mainspring.stores.postgres import PostgresStore\n"
        "from mainspring.testing.store_contract.rig import step\n"
        "async def main():\n"
        "    store = PostgresStore(sys.argv[1])\n"
        "    await store.open()\n"
        "    await asyncio.gather(*(store.commit(0, [step('m-1', on=f'{sys.argv[2]}-{n}')]) for n in range(10)))\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, postgres_url(tmp_path), str(n)])  # noqa: S603  the test's own
        for n in range(3)
    ]

    assert [process.wait(20) for process in processes] == [0] * 3


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("statement", ["BEGIN", "CREATE SCHEMA", "\nCREATE TABLE", "-- Streams", "COMMIT"])
def test_a_migration_that_was_cut_short_is_done_again(statement: str, when: Cut, tmp_path: Path) -> None:
    async def body() -> None:
        cable = Cable(postgres_url(tmp_path))
        async with serving(cable, postgres_url(tmp_path)) as url:
            cable.cut_once(statement, when)
            with pytest.raises(StoreUnreachableError):
                await PostgresStore(url).open()
            assert cable.cuts
        assert await described(tmp_path) == KEPT.read_text()

    run(body)


def test_two_applications_share_a_database(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path / "a") as one, opened(tmp_path / "b") as two:
            await one.commit(0, [step("m-1")])
            assert await two.stream(order(), 0, 10) == []

    run(body)


@pytest.mark.parametrize("query", ["schema=", "schema=pg_x", "pooler=statement", "connections=1", "connections=many"])
def test_a_setting_that_makes_no_sense_is_refused(query: str) -> None:
    with pytest.raises(SettingError):
        PostgresStore(f"postgresql://db.example/shop?{query}")


# ---- statements


def test_every_statement_is_named_once_described_and_used() -> None:
    text = "".join((PACKAGE / file).read_text() for file in FILES)
    named = re.findall(r"^-- name: (\w+)\n(-- \S.*)?", text, re.MULTILINE)
    shared = PACKAGE.parent / "sql"
    code = "".join(path.read_text() for folder in (PACKAGE, shared) for path in folder.glob("*.py"))

    assert len({name for name, _ in named}) == len(named) == len(QUERIES)
    assert [name for name, description in named if not description] == []
    used = [name for name in QUERIES if f'"{name}"' in code or f'"{name.removesuffix("_newest")}{{way}}"' in code]
    assert used == list(QUERIES)
    assert f"<< {PLACE_BITS}" in QUERIES["feed"]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


async def explained(session: Session, statement: str) -> dict[str, Any]:
    """Return the plan that the store itself uses: one for all values."""
    count = max(map(int, re.findall(r"\$(\d+)", statement)), default=0)
    values = f"({', '.join(['NULL'] * count)})" if count else ""
    await session.run(f"PREPARE asked AS {statement}")
    plan = json.loads(await session.value(f"EXPLAIN (FORMAT JSON) EXECUTE asked{values}"))[0]["Plan"]
    await session.run("DEALLOCATE asked")
    return plan


async def scans(store: PostgresStore, schema: str) -> list[tuple[str, str]]:
    """Return where hot statements of a store would read a table without an index."""
    own = statements(schema)
    found: list[tuple[str, str]] = []
    async with inside(store).pool.session() as session:
        for name in sorted(own.keys() - SCANS):
            for node in nodes(await explained(session, own[name])):
                if node.get("Relation Name") in TABLES and "Scan" in node["Node Type"]:
                    by_index = "Index Cond" in node or node["Node Type"] in BY_PLACE
                    if not by_index and (name not in IN_ORDER or "Index" not in node["Node Type"]):
                        found.append((name, f"{node['Node Type']} on {node['Relation Name']}"))
    return found


async def filled(folder: Path, store: PostgresStore, instances: int) -> None:
    """Leave what a while of work leaves, and let the planner know of it."""
    for n in range(0, instances, 200):
        units = [step("m-1", send(), timer(), on=f"o-{k}") for k in range(n, n + 200)]
        await store.commit(0, [*units, *(accept("w-1", on=f"o-{k}") for k in range(n, n + 200))])
    async with other_session(folder) as other:
        await other.execute(sql(folder, f"VACUUM ANALYZE {', '.join(f'mainspring.{table}' for table in TABLES)}"))


@pytest.mark.parametrize("instances", [0, 600])
def test_every_hot_statement_finds_its_rows_by_an_index(instances: int, tmp_path: Path) -> None:
    """Also where the planner believes that a table is empty: it may be full before it learns of it."""

    async def body() -> None:
        async with opened(tmp_path) as store:
            await filled(tmp_path, store, instances)
            assert await scans(store, Address(postgres_url(tmp_path)).schema) == []

    run(body)


async def round_trips(store: PostgresStore, worker: int, units: list[Unit]) -> int:
    """Commit units, and return how often the server was asked for something."""
    asked = 0

    def counted(ask: Any) -> Any:
        def count(*values: Any) -> Any:
            nonlocal asked
            asked += "pg_notify" not in str(values[1:2])  # that goes another way, and nobody waits for it
            return ask(*values)

        return count

    with pytest.MonkeyPatch.context() as patch:
        for name in ("rows", "value", "run", "commit"):
            patch.setattr(Session, name, counted(getattr(Session, name)))
        outcomes = await store.commit(worker, units)
    assert {type(outcome) for outcome in outcomes} == {Committed}
    return asked


def test_a_batch_of_any_size_costs_the_same_round_trips(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            worker = await store.register_worker("first", 30_000_000)
            counts: list[list[int]] = []
            for size in (2, 300):
                names = [f"o-{size}-{n}" for n in range(size)]
                begins = [step("m-1", send(claimed=True), timer(), on=name, direct=True) for name in names]
                trips = [await round_trips(store, worker, begins)]
                keys = [one.row.key for one in await store.load([order(name) for name in names]) if one]
                moves = [
                    step("r-1", send(claimed=True), on=name, after=4, settles=(OutputKey(key, 3),), direct=True)
                    for name, key in zip(names, keys, strict=True)
                ]
                trips.append(await round_trips(store, worker, moves))
                ends = [
                    step(
                        "r-2", on=name, after=6, settles=(OutputKey(key, 6),), cancels=("Timeout",), cancel_all="timers"
                    )
                    for name, key in zip(names, keys, strict=True)
                ]
                trips.append(await round_trips(store, worker, ends))
                trips.append(await round_trips(store, worker, [accept("w-1", on=name) for name in names]))
                counts.append(trips)
            assert counts[0] == counts[1] == [5, 5, 10, 5]

    run(body)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        KEPT.write_text(asyncio.run(described(Path(folder))))


def test_one_input_is_found_without_reading_the_others_of_its_instance(tmp_path: Path) -> None:
    """Also by the plan that is made while nothing waits: a thousand for one instance would be read a thousand times."""

    async def body() -> None:
        async with opened(tmp_path) as store, inside(store).pool.session() as session:
            plan = await explained(session, statements(Address(postgres_url(tmp_path)).schema)["facts"])
            read = [node.get("Filter", "") for node in nodes(plan) if node.get("Relation Name") == "inbox"]
            assert read
            assert [condition for condition in read if condition.startswith(("(message = ", '("position" = '))] == []

    run(body)
