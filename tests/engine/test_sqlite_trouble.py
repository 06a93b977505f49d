"""Trouble below SQLite while an engine works: it waits, says so, and goes on; nothing is lost or done twice."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from mainspring import Mainspring
from mainspring.engine.runtime import SystemClock
from mainspring.errors import StoreBusyError, StoreError, StoreFullError
from mainspring.stores.sqlite import SqliteStore
from tests.engine.jobs import Done, Start, Work, job
from tests.stores.sqlite_faulty_disk import faulty_disk
from tests.stores.sqlite_support import NAME, Holder
from tests.support.running import run
from tests.support.waiting import until

SOON = timedelta(seconds=60)
KILLS = 3


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.engine.committing.committer.PAUSE_AFTER_STORE_ERROR_SECONDS", 0.02)


class Worker:
    """An app with one job, whose handler begins before the trouble and returns in the middle of it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self._store = SqliteStore(folder / NAME, SystemClock(), **settings)
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.calls = 0

    async def work(self, command: Work) -> Done:
        self.calls += 1
        self.begun.set()
        await self.go_on.wait()
        return Done(command.id, command.part)

    def app(self) -> Mainspring:
        return job(Mainspring("sqlite:///unused.db", store=self._store), self.work)


@pytest.fixture(autouse=True)
def tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what could not be committed be tried again at once, and not after a second."""
    monkeypatch.setattr("mainspring.engine.stepping.inbox.PAUSE_AFTER_STORE_ERROR_SECONDS", 0.05)


async def live_through(
    worker: Worker, begin: Callable[[], None], end: Callable[[], None], error: type[StoreError], log: Any
) -> None:
    """Let a handler return while the store is in trouble: a send is refused meanwhile, and the job is done after it."""
    async with worker.app() as app:
        receipt = await app.send(Start("j-1"), id="m-1")
        await worker.begun.wait()
        begin()
        try:
            with pytest.raises(error):
                await app.send(Start("j-2"), id="m-2")
            worker.go_on.set()
            await until(lambda: "will be tried again" in log.text)
        finally:
            end()
        await receipt.result(timeout=SOON)
        again = await app.send(Start("j-2"), id="m-2")
        await again.result(timeout=SOON)
        assert worker.calls == 2
        assert [row.status for row in await app.instances()] == ["completed", "completed"]
        assert await app.dead_letters() == []


def test_a_full_disk_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        def fill() -> None:
            disk.fault = apsw.FullError

        def free() -> None:
            disk.fault = None

        await live_through(Worker(tmp_path, vfs=disk.name), fill, free, StoreFullError, caplog)

    with faulty_disk() as disk:
        run(main)
    assert "has no room left" in caplog.text


@contextmanager
def small_disk() -> Generator[Path]:
    """A file system of 4 MB of its own, where this user may mount one."""
    place = Path(tempfile.mkdtemp(prefix="mainspring-small-"))
    mount = shutil.which("mount")
    try:
        command = [mount or "mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False) if mount else None  # noqa: S603  ours
        if done is None or done.returncode:
            pytest.skip(f"no file system can be mounted here: {'no mount' if done is None else done.stderr.strip()}")
        try:
            yield place
        finally:
            subprocess.run([shutil.which("umount") or "umount", "-l", str(place)], check=True)  # noqa: S603  ours
    finally:
        place.rmdir()


def test_a_real_disk_that_is_full_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        ballast = place / "ballast"

        def fill() -> None:
            with ballast.open("wb", buffering=0) as file:
                while os.statvfs(place).f_bfree:
                    file.write(bytes(4_096))

        await live_through(Worker(place), fill, ballast.unlink, StoreFullError, caplog)

    with small_disk() as place:
        run(main)


def test_a_lock_that_another_process_holds_for_long_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        program = f"import apsw; c = apsw.Connection({str(tmp_path / NAME)!r}); c.execute('BEGIN EXCLUSIVE')"
        holders: list[Holder] = []

        def hold() -> None:
            holders.append(Holder(program).__enter__())

        def give_up() -> None:
            holders[0].__exit__()

        await live_through(Worker(tmp_path, busy_seconds=0.05), hold, give_up, StoreBusyError, caplog)

    run(main)
    assert "another process" in caplog.text


AS_NOBODY = """
import asyncio, os, sys
from mainspring.engine.runtime import SystemClock
from mainspring.errors import StoreError
from mainspring.stores.sqlite import SqliteStore
os.setgid(65534), os.setuid(65534)
try:
    asyncio.run(SqliteStore(sys.argv[1], SystemClock()).open())
except StoreError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize(("folder_mode", "exists"), [(0o755, False), (0o755, True), (0o777, True)])
def test_what_may_not_be_written_is_refused_with_what_to_do(folder_mode: int, exists: bool) -> None:
    folder = Path(tempfile.mkdtemp(prefix="mainspring-denied-"))
    try:
        if exists:
            asyncio.run(opened_once(folder / NAME))
        folder.chmod(folder_mode)
        done = subprocess.run(  # noqa: S603  the test's own code
            [sys.executable, "-c", AS_NOBODY, str(folder / NAME)],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert done.stdout.startswith("Store"), done.stdout + done.stderr
        assert "Let this user" in done.stdout
        assert str(folder / NAME) in done.stdout
    finally:
        shutil.rmtree(folder)


async def opened_once(path: Path) -> None:
    store = SqliteStore(path, SystemClock())
    await store.open()
    await store.close()


COMMITTING = """
import asyncio, sys
from mainspring.stores.sqlite import SqliteStore, writer
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract.rig import step
writer.CHECKPOINT_PAGES = 1
async def main():
    store = SqliteStore(sys.argv[1], VirtualClock())
    await store.open()
    for n in range(100_000):
        await store.commit(0, [step("m-1", on=f"{sys.argv[2]}-{n}")])
        print(f"{sys.argv[2]}-{n}", flush=True)
asyncio.run(main())
"""


def test_a_process_that_is_killed_while_it_moves_the_log_loses_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    for kill in range(KILLS):
        command = [sys.executable, "-c", COMMITTING, str(tmp_path / NAME), f"k{kill}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603  the test's own code
        assert process.stdout is not None
        # A checkpoint follows each commit, so it is under way, or nearly, whenever one was told of.
        told += [process.stdout.readline().strip() for _ in range(20 + 7 * kill)]
        process.kill()
        told += process.stdout.read().split()
        process.wait()
        process.stdout.close()
    connection = apsw.Connection(str(tmp_path / NAME))
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    kept = {id for (id,) in connection.execute("SELECT id FROM instances")}
    connection.close()
    assert set(told) <= kept
    assert len(told) >= KILLS * 20


def test_a_reader_that_stays_makes_the_log_grow_only_while_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.stores.sqlite.writer.CHECKPOINT_PAGES", 50)
    asked = "c.execute('BEGIN'); c.execute('SELECT * FROM instances').fetchall()"
    reading = f"import apsw; c = apsw.Connection({str(tmp_path / NAME)!r}); {asked}"

    async def main() -> None:
        log = tmp_path / f"{NAME}-wal"
        worker = Worker(tmp_path)
        worker.go_on.set()
        async with worker.app() as app:

            async def jobs(name: str) -> int:
                for n in range(20):
                    await (await app.send(Start(f"{name}-{n}"))).result(timeout=SOON)
                return log.stat().st_size

            with Holder(reading):
                pinned = [await jobs(f"pinned-{n}") for n in range(3)]
            assert pinned == sorted(set(pinned))
            await jobs("after")
            settled = await jobs("settled")
            assert await jobs("more") == settled

    run(main)
