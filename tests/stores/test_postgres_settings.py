"""What a server or a pooler sets for its sessions harms no worker, and keeps nobody waiting."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from mainspring.errors import SettingError, StoreError, StoreReadOnlyError, StoreUnreachableError
from mainspring.stores import open_store
from mainspring.stores.postgres import PostgresStore
from mainspring.stores.postgres import session as session_module
from mainspring.stores.postgres.session import SETTINGS
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract.rig import order, step
from tests.stores.postgres_support import inside, opened, other_session, sql
from tests.support.postgres.server import Server, Unavailable, own_schema, postgres_url
from tests.support.running import run
from tests.support.waiting import until

LEASE_US = 30_000_000
IDLE_SECONDS = 0.5


@pytest.fixture(scope="module")
def impatient_server() -> Iterator[Server]:
    """A server that ends idle sessions."""
    try:
        server = Server(settings={"fsync": "off", "idle_session_timeout": f"{IDLE_SECONDS * 1_000:.0f}ms"})
        server.start()
    except Unavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
    yield server
    server.remove()


def test_a_worker_with_nothing_to_do_keeps_the_connection_that_says_that_it_lives(
    impatient_server: Server, tmp_path: Path
) -> None:
    async def body() -> None:
        async with opened(tmp_path, url=own_schema(impatient_server.url, tmp_path)) as store:
            await store.register_worker("idle", LEASE_US)
            presence = inside(store).presence
            assert presence is not None
            assert presence.session is not None
            before = presence.session.pid
            async with other_session(tmp_path, impatient_server.url) as later:
                await until(later.is_closed)
            await store.stats()
            assert (presence.session.closed, presence.session.pid) == (False, before)

    run(body)


def test_a_server_that_does_not_know_a_setting_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SETTINGS, "idle_fortnight_timeout", "0")

    async def body() -> None:
        with pytest.raises(StoreError, match=r"idle_fortnight_timeout.*Use PostgreSQL 14 or newer"):
            await PostgresStore(postgres_url(tmp_path)).open()

    run(body)


def test_behind_a_pooler_an_answer_that_does_not_come_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No timeout of ours is set in its sessions: the client gives up, and does not ask for the same again."""
    asked, rows = list[str](), session_module.Session.rows

    async def counted(session: session_module.Session, statement: str, *values: Any) -> Any:
        asked.append(statement)
        return await rows(session, statement, *values)

    async def body() -> None:
        async with opened(tmp_path) as patient:
            await patient.commit(0, [step("m-1")])
            monkeypatch.setattr(session_module, "ANSWER_SECONDS", 2.0)
            store = PostgresStore(f"{postgres_url(tmp_path)}&pooler=transaction", VirtualClock())
            await store.open()
            async with other_session(tmp_path) as other, other.transaction():
                await other.execute(sql(tmp_path, "LOCK TABLE mainspring.instances"))
                monkeypatch.setattr(session_module.Session, "rows", counted)
                with pytest.raises(StoreUnreachableError):
                    await store.load([order()])
                assert len(asked) == 1
            await store.close()
            (loaded,) = await patient.load([order()])
            assert loaded is not None

    run(body)


def test_a_standby_or_a_reader_is_told_of_the_primary_server(impatient_server: Server, tmp_path: Path) -> None:
    async def body() -> None:
        async with other_session(tmp_path, f"{impatient_server.url}?idle_session_timeout=0") as other:
            await other.execute("CREATE ROLE reader LOGIN SUPERUSER")
            await other.execute("ALTER ROLE reader SET default_transaction_read_only = on")
        url = own_schema(impatient_server.url.replace("postgres@", "reader@"), tmp_path)
        with pytest.raises(StoreReadOnlyError, match="Name the primary server in the URL, not a standby"):
            await PostgresStore(url).open()

    run(body)


def test_several_hosts_with_ports_may_be_named() -> None:
    url = "postgresql://shop@db-1:5432,db-2:5433,[::1]:5434/shop?target_session_attrs=primary"
    assert str(open_store(url, VirtualClock())) == "postgresql://db-1:5432,db-2:5433,[::1]:5434/shop?schema=mainspring"
    with pytest.raises(SettingError, match="cannot be read"):
        open_store("postgresql://shop@db-1:5432,db-2:none/shop", VirtualClock())


def test_connections_of_a_busy_moment_are_given_back_to_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            pool = inside(store).pool
            async with AsyncExitStack() as busy:
                sessions = [await busy.enter_async_context(pool.session()) for _ in range(pool.size)]
            await store.stats()
            assert not any(session.closed for session in sessions), "they were used just now"
            monkeypatch.setattr(session_module, "IDLE_BEFORE_CLOSED_SECONDS", -1.0)
            for _ in sessions:
                await store.stats()
            assert sum(not session.closed for session in sessions) == 0

    run(body)
