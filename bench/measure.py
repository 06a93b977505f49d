"""What a run measures of itself and of the machine."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import apsw

REPEATS = 5
FSYNCS = 50

Figures = dict[str, Any]


def seconds_each(run: Callable[[], int], repeats: int = REPEATS) -> list[float]:
    """Return the seconds per unit of work of each repeat; `run` returns how many units it did."""
    figures: list[float] = []
    for _ in range(repeats):
        begun = time.perf_counter()
        units = run()
        figures.append((time.perf_counter() - begun) / units)
    return figures


def percentiles(seconds: Sequence[float]) -> Figures:
    """Return p50, p95 and p99 in milliseconds."""
    ordered = sorted(seconds)
    return {
        f"p{percent}_ms": round(ordered[round(percent / 100 * (len(ordered) - 1))] * 1e3, 3) for percent in (50, 95, 99)
    }


class Meter:
    """Wall time, this process's own CPU time, and how busy others kept the machine meanwhile.

    `server` and `workers` are processes that do part of the work: with their children they are no others.
    """

    def __init__(self, server: int | None = None, workers: Sequence[int] = ()) -> None:
        self._parts = {"server": [] if server is None else [server], "workers": list(workers)}

    def __enter__(self) -> Self:
        self._parts_cpu = self._parts_seconds()
        self._cpu = time.process_time()
        self._busy = _busy_seconds()
        self._begun = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._begun
        self.cpu_seconds = time.process_time() - self._cpu
        self._busy = _busy_seconds() - self._busy
        begun, self._parts_cpu = self._parts_cpu, self._parts_seconds()
        self._parts_cpu = {part: seconds - begun[part] for part, seconds in self._parts_cpu.items()}

    def _parts_seconds(self) -> dict[str, float]:
        return {part: sum(map(cpu_seconds, pids)) for part, pids in self._parts.items() if pids}

    def figures(self, units: int | None = None) -> Figures:
        """Return what was measured; CPU time per unit where there are units."""
        cores = os.cpu_count() or 1
        ours = self.cpu_seconds + sum(self._parts_cpu.values())
        others = max(0.0, self._busy - ours) / (self.seconds * cores)
        figures: Figures = {"seconds": round(self.seconds, 4), "others_busy": round(min(others, 1.0), 2)}
        if units:
            figures["cpu_us_each"] = round(self.cpu_seconds / units * 1e6, 1)
            for part, seconds in self._parts_cpu.items():
                figures[f"{part}_cpu_us_each"] = round(seconds / units * 1e6, 1)
        return figures


def _busy_seconds() -> float:
    """Return the seconds that all cores together were busy since the machine started; 0 where nobody tells."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return 0.0
    user, nice, system, _idle, _waiting, interrupts, soft_interrupts, stolen = map(int, fields)
    return (user + nice + system + interrupts + soft_interrupts + stolen) / os.sysconf("SC_CLK_TCK")


class _Process(NamedTuple):
    pid: int
    parent: int
    seconds: float


def _processes() -> list[_Process]:
    """Return all processes of the machine with the CPU time of each and of those of its children that have ended."""
    found: list[_Process] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name may have spaces and brackets in it: what follows has not.
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        seconds = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        found.append(_Process(int(path.parent.name), int(fields[1]), seconds))
    return found


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and all below it; 0 where nobody tells."""
    processes = _processes()
    family, grown = {pid}, True
    while grown:
        more = {process.pid for process in processes if process.parent in family} - family
        family |= more
        grown = bool(more)
    return sum(process.seconds for process in processes if process.pid in family)


def parent_of(pid: int) -> int | None:
    """Return the process that started this one; None where nobody tells."""
    return next((process.parent for process in _processes() if process.pid == pid), None)


def rss_mb(field: str = "VmHWM", pid: int | None = None) -> float:
    """Return the peak of memory of this process, or of another one's; with `VmRSS` the present use.

    Not from getrusage: there a process that was started by a large one inherits that one's peak.
    """
    try:
        status = Path(f"/proc/{pid or 'self'}/status").read_text()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return round(peak / (2**20 if sys.platform == "darwin" else 1024), 1)
    line = next(line for line in status.splitlines() if line.startswith(field))
    return round(int(line.split()[1]) / 1024, 1)


def disk_bytes(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def fsync_ms(folder: Path) -> float:
    """Return the median time to append 4 KiB to a file and have them on the disk."""
    path = folder / "fsync"
    took: list[float] = []
    with path.open("wb", buffering=0) as file:
        for _ in range(FSYNCS):
            begun = time.perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            took.append(time.perf_counter() - begun)
    path.unlink()
    return round(statistics.median(took) * 1e3, 3)


def machine() -> Figures:
    """Return what a reader needs to judge a figure."""
    return {
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
    }


def median(figures: Sequence[float]) -> float:
    return statistics.median(figures)
