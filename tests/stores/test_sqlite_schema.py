"""The schema is the sum of its migrations, and every hot statement finds its rows by an index.

`python -m tests.stores.test_sqlite_schema` writes `schema.sql` anew after a migration was added.
"""

import asyncio
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest

from mainspring.port.records import EventRow, InputRow
from mainspring.stores.commit.rows import EVENT_COLUMNS, INPUT_FIELDS
from mainspring.stores.sqlite import SqliteStore
from mainspring.stores.sqlite.schema import described, migrations
from mainspring.stores.sqlite.statements import FILES, QUERIES
from tests.stores.sqlite_support import NAME, opened

PACKAGE = Path(str(resources.files("mainspring.stores.sqlite")))
KEPT = PACKAGE / "schema.sql"
# They read a whole table, for people or when a worker is gone; an index would cost at every step.
SCANS = {
    "all_outputs",
    "checkpoints",
    "commands_from_later",
    "depths",
    "free_outputs",
    "holds",
    "lose_outputs",
    "status_counts",
    "tally",
    "worker_leases",
    "workers",
} | {name for name in QUERIES if name.startswith("every_")}


def fresh(folder: Path) -> apsw.Connection:
    """Return another connection to a database that a store has just made and closed."""

    async def make() -> None:
        async with opened(folder):
            pass

    asyncio.run(make())
    return apsw.Connection(str(folder / NAME))


def test_a_new_database_has_the_schema_that_is_described(tmp_path: Path) -> None:
    connection = fresh(tmp_path)

    assert described(connection) == KEPT.read_text()


def test_the_migrations_are_numbered_without_gaps_and_recorded(tmp_path: Path) -> None:
    recorded = fresh(tmp_path).execute("SELECT version, name FROM schema_migrations ORDER BY version").fetchall()

    assert recorded == [(migration.version, migration.name) for migration in migrations()]
    assert [version for version, _ in recorded] == list(range(1, len(recorded) + 1))


def test_processes_that_open_a_new_database_at_once_make_it_once(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from mainspring.stores.sqlite import SqliteStore\n"
        "from mainspring.testing.clock import VirtualClock\n"
        "from mainspring.testing.store_contract.rig import step\n"
        "async def main():\n"
        "    store = SqliteStore(sys.argv[1], VirtualClock())\n"
        "    await store.open()\n"
        "    await asyncio.gather(*(store.commit(0, [step('m-1', on=f'{sys.argv[2]}-{n}')]) for n in range(20)))\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path / NAME), str(n)])  # noqa: S603  the test's own
        for n in range(3)
    ]

    assert [process.wait(20) for process in processes] == [0] * 3
    connection = apsw.Connection(str(tmp_path / NAME))
    assert connection.execute("SELECT count(*), max(key) FROM instances").fetchall() == [(60, 60)]
    assert connection.execute("SELECT count(*), max(position) FROM events").fetchall() == [(120, 120)]
    assert connection.execute("SELECT count(*) FROM schema_migrations").get == len(migrations())


def test_instances_that_ended_before_purging_was_known_can_be_purged(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / NAME))
    connection.execute(migrations()[0].sql)
    connection.execute("CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT, applied_us INTEGER)")
    connection.execute("INSERT INTO schema_migrations VALUES (1, 'streams_and_work', 0)")
    for key, status in enumerate(("running", "completed", "suspended", "failed"), 1):
        row = (key, "Orders", f"o-{key}", 0, status, None, None, 1, b"{}", 0, key, None)
        connection.execute("INSERT INTO instances VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.close()

    async def found() -> list[tuple[str, int]]:
        async with opened(tmp_path) as store:
            return [(one.id, one.ended_us) for one in (await store.purgeable("Orders", 100, 10)).found]

    assert asyncio.run(found()) == [("o-2", 2), ("o-4", 4)]


def test_the_database_is_durable_and_its_log_is_bounded(tmp_path: Path) -> None:
    async def settings() -> list[object]:
        async with opened(tmp_path) as store:
            return await on_writer(store, ["journal_mode", "synchronous", "journal_size_limit"])

    assert asyncio.run(settings()) == ["wal", 2, 64 * 1_024 * 1_024]


async def on_writer(store: SqliteStore, names: list[str]) -> list[object]:
    return await store._write(  # noqa: SLF001  what no verb of the port shows
        lambda transaction: [transaction.connection.pragma(name) for name in names]
    )


def test_the_columns_of_events_and_inputs_are_those_of_the_port(tmp_path: Path) -> None:
    connection = fresh(tmp_path)

    def columns(table: str) -> list[str]:
        return [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]

    assert columns("events") == ["position", "instance", *EventRow.__struct_fields__, "checksum"]
    assert columns("events")[1:] == re.findall(r"\w+", QUERIES["insert_events"].split("(")[1].split(")")[0])
    assert len(columns("events")) == EVENT_COLUMNS + 1
    assert columns("inbox") == ["position", *InputRow.__struct_fields__[:INPUT_FIELDS], "owner", "checksum", "lost"]


def test_every_statement_is_named_once_described_and_used() -> None:
    text = "".join((PACKAGE / file).read_text() for file in FILES)
    named = re.findall(r"^-- name: (\w+)\n(-- \S.*)?", text, re.MULTILINE)
    shared = PACKAGE.parent / "sql"
    code = "".join(path.read_text() for folder in (PACKAGE, shared) for path in folder.glob("*.py"))

    assert len({name for name, _ in named}) == len(named) == len(QUERIES)
    assert [name for name, description in named if not description] == []
    used = [name for name in QUERIES if f'"{name}"' in code or f'"{name.removesuffix("_newest")}{{way}}"' in code]
    assert used == list(QUERIES)


@pytest.mark.parametrize("name", sorted(QUERIES.keys() - SCANS))
def test_a_hot_statement_finds_its_rows_by_an_index(name: str, tmp_path: Path) -> None:
    connection = fresh(tmp_path)
    numbers = [int(number) for number in re.findall(r"\?(\d+)", QUERIES[name])]
    values = (None,) * max(numbers, default=QUERIES[name].count("?"))
    first, _, _ = QUERIES[name].partition(";")  # behind it, only how many rows there were
    plan = [detail for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {first}", values)]
    tables = (
        "instances|i|events|e|c|n|inbox|b|outbox|o|d|results|workers|dead_letters|snapshots|s|endings|tasks|t"
        "|checkpoints|documents|attributes|a"
    )

    assert [step for step in plan if re.fullmatch(rf"SCAN ({tables})( .*)?", step) and not allowed(name, step)] == []
    assert [step for step in plan if "AUTOMATIC" in step and not allowed(name, step)] == []


def allowed(name: str, step: str) -> bool:
    """Tell whether a step only looks like a scan of a table."""
    return {
        "last_key": "SEARCH" in step,
        "misfits": step.startswith("SCAN inbox"),  # it stops at the first row
        "claimable_outputs": step == "SCAN s",  # destinations and priorities, not rows
        "next_due": step == "SCAN s",
        "free_timers": step in ("SCAN d", "SCAN s"),
        "keys_by_error": "instances_with_error" in step,  # those with an error only, as far as the limit
        "claimable_inputs": "inbox_free" in step or "AUTOMATIC" in step,  # in order, as far as the limit
    }.get(name, False)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        KEPT.write_text(described(fresh(Path(folder))))
