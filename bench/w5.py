"""W5: the worker is killed in the middle and started again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Self

from bench import apps
from bench.checks import NotDoneError, all_completed, times_of_events
from bench.measure import Figures, rss_mb
from bench.settings import Settings
from mainspring import Mainspring

POLL_SECONDS = 0.001
PATIENCE_SECONDS = 120.0


def run(settings: Settings) -> Figures:
    """Kill -9 a worker when a third of n orders has completed, start it again, and wait for the rest."""
    if not settings.durable:
        raise SystemExit("w5 kills its worker: it needs a store that outlives a process, so --store sqlite.")
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> Figures:
    n, effects = settings.n, settings.path / "effects"
    app = apps.orders(settings.url)
    with _Worker(settings, effects, "send") as worker:
        sent = int(await worker.line())
        await app.start(work=False)  # this process only watches
        try:
            await _completed(app, n // 3)
            worker.kill()
            at_kill = (await app.stats()).instances.get("completed", 0)
            in_flight = len(_runs(effects)) - len(await times_of_events(app, "Received"))
            begun = time.perf_counter()
            with _Worker(settings, effects, "resume"):
                await _completed(app, n)
                seconds = time.perf_counter() - begun
                await all_completed(app, n)
        finally:
            await app.stop()
    return {
        "seconds": round(seconds, 3),
        "sent": sent,
        "completed_at_kill": at_kill,
        "in_flight_at_kill": in_flight,
        **_effects(effects, n, in_flight),
        "rss_mb": rss_mb(),
    }


def _effects(effects: Path, n: int, in_flight: int) -> Figures:
    """Return how often handlers ran, and check that none ran again but those in flight at the kill."""
    runs = _runs(effects)
    handlers_run = {(instance, step) for instance, step, _ in runs}
    twice = sum(times > 1 for times in runs.values())
    doubled = len(runs) - len(handlers_run)
    lost = 3 * n - len(handlers_run)
    if twice > in_flight or doubled or lost:
        raise NotDoneError(f"{twice} ran twice ({in_flight} in flight), {doubled} had two keys, {lost} never ran")
    return {"effects_run_twice": twice, "effects_doubled": doubled, "lost": lost}


def _runs(effects: Path) -> Counter[tuple[str, ...]]:
    """Return how often each handler ran for each instance and idempotency key. A torn last line is no run."""
    whole = effects.read_text().rpartition("\n")[0]
    return Counter(tuple(line.split(" ")) for line in whole.splitlines())


async def _completed(app: Mainspring, wanted: int) -> int:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (completed := (await app.stats()).instances.get("completed", 0)) < wanted:
        if time.monotonic() > deadline:
            raise NotDoneError(f"{completed} of {wanted} had completed after {PATIENCE_SECONDS:.0f} s")
        await asyncio.sleep(POLL_SECONDS)
    return completed


class _Worker:
    """A process that works, killed at the latest when this is left."""

    def __init__(self, settings: Settings, effects: Path, what: str) -> None:
        arguments = (settings.url, str(effects), str(settings.n), what)
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
