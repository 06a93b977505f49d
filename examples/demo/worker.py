"""`python -m examples.demo.worker FOLDER`: a worker of its own, to be killed."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from examples.demo.app import app_of


async def work(folder: Path) -> None:
    """Work until asked to stop."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with app_of(folder):
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1])))
