"""Group commit: many units are few statements and one transaction, and whoever waits for work hears of it."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mainspring.port.records import Committed, Duplicate, OutputKey, Retry, Unit
from mainspring.stores.sqlite import SqliteStore
from mainspring.stores.sqlite.statements import Ladder
from mainspring.stores.sqlite.writer import Call
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract.rig import ALL_DESTINATIONS, accept, order, send, step, timer
from tests.stores.sqlite_faulty_disk import faulty_disk
from tests.stores.sqlite_support import NAME, PATIENCE_SECONDS, Holder, opened
from tests.support.waiting import until

TABLES_WRITTEN = 3
ROWS_AT_ONCE = 256


class RealClock:
    """The time as it is, for tests in which another process moves on by itself."""

    def now_us(self) -> int:
        return time.monotonic_ns() // 1_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def traced(store: SqliteStore, worker: int, units: list[Unit]) -> list[str]:
    """Commit units, and return the statements that it took."""
    statements: list[str] = []

    def trace(_cursor: Any, statement: str, _values: Any) -> bool:
        statements.append(statement)
        return True

    async def set_trace(hook: Any) -> None:
        await store._write(lambda transaction: setattr(transaction.connection, "exec_trace", hook))  # noqa: SLF001

    await set_trace(trace)
    outcomes = await store.commit(worker, units)
    await set_trace(None)
    assert {type(outcome) for outcome in outcomes} == {Committed}
    return statements[statements.index("BEGIN IMMEDIATE") : statements.index("COMMIT")]


def orders(count: int, name: str) -> list[Unit]:
    return [step("m-1", send(claimed=True), on=f"{name}-{n}") for n in range(count)]


def results(units: list[Unit], keys: list[int]) -> list[Unit]:
    """Return steps that settle what these units sent, and send something else."""
    pairs = zip(units, keys, strict=True)
    return [
        step("r-1", send("Ship", claimed=True), on=unit.instance, after=3, key=key, settles=(OutputKey(key, 3),))
        for unit, key in pairs
    ]


async def counts(folder: Path) -> Iterator[tuple[int, int]]:
    """Return for 10 and for 1,000 steps how many statements they take, inserts apart from the rest."""
    found: list[tuple[int, int]] = []
    async with opened(folder) as store:
        worker = await store.register_worker("first", 1_000_000)
        for count in (10, 1_000):
            begins = orders(count, f"of-{count}")
            await store.commit(worker, begins)
            loaded = [one for one in await store.load([order(unit.instance) for unit in begins]) if one]
            statements = await traced(store, worker, results(begins, [one.row.key for one in loaded]))
            inserts = sum(statement.startswith("INSERT") for statement in statements)
            found.append((inserts, len(statements) - inserts))
    return iter(found)


def test_the_number_of_statements_does_not_grow_with_the_batch(tmp_path: Path) -> None:
    (few_inserts, few), (many_inserts, many) = asyncio.run(counts(tmp_path))

    assert few == many <= 10
    assert few_inserts <= 8
    assert many_inserts <= 3_000 // ROWS_AT_ONCE + TABLES_WRITTEN * 8


def test_every_statement_of_a_ladder_stays_prepared() -> None:
    ladder = Ladder("INSERT INTO t (a, b) VALUES (?, ?);")

    assert ladder.sizes == [256, 128, 64, 32, 16, 8, 4, 2, 1]
    wide = Ladder("INSERT INTO t VALUES (?" + ", ?" * 99 + ");")
    assert wide.sizes[0] == 64


def test_statements_are_prepared_once(tmp_path: Path) -> None:
    async def body() -> tuple[int, int]:
        async with opened(tmp_path) as store:
            worker = await store.register_worker("first", 1_000_000)

            async def misses() -> int:
                return await store._write(lambda transaction: transaction.connection.cache_stats()["misses"])  # noqa: SLF001

            await store.commit(worker, orders(511, "a"))
            before = await misses()
            await store.commit(worker, orders(511, "b"))
            return before, await misses()

    before, after = asyncio.run(body())
    assert after == before


def test_calls_that_wait_share_a_transaction(tmp_path: Path) -> None:
    async def body() -> int:
        with faulty_disk() as disk:
            async with opened(tmp_path, vfs=disk.name) as store:
                disk.gate, syncs = threading.Event(), disk.syncs
                first = asyncio.create_task(store.commit(0, orders(1, "first")))
                while disk.syncs == syncs:  # noqa: ASYNC110  another thread sets it
                    await asyncio.sleep(0)
                others = [asyncio.create_task(store.commit(0, orders(2, f"o-{n}"))) for n in range(20)]
                worker = asyncio.create_task(store.register_worker("late", 1))
                await asyncio.sleep(0)
                disk.gate.set()
                outcomes = await asyncio.gather(first, *others)
                assert sorted(one.key for part in outcomes for one in part if isinstance(one, Committed)) == list(
                    range(1, 42)
                )
                assert await worker == 1
                return disk.syncs - syncs

    assert asyncio.run(body()) <= 4


def test_duplicates_in_calls_that_share_a_transaction_are_found(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            outcomes = await asyncio.gather(*(store.commit(0, [accept("w-1")]) for _ in range(3)))
            assert outcomes == [[Committed(0, (1,))], [Duplicate(same=True)], [Duplicate(same=True)]]

    asyncio.run(body())


def test_an_output_that_is_made_and_fails_in_one_batch_keeps_its_attempts_and_its_error(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            worker = await store.register_worker("first", 1_000_000)
            fails = Unit("", "", retries=(Retry(OutputKey(1, 3), attempts=1, after_us=0, error="no answer"),))
            await store.commit(worker, [step("m-1", send(claimed=True)), fails])
            claims = await store.claim(worker, ALL_DESTINATIONS, [], 10)
            assert [(claim.attempts, claim.error) for claim in claims.outputs] == [(1, "no answer")]

    asyncio.run(body())


def test_threads_come_from_the_factory(tmp_path: Path) -> None:
    names: list[str] = []

    def factory(*, target: Any, name: str, daemon: bool) -> threading.Thread:
        names.append(name)
        return threading.Thread(target=target, name=name, daemon=daemon)

    async def body() -> None:
        async with opened(tmp_path, threads=factory) as store:
            assert names == ["mainspring-sqlite-writer"]
            await asyncio.gather(*(store.load([order()]) for _ in range(10)))

    asyncio.run(body())
    assert names == ["mainspring-sqlite-writer", "mainspring-sqlite-reader-1", "mainspring-sqlite-reader-2"]


def test_a_caller_that_stops_waiting_harms_nobody(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            impatient = asyncio.create_task(store.commit(0, [step("m-1")]))
            await asyncio.sleep(0)
            impatient.cancel()
            assert await store.commit(0, [step("m-1")]) in ([Duplicate(same=True)], [Committed(1)])

    asyncio.run(body())


def test_the_log_is_moved_into_the_database_in_a_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.stores.sqlite.writer.IDLE_SECONDS", 0.01)
    monkeypatch.setattr("mainspring.stores.sqlite.writer.IDLE_PAGES", 1)

    async def body() -> None:
        async with opened(tmp_path) as store:
            before = (tmp_path / NAME).stat().st_size
            await store.commit(0, orders(500, "o"))
            await until(lambda: (tmp_path / NAME).stat().st_size > before)

    asyncio.run(body())


# ---- hints

UNHELD = {"input": accept("w-1"), "output": step("m-1", send()), "timer": step("m-1", timer(after_seconds=0.5))}
HELD = {
    "input": accept("w-1", claimed=True),
    "output": step("m-1", send(claimed=True)),
    "nothing": step("m-1"),
    "what is due later": step("m-1", timer(after_seconds=60)),
}


def wakes(folder: Path, unit: Unit, within_seconds: float) -> bool:
    """Tell whether somebody who waits for work is woken by a commit of a worker of this process."""

    async def body() -> bool:
        async with opened(folder) as store:
            worker = await store.register_worker("first", 1_000_000)
            waiting = asyncio.create_task(store.wait_for_work(3_600))
            await asyncio.sleep(0)  # it begins
            await store.commit(worker, [unit])
            done, _ = await asyncio.wait({waiting}, timeout=within_seconds)
            waiting.cancel()
            return bool(done)

    return asyncio.run(body())


@pytest.mark.parametrize("unit", UNHELD.values(), ids=UNHELD.keys())
def test_work_that_nobody_holds_wakes_who_waits(unit: Unit, tmp_path: Path) -> None:
    assert wakes(tmp_path, unit, within_seconds=PATIENCE_SECONDS)


@pytest.mark.parametrize("unit", HELD.values(), ids=HELD.keys())
def test_work_in_good_hands_wakes_nobody(unit: Unit, tmp_path: Path) -> None:
    assert not wakes(tmp_path, unit, within_seconds=0.03)


def test_a_hint_that_comes_before_the_waiting_is_not_lost(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            await store.commit(0, [accept("w-1")])
            await asyncio.wait_for(store.wait_for_work(3_600), PATIENCE_SECONDS)

    asyncio.run(body())


def test_waiting_ends_by_the_stores_clock(tmp_path: Path) -> None:
    async def body() -> None:
        clock = VirtualClock()
        async with opened(tmp_path, clock) as store:
            waiting = asyncio.create_task(store.wait_for_work(1))
            while not waiting.done():
                await asyncio.sleep(0)
                if clock.next_us is not None:
                    clock.advance(0.05)

    asyncio.run(asyncio.wait_for(body(), PATIENCE_SECONDS))


# ---- other processes

ELSEWHERE = """
import asyncio, time
from mainspring.stores.sqlite import SqliteStore
from mainspring.testing.store_contract.rig import accept, send, step
class Clock:
    def now_us(self): return time.monotonic_ns() // 1_000
    async def sleep(self, seconds): await asyncio.sleep(seconds)
async def main():
    store = SqliteStore({path!r}, Clock())
    await store.open()
    worker = await store.register_worker("other", 3_600_000_000)
    await store.commit(worker, [step("m-1", send(claimed=True), on="o-9"), accept("w-1", claimed=True)])
asyncio.run(main())
"""


def test_a_commit_of_another_process_ends_the_waiting(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path, RealClock()) as store:
            waiting = asyncio.create_task(store.wait_for_work(3_600))
            with Holder(ELSEWHERE.format(path=str(tmp_path / NAME))):
                await asyncio.wait_for(waiting, PATIENCE_SECONDS)

    asyncio.run(body())


def test_a_killed_process_is_relieved_at_once_and_a_living_one_not(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path, RealClock()) as store:
            worker = await store.register_worker("survivor", 3_600_000_000)
            with Holder(ELSEWHERE.format(path=str(tmp_path / NAME))) as other:
                assert await store.relieve() == 0
                assert len(list(tmp_path.glob("*-worker-*"))) == 2  # noqa: ASYNC240  a test may
                other.kill()
                assert await store.relieve() == 1
            claims = await store.claim(worker, ALL_DESTINATIONS, ["Orders"], 10)
            assert [claim.instance for claim in claims.outputs] == ["o-9"]
            assert [row.message_id for row in claims.inputs] == ["w-1"]
            assert await store.heartbeat(worker)

    asyncio.run(body())
    assert [path.name for path in tmp_path.glob("*-worker-*")] == [f"{NAME}-worker-1"]


def test_a_worker_whose_file_is_gone_has_its_lease(tmp_path: Path) -> None:
    async def body() -> None:
        clock = VirtualClock()
        async with opened(tmp_path, clock) as store:
            await store.register_worker("first", 1_000_000)
            (tmp_path / f"{NAME}-worker-1").unlink()
            async with opened(tmp_path, clock) as other:
                assert await other.relieve() == 0
                clock.advance(2)
                assert await other.relieve() == 1

    asyncio.run(body())


def test_a_released_worker_leaves_no_file(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            await store.release_worker(await store.register_worker("first", 1_000_000))

    asyncio.run(body())
    assert list(tmp_path.glob("*-worker-*")) == []


def test_a_bare_job_takes_no_lock(tmp_path: Path) -> None:
    async def body() -> bool:
        async with opened(tmp_path) as store:
            job = Call(lambda transaction: transaction.connection.in_transaction, bare=True)
            return await store._open_writer().do(job)  # noqa: SLF001  what no verb of the port shows

    assert asyncio.run(body()) is False
