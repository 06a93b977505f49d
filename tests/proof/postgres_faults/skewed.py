"""`python -m tests.proof.postgres_faults.skewed FOLDER GENERATION SECONDS`: a worker whose clock is wrong."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from pathlib import Path

from tests.proof.crash import files
from tests.proof.crash.worker import app_of, clock_watched, started


def skew(seconds: int) -> None:
    """Set the clock of this process; what is written down for the judge keeps the right time."""
    right = time.time_ns
    files.now_us = lambda: right() // 1_000
    time.time_ns = lambda: right() + seconds * 1_000_000_000
    time.time = lambda: time.time_ns() / 1e9


async def work(place: files.Place, generation: int) -> None:
    """Work until asked to stop."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    app = app_of(place, generation)
    await started(app, work=True)
    await stop.wait()
    await app.stop()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s skewed %(levelname)s %(message)s")
    skew(int(sys.argv[3]))
    with clock_watched(own := files.Place(Path(sys.argv[1]))):
        asyncio.run(work(own, int(sys.argv[2])))
