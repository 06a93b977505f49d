"""Stores opened and closed around a test, and other processes on the same file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from mainspring.port.clock import Clock
from mainspring.stores.sqlite import SqliteStore
from mainspring.testing.clock import VirtualClock

NAME = "mainspring.db"
PATIENCE_SECONDS = 60.0


@asynccontextmanager
async def opened(folder: Path, clock: Clock | None = None, **settings: Any) -> AsyncGenerator[SqliteStore]:
    """Open a store, and close it whatever happens."""
    store = SqliteStore(folder / NAME, clock or VirtualClock(), **settings)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def elsewhere(folder: Path, code: str, *, triggers: bool = False) -> str:
    """Run code with a `connection` to the database in another process, and return what it prints.

    Without triggers, rows change as a disk would change them, and not as an older release of the store.
    """
    program = (
        f"import apsw\nconnection = apsw.Connection({str(folder / NAME)!r})\n"
        f"connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, {int(triggers)})\n{code}\nconnection.close()\n"
    )
    done = subprocess.run(  # noqa: S603  the test's own code
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Holder:
    """Another process that runs code, says `ready`, and stays until the block ends or it is killed."""

    def __init__(self, program: str) -> None:
        self.process = subprocess.Popen(  # noqa: S603  the test's own code
            [sys.executable, "-c", f"import sys\n{program}\nprint('ready', flush=True)\nsys.stdin.read()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == "ready"
        return self

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        self.process.kill()
        self.process.wait()

    def __exit__(self, *_: object) -> None:
        self.kill()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
