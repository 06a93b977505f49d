"""Cold start: how long Python takes longer with mainspring than without."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import Figures, median
from bench.progress import Progress
from bench.settings import Settings

# What the first and the last are to stay below, in ms beyond bare Python.
IMPORT_TARGET_MS = 120.0
HELP_TARGET_MS = 200.0
BARE = "bare"
COMMANDS = {
    BARE: ("-c", "pass"),
    "package": ("-c", "import mainspring"),
    "workflow": ("-c", "from mainspring import Workflow, Send, Received"),
    "app": ("-c", "from mainspring import Mainspring"),
    "sqlite": ("-c", "from mainspring import Mainspring; from mainspring.stores.sqlite import SqliteStore"),
    "help": ("-m", "mainspring.cli", "--help"),
    "worker_help": ("-m", "mainspring.cli", "worker", "--help"),
}


def run(settings: Settings) -> Figures:
    """Start Python n times in each way, in turns: bare, with mainspring imported, and for its help."""
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    progress = Progress("cold start", settings.n)
    with tempfile.TemporaryDirectory(dir=settings.folder) as compiled:
        for command in COMMANDS.values():  # what is installed is compiled: that is not measured
            _started(command, Path(compiled))
        for number in range(settings.n):
            progress.at(number)
            for name, command in COMMANDS.items():
                took[name].append(_started(command, Path(compiled)))
    progress.end()
    return _figures(took)


def _figures(took: dict[str, list[tuple[float, float]]]) -> Figures:
    """Return wall and CPU time: bare Python's own, and what each of the others takes beyond that."""
    wall, cpu = (
        {name: 1e3 * median([each[kind] for each in pairs]) for name, pairs in took.items()} for kind in (0, 1)
    )
    figures: Figures = {"bare_ms": round(wall[BARE], 1), "bare_cpu_ms": round(cpu[BARE], 1)}
    for name in took.keys() - {BARE}:
        figures[f"{name}_ms"] = round(wall[name] - wall[BARE], 1)
        figures[f"{name}_cpu_ms"] = round(cpu[name] - cpu[BARE], 1)
    ordered = {f"{name}_{kind}": figures[f"{name}_{kind}"] for name in took for kind in ("ms", "cpu_ms")}
    return {**ordered, "import_ms_target": IMPORT_TARGET_MS, "help_ms_target": HELP_TARGET_MS}


def _started(command: tuple[str, ...], compiled: Path) -> tuple[float, float]:
    """Start Python and return the seconds that it took, and those of CPU."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(compiled)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begun = time.perf_counter()
    with subprocess.Popen(  # noqa: S603  this very project
        [sys.executable, *command], stdout=subprocess.DEVNULL, env=environment, cwd=Path(__file__).parent.parent
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed with exit code {process.returncode}: see above.")
    return seconds, used.ru_utime + used.ru_stime


def section(figures: Figures) -> str:
    """Return a result as a few lines for a report."""
    rows = {
        "package": "`import mainspring`",
        "workflow": "`from mainspring import Workflow, Send, Received`",
        "app": "`from mainspring import Mainspring`",
        "sqlite": "the same, and the SQLite store",
        "help": "`mainspring --help`",
        "worker_help": "`mainspring worker --help`",
    }
    table = ["| | ms | CPU ms |", "|---|---|---|"]
    table += [
        f"| {what} | {figures[f'{name}_ms']:.0f} | {figures[f'{name}_cpu_ms']:.0f} |" for name, what in rows.items()
    ]
    end = (
        f"Medians of {figures['n']} starts in turns, beyond bare Python's own {figures['bare_ms']:.0f} ms "
        f"({figures['bare_cpu_ms']:.0f} of CPU). "
        f"Wanted: an import below {IMPORT_TARGET_MS:g}, help below {HELP_TARGET_MS:g}."
    )
    return "\n".join(["## Cold start", "", *table, "", end])
