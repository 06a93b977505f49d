"""Who takes part in the comparison, with how much of each workload, and how one run of it is made."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, json, structs

from bench.measure import Figures
from bench.peers import install
from bench.rounds import one_round
from bench.servers import own_schema
from bench.settings import Settings

ROOT: Final = Path(__file__).parent.parent
PEER_SECONDS: Final = 300
END_SECONDS: Final = 30
STORES: Final = {"sqlite": "SQLite", "postgres": "PostgreSQL", "own": "its own"}

# The long chain is a workload beside the short one: the times of both make a ratio.
WORKLOADS: Final = ("w1", "w2", "w3", "w3-long", "w4", "w5", "w6")
# What takes long is done in every second round by those whose spread matters less: peers, and mainspring's default.
SLOW: Final = frozenset({"w3-long", "w5", "w6"})

SIZES: Final = {"w1": 10_000, "w2": 300, "w3": 1_000, "w3-long": 5_000, "w4": 1_000, "w5": 1_000, "w6": 10_000}
# A rate needs no more orders than last some seconds; fewer timers than ours are to the peer's advantage.
FEWER: Final[Mapping[str, Mapping[str, int]]] = {
    "DBOS": {"w1": 600, "w6": 500},
    "Restate": {"w1": 3_000, "w6": 3_000},
}
QUICK: Final = {"w1": 200, "w2": 20, "w3": 50, "w3-long": 250, "w4": 50, "w5": 300, "w6": 200}

# Worker processes for W1 at its best; none: the process that sends works too. On SQLite more of them bring nothing, for
# one writes at a time.
WORKERS_AT_BEST: Final = {"sqlite": 0, "postgres": 2}

BARE: Final = "bare limit"
MAINSPRING: Final = "mainspring"
DBOS: Final = "DBOS"
RESTATE: Final = "Restate"

OURS: Final = {"w3-long": "w3", "w5": "w5-restart"}
LIMITS: Final = {"w1": "limit", "w2": "limit-loop"}


class RunError(Exception):
    """A run has ended without a figure."""


class Contender(Struct, frozen=True):
    """An engine on a store in a setting, which is `default`, `best`, or for the limit none."""

    engine: str
    store: str
    setting: str = ""

    @property
    def name(self) -> str:
        words = [self.engine, STORES[self.store]] if self.store != "own" else [self.engine]
        return ", ".join([*words, self.setting] if self.setting else words)

    @property
    def is_peer(self) -> bool:
        return self.engine in (DBOS, RESTATE)

    def takes_part(self, workload: str, round: int) -> bool:
        if self.engine == BARE:
            return workload in LIMITS
        seldom = self.is_peer or self.setting == "default"
        return not (seldom and workload in SLOW and round % 2)

    def size(self, workload: str, *, quick: bool) -> int:
        return QUICK[workload] if quick else FEWER.get(self.engine, {}).get(workload, SIZES[workload])


SETTINGS: Final = ("default", "best")
CONTENDERS: Final = (
    *(Contender(BARE, store) for store in ("sqlite", "postgres")),
    *(Contender(MAINSPRING, store, setting) for store in ("sqlite", "postgres") for setting in SETTINGS),
    *(Contender(DBOS, store, setting) for store in ("sqlite", "postgres") for setting in SETTINGS),
    *(Contender(RESTATE, "own", setting) for setting in SETTINGS),
)

Run = Callable[[Contender, str, Settings], Figures]


def run(contender: Contender, workload: str, settings: Settings) -> Figures:
    """Make one run, in processes and a folder of its own."""
    settings = structs.replace(settings, store=contender.store)
    if contender.store != "postgres":
        settings = structs.replace(settings, server="", server_pid=None)
    if contender.is_peer:
        return _peer(contender, workload, settings)
    name = LIMITS[workload] if contender.engine == BARE else OURS.get(workload, workload)
    best = contender.setting == "best"
    workers = WORKERS_AT_BEST[contender.store] if best and workload == "w1" else 0
    try:
        figures = one_round(name, structs.replace(settings, tuned=best, workers=workers))
    except SystemExit as reason:
        raise RunError(str(reason)) from None
    if figures.get("completed_at_kill") == settings.n:
        raise RunError("all had completed before the kill")
    return figures


def _peer(contender: Contender, workload: str, settings: Settings) -> Figures:
    peer = contender.engine.lower()
    with (
        tempfile.TemporaryDirectory(prefix="mainspring-bench-", dir=settings.folder) as folder,
        own_schema(structs.replace(settings, folder=folder)) as own,
    ):
        asked = {
            "workload": workload.partition("-")[0],
            "setting": contender.setting,
            "store": contender.store,
            "n": settings.n,
            "folder": folder,
            "url": own.server,
            "schema": own.schema if own.server else "",
            "tools": str(install.PLACE / peer),
        }
        return printed([str(install.python(peer)), "-m", f"bench.peers.{peer}_runs", json.encode(asked).decode()])


def printed(command: list[str]) -> Figures:
    """Return the last line that a peer's run prints."""
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=told, cwd=ROOT)  # noqa: S603  our own
        try:
            lines, _ = process.communicate(timeout=PEER_SECONDS)
        except subprocess.TimeoutExpired:
            raise RunError(f"not done after {PEER_SECONDS} s") from None
        finally:
            end(process)
        if process.returncode != 0:
            told.seek(0, os.SEEK_SET)
            said = told.read().decode(errors="replace").strip().splitlines()
            raise RunError(said[-1] if said else f"exit code {process.returncode}")
    return json.decode(lines.splitlines()[-1], type=Figures)


def end(process: subprocess.Popen[bytes]) -> None:
    """Let a run end itself and what it has started; kill it if it does not."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.communicate(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
