"""A server that is flooded, and how it went for whoever asked about its health."""

from __future__ import annotations

import http.client
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.proof.floods.attacks import BODY

ROOT: Final = Path(__file__).parents[3]
SHOP: Final = """\
from mainspring import Mainspring
from mainspring.testing.samples import Counter

app = Mainspring("sqlite:///shop.db")
app.add(Counter())
"""
FILES: Final = 1_024
"""As many as most machines let a process open."""
STARTED_SECONDS: Final = 60.0
ASKED_SECONDS: Final = 20.0
"""Who waits longer for health than this takes the process for dead."""
PAUSE_SECONDS: Final = 0.02
GROWTH_MB: Final = 100.0
LOG_LINES: Final = 400


@dataclass(frozen=True)
class Flood:
    """One of them: what is sent, for how long, on how many connections, to a server with so many files."""

    kind: str
    seconds: float
    connections: int
    files: int = FILES
    most_mb: float = GROWTH_MB


@dataclass(frozen=True)
class Seen:
    """How it went."""

    flood: Flood
    opened: int
    sent_mb: float
    memory_mb: tuple[float, float]
    healths: list[tuple[int, float]]
    log_lines: int
    works: bool

    @property
    def faults(self) -> list[str]:
        """What must not be."""
        wrong = [status for status, _ in self.healths if status != 200]
        grown = self.memory_mb[1] - self.memory_mb[0]
        return [
            *([f"{len(wrong)} of {len(self.healths)} times health was {sorted(set(wrong))}"] if wrong else []),
            *([] if self.healths else ["nobody asked about health"]),
            *([f"it grew by {grown:,.0f} MB"] if grown > self.flood.most_mb else []),
            *([f"{self.log_lines:,} lines in the log"] if self.log_lines > LOG_LINES else []),
            *([] if self.works else ["no message was taken behind it"]),
        ]

    def line(self) -> str:
        """Return it as a row of a table."""
        waits = sorted(seconds * 1_000 for _, seconds in self.healths)
        good = sum(status == 200 for status, _ in self.healths)
        before, peak = self.memory_mb
        return (
            f"| {self.flood.kind} | {self.flood.files:,} | {self.flood.connections:,} | {self.opened:,} | "
            f"{self.sent_mb:,.0f} | {before:,.0f} → {peak:,.0f} | {good:,} of {len(waits):,} | "
            f"{waits[len(waits) // 2]:,.0f} | {waits[-1]:,.0f} | {self.log_lines:,} |"
        )


HEAD: Final = (
    "| flood | files | at once | opened | MB sent | MB of memory, before → peak | health answered | median ms | "
    "worst ms | log lines |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
)


def run(flood: Flood) -> Seen:
    """Let one go on, and ask about health meanwhile."""
    with tempfile.TemporaryDirectory() as folder, _serving(Path(folder), flood.files) as (pid, port):
        _ask(port)  # it has imported everything by then
        _count(port)
        before = _memory_mb(pid, "VmRSS")
        told = [sys.executable, "-m", "tests.proof.floods.attacks", flood.kind, str(port)]
        told += [str(flood.seconds), str(flood.connections)]
        with subprocess.Popen(told, cwd=ROOT, stdout=subprocess.PIPE, text=True) as attacking:  # noqa: S603  our own
            healths: list[tuple[int, float]] = []
            while attacking.poll() is None:
                healths.append(_ask(port))
                time.sleep(PAUSE_SECONDS)  # between two looks
            done = json.loads(attacking.communicate()[0])
        works = _count(port)
        peak = _memory_mb(pid, "VmHWM")
        lines = len((Path(folder) / "log").read_text(errors="replace").splitlines())
    return Seen(flood, done["opened"], done["sent_bytes"] / 1e6, (before, peak), healths, lines, works)


@contextmanager
def _serving(folder: Path, files: int) -> Generator[tuple[int, int]]:
    """Serve an app in a process of its own that may open so many files."""
    (folder / "shop.py").write_text(SHOP)
    command = [sys.executable, "-m", "mainspring.cli", "studio", "shop:app", "--work", "--port", "0"]
    limit = (files, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(  # noqa: S603  our own
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit),  # noqa: PLW1509  nothing else runs
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
            assert found, f"{line}{(folder / 'log').read_text()}"
            yield process.pid, int(found[1])
        finally:
            process.terminate()
            try:
                process.wait(STARTED_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _ask(port: int, method: str = "GET", path: str = "/api/health", body: bytes | None = None) -> tuple[int, float]:
    """Return the status of an answer on a connection of its own, 0 where there is none, and how long it took."""
    began = time.monotonic()
    asking = http.client.HTTPConnection("localhost", port, timeout=ASKED_SECONDS)
    try:
        asking.request(method, path, body)
        answer = asking.getresponse()
        answer.read()
        return answer.status, time.monotonic() - began
    except (OSError, http.client.HTTPException):
        return 0, time.monotonic() - began
    finally:
        asking.close()


def _count(port: int) -> bool:
    """Send a message, and tell whether it was taken: the flood is over, but not all of it may be known yet."""
    ends = time.monotonic() + ASKED_SECONDS
    while time.monotonic() < ends:
        path = BODY.split()[1].decode()
        if _ask(port, "POST", path, b'{"counter": "c-1"}')[0] == 200:
            return True
        time.sleep(PAUSE_SECONDS)  # as above
    return False


def _memory_mb(pid: int, which: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{which}:\s+(\d+) kB", status)[1]) / 1_024  # pyright: ignore[reportOptionalSubscript]  Linux has it
