"""Repeats and medians, and the machine's facts beside every figure."""

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

REPEATS = 5


def seconds_each(run: Callable[[], int], repeats: int = REPEATS) -> list[float]:
    """Return the seconds per unit of work of each repeat; `run` returns how many units it did."""
    figures: list[float] = []
    for _ in range(repeats):
        begun = time.perf_counter()
        units = run()
        figures.append((time.perf_counter() - begun) / units)
    return figures


def median(figures: list[float]) -> float:
    return statistics.median(figures)


def machine() -> dict[str, Any]:
    """What a reader needs to judge a figure."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
    }


def emit(as_json: bool, lines: list[str], **fields: Any) -> None:
    """Print a result as one JSON line, or as the lines that people read."""
    if as_json:
        sys.stdout.write(json.dumps({**fields, **machine()}) + "\n")
    else:
        sys.stdout.write("\n".join(lines) + "\n")
