"""A newer release migrates while workers of this one go on: nothing is lost, whenever its connection breaks."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.errors import NewerSchemaError, StoreUnreachableError
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.faults import LOST
from mainspring.stores.postgres.schema import Schema, migrations, newest_known
from mainspring.stores.postgres.session import connect
from mainspring.stores.postgres.statements import statements
from mainspring.stores.sql.migrations import Migration
from tests.engine.jobs import Done, Start, Work, job
from tests.stores.postgres_support import other_session, sql
from tests.support.postgres.proxy import Cable, Cut, serving
from tests.support.postgres.server import postgres_url
from tests.support.running import run
from tests.support.waiting import until

# What migrations do: columns in tables that every step writes, a table that is filled from another, an index.
LATER = """
ALTER TABLE mainspring.instances ADD COLUMN later bigint;
ALTER TABLE mainspring.outbox ADD COLUMN later bigint NOT NULL DEFAULT 0;
CREATE TABLE mainspring.later (instance bigint PRIMARY KEY);
INSERT INTO mainspring.later SELECT key FROM mainspring.instances WHERE key > 0;
CREATE INDEX events_later ON mainspring.events (time_us);
"""
JOBS = 40


async def migrate(url: str) -> None:
    """Do what a process of a newer release does first."""
    address = Address(url)
    session = await connect(address)
    try:
        await Schema(session, address, statements(address.schema)).migrate()
    finally:
        session.drop()


async def finished(app: Mainspring, first: int) -> None:
    """Carry some jobs through."""
    receipts = await app.send_many([Start(f"j-{n}", times=2) for n in range(first, first + JOBS)])
    for receipt in receipts:
        await receipt.result(timeout=timedelta(seconds=60))


@pytest.mark.parametrize(("statement", "when"), [("BEGIN", "after"), ("\nALTER", "after"), ("COMMIT", "before")])
def test_workers_go_on_while_a_newer_release_migrates_and_stop_when_they_see_it(
    statement: str, when: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, int]] = []

    async def work(command: Work) -> Done:
        calls.append((command.id, command.part))
        return Done(command.id, command.part)

    async def body() -> None:
        url = postgres_url(tmp_path)
        app = job(Mainspring(url), work)
        await app.start()
        # From now on whoever migrates knows one migration more; the worker knows what it knew.
        more = [*migrations(), Migration(newest_known() + 1, "later", LATER)]
        monkeypatch.setattr("mainspring.stores.postgres.schema.migrations", lambda: more)
        cable = Cable(url)
        busy = asyncio.create_task(finished(app, 0))
        await until(lambda: bool(calls))
        async with serving(cable, url) as breaking:
            cable.cut_once(statement, when)
            with pytest.raises((StoreUnreachableError, *LOST)):
                await migrate(breaking)
            assert cable.cuts
        await migrate(url)
        await busy
        await finished(app, JOBS)
        assert sorted(calls) == sorted((f"j-{n}", part) for n in range(2 * JOBS) for part in range(2))
        async with other_session(tmp_path) as other:
            assert await other.fetchval(sql(tmp_path, "SELECT count(*) FROM mainspring.outbox")) == 0

        await internals_of(app).engine._beat()  # noqa: SLF001  what comes by itself within 10 s
        with pytest.raises(NewerSchemaError):
            await app.ended()
        await app.stop()

    run(body)
