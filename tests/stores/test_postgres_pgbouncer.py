"""Behind a real PgBouncer in transaction mode, where the machine has one: what works, and what is off."""

import asyncio
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mainspring import Mainspring
from mainspring.stores.memory import MemoryStore
from mainspring.stores.postgres import PostgresStore
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract.rig import send, step
from tests.engine.shop import PlaceOrder
from tests.engine.test_stepping import shop
from tests.stores.postgres_renumbered import renumbered
from tests.stores.postgres_support import opened
from tests.stores.sqlite_model import compare
from tests.support.postgres.pgbouncer import pgbouncer
from tests.support.postgres.proxy import through
from tests.support.postgres.server import Unavailable, own_schema, shared_server
from tests.support.running import run

POOLED = "A pooler in transaction mode stands before the server, and the URL does not say so"


@pytest.fixture(scope="module")
def pooler() -> Generator[str]:
    """The URL of the server through a pooler, of which it does not tell."""
    try:
        server = shared_server().url
    except Unavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
    with pgbouncer(urlsplit(server).port) as port:
        yield through(server, port)


@pytest.fixture
def url(pooler: str, tmp_path: Path) -> str:
    return own_schema(f"{pooler}&pooler=transaction", tmp_path)


@pytest.mark.parametrize("seed", range(2))
def test_everything_is_as_the_memory_store_says(seed: int, url: str, tmp_path: Path) -> None:
    async def body() -> None:
        clock = VirtualClock()
        memory = MemoryStore(clock)
        await memory.open()
        async with opened(tmp_path, clock, url=url) as store:
            assert await compare(seed, 40, memory, renumbered(store), clock) > 20

    run(body)


def test_many_commits_at_once_share_a_few_sessions(url: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path, url=url) as one, opened(tmp_path, url=url) as other:
            stores = (one, other)
            units = [[step("m-1", send(), on=f"o-{n}")] for n in range(50)]
            await asyncio.gather(*(stores[n % 2].commit(0, unit) for n, unit in enumerate(units)))
            assert (await one.stats()).outbox == 50

    run(body)


def test_a_dead_worker_is_relieved_by_its_lease_alone(url: str, tmp_path: Path) -> None:
    async def body() -> None:
        clock = VirtualClock()
        async with opened(tmp_path, clock, url=url) as gone:
            worker = await gone.register_worker("gone", 30_000_000)
            await gone.commit(worker, [step("m-1", send(claimed=True))])
        async with opened(tmp_path, clock, url=url) as alive:
            assert await alive.relieve() == 0
            clock.advance(31)
            assert await alive.relieve() == 1

    run(body)


def test_two_workers_carry_orders_through(url: str) -> None:
    async def body() -> None:
        async with shop(Mainspring(url)) as one, shop(Mainspring(url)) as other:
            receipts = [await app.send(PlaceOrder(f"o-{n}", 5)) for n, app in enumerate([one, other] * 5)]
            for receipt in receipts:
                await receipt.result(timeout=timedelta(seconds=60))

    run(body)


def test_the_doctor_knows_it_and_says_what_to_do(url: str, tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path, url=url):
            pass
        silent = await PostgresStore(url.replace("&pooler=transaction", "")).examine()
        said = await PostgresStore(url).examine()
        assert POOLED in [finding.what for finding in silent.findings]
        assert not silent.ready
        assert POOLED not in [finding.what for finding in said.findings]
        assert said.ready

    run(body)
