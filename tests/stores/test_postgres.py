"""The PostgreSQL store keeps the port's contract, on a real server."""

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest

from mainspring.stores.memory import MemoryStore
from mainspring.stores.postgres import PostgresStore
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract import StoreContract
from tests.stores.postgres_renumbered import renumbered
from tests.stores.postgres_support import opened
from tests.stores.sqlite_model import compare
from tests.support.postgres.schemas import clean_schema
from tests.support.soaking import some_of


class TestPostgresStore(StoreContract):
    @pytest.fixture(autouse=True)
    def schema(self) -> Generator[None]:
        with clean_schema() as url:
            self._url = url
            yield

    def make_store(self, clock: VirtualClock, tmp_path: Path) -> PostgresStore:
        return PostgresStore(self._url, clock)


@pytest.mark.parametrize("seed", some_of(range(8), range(3)))
def test_whatever_happens_the_memory_store_would_have_said_the_same(seed: int, tmp_path: Path) -> None:
    async def body() -> int:
        clock = VirtualClock()
        memory = MemoryStore(clock)
        await memory.open()
        async with opened(tmp_path, clock) as postgres:
            return await compare(seed, 40, memory, renumbered(postgres), clock)

    assert asyncio.run(body()) > 20
