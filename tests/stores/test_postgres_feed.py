"""The feed skips nothing, however transactions are interleaved, and tells each stream in its order."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mainspring.port.records import Committed, Unit
from mainspring.stores.postgres import PostgresStore
from mainspring.stores.postgres.statements import name_of, within
from mainspring.testing.store_contract.rig import ORDERS, order, send, step
from tests.stores.postgres_support import inside, opened, other_session, somebody_waits, sql
from tests.support.running import run

Told = list[tuple[str, int]]


@asynccontextmanager
async def written(store: PostgresStore, *units: Unit) -> AsyncGenerator[None]:
    """Write units in a transaction that stays open until the block ends."""
    connected = inside(store)
    async with connected.transactions.transaction() as transaction:
        outcomes, _ = await connected.batches._apply(transaction, 0, units, set(), 0)  # noqa: SLF001  half a commit
        assert all(isinstance(outcome, Committed) for outcome in outcomes)
        yield


class Reader:
    """A projection: it remembers how far it has read, and never looks back."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._after = 0
        self.told: Told = []

    async def read(self, limit: int = 1_000) -> Told:
        page = await self._store.feed(self._after, limit)
        if page:
            assert page[0][0] > self._after
            self._after = page[-1][0]
        news = [(ref.id, event.version) for _, ref, event in page]
        self.told += news
        return news


def test_what_is_committed_late_is_not_skipped(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            reader = Reader(store)
            async with written(store, step("m-1", on="early")):
                await store.commit(0, [step("m-1", on="late")])
                assert await reader.read() == []
            assert await reader.read() == [("early", 1), ("early", 2), ("late", 1), ("late", 2)]

    run(body)


def test_a_low_position_that_commits_after_a_higher_one_is_told_first(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            reader = Reader(store)
            await store.commit(0, [step("m-1", on="before")])
            async with written(store, step("m-1", on="a")):
                async with written(store, step("m-1", on="b")):
                    await store.commit(0, [step("m-1", on="c")])
                    assert await reader.read() == [("before", 1), ("before", 2)]
                # b and c are committed, a is not: neither may be told.
                assert await reader.read() == []
            assert await reader.read() == [(id, version) for id in "abc" for version in (1, 2)]

    run(body)


def test_a_transaction_that_is_rolled_back_leaves_no_gap_to_wait_for(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            await store.commit(0, [step("m-1")])

            async def fails() -> None:
                async with written(store, step("m-1", on="never")):
                    await store.commit(0, [step("m-1", on="other")])
                    raise LookupError

            with pytest.raises(LookupError):
                await fails()
            assert await Reader(store).read() == [("o-1", 1), ("o-1", 2), ("other", 1), ("other", 2)]

    run(body)


def test_a_long_transaction_elsewhere_makes_the_feed_wait_and_nothing_else(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as elsewhere:
            reader = Reader(store)
            await store.commit(0, [step("m-1")])
            async with elsewhere.transaction():
                await elsewhere.execute("SELECT pg_current_xact_id()")
                await store.commit(0, [step("m-2", after=2), step("m-1", on="o-2")])
                assert await reader.read() == [("o-1", 1), ("o-1", 2)]
                assert len(await store.stream(order(), 0, 10)) == 3
            assert await reader.read() == [("o-1", 3), ("o-2", 1), ("o-2", 2)]

    run(body)


def test_a_long_reader_elsewhere_does_not_hold_the_feed_up(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as elsewhere:
            await elsewhere.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
            await store.commit(0, [step("m-1")])
            assert await Reader(store).read() == [("o-1", 1), ("o-1", 2)]

    run(body)


def test_a_stream_is_told_in_order_although_its_second_committer_began_first(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            # Locks are taken in the order of names.
            before = name_of(ORDERS, "o-1")
            gate = next(id for id in map(str, range(99)) if name_of(ORDERS, id) < before)
            await store.commit(0, [step("m-1", on=gate), step("m-1")])
            async with other.transaction():
                lock = sql(tmp_path, "SELECT 1 FROM mainspring.instances WHERE id = $1 FOR UPDATE")
                await other.execute(lock, gate)
                # It gets its number and waits at the gate, before it locks o-1.
                second = asyncio.create_task(store.commit(0, [step("m-3", after=3), step("m-2", after=2, on=gate)]))
                await somebody_waits(other)
                first = await store.commit(0, [step("m-2", after=2)])
            assert [type(one) for one in [*first, *await second]] == [Committed] * 3
            told = await Reader(store).read()
            assert [version for id, version in told if id == "o-1"] == [1, 2, 3, 4]

    run(body)


def test_streams_keep_their_order_under_a_rush(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as first, opened(tmp_path) as second:
            reader = Reader(first)
            done = asyncio.Event()

            async def steps(id: str, stores: list[PostgresStore]) -> None:
                await stores[0].commit(0, [step("m-0", on=id)])
                for n in range(2, 22):
                    (outcome,) = await stores[n % 2].commit(0, [step(f"m-{n}", on=id, after=n)])
                    assert isinstance(outcome, Committed)

            async def read() -> None:
                while not done.is_set():
                    await reader.read(limit=7)
                    await asyncio.sleep(0)

            reading = asyncio.create_task(read())
            await asyncio.gather(*(steps(f"o-{n}", [first, second]) for n in range(8)))
            done.set()
            await reading
            while await reader.read():
                pass
            assert len(reader.told) == 8 * 22
            for n in range(8):
                assert [version for id, version in reader.told if id == f"o-{n}"] == list(range(1, 23))

    run(body)


def test_a_batch_whose_number_is_older_than_its_streams_last_event_gets_a_new_one(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            await store.commit(0, [step("m-1")])
            # As if somebody with a much higher number had moved the instance while we waited for its lock.
            ahead = "SELECT (pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 3) << 20"
            position = await other.fetchval(ahead)
            await other.execute(sql(tmp_path, "UPDATE mainspring.instances SET position = $1"), position)
            (outcome,) = await store.commit(0, [step("m-2", send(), after=2)])
            assert isinstance(outcome, Committed)
            (_, _, (last, _, _), *_) = await store.feed(0, 10)
            assert last > position

    run(body)


def test_positions_go_on_after_a_move_to_a_server_with_lower_numbers(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            await store.commit(0, [step("m-1")])
            for table in ("events", "instances"):
                update = f"UPDATE mainspring.{table} SET position = position + (1000000::bigint << 20)"  # noqa: S608
                await other.execute(sql(tmp_path, update))
        async with opened(tmp_path) as store:
            reader = Reader(store)
            assert await reader.read() == [("o-1", 1), ("o-1", 2)]
            await store.commit(0, [step("m-2", after=2)])
            assert await reader.read() == [("o-1", 3)]

    run(body)


def test_positions_go_on_when_a_server_with_lower_numbers_takes_over_from_a_running_store(tmp_path: Path) -> None:
    """Workers should be stopped for a restore; one that was not must not write where no reader looks any more."""

    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            await store.commit(0, [step("m-1")])
            for table in ("events", "instances"):
                update = f"UPDATE mainspring.{table} SET position = position + (1000000::bigint << 20)"  # noqa: S608
                await other.execute(sql(tmp_path, update))
            reader = Reader(store)
            await other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mainspring'"
            )
            await store.commit(0, [step("m-2", after=2), step("m-1", on="new")])
            assert await reader.read() == [("o-1", 1), ("o-1", 2), ("o-1", 3), ("new", 1), ("new", 2)]

    run(body)


def test_the_schema_of_a_feed_may_have_any_name() -> None:
    assert within("it's", "SELECT base FROM mainspring.feed") == """SELECT base FROM "it's".feed"""
