"""`python -m tests.unit.analysis.figures_of_many --instances 100000`: figures, and a plain computation.

Every figure is held against the one that is computed from all streams in memory, of all time and of a part of it. The
exit code is 1 where one differs.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from mainspring import Mainspring
from mainspring.analysis.figures.figures import Figures, figures_of
from mainspring.analysis.processes import Sharing
from mainspring.engine.runtime import SystemClock
from mainspring.port.records import InstanceFilter
from mainspring.stores.sqlite.store import SqliteStore
from tests.unit.analysis.comparison import check, of
from tests.unit.analysis.generated import FIRST_US, SECOND_US, WORKFLOWS, fill, streams
from tests.unit.analysis.plain_figures import Naive

DAY_US = 86_400 * SECOND_US
WINDOW = (FIRST_US + 10 * DAY_US, FIRST_US + 25 * DAY_US)
ALL_PATHS = 10_000_000


async def _figures(path: Path, count: int) -> tuple[list[tuple[Figures, tuple[int, ...]]], float]:
    store = SqliteStore(path, SystemClock())
    await store.open()
    try:
        await fill(store, count)
        sharing = Sharing(partial(Mainspring, f"sqlite:///{path}"), os.cpu_count() or 1)
        begun = time.perf_counter()
        alone = await figures_of(store, InstanceFilter(), variants=ALL_PATHS)
        seconds = time.perf_counter() - begun
        together = await figures_of(store, InstanceFilter(), variants=ALL_PATHS, sharing=sharing)
        part = await figures_of(store, InstanceFilter(), *WINDOW, variants=ALL_PATHS, sharing=sharing)
        return [(alone, ()), (together, ()), (part, WINDOW)], seconds
    finally:
        await store.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.unit.analysis.figures_of_many",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--instances", type=int, default=100_000, help="how many are generated")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mainspring-many-") as folder:
        found, seconds = asyncio.run(_figures(Path(folder) / "many.db", asked.instances))
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    generated = list(streams(asked.instances))
    for figures, window in found:
        for workflow in WORKFLOWS:
            check(of(figures, workflow), Naive(generated, workflow, *window))
    events = found[0][0].events
    sys.stdout.write(
        f"## Figures of generated instances\n\n| | |\n|---|---|\n| instances | {asked.instances:,} |\n"
        f"| events | {events:,} |\n| events a second, one process | {events / seconds:,.0f} |\n"
        f"| memory at most, MB | {peak_mb:,.0f} |\n| figures that differ from the plain computation | 0 |\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
