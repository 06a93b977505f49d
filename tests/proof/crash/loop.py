"""The loop: start, let work, kill or stop, start again; then let everything become quiet and have it judged."""

from __future__ import annotations

import math
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec import json

from tests.proof.crash.client import TRAVELLERS
from tests.proof.crash.evidence import quiet, sample
from tests.proof.crash.files import Lines, Place
from tests.proof.crash.forked import Forked
from tests.proof.crash.journey import JOURNEY
from tests.proof.crash.report import Run
from tests.proof.crash.tables import AWAY, prepare
from tests.proof.crash.upheaval import Upheaval
from tests.support.paths import ROOT

WORKERS: Final = 4
CLIENTS: Final = 2
SHORTEST_SECONDS: Final = 0.05
LONGEST_SECONDS: Final = 3.0
STRIKES_EARLY: Final = 0.1
"""How often a worker may be killed in its start; else its life counts from when it serves."""
CLIENT_DIES: Final = 0.2
BRIEF_LEASE_SECONDS: Final = 3.0
BRIEF_EVERY: Final = 8
"""One worker in so many has a brief lease, and is stopped for longer than that."""
OVER_LEASE_SECONDS: Final = 1.5
SERVE_SECONDS: Final = 120.0
STOP_SECONDS: Final = 120.0
REBUILD_SECONDS: Final = 120.0
JUDGE_SECONDS: Final = 900.0
# The design's bound after the last fault: lease + longest backoff + 30 s. Who is dead here is known to be dead at once,
# so no other lease than that of one who was stopped has to run out. A busy machine has two minutes more.
QUIET_SECONDS: Final = 30.0 + BRIEF_LEASE_SECONDS + 120.0
LOOK_SECONDS: Final = 0.02
STILL_SECONDS: Final = 2.0
COME_TO_REST: Final = JOURNEY.come_to_rest | {"Errand", "Delivery"}


@dataclass
class Worker:
    """A worker's process. One with a brief lease is stopped once, from when it serves until its lease is over."""

    number: int
    process: Forked
    brief: bool
    stopped_until: float | None = None

    @property
    def stopped(self) -> bool:
        return self.stopped_until is not None


@dataclass
class Client:
    """A client's process."""

    number: int
    process: Forked


class Loop:
    """One run in one folder: clients and workers, on a file or on a server that has no peace either."""

    def __init__(
        self,
        place: Place,
        seed: int,
        *,
        on_server: bool = False,
        longest_seconds: float = LONGEST_SECONDS,
        brief_lease_seconds: float = BRIEF_LEASE_SECONDS,
        travellers: int = TRAVELLERS,
    ) -> None:
        self._place = place
        self._seed = seed
        self._longest_seconds = longest_seconds
        self._brief_lease_seconds = brief_lease_seconds
        self._travellers = travellers
        self._chance = random.Random(seed)  # noqa: S311  no secret
        self._samples = Lines(place.samples)
        self._stops = Lines(place.stops)
        self._clients: list[Client] = []
        self._workers: list[Worker] = []
        self._begun_clients = 0
        self._begun_workers = 0
        self.ran = Run("postgres" if on_server else "sqlite", seed)
        self.upheaval = Upheaval(random.Random(f"{seed}-server")) if on_server else None  # noqa: S311  no secret

    def run(self, cycles: int, progress: Callable[[int], None] = lambda _: None) -> Run:
        """Kill so many times, then wait until all is quiet."""
        started = time.monotonic()
        try:
            if self.upheaval is not None:
                self.upheaval.start()
                self._place.use(self.upheaval.url)
            prepare(self._place)
            self._clients = [self._client() for _ in range(CLIENTS)]
            self._workers = [self._worker() for _ in range(WORKERS)]
            for cycle in range(1, cycles + 1):
                self._cycle(cycle)
                progress(cycle)
            self._come_to_rest()
        finally:
            for party in (*self._clients, *self._workers):
                _kill(party.process)
        self.ran.seconds = time.monotonic() - started
        if self.upheaval is not None:
            counts = self.upheaval.counts
            self.ran.server = f"{counts.crashes} crashes, {counts.stops} stops, {counts.sessions} sessions ended"
        self._place.run.write_bytes(json.encode(self.ran))
        return self.ran

    def _cycle(self, cycle: int) -> None:
        # Who is stopped is not killed meanwhile: it is to go on when others have taken over.
        victim = self._chance.choice([at for at, worker in enumerate(self._workers) if not worker.stopped])
        if self._chance.random() >= STRIKES_EARLY:
            self._await_service(self._workers[victim])
        # The moment of the kill is the subject here: nothing to wait for but time. As many short lives as long ones.
        self._pause(math.exp(self._chance.uniform(math.log(SHORTEST_SECONDS), math.log(self._longest_seconds))))
        self._stop_one_but(self._workers[victim])
        struck = self._chance.randrange(CLIENTS) if self._chance.random() < CLIENT_DIES else None
        if struck is not None:
            _kill(self._clients[struck].process)
            self.ran.client_kills += 1
        self._bury()
        _kill(self._workers[victim].process)
        self.ran.kills = cycle
        self._sample(cycle)
        if self.upheaval is not None:
            self.upheaval.happen()
        self._workers[victim] = self._worker()
        if struck is not None:
            self._clients[struck] = self._client()

    def _bury(self) -> None:
        """Count workers that ended by themselves, and put others in their places."""
        for index, worker in enumerate(self._workers):
            if worker.process.ended():
                self.ran.exits += 1
                self._workers[index] = self._worker()

    def _pause(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            time.sleep(min(left, LOOK_SECONDS))  # the time that is to pass, in parts
            self._let_go_on()

    def _let_go_on(self) -> None:
        """Let workers go on that were stopped until now. Who holds a file's lock keeps all others waiting."""
        for worker in self._workers:
            if worker.stopped_until is not None and time.monotonic() >= worker.stopped_until:
                self._stops.add(go_on=worker.number)
                worker.process.send(signal.SIGCONT)
                worker.stopped_until, worker.brief = None, False

    def _stop_one_but(self, victim: Worker) -> None:
        """Stop a worker with a brief lease that serves, one at a time, until others can have taken over."""
        if any(worker.stopped for worker in self._workers):
            return
        for worker in self._workers:
            if worker.brief and worker is not victim and self._serves(worker) and not worker.process.ended():
                self._stops.add(stop=worker.number)
                worker.process.send(signal.SIGSTOP)
                beyond = self._chance.uniform(0.0, OVER_LEASE_SECONDS)
                worker.stopped_until = time.monotonic() + self._brief_lease_seconds + beyond
                self.ran.stops += 1
                return

    def _come_to_rest(self) -> None:
        """End the faults: all go on, clients begin nothing more. Then wait, and end all in order."""
        while any(worker.stopped for worker in self._workers):
            self._pause(LOOK_SECONDS)
        for worker in self._workers:
            self._await_service(worker)
        for client in self._clients:
            # Who does not listen yet would be ended by the signal, and with it those who answer and mend.
            self._await(self._place.listening(client.number), client.process)
            client.process.send(signal.SIGUSR1)
        self.ran.quiet_seconds = self._wait_until_quiet()
        for client in self._clients:
            _stop(client.process)
        rebuilt = self._start("tests.proof.crash.rebuild")
        if rebuilt.wait(REBUILD_SECONDS) != 0:
            self.ran.quiet_seconds = None
        for worker in self._workers:
            _stop(worker.process)

    def judge(self) -> subprocess.CompletedProcess[str]:
        """Have the run judged, in a process of its own: the judge shares nothing with the judged."""
        return subprocess.run(  # noqa: S603  our own interpreter and our own module
            [sys.executable, "-m", "tests.proof.crash.check", str(self._place.folder)],
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

    def _worker(self) -> Worker:
        self._begun_workers += 1
        number = self._begun_workers
        brief = number % BRIEF_EVERY == WORKERS
        if brief:
            self._stops.add(brief=number)
        lease = (str(self._brief_lease_seconds),) if brief else ()
        return Worker(number, self._start("tests.proof.crash.worker_process", str(number), *lease), brief)

    def _client(self) -> Client:
        self._begun_clients += 1
        number = self._begun_clients
        arguments = (str(number), str(self._seed), str(self._travellers))
        return Client(number, self._start("tests.proof.crash.client_process", *arguments))

    def _start(self, module: str, *arguments: str) -> Forked:
        return Forked(module, (str(self._place.folder), *arguments), self._place.log)

    def _serves(self, worker: Worker) -> bool:
        return self._place.serving(worker.number).exists()

    def _await_service(self, worker: Worker) -> None:
        """Wait until a worker serves. One that is stopped has served before; one that ended never will."""
        self._await(self._place.serving(worker.number), worker.process)

    def _await(self, mark: Path, process: Forked) -> None:
        deadline = time.monotonic() + SERVE_SECONDS
        while not mark.exists() and not process.ended():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{mark.name} did not come within {SERVE_SECONDS:.0f} s")
            self._pause(LOOK_SECONDS)

    def _sample(self, cycle: int) -> None:
        try:
            found = sample(self._place, cycle)
        except AWAY:
            return
        if found is not None:
            self._samples.add(sync=False, **found)

    def _wait_until_quiet(self) -> float | None:
        """Return after how many seconds nothing was left to do; None if that did not come, or if a worker ended."""
        started = time.monotonic()
        asked, still_since = 0, started
        while (waited := time.monotonic() - started) < QUIET_SECONDS:
            if any(worker.process.ended() for worker in self._workers):
                return None
            # A client may be just about to ask for the last that it has begun.
            if (now_asked := self._place.ledger.stat().st_size) != asked or not quiet(self._place, COME_TO_REST):
                asked, still_since = now_asked, time.monotonic()
            elif time.monotonic() - still_since >= STILL_SECONDS:
                return waited
            time.sleep(LOOK_SECONDS)  # between two looks at the tables
        return None


def _kill(process: Forked) -> None:
    if not process.ended():
        process.send(signal.SIGKILL)
        process.wait(STOP_SECONDS)


def _stop(process: Forked) -> None:
    """Ask a process to finish. It may have died by itself, which the checker finds in the log."""
    if not process.ended():
        process.send(signal.SIGTERM)
        process.wait(STOP_SECONDS)
