"""Databases of earlier commits, opened by the present one: nothing is lost, everything owed is carried out once."""

import asyncio
import signal
import subprocess
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any

import apsw
import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.cli.doctor import queue_findings
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.runtime import SystemClock
from mainspring.port.examination import Examined
from mainspring.stores import open_store
from mainspring.stores.postgres import schema as postgres_schema
from mainspring.stores.sqlite import schema as sqlite_schema
from mainspring.testing import replay_histories, save_histories
from tests.proof.crash.files import read_lines
from tests.proof.golden.golden_app import Hands, made, shop
from tests.proof.golden.judge import differences, faults, prefixes
from tests.proof.golden.operator import mend, rest
from tests.proof.golden.orders import Place
from tests.proof.golden.reading import read
from tests.proof.golden.restore import expected, kept, restored
from tests.proof.golden.revisions import start
from tests.stores import test_postgres_schema, test_sqlite_schema
from tests.support.postgres.server import postgres_url
from tests.support.running import run

GOLDEN = kept()
OLDEST = [("sqlite", 1), ("postgres", 1)]
NEW = 3
START_SECONDS = 60
every_golden = pytest.mark.parametrize(("store", "version"), GOLDEN)
the_oldest = pytest.mark.parametrize(("store", "version"), OLDEST)


@pytest.mark.parametrize(
    ("store", "newest"), [("sqlite", sqlite_schema.newest_known()), ("postgres", postgres_schema.newest_known())]
)
def test_every_schema_before_the_present_one_has_a_golden_database(store: str, newest: int) -> None:
    missing = set(range(1, newest)) - {version for name, version in GOLDEN if name == store}

    assert not missing, "run `python -m tests.proof.golden.write REVISION` for the last commit with that schema"


@every_golden
def test_an_old_database_gets_the_schema_of_a_new_one_and_is_read_as_it_was_written(
    store: str, version: int, tmp_path: Path
) -> None:
    async def body() -> None:
        url = await restored(store, version, tmp_path)
        app = shop(url, Hands(tmp_path / "effects"))
        await app.start(work=False)
        found = await read(app)
        await app.stop()
        described, fresh = await schema_of(url)
        assert described == fresh
        assert differences(expected(store, version)["instances"], found) == []

    run(body)


async def schema_of(url: str) -> tuple[str, str]:
    """Return the schema that a database has, and that of a new one."""
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        return sqlite_schema.described(connection), test_sqlite_schema.KEPT.read_text()
    library: Any = asyncpg
    connection = await library.connect(url)
    try:
        rows = await connection.fetch(test_postgres_schema.DESCRIBED, "mainspring")
    finally:
        await connection.close()
    return "\n\n".join(row[0] for row in rows) + "\n", test_postgres_schema.KEPT.read_text()


async def new_work(app: Mainspring, name: str) -> list[tuple[str, str]]:
    """Place some orders, and return what we were told."""
    ids = [f"{name}-{n}" for n in range(NEW)]
    await app.send_many([Place(id) for id in ids], ids=[f"{id}-place" for id in ids])
    return [(f"Order/{id}", f"{id}-place") for id in ids]


@every_golden
def test_what_was_owed_is_carried_out_once_and_new_work_goes_on(store: str, version: int, tmp_path: Path) -> None:
    async def body() -> None:
        url, effects, was = await restored(store, version, tmp_path), tmp_path / "effects", expected(store, version)
        app = shop(url, Hands(effects))
        await app.start()
        await mend(app)
        told = await new_work(app, "new")
        await rest(app)
        found, stats, now = await read(app), await app.stats(), moment(internals_of(app).engine.store.now_us())
        findings = queue_findings(stats, now)
        # What earlier commits and this one decided, whatever else happened to it, would be decided again.
        assert await save_histories(app, tmp_path / "histories.json") == len(found)
        letters = [(letter.message_id, letter.reason) for letter in await app.dead_letters()]
        await app.stop()

        assert replay_histories(app, tmp_path / "histories.json") > len(found)
        calls = [line["call"] for line in read_lines(effects) if "call" in line]
        assert len(calls) == len(set(calls))
        assert faults(found, [*was["effects"], *made(effects)], told) == []
        assert prefixes(was["instances"], found) == []
        assert letters == []
        assert [finding for finding in findings if finding.level == "problem"] == []
        assert await problems(url) == await problems(await a_new_one(store, tmp_path))

    run(body)


async def problems(url: str) -> list[str]:
    """Return what the store itself has to complain of."""
    opened = open_store(url, SystemClock())
    assert isinstance(opened, Examined)
    return [finding.what for finding in (await opened.examine()).findings if finding.level == "problem"]


async def a_new_one(store: str, folder: Path) -> str:
    """Make a new database where the golden one is: what is wrong with the server is wrong for both."""
    url = postgres_url(folder) if store == "postgres" else f"sqlite:///{folder / 'new.db'}"
    opened = open_store(url, SystemClock())
    await opened.open()
    await opened.close()
    return url


def working(url: str, effects: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start a worker of today."""
    return start(None, "tests.proof.golden.worker", url, str(effects), *options, stdout=subprocess.PIPE)


def said(worker: subprocess.Popen[bytes]) -> bytes:
    """Return the first line that a worker says, when it does."""
    with worker.stdout or nullcontext(BytesIO()) as stream:
        return stream.readline()


@the_oldest
def test_workers_and_clients_that_open_an_old_database_at_once_lose_and_double_nothing(
    store: str, version: int, tmp_path: Path
) -> None:
    async def body() -> None:
        url, effects, was = await restored(store, version, tmp_path), tmp_path / "effects", expected(store, version)
        effects.touch()
        workers = [working(url, effects) for _ in range(2)]
        client = shop(url, Hands(effects))
        try:
            await client.start(work=False)
            told = [*await new_work(client, "early")]
            await mend(client)
            told += await new_work(client, "late")
            await rest(client)
            found = await read(client)
            await client.stop()
        finally:
            # The other one may have done it all before this one has even started.
            words = [await asyncio.to_thread(said, worker) for worker in workers]
            for worker in workers:
                worker.send_signal(signal.SIGTERM)
            codes = [await asyncio.to_thread(worker.wait, START_SECONDS) for worker in workers]

        assert (words, codes) == ([b"working\n"] * 2, [0, 0])
        assert faults(found, [*was["effects"], *made(effects)], told) == []
        assert prefixes(was["instances"], found) == []

    run(body)


@pytest.mark.parametrize(
    ("store", "dies_at"),
    [
        ("sqlite", 3),
        ("postgres", 9),
        pytest.param("sqlite", 16, marks=pytest.mark.soak),
        pytest.param("postgres", 5, marks=pytest.mark.soak),
    ],
)
def test_a_worker_that_is_killed_amid_a_migration_leaves_nothing_half_done(
    store: str, dies_at: int, tmp_path: Path
) -> None:
    async def body() -> None:
        url, effects, was = await restored(store, 1, tmp_path), tmp_path / "effects", expected(store, 1)
        with working(url, effects, "--dies-at", str(dies_at)) as killed:
            assert await asyncio.to_thread(killed.wait, START_SECONDS) == -signal.SIGKILL

        app = shop(url, Hands(effects))
        await app.start(work=False)
        found = await read(app)
        await app.stop()
        described, fresh = await schema_of(url)
        assert described == fresh
        assert differences(was["instances"], found) == []
        assert made(effects) == []

    run(body)
