"""A search looks at so many rows at a time and no more, and finds few among many by an index."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw
import pytest

from mainspring.port.attributes import conditions_of
from mainspring.port.records import InstanceFilter
from mainspring.port.searches import Found
from mainspring.port.store import Store
from mainspring.stores.memory import MemoryStore
from mainspring.stores.memory import instances as memory_instances
from mainspring.stores.sql import instances
from mainspring.stores.sql.dialogue import Dialogue
from mainspring.stores.sqlite import SqliteStore
from mainspring.stores.sqlite.statements import QUERIES, rows
from mainspring.stores.sqlite.store import run_at_one_moment
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract.rig import Rig, Suite, step
from mainspring.testing.store_contract.searching import SEARCHES, _instances, every_look
from tests.stores import postgres_support, sqlite_support
from tests.support.postgres.server import Unavailable

SEARCHED = 4
FEW = 3

T = TypeVar("T")

Opened = Callable[[Path], AbstractAsyncContextManager[Store]]


@asynccontextmanager
async def in_memory(_: Path) -> AsyncGenerator[Store]:
    store = MemoryStore(VirtualClock())
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a look be short, so that a few instances take several."""
    for module in (memory_instances, instances):
        monkeypatch.setattr(module, "SEARCHED", SEARCHED)
    monkeypatch.setattr(instances, "FEW", FEW)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("opened", [in_memory, sqlite_support.opened, postgres_support.opened])
def test_many_short_looks_find_everything_once_in_both_directions(opened: Opened, tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            rig = Rig(Suite(), store, VirtualClock(), tmp_path)
            await store.commit(0, _instances())
            for where in SEARCHES:
                listed = [row.id for row in await store.instances(where, 100)]
                for limit in (1, 3, 100):
                    assert await every_look(rig, where, limit, newest=False) == listed, where
                    assert await every_look(rig, where, limit, newest=True) == listed[::-1], where
            # What matches nowhere is looked for in several looks, and no single one reads them all.
            first = await store.search(InstanceFilter(workflow="Nothing"), 10)
            assert (first.rows, first.next is None) == ([], False)

    try:
        asyncio.run(body())
    except Unavailable as reason:
        pytest.skip(str(reason))


# ---- what SQLite does for it


MANY = 20_000
LOOK = 1_000


ODD = MANY // 2
# By each of these an index finds the one that is meant.
SELECTIVE = (
    InstanceFilter(status="suspended"),
    InstanceFilter(error="odd"),
    InstanceFilter(id_prefix=f"o-{ODD - 1}"),
    InstanceFilter(id_prefix=f"o-{ODD - 1}", workflow="Orders"),
    InstanceFilter(attributes=conditions_of({"customer": "c-7"})),
    InstanceFilter(attributes=conditions_of([("amount", ">", 6)])),
)
# By these all have to be looked at, a part at a time.
SCANNED = (
    InstanceFilter(state="Nowhere"),
    InstanceFilter(workflow="Nothing"),
    InstanceFilter(status="completed"),
    InstanceFilter(id_prefix="o-", state="Nowhere"),
    InstanceFilter(created_to_us=-1),
    InstanceFilter(updated_from_us=2**60),
)
NUMBERS = f"WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < {MANY - 1})"  # noqa: S608  a number
COPIES = f"""
INSERT INTO instances
    (key, workflow, id, version, status, state, definition_version, context, created_us, updated_us)
{NUMBERS} SELECT value + 1, 'Orders', 'o-' || value, 1, 'running', 'New', 1, x'7b7d', value, value FROM n
"""  # noqa: S608  as above


def filled(folder: Path) -> apsw.Connection:
    """Return a connection to a database with many instances, of which one is in trouble."""

    async def make() -> None:
        async with sqlite_support.opened(folder) as store:
            await store.commit(0, [step("m-1", on="o-0")])

    asyncio.run(make())
    connection = apsw.Connection(str(folder / sqlite_support.NAME))
    connection.execute(COPIES)
    connection.execute("UPDATE instances SET status = 'suspended', error = 'odd' WHERE key = ?", (ODD,))
    connection.execute("INSERT INTO attributes VALUES (?, 'customer', 'text', 'c-7', NULL)", (ODD,))
    connection.execute("INSERT INTO attributes VALUES (?, 'amount', 'number', NULL, 7.0)", (ODD,))
    return connection


class OnConnection(SqliteStore):
    """Asks in this thread, on a connection that can be watched."""

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection.filename, VirtualClock())
        self._connection = connection

    async def in_read(self, begin: Callable[[], Dialogue[T]], *, at_one_moment: bool) -> T:
        assert at_one_moment
        return run_at_one_moment(self._connection, begin())


def steps_of(connection: apsw.Connection, ask: Callable[[], Any]) -> int:
    """Return how many instructions of SQLite's own machine a question takes: what it costs, whatever runs beside it."""
    steps = 0

    def passed() -> bool:
        nonlocal steps
        steps += 1
        return False

    connection.set_progress_handler(passed, 10)
    ask()
    connection.set_progress_handler(None)
    return steps * 10


def test_no_look_costs_more_than_its_share_and_what_an_index_finds_costs_nearly_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = filled(tmp_path)
    monkeypatch.setattr(instances, "SEARCHED", LOOK)
    store = OnConnection(connection)

    def search(where: InstanceFilter, newest: bool) -> Found:
        return asyncio.run(store.search(where, 100, None, newest))

    def cost(where: InstanceFilter, newest: bool) -> int:
        return steps_of(connection, lambda: search(where, newest))

    def listed(where: InstanceFilter) -> list[int]:
        return [row.key for row in asyncio.run(store.instances(where, 100))]

    no_such_id = (0, None, None, "", *[None] * 7, 1, instances.LAST_KEY, "[]")
    every_row = steps_of(connection, lambda: rows(connection, "search", *no_such_id))
    for newest in (True, False):
        assert cost(InstanceFilter(), newest) < every_row / 20
        for where in SELECTIVE:
            found, more = search(where, newest)
            assert ([row.key for row in found], more) == ([ODD], None), where
            assert cost(where, newest) < every_row / 50, where
        for where in SCANNED:
            found, more = search(where, newest)
            assert (found, more is None) == ([], False), where
            # Each row costs a little more here than there.
            assert cost(where, newest) < 5 * every_row * LOOK / MANY, where
        for where in SELECTIVE:
            cost_of_list = steps_of(connection, lambda where=where: listed(where))
            assert listed(where) == [ODD], where
            assert cost_of_list < every_row / 50, where
    connection.close()


@pytest.mark.parametrize("name", sorted(name for name in QUERIES if f"{name}_newest" in QUERIES))
def test_the_newest_are_found_by_the_same_indexes(name: str, tmp_path: Path) -> None:
    connection = filled(tmp_path)
    values = (None,) * max(map(int, re.findall(r"\?(\d+)", QUERIES[name])))

    def plan(statement: str) -> list[str]:
        return [detail for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]

    used = [step.replace("<", ">") for step in plan(QUERIES[f"{name}_newest"])]
    assert used == [step.replace("<", ">") for step in plan(QUERIES[name])]
    assert not [step for step in used if re.match(r"SCAN (i|a|attributes|instances)\b", step)]
    connection.close()
