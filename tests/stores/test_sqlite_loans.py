"""Loans on SQLite: everybody waits for one, so they come one at a time, and leave the writer as it was."""

import asyncio
from pathlib import Path

import pytest

from mainspring.errors import StoreClosedError
from mainspring.port.records import Unit
from tests.stores.sqlite_support import opened

LONG_SECONDS = 120.0


def test_what_others_write_goes_between_two_loans(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            worker = await store.register_worker("w", 30_000_000)
            first = await store.lend(worker, LONG_SECONDS)
            others = [asyncio.ensure_future(store.lend(worker, LONG_SECONDS)) for _ in range(3)]
            await asyncio.sleep(0)
            beat = asyncio.ensure_future(store.heartbeat(worker))
            await asyncio.sleep(0)
            await first.roll_back()
            assert await asyncio.wait_for(beat, LONG_SECONDS / 2)
            for other in others:
                await (await other).roll_back()

    asyncio.run(body())


def test_who_waits_for_a_loan_hears_that_the_store_was_closed(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            first = await store.lend(0, LONG_SECONDS)
            second = asyncio.ensure_future(store.lend(0, LONG_SECONDS))
            await asyncio.sleep(0)
            closing = asyncio.ensure_future(store.close())
            await asyncio.sleep(0)
            await first.roll_back()
            with pytest.raises(StoreClosedError):
                await asyncio.wait_for(second, LONG_SECONDS / 2)
            await closing

    asyncio.run(body())


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TEMP TABLE events (id)",
        "CREATE TEMP VIEW events AS SELECT 1",
        "CREATE TEMP TRIGGER late AFTER INSERT ON events BEGIN SELECT 1; END",
        "CREATE TRIGGER late AFTER INSERT ON events BEGIN SELECT 1; END",
        "CREATE INDEX slow ON events (time_us)",
        "DROP INDEX outbox_unclaimed",
        "ALTER TABLE events RENAME TO happenings",
        "DROP TABLE events",
        "PRAGMA synchronous = OFF",
    ],
)
def test_a_handler_cannot_change_what_the_engine_writes_to(statement: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            loan = await store.lend(0, LONG_SECONDS)
            with pytest.raises(Exception, match=r"not authorized|prohibited"):
                await loan.connection.execute(statement)
            await loan.roll_back()

    asyncio.run(body())


def test_a_handler_may_change_tables_of_its_own(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            loan = await store.lend(0, LONG_SECONDS)
            for statement in (
                "CREATE TABLE bookings (events integer)",
                "CREATE INDEX booked ON bookings (events)",
                "ALTER TABLE bookings ADD COLUMN seats integer",
                "INSERT INTO bookings (events, seats) VALUES (1, 2)",
                "UPDATE bookings SET events = 3",
                "DROP INDEX booked",
            ):
                await loan.connection.execute(statement)
            await loan.commit(Unit("", ""))

    asyncio.run(body())
