"""A backup that was taken while a worker worked is one moment, and everything in it comes to its end after a restore.

The commands are those of docs/operations/backup.md, word for word.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from mainspring import Complete, Context, Mainspring, Send, Workflow
from mainspring.app import Receipt
from mainspring.engine.runtime import Runtime, SystemClock
from mainspring.port.clock import Clock
from tests.project.newcomer.pages import ROOT
from tests.support.postgres.server import Unavailable, shared_server

PAGE = (ROOT / "docs/operations/backup.md").read_text()
JOBS = 30
ROUNDS = 5
PAUSE_SECONDS = 0.005
NIGHT_US = 8 * 3_600 * 1_000_000


@dataclass(frozen=True)
class Begin:
    job: str


@dataclass(frozen=True)
class Work:
    job: str
    round: int


@dataclass(frozen=True)
class Worked:
    job: str
    round: int


class Job(Workflow[Begin | Worked, str, Work]):
    begins = Begin
    initial_state = "open"

    def route(self, message: Begin | Worked) -> str | None:
        return message.job

    def evolve(self, state: str, event: object) -> str | None:
        return None

    def decide(self, message: Begin | Worked, state: str) -> Any:
        match message:
            case Begin(job):
                return [Send(Work(job, 1))]
            case Worked(job, round) if round < ROUNDS:
                return [Send(Work(job, round + 1))]
            case Worked():
                return [Complete()]


@dataclass
class Desk:
    """What was done, by key. The last round of each job waits until the desk may finish."""

    done: dict[str, list[Work]] = field(default_factory=dict[str, list[Work]])
    may_finish: asyncio.Event = field(default_factory=asyncio.Event)

    async def work(self, command: Work, key: str) -> None:
        if command.round == ROUNDS:
            await self.may_finish.wait()
        self.done.setdefault(key, []).append(command)


class Database(Protocol):
    """One that can be backed up and restored."""

    @property
    def url(self) -> str: ...
    def back_up(self) -> None: ...
    def restore(self) -> None: ...


def command(beginning: str) -> str:
    """Return the one command of the page that begins so."""
    (found,) = re.findall(rf"^{re.escape(beginning)}.*$", PAGE, re.MULTILINE)
    return found


class SqliteFile(NamedTuple):
    folder: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'shop.db'}"

    def back_up(self) -> None:
        line = command("python -c 'import apsw").replace("/backups/shop-$(date +%F).db", "backup.db")
        subprocess.run([sys.executable, *shlex.split(line)[1:]], cwd=self.folder, check=True)  # noqa: S603  the page's

    def restore(self) -> None:
        for name in ("shop.db", "shop.db-wal", "shop.db-shm"):
            (self.folder / name).unlink(missing_ok=True)
        shutil.copy(self.folder / "backup.db", self.folder / "shop.db")


class PostgresSchema:
    def __init__(self) -> None:
        try:
            self._server = shared_server()
        except Unavailable as reason:
            pytest.skip(f"no PostgreSQL: {reason}")
        self.url = f"{self._server.url}?schema=orders"

    def back_up(self) -> None:
        self._do(command("pg_dump "))

    def restore(self) -> None:
        self._do(command("psql "))
        self._do(command("pg_restore "))

    def _do(self, line: str) -> None:
        program, *arguments = shlex.split(line.replace("$DATABASE", self._server.url))
        done = self._server.run(program, *arguments)
        assert done.returncode == 0, done.stderr.decode()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    return SqliteFile(tmp_path) if request.param == "sqlite" else PostgresSchema()


class NextMorning(SystemClock):
    """The clock of those who restore. The leases of workers that are in a file's backup are over by then."""

    def now_us(self) -> int:
        return super().now_us() + NIGHT_US


def shop(database: Database, desk: Desk, clock: Clock | None = None) -> Mainspring:
    app = Mainspring(database.url, runtime=Runtime(clock))
    app.add(Job())

    @app.handler
    async def work(command: Work, context: Context) -> Worked:
        await desk.work(command, context.idempotency_key)
        return Worked(command.job, command.round)

    return app


async def streams(app: Mainspring) -> dict[str, list[str]]:
    return {f"j-{n}": [str(entry.event) for entry in await app.instance(Job, f"j-{n}").stream()] for n in range(JOBS)}


async def all_ended(receipts: list[Receipt]) -> None:
    for receipt in receipts:
        await receipt.result()


async def a_working_day(database: Database, desk: Desk, back_up: Callable[[], None]) -> dict[str, list[str]]:
    async with shop(database, desk) as app:
        receipts = [await app.send(Begin(f"j-{n}"), id=f"form-{n}") for n in range(JOBS)]
        backing_up = asyncio.create_task(asyncio.to_thread(back_up))
        for n in count():
            receipts.append(await app.send(Begin(f"meanwhile-{n}")))
            await asyncio.wait([backing_up], timeout=PAUSE_SECONDS)
            if backing_up.done():
                break
        await backing_up
        desk.may_finish.set()
        await all_ended(receipts)
        return await streams(app)


async def the_day_after(database: Database, desk: Desk) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    desk.may_finish.set()
    looking = shop(database, desk, NextMorning())
    await looking.start(work=False)
    at_the_backup = await streams(looking)
    await looking.stop()
    async with shop(database, desk, NextMorning()) as app:
        again = [await app.send(Begin(f"j-{n}"), id=f"form-{n}") for n in range(JOBS)]
        assert {receipt.status for receipt in again} == {"duplicate"}
        await all_ended(again)
        return at_the_backup, await streams(app)


def test_a_backup_beside_a_worker_is_one_moment_and_all_of_it_comes_to_its_end(database: Database) -> None:
    before, after = Desk(), Desk()

    as_it_went = asyncio.run(a_working_day(database, before, database.back_up))
    database.restore()
    at_the_backup, in_the_end = asyncio.run(the_day_after(database, after))

    assert any(at_the_backup[job] != as_it_went[job] for job in at_the_backup), "it was taken while there was work"
    assert all(as_it_went[job][: len(events)] == events for job, events in at_the_backup.items())
    assert in_the_end == as_it_went
    # What is done again has the key that it had: whoever knows keys has no effect twice.
    assert after.done
    assert all(set(commands) == set(before.done[key]) for key, commands in after.done.items())
