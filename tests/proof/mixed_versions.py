"""`python -m tests.proof.mixed_versions --from REVISION --cycles 40`: workers of an earlier commit beside this one's.

An upgrade as it happens: workers and clients of an earlier commit are at work on one database, are killed and started
again; then workers of this commit join them, which migrates the database where the schema is newer. From then on old
ones must drain and end by themselves, or go on beside the new ones where the schema is the same. In the end all of the
old ones are gone, and a judge reads the streams and what handlers did: nothing lost, nothing doubled, all of it decided
as today. The earlier commit's sources come from git: without its history there is nothing to run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from mainspring.testing import HistoryChanged, replay_histories, save_histories
from tests.proof.golden.client import told
from tests.proof.golden.golden_app import Hands, made, shop
from tests.proof.golden.judge import faults
from tests.proof.golden.operator import mend, rest
from tests.proof.golden.reading import MOST, read
from tests.proof.golden.revisions import NoHistoryError, checked_out, start
from tests.proof.golden.worker import NEWER, UNAWARE
from tests.support.postgres.server import Server

EARLIEST_SECONDS: Final = 0.3
LATEST_SECONDS: Final = 1.5
WORKERS: Final = 3
UPGRADE: Final = 0.3
"""After this part of the cycles workers of this commit join."""
CLIENT_DIES: Final = 0.2
UNREADY: Final = 0.15
"""So often nobody waits until a process has started."""
# A worker looks at the schema with every heartbeat, and may then finish what it runs.
DRAINS_SECONDS: Final = 45.0
STOPS_SECONDS: Final = 40.0


class Process(NamedTuple):
    """One of a run's processes."""

    process: subprocess.Popen[bytes]
    old: bool


class Rolling:
    """One upgrade in one folder."""

    def __init__(self, url: str, old: Path, folder: Path, seed: int) -> None:
        self._url = url
        self._old = old
        self._seed = seed
        self._effects = folder / "effects.jsonl"
        self._ledger = folder / "ledger.jsonl"
        self._folder = folder
        self._chance = random.Random(seed)  # noqa: S311  no secret
        self._started = 0
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def run(self, cycles: int, progress: Callable[[int], None]) -> None:
        """Kill and start again so many times, then let the new ones finish."""
        workers: list[Process] = []
        clients: list[Process] = []
        try:
            for cycle in range(cycles):
                upgraded = cycle >= cycles * UPGRADE
                self._fill(workers, "tests.proof.golden.worker", WORKERS, upgraded=upgraded)
                self._fill(clients, "tests.proof.golden.client", 1, upgraded=upgraded)
                # The moment of the kill is the subject here: nothing to wait for but time.
                time.sleep(self._chance.uniform(EARLIEST_SECONDS, LATEST_SECONDS))
                self._bury(workers)
                self._bury(clients)
                if workers:
                    self._kill(workers.pop(self._chance.randrange(len(workers))))
                if clients and self._chance.random() < CLIENT_DIES:
                    self._kill(clients.pop())
                progress(cycle + 1)
            for client in clients:
                self._stop(client)
            # Two, so that one certainly works while the other may still start.
            workers += [self._start("tests.proof.golden.worker", old=False) for _ in range(2)]
            self._drain(workers)
            asyncio.run(self._judge())
            for worker in workers:
                self._stop(worker)
        finally:
            for process in (*workers, *clients):
                self._kill(process, counted=False)

    def _fill(self, running: list[Process], module: str, count: int, *, upgraded: bool) -> None:
        while len(running) < count:
            running.append(self._start(module, old=not upgraded or self._chance.random() < 0.5))

    def _start(self, module: str, *, old: bool) -> Process:
        self._started += 1
        own = (
            [str(self._effects)]
            if module.endswith("worker")
            else [str(self._ledger), f"c{self._started}", str(self._seed)]
        )
        self.counts["old started" if old else "new started"] += 1
        process = start(self._old if old else None, module, self._url, *own, stdout=subprocess.PIPE)
        if self._chance.random() >= UNREADY:
            # It says when it works. One that ends instead has an end that is looked at.
            select.select([stream for stream in (process.stdout,) if stream], [], [], STOPS_SECONDS)
        return Process(process, old)

    def _bury(self, running: list[Process]) -> None:
        """Take out who ended. Only old ones may, and only because of a newer schema."""
        for process in [p for p in running if p.process.poll() is not None]:
            running.remove(process)
            self._ended(process)

    def _ended(self, process: Process) -> None:
        code = process.process.returncode
        if code == UNAWARE:
            raise NoHistoryError("workers of that commit do not know that a schema can be newer")
        if process.old and code == NEWER:
            self.counts["old drained"] += 1
        else:
            self.wrong.append(f"a process of {'the earlier' if process.old else 'this'} commit ended with {code}")

    def _drain(self, workers: list[Process]) -> None:
        """Wait for the old ones where the schema is newer; where it is the same, ask them to stop."""
        deadline = time.monotonic() + (DRAINS_SECONDS if self.counts["old drained"] else 0)
        for worker in [w for w in workers if w.old]:
            workers.remove(worker)
            try:
                worker.process.wait(max(0.0, deadline - time.monotonic()))
                self._ended(worker)
            except subprocess.TimeoutExpired:
                if self.counts["old drained"]:
                    self.wrong.append(f"a worker of the earlier commit did not end in {DRAINS_SECONDS:g} s")
                self._stop(worker)

    def _kill(self, process: Process, *, counted: bool = True) -> None:
        if process.process.poll() is None:
            self.counts["killed"] += counted
            os.kill(process.process.pid, signal.SIGKILL)
            process.process.wait(STOPS_SECONDS)

    def _stop(self, process: Process) -> None:
        if process.process.poll() is None:
            process.process.send_signal(signal.SIGTERM)
        code = process.process.wait(STOPS_SECONDS)
        # SIGTERM also ends who has not even started.
        if code not in (0, -signal.SIGTERM, NEWER if process.old else 0):
            self.wrong.append(f"a process that was asked to stop ended with {code}")

    async def _judge(self) -> None:
        app = shop(self._url, Hands(self._folder / "none"))
        await app.start(work=False)
        try:
            while await app.tasks.list(role="clerk", limit=1):
                await mend(app)
            try:
                await rest(app)
            except AssertionError:
                self.wrong.append("it did not come to rest")
            found = await read(app)
            asked = told(self._ledger)
            self.counts["inputs acknowledged"] = len(asked)
            self.counts["instances"] = len(found)
            self.wrong += faults(found, made(self._effects), sorted(set(asked)))
            histories = self._folder / "histories.json"
            await save_histories(app, histories, limit=MOST)
        finally:
            await app.stop()
        try:
            self.counts["inputs decided again"] = replay_histories(app, histories)
        except HistoryChanged as changed:
            self.wrong.append(str(changed))


def rolled(store: str, revision: str, cycles: int, seed: int) -> Rolling:
    """Run one upgrade, and return what came of it."""
    folder = Path(tempfile.mkdtemp(prefix="mainspring-mixed-"))
    server = Server(settings={"fsync": "off"}) if store == "postgres" else None
    try:
        if server is not None:
            server.start()
        url = f"sqlite:///{folder / 'mixed.db'}" if server is None else server.url
        rolling = Rolling(url, checked_out(revision, folder / "commit"), folder, seed)
        rolling.run(cycles, lambda cycle: _progress(store, revision, cycle, cycles))
    finally:
        if server is not None:
            server.remove()
    if not rolling.wrong:
        shutil.rmtree(folder)
    else:
        sys.stderr.write(f"the files are in {folder}\n")
    return rolling


def _progress(store: str, revision: str, cycle: int, cycles: int) -> None:
    if cycle % max(1, cycles // 10) == 0:
        sys.stderr.write(f"{store}, from {revision}: {cycle} of {cycles} kills\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proof.mixed_versions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--from", dest="revisions", action="append", required=True, help="an earlier commit; repeatable"
    )
    parser.add_argument("--cycles", type=int, default=40, help="how often a worker is killed in each upgrade")
    parser.add_argument(
        "--store", choices=("sqlite", "postgres"), action="append", help="only this one (default: both)"
    )
    parser.add_argument("--seed", type=int, default=None, help="repeat a run, as far as timing allows")
    asked = parser.parse_args()
    # Whoever ends a run ends its processes and its server too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    lines = [
        "## Mixed versions",
        "",
        "| from | store | kills | old drained | inputs | violations |",
        "|---|---|---|---|---|---|",
    ]
    wrong = 0
    try:
        for revision in asked.revisions:
            for store in asked.store or ("sqlite", "postgres"):
                run = rolled(store, revision, asked.cycles, seed)
                cells = (
                    run.counts["killed"],
                    run.counts["old drained"],
                    run.counts["inputs acknowledged"],
                    len(run.wrong),
                )
                lines.append(f"| {revision} | {store} | {' | '.join(f'{cell:,}' for cell in cells)} |")
                sys.stderr.write("".join(f"{store}, from {revision}, seed {seed}: {what}\n" for what in run.wrong[:20]))
                wrong += len(run.wrong)
    except NoHistoryError as reason:
        lines = ["## Mixed versions", "", f"skipped: {reason}"]
    sys.stdout.write("\n".join(lines) + f"\n\nseed {seed}\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
