"""No room: on the disk of the tables, on the disk of the log, or in memory."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

from tests.proof.crash.tables import AWAY
from tests.proof.postgres_faults.stage import Stage
from tests.support.postgres.server import Server, Unavailable
from tests.support.waiting import until

BETWEEN: Final = 10
MEGABYTES: Final = 160
LOG_MEGABYTES: Final = 64
BALLAST: Final = "ballast"
SOME: Final = 3
"""So many refusals are waited for before there is room again."""
PIDS: Final = "SELECT pid FROM pg_stat_activity WHERE application_name = 'mainspring' AND datname = $1"


class SmallServer(Server):
    """A server whose tables, or whose log, are on a small disk of their own."""

    def __init__(self, *, log: bool) -> None:
        if os.geteuid() != 0:
            raise Unavailable("only root may mount the small disk that is to be full")
        super().__init__(settings={"fsync": "off", "max_wal_size": "16MB", "min_wal_size": "2MB"})
        self._disk = Path(tempfile.mkdtemp(prefix="mainspring-disk-"))
        size = LOG_MEGABYTES if log else MEGABYTES
        mounted = subprocess.run(  # noqa: S603  two words and a folder of ours
            ["mount", "-t", "tmpfs", "-o", f"size={size}m,mode=0777", "tmpfs", str(self._disk)],  # noqa: S607  of the system
            capture_output=True,
            check=False,
        )
        if mounted.returncode:
            self._disk.rmdir()
            super().remove()
            raise Unavailable(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
        if log:
            self.initdb += ("--waldir", str(self._disk / "log"), "--wal-segsize=1")
        else:
            self.initdb += ("--waldir", str(self.folder / "log-of-its-own"), "--wal-segsize=1")
            self.data = self._disk / "data"

    def fill(self) -> None:
        """Leave no room at all."""
        with (self._disk / BALLAST).open("wb") as ballast:
            block = bytes(1 << 20)
            try:
                while ballast.write(block):
                    ballast.flush()
            except OSError:
                pass  # that was the last of it

    def free(self) -> None:
        (self._disk / BALLAST).unlink()

    def remove(self) -> None:
        super().remove()
        subprocess.run(["umount", str(self._disk)], check=True)  # noqa: S603, S607  as above
        shutil.rmtree(self._disk, ignore_errors=True)


def small_tables() -> Server:
    return SmallServer(log=False)


def small_log() -> Server:
    return SmallServer(log=True)


async def tables_full(stage: Stage, rounds: int) -> Counter[str]:
    """Fill the disk of the tables, so that statements fail; then make room."""
    server: Any = stage.server
    full = "No space left on device"
    happened: Counter[str] = Counter()
    for _ in range(rounds):
        await stage.client.more(BETWEEN)
        refused = stage.log_has(full)
        await asyncio.to_thread(server.fill)
        await until(lambda: stage.log_has(full) >= refused + SOME)  # noqa: B023  it is awaited here
        server.free()
        happened["statements without room"] += stage.log_has(full) - refused
        await stage.look()
    return happened


async def log_full(stage: Stage, rounds: int) -> Counter[str]:
    """Fill the disk of the log: the server cannot go on and ends itself. It is started when there is room again."""
    server: Any = stage.server
    happened: Counter[str] = Counter()
    for _ in range(rounds):
        await stage.client.more(BETWEEN)
        panics = stage.log_has("PANIC")
        await asyncio.to_thread(server.fill)
        await until(lambda: _writes_more(stage, panics))  # noqa: B023  it is awaited here
        server.free()
        # It may have come back by itself, or not: without room it cannot even recover.
        await asyncio.to_thread(server.stop, kill=True)
        await asyncio.to_thread(server.start)
        happened["panics"] += stage.log_has("PANIC") - panics
        await stage.look()
    return happened


async def _writes_more(stage: Stage, panics: int) -> bool:
    """Let the log go on to a new file, and tell whether that was too much: until then it has room in old ones."""
    try:
        async with stage.operator() as operator:
            await operator.execute("SELECT pg_switch_wal()")
    except AWAY:
        pass
    return stage.log_has("PANIC") > panics


async def no_memory(stage: Stage, rounds: int) -> Counter[str]:
    """Let the sessions have no more memory than they have now, so that statements fail; then let them have it."""
    program = shutil.which("prlimit")
    if program is None:
        raise Unavailable("there is no prlimit, which limits the memory of a process that runs")
    none_left = "out of memory"
    happened: Counter[str] = Counter()

    def limit(pid: int, size: int | str) -> None:
        stage.server.as_owner(program, f"--pid={pid}", f"--as={size}:")  # one that has just ended has no limit

    async with stage.operator() as operator:
        for _ in range(rounds):
            await stage.client.more(BETWEEN)
            refused = stage.log_has(none_left)

            async def squeezed() -> bool:
                for (pid,) in await operator.fetch(PIDS, stage.database):
                    await asyncio.to_thread(limit, pid, _size(pid))
                return stage.log_has(none_left) >= refused + SOME  # noqa: B023  it is awaited here

            await until(squeezed)
            happened["statements without memory"] += stage.log_has(none_left) - refused
            for (pid,) in await operator.fetch(PIDS, stage.database):
                await asyncio.to_thread(limit, pid, "unlimited")
    return happened


def _size(pid: int) -> int | str:
    """Return how much memory a process has."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return "unlimited"
