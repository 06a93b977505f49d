"""`python -m tests.proof.foreign_lock --seconds 30`: another program holds SQLite's lock; nothing is lost or doubled.

Jobs are under way when it takes the lock, and keeps it for longer than a commit waits and than a worker's lease lasts.
Clients are refused meanwhile, and ask again with the same id. Once the lock is free, every job has to end, with one
call of its handler, as the worker lives on.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from mainspring import Mainspring
from mainspring.errors import StoreBusyError
from tests.engine.jobs import Done, Job, Start, Work, job
from tests.stores.sqlite_support import NAME, Holder

JOBS_BEFORE: Final = 20
JOBS_MEANWHILE: Final = 5
HANDLER_SECONDS: Final = 0.5
PATIENCE: Final = timedelta(seconds=60)


@dataclass
class Told:
    """What was seen."""

    refused: int
    waited_seconds: float
    calls: dict[str, int]
    completed: int

    def faults(self) -> list[str]:
        """Return what must not be."""
        jobs = JOBS_BEFORE + JOBS_MEANWHILE
        found = [f"{job} was done {times} times" for job, times in self.calls.items() if times != 1]
        if self.completed != jobs:
            found.append(f"{self.completed} of {jobs} jobs have completed")
        if not self.refused:
            found.append("nobody was refused: the lock was not held long enough")
        return found


async def hold(folder: Path, seconds: float) -> Told:
    """Let another program hold the lock while jobs run."""
    calls: Counter[str] = Counter()

    async def work(command: Work) -> Done:
        calls[command.id] += 1
        await asyncio.sleep(HANDLER_SECONDS)  # a handler that takes a while
        return Done(command.id, command.part)

    app = job(Mainspring(f"sqlite:///{folder / NAME}"), work)
    async with app:
        before = [await app.send(Start(f"before-{number}")) for number in range(JOBS_BEFORE)]
        program = f"import apsw; c = apsw.Connection({str(folder / NAME)!r}); c.execute('BEGIN EXCLUSIVE')"
        begun = time.monotonic()
        with Holder(program):
            asking = [asyncio.create_task(_ask(app, f"meanwhile-{number}")) for number in range(JOBS_MEANWHILE)]
            await asyncio.sleep(seconds)  # so long the lock is held
        refused = sum([await task for task in asking])
        for receipt in before:
            await receipt.result(timeout=PATIENCE)
        for number in range(JOBS_MEANWHILE):
            await app.instance(Job, f"meanwhile-{number}").result(timeout=PATIENCE)
        completed = (await app.stats()).instances.get("completed", 0)
        return Told(refused, time.monotonic() - begun - seconds, dict(calls), completed)


async def _ask(app: Mainspring, id: str) -> int:
    """Ask until it is taken, with the same id; return how often that was refused."""
    refused = 0
    while True:
        try:
            await app.send(Start(id), id=f"start-{id}")
        except StoreBusyError:
            refused += 1
        else:
            return refused


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proof.foreign_lock",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=30, help="how long the lock is held (default: %(default)s)")
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="mainspring-lock-") as folder:
        told = asyncio.run(hold(Path(folder), asked.seconds))
    jobs = f"{told.completed} jobs completed {told.waited_seconds:.1f} s after the lock was free"
    sys.stdout.write(f"held for {asked.seconds:g} s: {told.refused} sends were refused, {jobs}\n")
    faults = told.faults()
    sys.stdout.write(f"violations: {'; '.join(faults) or 'none'}\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
