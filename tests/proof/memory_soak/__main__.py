"""`python -m tests.proof.memory_soak --minutes 60`: does a worker that runs for long keep its size, and its store too?

One process is client and worker. Jobs begin and end at a steady rate: by a handler's result, after a retry, by a timer,
or with a dead letter, which is discarded; a subscriber hears of them, a read model lists those that run, and ended ones
are purged after a few seconds. First 9,000 of them fill the caches, as fast as they can; memory is sampled after that.
Behind a warm-up of a quarter of the run, the medians of the first and the last tenth may differ by 5 %, without the
cache of pages, which has a bound of its own. A store with retention grows by the tombstones only.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import signal
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from bench.servers import own_server
from mainspring import Mainspring
from mainspring.app import purging
from mainspring.app.internals import internals_of
from mainspring.app.tuning import tune_process
from tests.proof.memory_soak.figures import Sample, judge, plot, rss_bytes
from tests.proof.memory_soak.load import Client, jobs

# So many fill SQLite's cache of pages to its bound: while it grows, so does what malloc keeps around it.
FILLING_JOBS = 9_000
FILLING_AT_ONCE = 40
RETENTION = timedelta(seconds=20)
PURGE_ROUND_SECONDS = 10.0
SAMPLES = 600


def main() -> int:
    asked = _parser().parse_args()
    # Whoever ends the run ends its server too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # The purge's own minute is long for a run of minutes.
    purging.ROUND_SECONDS = PURGE_ROUND_SECONDS  # pyright: ignore[reportAttributeAccessIssue]
    tune_process()
    # Dead letters are part of the load.
    logging.getLogger("mainspring.engine").setLevel(logging.CRITICAL)
    with _stored(asked.store) as (url, size):
        samples = asyncio.run(_run(asked, url, size))
    verdict = judge(samples)
    asked.plot.parent.mkdir(parents=True, exist_ok=True)
    title = f"{asked.store}, {asked.rate} jobs a second: {samples[-1].ended:,} jobs in {asked.minutes:g} minutes"
    asked.plot.write_text(plot(samples, title))
    sys.stdout.write(_report(asked, samples, verdict.violations))
    return int(bool(verdict.violations))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.proof.memory_soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=60, help="how long (default: %(default)s)")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite", help="where the streams are")
    parser.add_argument("--rate", type=float, default=40, help="jobs begun a second (default: %(default)s)")
    parser.add_argument("--plot", type=Path, default=Path("build/memory_soak.svg"), help="where the picture goes")
    return parser


@contextmanager
def _stored(store: str) -> Generator[tuple[str, Any]]:
    """Return the URL of a fresh store, and a function that tells its size."""
    with tempfile.TemporaryDirectory(prefix="mainspring-memory-") as name:
        folder = Path(name)
        if store == "sqlite":
            yield f"sqlite:///{folder}/soak.db", lambda: _file_size(folder)
            return
        folder.chmod(0o755)  # root starts the server as somebody else, who has to get there
        server = own_server(folder)
        try:
            yield server.url, lambda: _database_size(server.url)
        finally:
            server.remove()


async def _file_size(folder: Path) -> int:
    # The log beside the file has a size of its own, which comes and goes.
    return (folder / "soak.db").stat().st_size


async def _database_size(url: str) -> int:
    library: Any = asyncpg
    connection = await library.connect(url)
    try:
        return await connection.fetchval("SELECT pg_database_size(current_database())")
    finally:
        await connection.close()


async def _run(asked: argparse.Namespace, url: str, size: Any) -> list[Sample]:
    app = jobs(url, RETENTION)
    samples: list[Sample] = []
    async with app:
        client = Client(app)
        await client.start_many(FILLING_JOBS, FILLING_AT_ONCE)
        begun, seconds = time.monotonic(), asked.minutes * 60
        load = asyncio.create_task(_load(client, asked.rate, begun + seconds))
        pause = max(seconds / SAMPLES, 0.5)
        while not load.done():
            await asyncio.wait({load}, timeout=pause)
            samples.append(await _sample(app, client, time.monotonic() - begun, await size()))
            _progress(samples, seconds)
        await load
    return samples


async def _load(client: Client, rate: float, ends: float) -> None:
    """Begin jobs at a steady rate, however long each takes; no more at once than are begun in ten seconds."""
    room = asyncio.Semaphore(max(1, round(10 * rate)))
    due = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        while due < ends:
            await asyncio.sleep(max(0.0, due - time.monotonic()))  # a sample is due then
            await room.acquire()
            tasks.create_task(client.start()).add_done_callback(lambda _: room.release())
            due = max(due + 1 / rate, time.monotonic() - 1)


async def _sample(app: Mainspring, client: Client, seconds: float, stored: int) -> Sample:
    return Sample(
        seconds, rss_bytes(), stored, client.ended, internals_of(app).engine.stepper.lanes.count, apsw.memory_used()
    )


def _progress(samples: list[Sample], seconds: float) -> None:
    if len(samples) % max(1, SAMPLES // 60) == 0:
        last = samples[-1]
        sys.stderr.write(
            f"{last.seconds / 60:6.1f} of {seconds / 60:g} min: {last.ended:,} jobs, {last.rss / 1e6:.1f} MB in "
            f"memory, {last.stored / 1e6:.1f} MB stored, "
            f"{last.cached / 1e6:.1f} MB cached, {len(gc.get_objects()):,} objects\n"
        )


def _report(asked: argparse.Namespace, samples: list[Sample], violations: list[str]) -> str:
    verdict = judge(samples)
    before, after = verdict.rss_before / 1e6, verdict.rss_after / 1e6
    rows = [
        f"- {asked.minutes:g} minutes on {asked.store}: {samples[-1].ended:,} jobs at {asked.rate:g} a second",
        f"- memory {before:.1f} MB after the warm-up, {after:.1f} MB at the end: {verdict.drift:+.2%} (5 % allowed)",
        f"- beside it SQLite held {verdict.cached / 1e6:.1f} MB at most",
        f"- store {samples[-1].stored / 1e6:.1f} MB, {verdict.bytes_each:.0f} bytes for each ended job",
        f"- picture: {asked.plot}",
        f"- violations: {'; '.join(violations) or 'none'}",
    ]
    return "\n## Memory soak\n\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())
