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
from typing import Any, Self

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
    """Wall time, this process's own CPU time, and how busy others kept the machine meanwhile."""

    def __enter__(self) -> Self:
        self._cpu = time.process_time()
        self._busy = _busy_seconds()
        self._begun = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._begun
        self.cpu_seconds = time.process_time() - self._cpu
        self._busy = _busy_seconds() - self._busy

    def figures(self, units: int | None = None) -> Figures:
        """Return what was measured; CPU time per unit where there are units."""
        cores = os.cpu_count() or 1
        others = max(0.0, self._busy - self.cpu_seconds) / (self.seconds * cores)
        figures: Figures = {"seconds": round(self.seconds, 4), "others_busy": round(min(others, 1.0), 2)}
        if units:
            figures["cpu_us_each"] = round(self.cpu_seconds / units * 1e6, 1)
        return figures


def _busy_seconds() -> float:
    """Return the seconds that all cores together were busy since the machine started; 0 where nobody tells."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return 0.0
    user, nice, system, _idle, _waiting, interrupts, soft_interrupts, stolen = map(int, fields)
    return (user + nice + system + interrupts + soft_interrupts + stolen) / os.sysconf("SC_CLK_TCK")


def rss_mb(field: str = "VmHWM") -> float:
    """Return this process's peak of memory, or with `VmRSS` its present use.

    Not from getrusage: there a process that was started by a large one inherits that one's peak.
    """
    try:
        status = Path("/proc/self/status").read_text()
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
