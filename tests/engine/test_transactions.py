"""A handler that writes in the transaction of its result (E8), on the stores that have a database."""

import asyncio
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Context, DoNotRetryError, Mainspring, Retry
from mainspring.app.internals import internals_of
from mainspring.errors import WiringError
from mainspring.port.records import Conflict, OutputKey, Unit
from tests.engine.jobs import QUICK, Done, Start, Work, has_status, job
from tests.support.postgres.server import Unavailable, postgres_url
from tests.support.running import run
from tests.support.waiting import until

BRIEF = timedelta(seconds=10)
PATIENT = Retry(max_attempts=100, first=timedelta(milliseconds=1), cap=timedelta(milliseconds=2))
# Of this run: a server that was running already may have others on it.
NAME = f"bookings_{os.getpid()}"
TABLE = f"CREATE TABLE IF NOT EXISTS {NAME} (id text PRIMARY KEY, part integer NOT NULL)"
INSERT = f"INSERT INTO {NAME} (id, part) VALUES ($1, $2)"  # noqa: S608  its name is ours
SELECT = f"SELECT id, part FROM {NAME} ORDER BY part"  # noqa: S608  as above

MakeDatabaseApp = Callable[[], Mainspring]


@pytest.fixture(params=["sqlite", "postgres"])
def make_database_app(request: pytest.FixtureRequest, tmp_path: Path) -> MakeDatabaseApp:
    url = f"sqlite:///{tmp_path / 'test.db'}" if request.param == "sqlite" else request.getfixturevalue("server_url")
    return lambda: Mainspring(url)


@pytest.fixture
def server_url(tmp_path: Path) -> Iterator[str]:
    try:
        url = postgres_url(tmp_path)
    except Unavailable as reason:
        pytest.skip(str(reason))
    yield url

    async def drop() -> None:
        async with Mainspring(url) as app:
            loan = await internals_of(app).engine.store.lend(0, BRIEF.total_seconds())
            await loan.connection.execute(f"DROP TABLE IF EXISTS {NAME}")
            await loan.commit(Unit("", ""))

    run(drop)


async def bookings(app: Mainspring) -> list[tuple[Any, ...]]:
    """What is committed, read through a loan of our own."""
    loan = await internals_of(app).engine.store.lend(0, BRIEF.total_seconds())
    try:
        await loan.connection.execute(TABLE)
        return [tuple(row) for row in await loan.connection.fetch(SELECT)]
    finally:
        await loan.roll_back()


async def book(command: Work, context: Context) -> Done:
    await context.connection.execute(TABLE)
    await context.connection.execute(INSERT, f"{command.id}/{command.part}", command.part)
    return Done(command.id, command.part)


def test_what_a_handler_writes_is_committed_with_its_result(make_database_app: MakeDatabaseApp) -> None:
    async def main() -> None:
        async with job(make_database_app(), book, transaction=BRIEF) as app:
            await (await app.send(Start("j-1", times=20))).result()
            assert await bookings(app) == [(f"j-1/{part}", part) for part in range(20)]

    run(main)


def test_what_a_handler_wrote_before_it_failed_is_undone(make_database_app: MakeDatabaseApp) -> None:
    attempts: list[int] = []

    async def work(command: Work, context: Context) -> Done:
        attempts.append(context.attempt)
        await context.connection.execute(TABLE)
        await context.connection.execute(INSERT, f"attempt {context.attempt}", context.attempt)
        if context.attempt < 3:
            raise ConnectionError("refused")
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_database_app(), work, transaction=BRIEF, retry=QUICK) as app:
            await (await app.send(Start("j-1"))).result()
            assert await bookings(app) == [("attempt 3", 3)]

    run(main)
    assert attempts == [1, 2, 3]


def test_who_does_not_hold_the_command_commits_nothing(make_database_app: MakeDatabaseApp) -> None:
    async def main() -> None:
        async with job(make_database_app(), book, transaction=BRIEF) as app:
            loan = await internals_of(app).engine.store.lend(
                internals_of(app).engine.committer.worker, BRIEF.total_seconds()
            )
            await loan.connection.execute(TABLE)
            await loan.connection.execute(INSERT, "lost", 0)
            outcome = await loan.commit(Unit("Job", "j-1", settles=(OutputKey(1, 1),)))
            assert outcome == Conflict("lost")
            assert await bookings(app) == []

    run(main)


def test_a_command_that_was_taken_over_meanwhile_is_committed_once(server_url: str) -> None:
    """The first worker is taken for dead while its handler runs; the second one's attempt counts."""
    began, go_on = asyncio.Event(), asyncio.Event()

    async def slow(command: Work, context: Context) -> Done:
        began.set()
        await go_on.wait()
        await context.connection.execute(INSERT, "first", 1)
        return Done(command.id, command.part)

    async def quick(command: Work, context: Context) -> Done:
        await context.connection.execute(INSERT, "second", 2)
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(Mainspring(server_url), slow, transaction=timedelta(seconds=10)) as first:
            loan = await internals_of(first).engine.store.lend(0, BRIEF.total_seconds())
            await loan.connection.execute(TABLE)
            await loan.commit(Unit("", ""))
            receipt = await first.send(Start("j-1"))
            await began.wait()
            async with job(Mainspring(server_url), quick, transaction=BRIEF) as second:
                await internals_of(second).engine.store.release_worker(internals_of(first).engine.committer.worker)
                await until(lambda: has_status(second, "j-1", "completed"))
                go_on.set()
                await receipt.result()
                runners = internals_of(first).engine.dispatcher.runners
                await until(lambda: not any(list(runner.jobs()) for runner in runners))
                assert await bookings(second) == [("second", 2)]

    run(main)


def test_a_statement_that_fails_spoils_the_transaction(make_database_app: MakeDatabaseApp) -> None:
    async def work(command: Work, context: Context) -> Done:
        await context.connection.execute(TABLE)
        await context.connection.execute(INSERT, "same", context.attempt)
        if context.attempt == 1:
            with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
                await context.connection.execute(INSERT, "same", 0)
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_database_app(), work, transaction=BRIEF, retry=QUICK) as app:
            await (await app.send(Start("j-1"))).result()
            assert await bookings(app) == [("same", 2)]

    run(main)


def test_a_transaction_over_its_time_is_rolled_back_and_others_go_on(make_database_app: MakeDatabaseApp) -> None:
    over: list[str] = []

    async def work(command: Work, context: Context) -> Done:
        await context.connection.execute(TABLE)
        await context.connection.execute(INSERT, f"attempt {context.attempt}", context.attempt)
        if not over:  # the first that comes so far: a busy machine may have ended some before
            try:
                await asyncio.Event().wait()  # hangs, until it is cancelled
            finally:
                over.append("cancelled")
        return Done(command.id, command.part)

    async def main() -> None:
        limit = timedelta(milliseconds=200)
        async with job(make_database_app(), work, transaction=limit, retry=PATIENT) as app:
            await (await app.send(Start("j-1"))).result()
            # The second attempt; a later one, where a busy machine took longer than that over it.
            [(name, attempt)] = await bookings(app)
            assert name == f"attempt {attempt}"
            assert attempt > 1

    run(main)
    assert over == ["cancelled"]


def test_a_handler_over_its_transactions_time_is_told_that_time(make_database_app: MakeDatabaseApp) -> None:
    async def work(command: Work, context: Context) -> Done:
        await asyncio.Event().wait()  # hangs, until it is cancelled
        return Done(command.id, command.part)

    async def main() -> None:
        limit = timedelta(milliseconds=200)
        async with job(make_database_app(), work, transaction=limit, retry=Retry(max_attempts=1)) as app:
            await app.send(Start("j-1"))
            [letter] = await until(app.dead_letters)
            assert letter.error is not None
            assert letter.error.endswith(f"took longer than {limit}")

    run(main)


def test_a_statement_over_the_time_is_stopped(make_database_app: MakeDatabaseApp) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

    async def work(command: Work, context: Context) -> Done:
        if context.attempt == 1:
            await context.connection.fetch(endless)
        return Done(command.id, command.part)

    async def main() -> None:
        limit = timedelta(milliseconds=200)
        async with job(make_database_app(), work, transaction=limit, retry=PATIENT) as app:
            await (await app.send(Start("j-1"))).result()

    run(main)


def test_a_handler_cannot_end_its_transaction_by_itself(make_database_app: MakeDatabaseApp) -> None:
    attempts: list[int] = []

    async def work(command: Work, context: Context) -> Done:
        attempts.append(context.attempt)
        if context.attempt == 1:
            await context.connection.execute(TABLE)
            await context.connection.execute("COMMIT")
        elif context.attempt == 2:
            await context.connection.execute("ROLLBACK")
            await context.connection.execute("BEGIN")
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_database_app(), work, transaction=BRIEF, retry=QUICK) as app:
            await (await app.send(Start("j-1"))).result()

    run(main)
    assert attempts == [1, 2, 3]


def test_a_handler_cannot_write_the_engines_tables_on_sqlite(tmp_path: Path) -> None:
    async def work(command: Work, context: Context) -> Done:
        assert await context.connection.fetchval("SELECT count(*) FROM instances") == 1
        with pytest.raises(Exception, match="not authorized"):
            await context.connection.execute("DELETE FROM instances")
        raise DoNotRetryError("as expected")

    async def main() -> None:
        async with job(Mainspring(f"sqlite:///{tmp_path / 'test.db'}"), work, transaction=BRIEF) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))
            assert "as expected" in str((await app.instance_at("Job/j-1").row()).error)

    run(main)


def test_the_connection_is_of_no_use_afterwards(make_database_app: MakeDatabaseApp) -> None:
    kept: list[Context] = []

    async def work(command: Work, context: Context) -> Done:
        kept.append(context)
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_database_app(), work, transaction=BRIEF) as app:
            await (await app.send(Start("j-1"))).result()
            with pytest.raises(Exception, match="transaction is over"):
                await kept[0].connection.execute("SELECT 1")

    run(main)


def test_rows_are_read_by_place_and_by_name(make_database_app: MakeDatabaseApp) -> None:
    seen: list[Any] = []

    async def work(command: Work, context: Context) -> Done:
        connection = context.connection
        await connection.execute(TABLE)
        await connection.executemany(INSERT, [("a", 1), ("b", 2)])
        row = await connection.fetchrow(SELECT)
        seen.extend([row[0], row["part"], len(await connection.fetch(SELECT))])
        seen.extend(
            [await connection.fetchval("SELECT $1 || 'b'", "a"), await connection.fetchval("SELECT 1 WHERE 1 = 2")]
        )
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_database_app(), work, transaction=BRIEF) as app:
            await (await app.send(Start("j-1"))).result()

    run(main)
    assert seen == ["a", 1, 2, "ab", None]


def test_others_are_served_while_a_handler_has_its_transaction(make_database_app: MakeDatabaseApp) -> None:
    """On SQLite they wait for it, elsewhere some are open at once, and everywhere they come through."""
    open_now, most = 0, 0

    async def work(command: Work, context: Context) -> Done:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        if on_server:
            await until(lambda: most > 1)
        done = await book(command, context)
        open_now -= 1
        return done

    made = make_database_app()
    on_server = not internals_of(made).url.startswith("sqlite")

    async def main() -> None:
        async with job(made, work, transaction=BRIEF) as app:
            loan = await internals_of(app).engine.store.lend(0, BRIEF.total_seconds())
            await loan.connection.execute(TABLE)
            await loan.commit(Unit("", ""))
            receipts = await app.send_many([Start(f"j-{n}") for n in range(10)])
            for receipt in receipts:
                await receipt.result()
            assert len(await bookings(app)) == 10

    run(main)
    assert (most > 1) == on_server


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"transaction": timedelta(minutes=1)}, "at most 10 s"),
        ({"transaction": True}, "at most 10 s"),
        ({"transaction": BRIEF, "batch": 10}, "takes batches"),
    ],
)
def test_a_transaction_is_short_and_for_one_command(options: dict[str, Any], problem: str) -> None:
    async def single(command: Work, context: Context) -> Done: ...
    async def batch(commands: list[Work], context: Context) -> list[Done]: ...

    with pytest.raises(WiringError, match=problem):
        Mainspring("memory://").handler(**options)(batch if "batch" in options else single)


def test_a_transaction_needs_an_async_handler_with_a_context_and_a_database() -> None:
    def plain(command: Work, context: Context) -> Done: ...
    async def careless(command: Work) -> Done: ...

    with pytest.raises(WiringError, match="is not async"):
        Mainspring("memory://").handler(transaction=BRIEF)(plain)
    with pytest.raises(WiringError, match="takes no context"):
        Mainspring("memory://").handler(transaction=BRIEF)(careless)

    async def main() -> None:
        app = job(Mainspring("memory://"), book, transaction=BRIEF)
        with pytest.raises(WiringError, match="no database in memory"):
            await app.start()

    run(main)
