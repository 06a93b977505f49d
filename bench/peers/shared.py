"""What every peer's run shares. It runs in the peer's own environment, so it imports nothing but Python's own."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STEPS = ("validate", "charge", "ship")
# The same as in W5 of mainspring's own.
HANDLER_SECONDS = 0.02
# So many sleep in W6 before the others, to see how long it takes to put them to sleep.
REHEARSED = 100
SPARE = 1.6
SPARE_SECONDS = 1.0
PATIENCE_SECONDS = 300.0
# Seldom, so that asking costs the peer nothing: a reader of SQLite's old journal holds up who writes.
POLL_SECONDS = 0.05

Figures = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """One run: `setting` is `default` or `best`, `store` `sqlite`, `postgres` or `own`. `url` and `schema` of a server.

    `folder` is the run's own. `tools` is where the peer is installed. `knobs` change the setting, for trials.
    """

    workload: str
    setting: str
    store: str
    n: int
    folder: str
    url: str = ""
    schema: str = ""
    tools: str = ""
    knobs: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def path(self) -> Path:
        return Path(self.folder)

    @property
    def best(self) -> bool:
        return self.setting == "best"


def asked(text: str) -> Asked:
    return Asked(**json.loads(text))


class NotDoneError(Exception):
    """The peer has not done what it was asked for, or not durably: there is no figure."""


def must(what: str, found: object, wanted: object) -> None:
    """Check a fact on which a figure rests."""
    if found != wanted:
        raise NotDoneError(f"{what}: {found!r}, not {wanted!r}")


def order(number: int) -> dict[str, Any]:
    """The same order as mainspring's own runs have."""
    return {
        "id": f"order-{number:07d}",
        "customer": "c-4711",
        "currency": "EUR",
        "lines": [{"sku": "A-100", "qty": 1, "price": 1999}, {"sku": "B-200", "qty": 3, "price": 499}],
        "address": {"city": "Utrecht", "zip": "3511"},
        "note": "leave at the door",
    }


# ---- what a handler does


class Work:
    """What handlers do: nothing; with a ledger they take 20 ms and then leave a line there."""

    def __init__(self, ledger: str | None = None) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._file = None if ledger is None else os.open(ledger, flags, 0o600)

    def do(self, step: str, placed: dict[str, Any]) -> dict[str, Any]:
        if self._file is not None:
            time.sleep(HANDLER_SECONDS)  # a handler that takes a while
            self.note(f"{placed['id']} {step}")
        return {"id": placed["id"], "step": step, "ok": True}

    async def do_async(self, step: str, placed: dict[str, Any]) -> dict[str, Any]:
        if self._file is not None:
            await asyncio.sleep(HANDLER_SECONDS)  # as above
            self.note(f"{placed['id']} {step}")
        return {"id": placed["id"], "step": step, "ok": True}

    def note(self, line: str) -> None:
        """Leave a line: one write, there whole or not at all when the process is killed."""
        if self._file is not None:
            os.write(self._file, f"{line}\n".encode())


def effects_of(ledger: Path, n: int) -> Figures:
    """Return how many handlers ran more than once, and check that none never ran."""
    runs = Counter(ledger.read_text().rpartition("\n")[0].splitlines())
    must("handlers that ran", len(runs), len(STEPS) * n)
    return {"effects_run_twice": sum(times > 1 for times in runs.values()), "lost": 0}


# ---- measuring


def percentiles(seconds: Sequence[float]) -> Figures:
    """Return p50, p95 and p99 in milliseconds, as for mainspring."""
    ordered = sorted(seconds)
    return {
        f"p{percent}_ms": round(ordered[round(percent / 100 * (len(ordered) - 1))] * 1e3, 3) for percent in (50, 95, 99)
    }


def throughput(n: int, seconds: float) -> Figures:
    return {"instances_per_s": round(n / seconds, 1), "seconds": round(seconds, 4)}


def until(
    count: Callable[[], int], wanted: int, seconds: float = PATIENCE_SECONDS, *, poll_seconds: float = POLL_SECONDS
) -> int:
    """Wait until there are so many, and return how many there are."""
    deadline = time.monotonic() + seconds
    while (found := count()) < wanted:
        if time.monotonic() > deadline:
            raise NotDoneError(f"{found} of {wanted} were done after {seconds:.0f} s")
        time.sleep(poll_seconds)  # another process: it is asked
    return found


def lead_seconds(n: int, rehearsed_seconds: float) -> float:
    """Return how far ahead the moment is to which n are put to sleep, after what the rehearsal took."""
    return SPARE_SECONDS + SPARE * rehearsed_seconds * n / REHEARSED


def rss_mb(pids: Sequence[int] | None = None) -> float:
    """Return the peak of memory of processes together: this one's, unless others are named."""
    total = 0
    for pid in pids or (os.getpid(),):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        total += next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    # Where nobody tells, at least one's own.
    return round((total or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024, 1)


def disk_bytes(folder: Path) -> int:
    """Return the bytes of all files in a folder; those that go away meanwhile have none."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def end_on_sigterm() -> None:
    """Let whoever ends this process end those that it has started, too."""
    signal.signal(signal.SIGTERM, _ended)


def _ended(*_: object) -> None:
    raise SystemExit("ended")


def emit(figures: Figures) -> None:
    """Print the run's figures: the last line counts, whatever the peer has printed before."""
    sys.stdout.write("\n" + json.dumps(figures) + "\n")
    sys.stdout.flush()
