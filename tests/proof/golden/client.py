"""`python -m tests.proof.golden.client URL LEDGER NAME SEED`: sends orders and trips until stopped.

It runs with any commit's sources, says `working` when it has started, and writes down what it was told. One that met a
newer schema ends with exit code 3.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import sys
from pathlib import Path
from typing import Any, Final

from mainspring import Mainspring, MainspringError
from mainspring.errors import NewerSchemaError
from tests.proof.crash.files import Lines, read_lines
from tests.proof.golden.golden_app import Hands, knows_trips, shop
from tests.proof.golden.orders import Note, Place
from tests.proof.golden.worker import NEWER

PAUSE_SECONDS: Final = 0.05
SIDE_BY_SIDE: Final = 3

log = logging.getLogger(__name__)


def told(ledger: Path) -> list[tuple[str, str]]:
    """Return what clients know as taken: identities and message ids."""
    return [(line["told"], line["id"]) for line in read_lines(ledger)]


class Client:
    """Sends, and keeps the answers."""

    def __init__(self, app: Mainspring, ledger: Path, chance: random.Random) -> None:
        self._app = app
        self._ledger = Lines(ledger)
        self._chance = chance
        self.stopping = asyncio.Event()

    async def send(self, ref: str, id: str, message: Any) -> None:
        try:
            receipt = await self._app.send(message, id=id)
        except NewerSchemaError:
            raise
        except MainspringError:
            return  # nobody knows whether it was taken
        # Of an instance that has ended meanwhile it is a dead letter, not a part of the stream.
        if receipt.status != "dead letter":
            self._ledger.add(told=ref, id=id)

    async def order(self, name: str) -> None:
        """Place orders, one after the other."""
        number = 0
        while not self.stopping.is_set():
            number += 1
            order = f"{name}-{number}"
            await self.send(f"Order/{order}", f"{order}-place", Place(order))
            if self._chance.random() < 0.3:
                await self.send(f"Order/{order}", f"{order}-place", Place(order))
            if self._chance.random() < 0.5:
                await self.send(f"Order/{order}", f"{order}-note", Note(order, number))
            await self._pause()

    async def travel(self, name: str) -> None:
        """Book trips, and answer as a clerk what is open."""
        from tests.proof.golden import trip_handlers  # noqa: PLC0415  where a commit does not know trips, it cannot be imported

        number = 0
        while not self.stopping.is_set():
            number += 1
            trip = f"{name}-{number}"
            await self.send(f"Trip/{trip}", f"{trip}-book", trip_handlers.Book(trip))
            for task in await self._app.tasks.list(role="clerk", limit=5):
                answer = (trip_handlers.Approve if self._chance.random() < 0.6 else trip_handlers.Refuse)(task.instance)
                try:
                    await self._app.tasks.complete(task.id, answer, actor=name, roles=("clerk",))
                except NewerSchemaError:
                    raise
                except MainspringError as error:
                    log.warning("%s was not answered: %s", task.id, error)
            await self._pause()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._chance.random() * PAUSE_SECONDS):
                await self.stopping.wait()
        except TimeoutError:
            pass


async def main(url: str, ledger: Path, name: str, seed: str) -> int:
    app = shop(url, Hands(ledger.with_name("no-effects")))
    try:
        await app.start(work=False)
        client = Client(app, ledger, random.Random(f"{seed}-{name}"))  # noqa: S311  no secret
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, client.stopping.set)
        sys.stdout.write("working\n")
        sys.stdout.flush()
        jobs = [client.order(f"{name}-{n}") for n in range(SIDE_BY_SIDE)]
        await asyncio.gather(*jobs, *([client.travel(f"{name}-t")] if knows_trips() else []))
    except NewerSchemaError:
        return NEWER
    finally:
        await app.stop()
    return 0


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s client %(levelname)s %(message)s")
    sys.exit(asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4])))
