"""The doctor finds what is wrong with a real server, and nothing on one that is well."""

import asyncio
import socket
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
import pytest

from mainspring.port.examination import Examination
from mainspring.stores.postgres import PostgresStore, schema, session, symptoms
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.examination import Examiner
from mainspring.testing.store_contract.rig import accept, send, step
from tests.edges.cli.conftest import Run
from tests.support.postgres.proxy import Cable, Pooler, serving
from tests.support.postgres.server import Server, Unavailable
from tests.support.running import run

LEASE_US = 60_000_000
HEALTHY = {"autovacuum": "on", "max_prepared_transactions": "2"}
SICK = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "track_counts": "off",
    "synchronous_standby_names": "gone",
}


def started(settings: dict[str, str]) -> Generator[Server]:
    try:
        server = Server(settings=settings)
        server.start()
    except Unavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
    yield server
    server.remove()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a disk that is busy with other tests delays is no finding: a notification is committed first."""
    monkeypatch.setattr("mainspring.stores.postgres.examination.NOTIFY_SECONDS", 60.0)


@pytest.fixture(scope="module")
def server() -> Generator[Server]:
    yield from started(HEALTHY)


@pytest.fixture
def url(server: Server, tmp_path: Path) -> str:
    """A schema of the test's own, with tables in it."""
    url = f"{server.url}?schema=doctor_{blake2b(str(tmp_path).encode(), digest_size=6).hexdigest()}"
    run(lambda: made(url))
    return url


async def made(url: str) -> None:
    async with opened(url):
        pass


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[PostgresStore]:
    store = PostgresStore(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def operator(url: str) -> AsyncGenerator[Any]:
    """A connection past the store, with the test's schema in its path."""
    library: Any = asyncpg
    address = Address(url)
    connection = await library.connect(address.dsn, server_settings={"search_path": address.schema})
    try:
        yield connection
    finally:
        await connection.close()


async def seen(url: str) -> list[str]:
    return told(await PostgresStore(url).examine())


def told(examination: Examination) -> list[str]:
    assert all(finding.fix for finding in examination.findings)
    return [f"{finding.level}: {finding.what}" for finding in examination.findings]


def beginning(findings: list[str], text: str) -> str:
    """The one finding that begins so."""
    (found,) = [finding for finding in findings if finding.startswith(text)]
    return found


# ---- well


def test_a_healthy_server_gives_no_finding(url: str) -> None:
    async def body() -> None:
        async with opened(url) as store:
            await store.register_worker("web-1:7", LEASE_US)
            examination = await store.examine()
            assert (told(examination), examination.ready) == ([], True)
            assert list(examination.facts) == ["PostgreSQL", "clock", "schema", "connections"]

    run(body)


def test_the_command_line_tells_it(url: str, run: Run, folder: Path) -> None:
    (folder / "other.py").write_text(f"from mainspring import Mainspring\napp = Mainspring({url!r})\n")

    well = run("doctor", "--app", "other:app", "--json")

    assert (well.code, well.document["ok"]) == (0, True)
    assert well.document["database"]["PostgreSQL"].startswith("18")
    assert [finding["what"] for finding in well.document["findings"]] == ["No worker runs"]
    assert "PostgreSQL    18" in run("doctor", "--app", "other:app").out


def test_looking_makes_no_tables(server: Server, run: Run, folder: Path) -> None:
    (folder / "new.py").write_text(
        f'from mainspring import Mainspring\napp = Mainspring("{server.url}?schema=nobody")\n'
    )

    ran = run("doctor", "--app", "new:app")

    assert ran.code == 0
    assert "note: There are no tables in the schema nobody yet. The first start makes them." in ran.out

    async def body() -> None:
        async with operator(server.url) as other:
            assert not await other.fetchval("SELECT count(*) FROM pg_namespace WHERE nspname = 'nobody'")

    asyncio.run(body())


# ---- settings


def test_a_server_set_up_to_forget_is_wrong() -> None:
    for server in started(SICK):
        findings = asyncio.run(seen(server.url))

        words = [finding.split(" ")[1] for finding in findings]
        assert words[:5] == ["fsync", "full_page_writes", "autovacuum", "track_counts", "synchronous_standby_names"]
        # Whoever commits there waits for ever; the doctor does not.
        assert findings[5:] == ["note: There are no tables in the schema mainspring yet"]


@pytest.mark.parametrize(
    ("setting", "finding", "ready"),
    [
        ("synchronous_commit = off", "problem: synchronous_commit is off: a crash of the server would lose", False),
        ("default_transaction_read_only = on", "problem: default_transaction_read_only is on", True),
        ("idle_session_timeout = '10min'", "problem: idle_session_timeout is 10 min: it ends the connection", True),
        ("transaction_timeout = '5s'", "note: transaction_timeout is 5000 ms", True),
    ],
)
def test_a_setting_of_the_user_is_found(setting: str, finding: str, ready: bool, url: str) -> None:
    async def body() -> None:
        async with operator(url) as other:
            name = setting.partition(" ")[0]
            await other.execute(f"ALTER ROLE postgres IN DATABASE postgres SET {setting}")
            try:
                examination = await PostgresStore(url).examine()
            finally:
                await other.execute("SET default_transaction_read_only = off")
                await other.execute(f"ALTER ROLE postgres IN DATABASE postgres RESET {name}")
            assert beginning(told(examination), finding)
            assert (len(examination.findings), examination.ready) == (1, ready)

    run(body)


def test_a_standby_is_no_place_for_workers() -> None:
    for server in started({"autovacuum": "on"}):
        run(lambda url=server.url: made(url))
        server.stop()
        (server.data / "standby.signal").touch()  # it becomes one
        server.start()

        examination = asyncio.run(PostgresStore(server.url).examine())

        assert told(examination) == ["problem: This is a standby: it cannot be written"]
        assert not examination.ready


# ---- sessions


def test_a_transaction_that_is_left_open_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symptoms, "IDLE_SECONDS", 0.0)

    async def body() -> None:
        async with operator(url) as other:
            await other.execute("SET application_name = 'report'; BEGIN; UPDATE feed SET base = 0")
            findings = await seen(url)
            pid = other.get_server_pid()
            found = beginning(findings, f"problem: Session {pid} (user postgres, application report) is idle in a tr")
            assert found.endswith("UTC. It holds back vacuum and the feed")
            await other.execute("ROLLBACK")
            assert await seen(url) == []

    run(body)


def test_a_long_transaction_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symptoms, "LONG_SECONDS", 0.0)

    async def body() -> None:
        async with operator(url) as other, operator(url) as watch:
            pid = other.get_server_pid()
            sleeping = asyncio.ensure_future(other.execute("SELECT pg_sleep(60)"))
            while await watch.fetchval("SELECT state FROM pg_stat_activity WHERE pid = $1", pid) != "active":
                pass
            assert beginning(await seen(url), f"note: Session {pid} (user postgres, application unnamed) has a trans")
            await watch.execute("SELECT pg_cancel_backend($1)", pid)
            await asyncio.gather(sleeping, return_exceptions=True)

    run(body)


def test_a_prepared_transaction_that_was_forgotten_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symptoms, "LONG_SECONDS", 0.0)

    async def body() -> None:
        async with operator(url) as other:
            await other.execute("BEGIN")
            await other.execute("UPDATE feed SET base = 0")
            await other.execute("PREPARE TRANSACTION 'left'")
            try:
                assert beginning(await seen(url), "problem: The prepared transaction 'left' of postgres is ")
            finally:
                await other.execute("ROLLBACK PREPARED 'left'")

    run(body)


def test_a_replication_slot_that_nobody_reads_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symptoms, "SLOT_BYTES", 1)

    async def body() -> None:
        async with operator(url) as other:
            await other.execute("SELECT pg_create_physical_replication_slot('left', true)")
            try:
                await other.execute("UPDATE feed SET base = 0")
                found = beginning(await seen(url), "problem: The replication slot 'left' keeps ")
                assert found.endswith("and nothing reads it: the disk fills")
            finally:
                await other.execute("SELECT pg_drop_replication_slot('left')")

    run(body)


def test_a_user_without_connections_left_is_told_so(url: str) -> None:
    """Two users: the doctor does not wait until the server has noticed its going, and each may have one connection."""

    async def body() -> None:
        async with operator(url) as other:
            await other.execute(
                "CREATE ROLE narrow LOGIN CONNECTION LIMIT 1; CREATE ROLE filled LOGIN CONNECTION LIMIT 1"
            )
        findings = await seen(url.replace("postgres@", "narrow@"))
        assert beginning(findings, "note: the way to the server could not be looked at: cannot be reached")
        assert "problem: 1 of 1 connections are taken (the limit of this user)" in findings
        filled = url.replace("postgres@", "filled@")
        async with operator(filled):
            assert beginning(await seen(filled), "problem: ").endswith("cannot be reached (it has no connection left)")

    run(body)


def test_workers_that_want_more_than_there_is_are_noted(url: str) -> None:
    async def body() -> None:
        async with opened(f"{url}&connections=97") as store:
            await store.register_worker("web-1:7", LEASE_US)
            assert told(await store.examine()) == [
                "note: 1 workers may take 98 connections, and max_connections allows 97"
            ]

    run(body)


# ---- tables


def test_dead_rows_that_nobody_removes_are_found(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symptoms, "DEAD_ROWS", 1_000)

    async def body() -> None:
        async with operator(url) as other:
            await other.execute("ALTER TABLE results SET (autovacuum_enabled = off)")
            await other.execute(
                "INSERT INTO results SELECT int4send(n), 0, 1, 'k', 't', '' FROM generate_series(1, 1000) AS n"
            )
            await other.execute("DELETE FROM results")
        # What a session did is counted at the latest when it has ended; the server does not wait for that.
        while len(findings := await seen(url)) < 2:
            pass
        assert findings == [
            "problem: autovacuum is turned off for results",
            "problem: results has 1,000 dead rows beside 0 live ones, never cleaned",
        ]

    run(body)


def test_large_indexes_of_an_empty_table_are_found(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symptoms, "INDEX_BYTES", symptoms.MEGABYTE)

    async def body() -> None:
        async with operator(url) as other:
            await other.execute(
                "INSERT INTO outbox SELECT n, 1, 0, 0, 7, 0, 'send', 'x' FROM generate_series(1, 50000) n"
            )
            await other.execute("DELETE FROM outbox")
            await other.execute("VACUUM outbox")
        assert beginning(await seen(url), "note: The indexes of outbox have 1 MB, its rows 0 MB")

    run(body)


def test_tables_of_another_version_are_not_touched(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        known = len(schema.migrations())
        async with operator(url) as other:
            await other.execute("INSERT INTO schema_migrations VALUES ($1, 0, 'newer')", known + 1)
            newer = await PostgresStore(url).examine()
            assert told(newer) == [
                f"problem: The tables have version {known + 1}, and this release knows versions up to {known}"
            ]
            monkeypatch.setattr("mainspring.stores.postgres.examination.migrations", lambda: [None] * (known + 2))
            older = await PostgresStore(url).examine()
            assert told(older) == [
                f"note: The tables have version {known + 1}, and this release brings version {known + 2}"
            ]
            assert not newer.ready
            assert not older.ready

    run(body)


def test_tables_that_were_moved_from_a_server_ahead_are_noted(url: str) -> None:
    async def body() -> None:
        async with opened(url) as store:
            await store.commit(0, [step("m-1")])
        async with operator(url) as other:
            await other.execute("UPDATE events SET position = position + (1::bigint << 50)")
        examination = await PostgresStore(url).examine()
        assert (len(examination.findings), examination.ready) == (1, False)
        assert beginning(told(examination), "note: The tables come from another server")
        await made(url)
        assert await seen(url) == []

    run(body)


def test_a_user_who_may_too_little_is_told_so(url: str) -> None:
    async def body() -> None:
        async with operator(url) as other:
            await other.execute("CREATE ROLE stranger LOGIN")
        stranger = url.replace("postgres@", "stranger@")
        assert beginning(await seen(stranger), "problem: This user may not read and write")
        assert beginning(await seen(stranger + "_2"), "problem: There are no tables in the schema").endswith(
            "and this user may not make them"
        )

    run(body)


# ---- work


def test_a_worker_that_is_gone_is_named(url: str) -> None:
    async def body() -> None:
        async with opened(url) as gone:
            await gone.register_worker("web-1:7", LEASE_US)
        what = "The worker web-1:7 has lost its connection, and no worker has taken over what it held"
        assert await seen(url) == [f"problem: {what}"]
        async with opened(url) as alive:
            await alive.register_worker("web-2:8", LEASE_US)
            assert await seen(url) == [f"note: {what}"]

    run(body)


def test_a_worker_out_of_its_lease_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symptoms, "LEASE_GRACE_SECONDS", 0.0)

    async def body() -> None:
        async with opened(url) as store:
            await store.register_worker("web-1:7", 1)
            (found,) = await seen(url)
            assert found.startswith("problem: The worker web-1:7 let its lease end ")
            assert found.endswith(" ago, and no worker has taken over what it held")

    run(body)


def test_messages_that_nobody_takes_are_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symptoms, "LATE_SECONDS", 0)

    async def body() -> None:
        async with opened(url) as store:
            await store.commit(0, [step("m-1", send("ChargeCard"), send("Ship")), accept("m-2", on="o-2")])
        async with operator(url) as other:
            await other.execute("UPDATE outbox SET owner = 0 WHERE destination = 'Ship'")
        findings = await seen(url)
        assert beginning(findings, "problem: Nothing takes Orders (Go): 1 waiting, the oldest for ")
        assert beginning(findings, "problem: Nothing takes ChargeCard: 1 waiting, the oldest for ")
        assert "problem: 1 rows of outbox are damaged and were set aside" in findings

    run(body)


# ---- the way to the server


def test_a_clock_that_is_wrong_is_found(url: str) -> None:
    async def body() -> None:
        examiner = Examiner(Address(url), time_ns=lambda: time.time_ns() + 90 * 10**9)
        assert told(await examiner.examine()) == ["problem: This machine's clock is 90 s ahead of the server's"]

    run(body)


def test_a_pooler_that_the_url_does_not_name_is_found(url: str) -> None:
    async def body() -> None:
        async with serving(Pooler(url, size=2), url) as through:
            examination = await PostgresStore(through).examine()
            assert told(examination) == [
                "problem: A pooler in transaction mode stands before the server, and the URL does not say so"
            ]
            assert not examination.ready
            assert await seen(f"{through}&pooler=transaction") == []
        assert await seen(f"{url}&pooler=transaction") == [
            "note: The URL says pooler=transaction, but no pooler was noticed"
        ]

    run(body)


def test_a_table_that_is_locked_keeps_nobody_waiting(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Impatient(Examiner):
        # Only from here on: on a busy machine an answer to any other question may take longer than this.
        async def _look_at_tables(self, session: session.Session) -> None:
            monkeypatch.setattr("mainspring.stores.postgres.examination.STATEMENT_SECONDS", 0.1)
            await super()._look_at_tables(session)

    async def body() -> None:
        async with operator(url) as other:
            await other.execute("BEGIN; LOCK TABLE workers")
            findings = told(await Impatient(Address(url)).examine())
            assert beginning(findings, "note: workers could not be looked at: canceling statement due to ")

    run(body)


def test_a_server_that_does_not_answer_ends_the_examination(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "CONNECT_SECONDS", 0.1)

    async def body() -> None:
        # The system lets everybody in, and nobody says a word to them.
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            examination = await PostgresStore(f"postgresql://postgres@127.0.0.1:{port}/shop").examine()
        assert beginning(told(examination), "problem: postgresql://127.0.0.1").endswith(
            "cannot be reached (TimeoutError)"
        )
        assert not examination.ready

    run(body)


def test_a_server_that_goes_away_meanwhile_ends_the_examination(url: str) -> None:
    async def body() -> None:
        cable = Cable(url)
        cable.cut_once("ROLLBACK", "before")
        async with serving(cable, url) as through:
            examination = await PostgresStore(through).examine()
            assert "cannot be reached (" in beginning(told(examination), "problem: postgresql://127.0.0.1")
            assert not examination.ready

    run(body)
