"""`python -m tests.proof.broker_faults.worker_process FOLDER URL OPTIONS`: a worker to be killed."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any, Final

from msgspec import json

from mainspring.brokers import nats_publishing
from tests.proof.broker_faults.parcels import work

CONFIRM_SECONDS: Final = 2


def main(folder: str, url: str, options: str) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s worker %(levelname)s %(message)s")
    # A server that was killed never answers: nobody waits long for that here.
    module: Any = nats_publishing
    module.CONFIRM_SECONDS = CONFIRM_SECONDS
    asyncio.run(work(Path(folder), url, json.decode(options)))


if __name__ == "__main__":
    main(*sys.argv[1:])
