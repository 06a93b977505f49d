"""`python -m tests.proof.crash.client_process FOLDER NUMBER SEED TRAVELLERS`: a client, and people who answer.

SIGUSR1: begin nothing more. SIGTERM: end. In between, people go on to answer tasks and to mend what is stuck.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import sys
from pathlib import Path

from tests.proof.crash.client import Client
from tests.proof.crash.files import Place, read_lines
from tests.proof.crash.operators import Operators
from tests.proof.crash.saga_handlers import add_errands
from tests.proof.crash.worker import app_of, clock_watched, started
from tests.proof.histories.slates import add_slates, write_slates


async def main(place: Place, number: str, seed: int, travellers: int) -> None:
    app = app_of(place)
    add_errands(app, place)
    add_slates(app)
    chance = random.Random(f"{seed}-{number}")  # noqa: S311  no secret
    client = Client(app, place, chance, number)
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, client.stopping.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    place.listening(int(number)).touch()
    await started(app, work=False)
    operators = Operators(app, place, client, chance, number)
    looking_after = asyncio.ensure_future(operators.look_after())
    try:
        await client.repeat_unknown(read_lines(place.ledger))
        travels = (client.travel(f"j{number}-{n}") for n in range(travellers))
        slates = write_slates(app, place, chance, number, client.stopping)
        await asyncio.gather(*travels, operators.run_errands(), slates)
        await ending.wait()
    finally:
        looking_after.cancel()
        await app.stop()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s client %(levelname)s %(message)s")
    with clock_watched(own := Place(Path(sys.argv[1]))):
        asyncio.run(main(own, sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
