"""What a W1 order costs, counted: transactions, statements, rows, bytes and calls. What makes it dearer says so here.

Each figure is what was counted when it was written down, and may move by its tolerance. One that is exceeded for a good
reason is set anew, and the reason belongs into the commit; one that is undercut by far is set anew, too.
"""

import asyncio
import gc
import os
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from bench.apps import orders as orders_app
from bench.workflows import order
from mainspring import Mainspring
from mainspring.engine.claiming import claimer as claims
from mainspring.engine.runtime import Runtime
from mainspring.port.records import Outcome, Unit
from mainspring.stores.memory.store import MemoryStore
from mainspring.stores.postgres.session import Session
from mainspring.stores.sqlite import changes
from mainspring.stores.sqlite.commit import commit_units
from mainspring.stores.sqlite.transaction import Transaction
from mainspring.testing.store_contract.rig import send, step
from tests.proof.counted_work.calls import counted_calls
from tests.steady import delays
from tests.stores.sqlite_support import opened
from tests.support.postgres.server import Unavailable, postgres_url

ORDERS = 20
MANY = 200
STEPS = 4


def within(found: float, expected: float, tolerance: float = 0.05) -> bool:
    """Tell whether a count is what it was; much less is as good a reason to look as more."""
    return abs(found - expected) <= tolerance * expected


@pytest.fixture(autouse=True)
def nothing_comes_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep out what is done every second or so: how much of it falls to an order depends on the machine."""
    monkeypatch.setattr(Runtime, "every", lambda *_: None)
    monkeypatch.setattr(claims, "POLL_SECONDS", 3600.0)


@asynccontextmanager
async def warm(url: str) -> AsyncGenerator[Mainspring]:
    """Open an app that has done an order already, so that nothing is met for the first time."""
    async with orders_app(url) as app:
        await one_by_one(app, 0, 1)
        yield app


async def one_by_one(app: Mainspring, first: int, count: int) -> None:
    for number in range(first, first + count):
        receipt = await app.send(order(number))
        await receipt.result()


def containers() -> int:
    """Return how many containers are alive beyond those at the last collection: after 700 of them there is one."""
    return gc.get_count()[0]


@contextmanager
def no_collections() -> Generator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


# ---- SQLite


@pytest.fixture
def statements() -> Generator[Counter[str]]:
    """Count what new SQLite connections are asked, by the first word, and the rows that they change."""
    found: Counter[str] = Counter()
    changed: dict[int, int] = {}

    def seen(event: dict[str, Any]) -> None:
        connection, total = id(event["connection"]), event["total_changes"]
        found["rows"] += total - changed.get(connection, 0)
        changed[connection] = total
        if not event["trigger"]:
            found[event["sql"].split(None, 1)[0].upper()] += 1

    def opened(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_STMT, seen)

    apsw.connection_hooks.append(opened)
    yield found
    apsw.connection_hooks.remove(opened)


def test_an_order_alone_is_a_transaction_for_each_step_of_few_statements(
    tmp_path: Path, statements: Counter[str]
) -> None:
    async def main() -> None:
        async with warm(f"sqlite:///{tmp_path / 'w1.db'}") as app:
            statements.clear()
            await one_by_one(app, 1, ORDERS)

    asyncio.run(main())
    each = {word: count / ORDERS for word, count in statements.items()}
    assert within(each["COMMIT"], STEPS)
    # Nine events, the instance four times, three commands that come and go, and an ending.
    assert within(each["rows"], 20)
    asked = sum(count for word, count in each.items() if word not in ("rows", "PRAGMA"))
    assert within(asked, 33.2)


def test_orders_take_little_room(tmp_path: Path) -> None:
    async def filled(count: int) -> int:
        file = tmp_path / f"{count}.db"
        async with orders_app(f"sqlite:///{file}") as app:
            receipts = await app.send_many([order(number) for number in range(count)])
            for receipt in receipts:
                await receipt.result()
        return file.stat().st_size

    grown = asyncio.run(filled(MANY)) - asyncio.run(filled(0))
    assert within(grown / MANY, 2_048)


def test_what_a_step_costs_the_writer_in_calls(tmp_path: Path) -> None:
    calls: Counter[str] = Counter()

    def committed(transaction: Transaction, owned: list[tuple[int, Unit]]) -> None:
        with counted_calls("stores/") as found:
            commit_units(transaction.connection, transaction.now_us, owned)
        calls.update(found)

    async def main() -> None:
        async with opened(tmp_path) as store:
            worker = await store.register_worker("one", 1_000_000)
            owned = [(worker, step("m-1", send(claimed=True), on=f"o-{number}")) for number in range(MANY)]
            await store._write(lambda transaction: committed(transaction, owned))  # noqa: SLF001

    asyncio.run(main())
    assert within(calls.total() / MANY, 14.2)


def test_what_a_step_has_the_writer_hold_in_containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    write = changes.write

    def written(*given: Any) -> None:
        held.append(containers())
        write(*given)

    def committed(transaction: Transaction, owned: list[tuple[int, Unit]]) -> None:
        before = containers()
        commit_units(transaction.connection, transaction.now_us, owned)
        held[-1] -= before

    async def main() -> None:
        async with opened(tmp_path) as store:
            worker = await store.register_worker("one", 1_000_000)
            owned = [(worker, step("m-1", send(claimed=True), on=f"o-{number}")) for number in range(MANY)]
            with no_collections():
                await store._write(lambda transaction: committed(transaction, owned))  # noqa: SLF001

    monkeypatch.setattr(changes, "write", written)
    asyncio.run(main())
    assert within(held[-1] / MANY, 5.3)


# ---- PostgreSQL


def test_an_order_alone_is_few_round_trips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trips: Counter[str] = Counter()

    def counting(name: str) -> None:
        asked = getattr(Session, name)

        async def count(self: Session, *values: Any) -> Any:
            trips[name] += 1
            return await asked(self, *values)

        monkeypatch.setattr(Session, name, count)

    async def main() -> None:
        async with warm(postgres_url(tmp_path)) as app:
            trips.clear()
            await one_by_one(app, 1, ORDERS)

    for name in ("rows", "value", "run_many", "run", "commit"):
        counting(name)
    try:
        asyncio.run(main())
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert within(trips["commit"] / ORDERS, STEPS)
    assert within(trips.total() / ORDERS, 24)


# ---- the engine


def test_what_an_order_costs_the_engine_in_calls() -> None:
    """Without a store's threads, whose speed decides how many steps a commit has."""

    async def main() -> None:
        async with warm("memory://") as app:
            with counted_calls() as calls:
                receipts = await app.send_many([order(number) for number in range(1, MANY + 1)])
                while (await app.stats()).instances["completed"] <= MANY:  # noqa: ASYNC110  turns cost nothing here
                    await asyncio.sleep(0)
            assert len(receipts) == MANY
            own = {name: count for name, count in calls.items() if not name.startswith(("stores/", "app/"))}
            assert within(sum(own.values()) / MANY, 276)

    asyncio.run(main())


def test_what_an_order_has_the_engine_hold_in_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    """While its step is committed: what is under way is what a collection walks over, and what brings the next one."""
    held: list[float] = []
    commit = MemoryStore.commit
    # Else which orders are in a batch with which of their later steps depends on how long a turn takes.
    monkeypatch.setattr("mainspring.engine.inputs.intake.INPUTS_PER_TURN", MANY + 1)

    async def counted(self: MemoryStore, worker: int, units: list[Unit]) -> list[Outcome]:
        held.append(containers() / len(units))
        return await commit(self, worker, units)

    async def main() -> None:
        async with warm("memory://") as app:
            monkeypatch.setattr(MemoryStore, "commit", counted)
            orders = [order(number) for number in range(1, MANY + 1)]
            with no_collections():
                await app.send_many(orders)

    asyncio.run(main())
    assert within(held[0], 22.1)


@pytest.mark.skipif(bool(os.environ.get(delays.SEED)), reason="what comes late is a callback more")
def test_what_an_order_alone_costs_the_event_loop_in_callbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waits for nobody is hardly more than its way through the loop."""
    callbacks: Counter[asyncio.BaseEventLoop] = Counter()  # apps of other tests may run in this process, in threads
    call_soon = asyncio.BaseEventLoop.call_soon

    def counting(self: asyncio.BaseEventLoop, *given: Any, **options: Any) -> asyncio.Handle:
        callbacks[self] += 1
        return call_soon(self, *given, **options)

    async def main() -> float:
        async with warm("memory://") as app:
            callbacks.clear()
            await one_by_one(app, 1, MANY)
            loop: Any = asyncio.get_running_loop()
            return callbacks[loop] / MANY

    monkeypatch.setattr(asyncio.BaseEventLoop, "call_soon", counting)
    assert within(asyncio.run(main()), 13.1)
