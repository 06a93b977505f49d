"""A worker that meets a newer schema says so, gives back what it holds, and stops."""

import asyncio
from typing import Any

import apsw
import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.errors import NewerSchemaError
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.statements import within
from tests.engine.jobs import Done, Job, Start, Work, job
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

ON_DISK = pytest.mark.parametrize("make_app", ["sqlite", "postgres"], indirect=True)
NEWER = "INSERT INTO mainspring.schema_migrations (version, name, applied_us) VALUES (99, 'later', 0)"
OLDER = "DELETE FROM mainspring.schema_migrations WHERE version = 99"


@pytest.fixture(autouse=True)
def quick_heart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.engine.engine.HEARTBEAT_SECONDS", 0.02)


async def changed(app: Mainspring, statement: str) -> list[Any]:
    """Do something to the database, as another release would."""
    if internals_of(app).url.startswith("sqlite"):
        connection = apsw.Connection(internals_of(app).url.removeprefix("sqlite:///"))
        connection.set_busy_timeout(30_000)  # a worker's quick heart writes all the time
        try:
            return list(connection.execute(statement.replace("mainspring.", "")))
        finally:
            connection.close()
    address = Address(internals_of(app).url)
    library: Any = asyncpg
    connection = await library.connect(address.dsn)
    try:
        return [tuple(row) for row in await connection.fetch(within(address.schema, statement))]
    finally:
        await connection.close()


@ON_DISK
def test_a_worker_that_meets_a_newer_schema_drains_gives_back_and_ends(make_app: MakeApp) -> None:
    done: list[int] = []
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def work(command: Work) -> Done:
        begun.set()
        await go_on.wait()
        done.append(command.part)
        return Done(command.id, command.part)

    async def main() -> None:
        app = job(make_app(), work, concurrency=1)
        await app.start()
        engine = internals_of(app).engine
        await app.send(Start("j-1", times=3))
        await begun.wait()
        await changed(app, NEWER)
        ended = asyncio.create_task(app.ended())
        await until(lambda: all(runner.closing for runner in engine.dispatcher.runners))
        with pytest.raises(NewerSchemaError, match="schema version 99"):
            await app.send(Start("j-2"))
        assert not ended.done()  # what runs may finish

        go_on.set()
        with pytest.raises(NewerSchemaError, match="Upgrade mainspring"):
            await ended
        assert done == [0]
        assert await changed(app, "SELECT count(*) FROM mainspring.workers") == [(0,)]
        assert await changed(app, "SELECT count(*) FROM mainspring.outbox WHERE owner IS NOT NULL") == [(0,)]
        await app.stop()

        await changed(app, OLDER)
        async with job(make_app(), work, concurrency=1) as other:
            await other.instance(Job, "j-1").result()
        assert sorted(done) == [0, 1, 2]

    run(main)


@ON_DISK
def test_a_program_that_holds_the_app_open_is_told_and_goes_on(make_app: MakeApp) -> None:
    async def work(command: Work) -> Done:
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work) as app:
            await app.send(Start("j-1"))
            await changed(app, NEWER)
            with pytest.raises(NewerSchemaError):
                await app.ended()
            with pytest.raises(NewerSchemaError):
                await app.send(Start("j-2"))
            with pytest.raises(NewerSchemaError):
                await app.instance(Job, "j-1").result()

    run(main)


def test_an_app_that_is_stopped_has_ended_without_an_error(make_app: MakeApp) -> None:
    async def work(command: Work) -> Done:
        return Done(command.id, command.part)

    async def main() -> None:
        app = job(make_app(), work)
        await app.start()
        ended = asyncio.create_task(app.ended())
        await asyncio.sleep(0)
        assert not ended.done()
        await app.stop()
        await ended
        await app.ended()

    run(main)
