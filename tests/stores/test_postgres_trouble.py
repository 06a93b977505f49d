"""A server in trouble with workers on it: they never end for it, they wait and go on."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from mainspring import Mainspring
from mainspring.stores.postgres import session
from tests.engine.conftest import until
from tests.engine.jobs import Done, Start, Work, job
from tests.postgres.server import Server, Unavailable, own_schema
from tests.stores.postgres_support import other_session, run

WORKERS = 4
JOBS = 40


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server that a test may end and start again, and change as it likes."""
    try:
        server = Server(settings={"fsync": "off"})
        server.start()
    except Unavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
    yield server
    server.remove()


class Team:
    """Some workers on one database, and a client that gives them work."""

    def __init__(self, apps: list[Mainspring], client: Mainspring, done: Counter[str]) -> None:
        self._apps = apps
        self._client = client
        self._done = done
        self._asked = 0

    async def give(self) -> None:
        """Give them jobs, in the inbox or in the outbox, whoever is there to take them."""
        self._asked += 1
        await self._client.send_many([Start(f"j-{self._asked}-{n}") for n in range(JOBS)])

    async def finish(self) -> None:
        """Wait until each job is done, and see that every worker still works."""
        await until(lambda: len(self._done) == JOBS * self._asked, turns=15_000)
        await until(self._quiet, turns=15_000)
        assert (await self._client.stats()).instances == {"completed": JOBS * self._asked}
        await until(self._all_there, turns=15_000)

    async def _quiet(self) -> bool:
        stats = await self._client.stats()
        return stats.outbox == stats.inbox == 0

    async def _all_there(self) -> bool:
        return (await self._client.stats()).workers == WORKERS


@asynccontextmanager
async def team(url: str, client_url: str) -> AsyncGenerator[Team]:
    done: Counter[str] = Counter()

    async def work(command: Work) -> Done:
        await asyncio.sleep(0.005)  # the work itself
        done[command.id] += 1
        return Done(command.id, command.part)

    async with AsyncExitStack() as stack:
        apps = [await stack.enter_async_context(job(Mainspring(url), work)) for _ in range(WORKERS)]
        client = job(Mainspring(client_url), work)
        await client.start(work=False)
        stack.push_async_callback(client.stop)
        yield Team(apps, client, done)


CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mainspring' AND usename = $1"


def test_workers_without_a_connection_wait_for_one(
    own_server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Four workers that want up to six connections each: for a while they have five in all, and then ten."""

    async def body() -> None:
        url = own_schema(own_server.url, tmp_path)
        async with other_session(tmp_path, own_server.url) as other:
            await other.execute("CREATE ROLE poor LOGIN SUPERUSER")
            async with team(url.replace("postgres@", "poor@"), url) as workers:
                await workers.give()
                # A superuser has no limit; from now on they have one, and all have to come back at once.
                await other.execute("ALTER ROLE poor NOSUPERUSER CONNECTION LIMIT 5")
                await other.execute(f"GRANT ALL ON SCHEMA {_schema(url)} TO poor")
                for kind in ("TABLES", "SEQUENCES"):
                    await other.execute(f"GRANT ALL ON ALL {kind} IN SCHEMA {_schema(url)} TO poor")
                await other.execute(CUT, "poor")
                await workers.give()
                await until(lambda: "it has no connection left" in caplog.text, turns=15_000)
                await other.execute("ALTER ROLE poor CONNECTION LIMIT 10")
                await workers.finish()

    run(body)


def _schema(url: str) -> str:
    return url.partition("schema=")[2]


def test_workers_whose_statements_take_too_long_try_again(
    own_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(session.SETTINGS, "statement_timeout", "50ms")

    async def body() -> None:
        url = own_schema(own_server.url, tmp_path)
        async with team(url, url) as workers, other_session(tmp_path, own_server.url) as other:
            await workers.give()
            async with other.transaction():
                await other.execute(f"LOCK TABLE {_schema(url)}.outbox, {_schema(url)}.events")
                await asyncio.sleep(0.5)  # a while in which nothing can be done
            await workers.give()
            await workers.finish()

    run(body)


@pytest.mark.parametrize("kill", [True, False], ids=["crash", "stop"])
def test_workers_go_on_after_a_restart_of_the_server(kill: bool, own_server: Server, tmp_path: Path) -> None:
    async def body() -> None:
        url = own_schema(own_server.url, tmp_path)
        async with team(url, url) as workers:
            await workers.give()
            await asyncio.to_thread(own_server.stop, kill=kill)
            await asyncio.sleep(0.3)  # some of them try in vain
            await asyncio.to_thread(own_server.start)
            await workers.finish()

    run(body)
