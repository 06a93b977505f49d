"""Many workers on one database: nobody takes what is another's, the dead are relieved, and who waits hears of work."""

import asyncio
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
import pytest

from mainspring.errors import NewerSchemaError
from mainspring.port.records import Committed, Conflict, Duplicate, OutputKey, Ref, Unit
from mainspring.stores import open_store
from mainspring.stores.memory import MemoryStore
from mainspring.stores.postgres import PostgresStore
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.clock import DatabaseClock
from mainspring.stores.postgres.session import SETTINGS, Session
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract.rig import ALL_DESTINATIONS, ORDERS, accept, order, send, settle, step, timer
from tests.stores.postgres_renumbered import renumbered
from tests.stores.postgres_support import inside, opened, other_session, sql
from tests.stores.sqlite_model import compare
from tests.stores.sqlite_support import PATIENCE_SECONDS, Holder
from tests.support.postgres.proxy import Pooler, serving
from tests.support.postgres.server import postgres_url
from tests.support.running import run
from tests.support.waiting import until

LEASE_US = 30_000_000
MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US


class RealClock:
    """The time of this machine, as an app gives it."""

    def __init__(self, wrong_by_us: int = 0) -> None:
        self._wrong_by_us = wrong_by_us

    def now_us(self) -> int:
        return time.time_ns() // 1_000 + self._wrong_by_us

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


# ---- side by side


def test_of_many_workers_that_step_one_instance_one_commits_each_version(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as first, opened(tmp_path) as second, opened(tmp_path) as third:
            stores = [first, second, third]
            for version in (0, 2, 3, 4):
                units = [step(f"m-{version}-{n}", after=version) for n in range(6)]
                outcomes = await asyncio.gather(*(stores[n % 3].commit(0, [unit]) for n, unit in enumerate(units)))
                kinds = sorted(type(outcome).__name__ for (outcome,) in outcomes)
                assert kinds == ["Committed", *["Conflict"] * 5]
            assert [event.version for event in await first.stream(order(), 0, 20)] == [1, 2, 3, 4, 5]

    run(body)


def test_batches_over_the_same_instances_in_any_order_all_come_through(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as first, opened(tmp_path) as second:
            ids = [f"o-{n}" for n in range(30)]
            begins = [[step(f"b-{n}", on=id) for id in (ids if n % 2 else reversed(ids))] for n in range(6)]
            outcomes = await asyncio.gather(*((first, second)[n % 2].commit(0, b) for n, b in enumerate(begins)))
            assert sum(isinstance(one, Committed) for part in outcomes for one in part) == 30
            accepts = [[accept(f"w-{n}", on=id) for id in (ids if n % 2 else reversed(ids))] for n in range(6)]
            await asyncio.gather(*((first, second)[n % 2].commit(0, a) for n, a in enumerate(accepts)))
            assert {len(await first.inbox(order(id), 10)) for id in ids} == {6}

    run(body)


@pytest.mark.parametrize("turn", range(4))
def test_one_message_by_two_ways_at_once_is_taken_once(turn: int, tmp_path: Path) -> None:
    """One process steps it directly into a new instance while another puts it into the inbox."""

    async def body() -> None:
        async with opened(tmp_path) as first, opened(tmp_path) as second:
            for n in range(15):
                id = f"o-{turn}-{n}"
                calls = [
                    first.commit(0, [step("m-1", on=id, direct=True)]),
                    second.commit(0, [accept("m-1", on=id)]),
                    second.commit(0, [accept("m-1", on=id)]),
                ]
                outcomes = await asyncio.gather(*(calls if turn % 2 else reversed(calls)))
                taken = len(await first.stream(order(id), 0, 10)) // 2 + len(await first.inbox(order(id), 10))
                assert taken == 1, outcomes
                assert sum(isinstance(one, Committed) for (one,) in outcomes) == 1
                assert all(
                    one in (Duplicate(same=True), Conflict("inbox")) or isinstance(one, Committed)
                    for (one,) in outcomes
                )

    run(body)


def test_an_instance_that_inputs_waited_for_begins_like_any_other(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            (accepted,) = await store.commit(0, [accept("w-1", "w-2")])
            assert isinstance(accepted, Committed)
            assert await store.load([order()]) == [None]
            assert (await store.stats()).instances == {}
            (begun,) = await store.commit(0, [step("w-1", consumes=accepted.positions[0])])
            assert isinstance(begun, Committed)
            assert begun.key > 0
            assert await other.fetchval(sql(tmp_path, "SELECT count(*) FROM mainspring.instances")) == 1

    run(body)


def test_many_workers_claim_each_output_once_and_each_inbox_in_order(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as first, opened(tmp_path) as second:
            workers = [(s, await s.register_worker("w", LEASE_US)) for s in (first, second, first, second)]
            await first.commit(0, [step("m-1", *[send()] * 20, on=f"o-{n}") for n in range(10)])
            for n in range(10):
                await first.commit(0, [accept(*(f"w-{k}" for k in range(10)), on=f"o-{n}")])
            outputs: list[OutputKey] = []
            holders: dict[tuple[str, str], int] = {}

            async def claim(store: PostgresStore, worker: int) -> None:
                for _ in range(12):
                    claims = await store.claim(worker, ALL_DESTINATIONS, [ORDERS], 7)
                    outputs.extend(claim.output for claim in claims.outputs)
                    for row in claims.inputs:
                        assert holders.setdefault((row.instance, row.message_id), worker) == worker
                    by_instance: dict[str, list[int]] = {}
                    for row in claims.inputs:
                        by_instance.setdefault(row.instance, []).append(row.position)
                    assert all(a < b for queue in by_instance.values() for a, b in pairwise(queue))

            await asyncio.gather(*(claim(*one) for one in workers))
            assert len(outputs) == len(set(outputs)) == 200
            for n in range(10):
                # One worker has a beginning of each queue, without a hole.
                held = [holders.get((f"o-{n}", f"w-{k}")) for k in range(10)]
                assert len(set(held) - {None}) == 1
                assert None not in held[: 10 - held.count(None)]

    run(body)


# ---- who is alive

ELSEWHERE = """
import asyncio
from mainspring.stores.postgres import PostgresStore
from mainspring.testing.store_contract.rig import accept, send, step
async def main():
    store = PostgresStore({url!r})
    await store.open()
    worker = await store.register_worker("other", 3_600_000_000)
    await store.commit(worker, [step("m-1", send(claimed=True), on="o-9"), accept("w-1", claimed=True)])
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""


@pytest.mark.parametrize("pooler", ["", "&pooler=transaction"])
def test_a_killed_process_is_relieved_at_once_unless_nobody_can_know(pooler: str, tmp_path: Path) -> None:
    async def body() -> None:
        url = postgres_url(tmp_path) + pooler
        async with (
            opened(tmp_path, RealClock(), url=url) as store,
            other_session(tmp_path) as operator,
        ):
            worker = await store.register_worker("survivor", HOUR_US)
            sessions = "SELECT array_agg(pid) FROM pg_stat_activity WHERE pid <> ALL ($1::integer[])"
            before = await operator.fetchval(sessions, [])
            with Holder(ELSEWHERE.format(url=url)) as other:
                assert await store.relieve() == 0
                others = await operator.fetchval(sessions, before)
                other.kill()
            left = "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = ANY ($1::integer[])"
            await until(lambda: operator.fetchval(left, others))
            assert await store.relieve() == (0 if pooler else 1)
            claims = await store.claim(worker, ALL_DESTINATIONS, [ORDERS], 10)
            assert [claim.instance for claim in claims.outputs] == ([] if pooler else ["o-9"])
            assert [row.message_id for row in claims.inputs] == ([] if pooler else ["w-1"])
            assert await store.heartbeat(worker)

    run(body)


def test_a_worker_whose_session_was_cut_takes_its_lock_again(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, opened(tmp_path) as other:
            worker = await store.register_worker("first", LEASE_US)
            presence = inside(store).presence
            assert presence is not None
            assert presence.session is not None
            await store.wait_for_work(0)
            async with other_session(tmp_path) as operator:
                await operator.execute("SELECT pg_terminate_backend($1)", presence.session.pid)
            await store.wait_for_work(60)  # whoever comes back looks whether something was missed
            assert await other.relieve() == 0
            assert await store.heartbeat(worker)

    run(body)


@pytest.mark.parametrize("error", [asyncpg.SerializationError, asyncpg.QueryCanceledError, asyncpg.OutOfMemoryError])
def test_a_worker_is_released_although_the_server_refuses_to_free_its_lock(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            worker = await store.register_worker("first", LEASE_US)
            rows = Session.rows

            async def refused(self: Session, statement: str, *values: Any) -> Any:
                if "pg_advisory_unlock" in statement:
                    raise error("the test says so")
                return await rows(self, statement, *values)

            monkeypatch.setattr(Session, "rows", refused)
            await store.release_worker(worker)
            assert await store.workers() == []

    asyncio.run(body())


def test_a_lock_that_the_server_keeps_for_a_lost_session_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A network that is cut in silence: the server learns of it later than the worker."""
    monkeypatch.setitem(SETTINGS, "lock_timeout", "50ms")

    async def body() -> None:
        async with (
            opened(tmp_path) as store,
            opened(tmp_path) as other,
            other_session(tmp_path) as keeper,
            other_session(tmp_path) as operator,
        ):
            lock = (Address(postgres_url(tmp_path)).lock_class, await store.register_worker("first", LEASE_US))
            presence = inside(store).presence
            assert presence is not None
            assert presence.session is not None
            keeping = asyncio.ensure_future(keeper.execute("SELECT pg_advisory_lock($1, $2)", *lock))
            waits = "SELECT count(*) > 0 FROM pg_locks WHERE objid = $1 AND NOT granted"
            await until(lambda: operator.fetchval(waits, lock[1]))
            await operator.execute("SELECT pg_terminate_backend($1)", presence.session.pid)
            await keeping
            await until(lambda: "not connected, will try again" in caplog.text)
            await keeper.execute("SELECT pg_advisory_unlock($1, $2)", *lock)
            await until(lambda: presence.session is not None and not presence.session.closed)
            assert await other.relieve() == 0

    run(body)


def test_a_zombie_commits_nothing_that_it_held(tmp_path: Path) -> None:
    async def body() -> None:
        clock = VirtualClock()
        async with opened(tmp_path, clock) as zombie, opened(tmp_path, clock) as store:
            worker = await zombie.register_worker("zombie", LEASE_US)
            (begun,) = await zombie.commit(worker, [step("m-1", send(claimed=True))])
            assert isinstance(begun, Committed)
            clock.advance(31)
            # The commit is under way when the worker is relieved: it waits for that, or is passed over in its middle.
            late = zombie.commit(worker, [settle(OutputKey(begun.key, 3)), step("m-2", send(claimed=True), after=3)])
            outcomes, relieved = await asyncio.gather(late, store.relieve())
            assert relieved + await store.relieve() == 1
            assert await store.holds(worker) == []
            assert outcomes[0] in (Conflict("lost"), Committed(0))
            assert not await zombie.heartbeat(worker)

    run(body)


def test_a_worker_that_meets_a_newer_schema_says_so(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            worker = await store.register_worker("first", LEASE_US)
            await other.execute(sql(tmp_path, "INSERT INTO mainspring.schema_migrations VALUES (99, 0, 'later')"))
            with pytest.raises(NewerSchemaError, match="schema version 99"):
                await store.heartbeat(worker)

    run(body)


def test_who_looks_for_the_dead_does_not_wait_for_one_that_is_stopped_in_a_transaction(tmp_path: Path) -> None:
    async def body() -> None:
        clock = VirtualClock()
        async with opened(tmp_path, clock) as store, other_session(tmp_path) as stopped:
            worker = await store.register_worker("stopped", LEASE_US)
            clock.advance(LEASE_US / 1e6 + 1)
            async with stopped.transaction():
                lock = "SELECT key FROM mainspring.workers WHERE key = $1 FOR KEY SHARE"
                await stopped.fetch(sql(tmp_path, lock), worker)
                assert await store.relieve() == 0
            assert await store.relieve() == 1

    run(body)


# ---- time


def test_an_answer_that_was_long_under_way_does_not_replace_a_better_one() -> None:
    clock = DatabaseClock(monotonic_ns=lambda: 0)
    clock.measured(1_000_000, sent_us=0, came_us=1_000)
    clock.measured(1_100_000, sent_us=1_000, came_us=201_000)  # it was asked at its end, not in the middle
    assert clock.now_us() == 999_500


def test_an_answer_that_contradicts_a_better_one_replaces_it() -> None:
    clock = DatabaseClock(monotonic_ns=lambda: 0)
    clock.measured(1_000_000, sent_us=0, came_us=1_000)
    clock.measured(9_000_000, sent_us=1_000, came_us=201_000)  # somebody has set the clock
    assert clock.now_us() == 8_899_000


def test_an_old_answer_gives_way_to_one_that_is_worse_but_new() -> None:
    clock = DatabaseClock(monotonic_ns=lambda: 0)
    clock.measured(1_000_000, sent_us=0, came_us=1_000)
    clock.measured(601_005_000, sent_us=600_000_000, came_us=600_020_000)
    assert clock.now_us() == 995_000


@pytest.mark.parametrize("wrong_by_us", [-HOUR_US, HOUR_US])
def test_a_worker_whose_clock_is_wrong_harms_nobody(wrong_by_us: int, tmp_path: Path) -> None:
    async def body() -> None:
        url = postgres_url(tmp_path)
        right = PostgresStore(url)
        wrong = PostgresStore(url, machine=DatabaseClock(lambda: time.monotonic_ns() + wrong_by_us * 1_000))
        await right.open()
        await wrong.open()
        try:
            worker = await wrong.register_worker("wrong", LEASE_US)
            other = await right.register_worker("right", LEASE_US)
            await wrong.commit(worker, [step("m-1", timer(after_seconds=60), send())])
            # An answer of the server may be long under way, but not an hour.
            assert abs(wrong.now_us() - right.now_us()) < MINUTE_US
            assert await wrong.relieve() == await right.relieve() == 0
            claims = await right.claim(other, ALL_DESTINATIONS, [ORDERS], 10)
            assert [claim.destination for claim in claims.outputs] == ["Charge"]
            assert claims.next_due_us is not None
            assert abs(claims.next_due_us - right.now_us()) < 2 * MINUTE_US
        finally:
            await wrong.close()
            await right.close()

    run(body)


def test_the_machines_clock_gives_way_to_the_databases_and_a_tests_does_not(tmp_path: Path) -> None:
    given: Any = open_store(postgres_url(tmp_path), VirtualClock())
    left: Any = open_store(postgres_url(tmp_path), RealClock())
    assert isinstance(given, PostgresStore)
    assert given.now_us() == VirtualClock().now_us()
    assert not left.judged_by_given_clock
    assert given.judged_by_given_clock


# ---- hints

UNHELD = {"input": accept("w-1"), "output": step("m-1", send()), "soon": step("m-1", send(after_us=500_000))}
HELD = {
    "input": accept("w-1", claimed=True),
    "output": step("m-1", send(claimed=True)),
    "nothing": step("m-1"),
    "later": step("m-1", timer(after_seconds=60)),
}


def wakes(folder: Path, unit: Unit, within_seconds: float, pooler: str = "", *, same: bool = False) -> bool:
    """Tell whether somebody who waits for work is woken by a commit, of another process or its own."""

    async def body() -> bool:
        url = postgres_url(folder) + pooler
        async with opened(folder, url=url) as store, opened(folder, url=url) as other:
            worker = await store.register_worker("first", LEASE_US)
            waiting = asyncio.create_task((store if same else other).wait_for_work(3_600))
            await asyncio.sleep(0)  # it begins
            await store.commit(worker, [unit])
            done, _ = await asyncio.wait({waiting}, timeout=within_seconds)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            return bool(done)

    return asyncio.run(body())


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("unit", UNHELD.values(), ids=UNHELD.keys())
def test_work_that_nobody_holds_wakes_who_waits(unit: Unit, same: bool, tmp_path: Path) -> None:
    assert wakes(tmp_path, unit, within_seconds=PATIENCE_SECONDS, same=same)


def test_the_inputs_of_an_instance_that_is_resumed_wake_who_waits(tmp_path: Path) -> None:
    async def body() -> bool:
        async with opened(tmp_path) as store:
            await store.commit(0, [step("m-1", status="suspended"), accept("w-1")])
            await store.wait_for_work(3_600)  # the hint of that commit
            waiting = asyncio.create_task(store.wait_for_work(3_600))
            await asyncio.sleep(0)
            await store.commit(0, [Unit(ORDERS, "o-1", expected_version=2, status="running")])
            done, _ = await asyncio.wait({waiting}, timeout=PATIENCE_SECONDS)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            return bool(done)

    assert asyncio.run(body())


@pytest.mark.parametrize("unit", HELD.values(), ids=HELD.keys())
def test_work_in_good_hands_or_due_later_wakes_nobody(unit: Unit, tmp_path: Path) -> None:
    assert not wakes(tmp_path, unit, within_seconds=0.1)


def test_who_listens_hears_of_work_again_after_its_session_was_ended(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, opened(tmp_path) as other, other_session(tmp_path) as operator:
            presence = inside(store).presence
            assert presence is not None
            assert presence.session is not None
            lost = presence.session.pid
            await operator.execute("SELECT pg_terminate_backend($1)", lost)
            await until(lambda: presence.session is not None and presence.session.pid != lost)
            await store.wait_for_work(60)  # coming back is a hint by itself: something may have been missed
            waiting = asyncio.create_task(store.wait_for_work(3_600))
            await other.commit(0, [accept("w-1")])
            await waiting

    run(body)


def test_behind_a_pooler_nobody_listens(tmp_path: Path) -> None:
    assert not wakes(tmp_path, UNHELD["input"], within_seconds=0.1, pooler="&pooler=transaction")
    assert wakes(tmp_path, UNHELD["output"], within_seconds=PATIENCE_SECONDS, pooler="&pooler=transaction", same=True)


# ---- a pooler in transaction mode


def test_behind_a_pooler_everything_is_as_the_memory_store_says(tmp_path: Path) -> None:
    async def body() -> None:
        clock = VirtualClock()
        memory, pooler = MemoryStore(clock), Pooler(postgres_url(tmp_path), size=2)
        await memory.open()
        straight = postgres_url(tmp_path) + "&pooler=transaction"
        async with serving(pooler, straight) as url, opened(tmp_path, clock, url=url) as store:
            assert await compare(3, 25, memory, renumbered(store), clock) > 20
            assert pooler.transactions > 100
            async with opened(tmp_path, clock, url=url) as other:
                units = [[step("m-1", on=f"p-{n}")] for n in range(20)]
                await asyncio.gather(*((store, other)[n % 2].commit(0, unit) for n, unit in enumerate(units)))
                assert [one is not None for one in await other.load([Ref(ORDERS, "p-7")])] == [True]

    run(body)


def test_nothing_is_left_behind_in_the_sessions_of_a_pooler(tmp_path: Path) -> None:
    async def body() -> None:
        pooler = Pooler(postgres_url(tmp_path), size=1)
        straight = postgres_url(tmp_path) + "&pooler=transaction"
        async with serving(pooler, straight) as url, opened(tmp_path, url=url) as store:
            await store.register_worker("first", LEASE_US)
            await store.commit(0, [step("m-1", send())])
            left = ("SELECT count(*) FROM pg_prepared_statements", "SELECT count(*) FROM pg_listening_channels()")
            async with inside(store).pool.session() as session:
                assert [await session.value(query) for query in left] == [0, 0]
                assert await session.value("SHOW lock_timeout") == "0"
                locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
                assert await session.value(locks) == 0

    run(body)
