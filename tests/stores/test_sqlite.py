"""The SQLite store keeps the port's contract, on a real file."""

import asyncio
from pathlib import Path

import pytest

from mainspring.stores.memory import MemoryStore
from mainspring.stores.sqlite import SqliteStore
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract import StoreContract
from tests.stores.sqlite_model import compare
from tests.stores.sqlite_support import opened


class TestSqliteStore(StoreContract):
    def make_store(self, clock: VirtualClock, tmp_path: Path) -> SqliteStore:
        return SqliteStore(tmp_path / "mainspring.db", clock)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_the_memory_store_would_have_said_the_same(seed: int, tmp_path: Path) -> None:
    async def body() -> int:
        clock = VirtualClock()
        memory = MemoryStore(clock)
        await memory.open()
        async with opened(tmp_path, clock) as sqlite:
            return await compare(seed, 40, memory, sqlite, clock)

    assert asyncio.run(body()) > 20
