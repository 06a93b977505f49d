"""What W5's runs share: the worker to be killed, its ledger of effects, and patience."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Self

from bench.checks import NotDoneError
from bench.measure import Figures
from bench.settings import Settings
from mainspring import Mainspring
from mainspring.errors import StoreError

POLL_SECONDS = 0.001
PATIENCE_SECONDS = 120.0


def effects_of(ledger: Path, n: int, in_flight: int) -> Figures:
    """Return how often handlers ran, and check that none ran again but those in flight at the kill."""
    runs = runs_of(ledger)
    handlers_run = {(instance, step) for instance, step, _ in runs}
    twice = sum(times > 1 for times in runs.values())
    doubled = len(runs) - len(handlers_run)
    lost = 3 * n - len(handlers_run)
    if twice > in_flight or doubled or lost:
        raise NotDoneError(f"{twice} ran twice ({in_flight} in flight), {doubled} had two keys, {lost} never ran")
    return {"effects_run_twice": twice, "effects_doubled": doubled, "lost": lost}


def runs_of(ledger: Path) -> Counter[tuple[str, ...]]:
    """Return how often each handler ran for each instance and idempotency key. A torn last line is no run."""
    whole = ledger.read_text().rpartition("\n")[0]
    return Counter(tuple(line.split(" ")) for line in whole.splitlines())


async def completed_in(app: Mainspring) -> int:
    """Return how many have completed; none that one knows of while the store is away."""
    try:
        return (await app.stats()).instances.get("completed", 0)
    except StoreError:
        return 0


async def until_done(app: Mainspring, wanted: int) -> int:
    """Wait until so many have completed, and return how many have."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (completed := await completed_in(app)) < wanted:
        if time.monotonic() > deadline:
            raise NotDoneError(f"{completed} of {wanted} had completed after {PATIENCE_SECONDS:.0f} s")
        await asyncio.sleep(POLL_SECONDS)  # other processes: rows are asked
    return completed


class KilledWorker:
    """A process that works, killed at the latest when this is left."""

    def __init__(self, settings: Settings, ledger: Path, what: str) -> None:
        arguments = (settings.url, str(ledger), str(settings.n), what)
        self._process = subprocess.Popen(  # noqa: S603  this very package
            [sys.executable, "-m", "bench.w5_worker", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def line(self) -> str:
        """Return what the worker says first."""
        assert self._process.stdout is not None
        line = await asyncio.to_thread(self._process.stdout.readline)
        if not line:
            raise NotDoneError(f"the worker ended with exit code {self._process.wait()}")
        return line

    def kill(self) -> None:
        """Kill -9."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
