"""The loop: start, let work, kill, start again; then let everything become quiet and have it judged."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.crash.evidence import quiet, sample
from tests.crash.files import Lines, Place
from tests.crash.tables import AWAY, prepare
from tests.crash.upheaval import Upheaval

ROOT: Final = Path(__file__).parent.parent.parent
EARLIEST_SECONDS: Final = 0.05
LATEST_SECONDS: Final = 1.0
CLIENT_DIES: Final = 0.2
STOP_SECONDS: Final = 40.0
JUDGE_SECONDS: Final = 600.0
SIDE_BY_SIDE: Final = 3
# The design's bound after the last fault: lease + longest backoff + 30 s. What is dead here is known to be dead at
# once, so no lease has to run out.
QUIET_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 0.02


@dataclass(frozen=True)
class Run:
    """What a loop did."""

    cycles: int
    client_kills: int
    seconds: float
    quiet_seconds: float | None
    exits: int = 0
    """How many workers ended by themselves: they should not, whatever happens to the store."""


class Loop:
    """One run in one folder: a client, and one worker on a file or some on a server that has no peace either."""

    def __init__(self, place: Place, seed: int, *, on_server: bool = False) -> None:
        self._place = place
        self._seed = seed
        self._chance = random.Random(seed)  # noqa: S311  no secret
        self._samples = Lines(place.samples)
        self._clients = 0
        self._workers = 0
        self.upheaval = Upheaval(random.Random(f"{seed}-server")) if on_server else None  # noqa: S311  no secret
        self._side_by_side = SIDE_BY_SIDE if on_server else 1

    def run(self, cycles: int, progress: Callable[[int], None] = lambda _: None) -> Run:
        """Kill so many times, then wait until all is quiet."""
        started = time.monotonic()
        client_kills = exits = 0
        processes: list[subprocess.Popen[bytes]] = []
        try:
            if self.upheaval is not None:
                self.upheaval.start()
                self._place.use(self.upheaval.url)
            prepare(self._place)
            processes = [self._client(), *(self._worker() for _ in range(self._side_by_side - 1))]
            for cycle in range(1, cycles + 1):
                processes.append(self._worker())
                # The moment of the kill is the subject here: nothing to wait for but time.
                time.sleep(self._chance.uniform(EARLIEST_SECONDS, LATEST_SECONDS))
                if self._chance.random() < CLIENT_DIES:
                    _kill(processes[0])
                    client_kills += 1
                exits += sum(process.poll() is not None for process in processes[1:])
                _kill(processes.pop(self._chance.randrange(1, len(processes))))
                self._sample(cycle)
                if self.upheaval is not None:
                    self.upheaval.happen()
                if processes[0].poll() is not None:
                    processes[0] = self._client()
                progress(cycle)
            _stop(processes[0])
            processes.append(self._worker())
            quiet_seconds = self._wait_until_quiet(processes[1:])
            for worker in processes[1:]:
                _stop(worker)
        finally:
            for process in processes:
                _kill(process)
        return Run(cycles, client_kills, time.monotonic() - started, quiet_seconds, exits)

    def judge(self) -> subprocess.CompletedProcess[str]:
        """Have the run judged, in a process of its own: the judge shares nothing with the judged."""
        return subprocess.run(  # noqa: S603  our own interpreter and our own module
            [sys.executable, "-m", "tests.crash.check", str(self._place.folder)],
            cwd=ROOT,
            capture_output=True,
            encoding="utf-8",
            timeout=JUDGE_SECONDS,
            check=False,
        )

    def end(self) -> None:
        """Remove the server, if there is one."""
        if self.upheaval is not None:
            self.upheaval.end()

    def _worker(self) -> subprocess.Popen[bytes]:
        self._workers += 1
        return self._start("tests.crash.worker", str(self._workers))

    def _client(self) -> subprocess.Popen[bytes]:
        self._clients += 1
        return self._start("tests.crash.client", str(self._clients), str(self._seed))

    def _start(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        with self._place.log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603  our own interpreter and our own module
                [sys.executable, "-m", module, str(self._place.folder), *arguments], cwd=ROOT, stdout=log, stderr=log
            )

    def _sample(self, cycle: int) -> None:
        try:
            found = sample(self._place, cycle)
        except AWAY:
            return
        if found is not None:
            self._samples.add(sync=False, **found)

    def _wait_until_quiet(self, workers: list[subprocess.Popen[bytes]]) -> float | None:
        """Return after how many seconds nothing was left to do; None if that did not come, or if a worker ended."""
        started = time.monotonic()
        while (waited := time.monotonic() - started) < QUIET_SECONDS:
            if any(worker.poll() is not None for worker in workers):
                return None
            if quiet(self._place):
                return waited
            time.sleep(LOOK_SECONDS)
        return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(STOP_SECONDS)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to finish. It may have died by itself, which the checker finds in the log."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS)
