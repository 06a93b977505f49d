"""What only PostgreSQL can do to a purge: others at the same moment, and tables that came from an older release."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mainspring.port.purges import Purgeable, Purged
from mainspring.stores.postgres import PostgresStore, schema
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.schema import migrations
from mainspring.stores.postgres.session import connect
from mainspring.stores.postgres.statements import statements
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract.rig import ORDERS, order, step
from tests.stores.postgres_support import opened, other_session, sql
from tests.support.postgres.server import postgres_url
from tests.support.running import run

SOME, ALL = 40, 1_000


async def ended(store: PostgresStore, clock: VirtualClock, count: int = 1) -> list[Purgeable]:
    """End so many instances of two events each, and return them as they are found."""
    await store.commit(0, [step("m-1", on=f"o-{n}", status="completed") for n in range(1, count + 1)])
    clock.advance(1)
    return (await store.purgeable(ORDERS, store.now_us(), ALL)).found


def test_two_purges_at_the_same_moment_take_each_instance_once(tmp_path: Path) -> None:
    async def body() -> None:
        clock = VirtualClock()
        async with opened(tmp_path, clock) as one, opened(tmp_path, clock) as other:
            found = await ended(one, clock, SOME)
            purged = await asyncio.gather(*(store.purge(found, ALL) for store in (one, other, one, other)))
            assert sum(done.tombstones for done in purged) == SOME
            assert sum(done.events for done in purged) == 2 * SOME
            assert (await one.purgeable(ORDERS, one.now_us(), ALL)).found == []

    run(body)


def test_a_purge_waits_for_nobody(tmp_path: Path) -> None:
    async def body() -> None:
        clock = VirtualClock()
        async with opened(tmp_path, clock) as store, other_session(tmp_path) as other:
            found = await ended(store, clock, 2)
            async with other.transaction():
                await other.execute(
                    sql(tmp_path, "SELECT 1 FROM mainspring.instances WHERE id = 'o-1' FOR NO KEY UPDATE")
                )
                assert await store.purge(found, ALL) == Purged(1, 2, ())
            assert len(await store.stream(order(), 0, ALL)) == 2
            assert await store.purge(found, ALL) == Purged(1, 2, ())

    run(body)


def test_what_is_purged_while_it_is_loaded_is_a_tombstone(tmp_path: Path) -> None:
    async def body() -> None:
        clock = VirtualClock()
        async with opened(tmp_path, clock) as store:
            found = await ended(store, clock)
            asked: list[str] = []
            ask_store = store._ask  # noqa: SLF001  between two of its statements

            async def ask(query: str, *values: Any) -> Any:
                asked.append(query)
                if asked == ["load_instances", "load_events"]:
                    await store.purge(found, ALL)
                return await ask_store(query, *values)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(store, "_ask", ask)
                (loaded,) = await store.load([order()])
            assert loaded is not None
            assert (loaded.row.purged_us, loaded.events) == (clock.now_us(), [])

    run(body)


def test_no_position_is_given_twice_where_all_events_were_purged_before_a_move_to_another_server(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        clock = VirtualClock()
        async with opened(tmp_path, clock) as store, other_session(tmp_path) as other:
            found = await ended(store, clock)
            last = (await store.feed(0, ALL))[-1][0]
            await store.purge(found, ALL)
            assert await other.fetchval(sql(tmp_path, "SELECT purged FROM mainspring.feed")) == last
            # The other server's transactions have lower numbers than those that made the events.
            ahead = last + (1_000_000 << 20)
            await other.execute(sql(tmp_path, "UPDATE mainspring.feed SET purged = $1"), ahead)
        async with opened(tmp_path, clock) as store:
            await store.commit(0, [step("m-1", on="new")])
            assert [ref.id for _, ref, _ in await store.feed(ahead, ALL)] == ["new", "new"]

    run(body)


def test_instances_that_ended_before_purging_was_known_can_be_purged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = migrations()[:1]

    async def body() -> None:
        clock = VirtualClock()
        with monkeypatch.context() as patch:
            patch.setattr(schema, "migrations", lambda: first)
            address = Address(postgres_url(tmp_path))
            session = await connect(address)
            # That release asked its feed in another way, which is not the point here.
            old = {**statements(address.schema), "feed_is_ahead": "SELECT false"}
            await schema.Schema(session, address, old).migrate()
            await session.close()
        async with other_session(tmp_path) as other:
            for key, status in enumerate(("running", "completed", "suspended", "failed"), 1):
                await other.execute(
                    sql(
                        tmp_path,
                        "INSERT INTO mainspring.instances (key, version, definition_version, created_us, updated_us, "
                        "position, name, workflow, id, status, context) "
                        "VALUES ($1, 0, 1, 0, $1, 0, $2, 'Orders', $3, $4, '')",
                    ),
                    key,
                    str(key).encode(),
                    f"o-{key}",
                    status,
                )
        async with opened(tmp_path, clock) as store:
            found = (await store.purgeable(ORDERS, 100, 10)).found
            assert [(one.id, one.ended_us) for one in found] == [("o-2", 2), ("o-4", 4)]

    run(body)
