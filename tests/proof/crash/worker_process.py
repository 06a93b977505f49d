"""`python -m tests.proof.crash.worker_process FOLDER NUMBER [LEASE_SECONDS]`: a worker to be killed or stopped."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

from mainspring.engine import engine
from tests.proof.crash.files import Place
from tests.proof.crash.saga_handlers import add_errands
from tests.proof.crash.worker import app_of, work
from tests.proof.histories.slates import add_slates


def main(folder: str, number: str, lease_seconds: str | None = None) -> None:
    # What is expected (a despair that gives up) is logged as an error; what is not comes as a traceback.
    logging.basicConfig(level=logging.WARNING, format=f"%(asctime)s worker {number} %(levelname)s %(message)s")
    if lease_seconds is not None:
        module: Any = engine
        module.LEASE_SECONDS, module.HEARTBEAT_SECONDS = float(lease_seconds), float(lease_seconds) / 3
    place = Place(Path(folder))
    app = app_of(place, int(number))
    add_errands(app, place)
    add_slates(app)
    asyncio.run(work(place, int(number), app))


if __name__ == "__main__":
    main(*sys.argv[1:])
