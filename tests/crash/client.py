"""`python -m tests.crash.client FOLDER GENERATION SEED`: sends inputs, and writes down what it was told."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import sys
from pathlib import Path
from typing import Any

from msgspec import json

from mainspring import Mainspring, MainspringError
from mainspring.errors import DuplicateIdError
from tests.crash.files import Lines, Place, read_lines
from tests.crash.journey import MESSAGES, Deposit, Note, Start
from tests.crash.worker import app_of, started

TRAVELLERS = 4
ACCOUNTS = 3
PAUSE_SECONDS = 0.04


class Client:
    """Asks, and keeps the answers. What was asked and never answered stays unknown."""

    def __init__(self, app: Mainspring, place: Place, chance: random.Random) -> None:
        self._app = app
        self._ledger = Lines(place.ledger)
        self._chance = chance
        self.stopping = asyncio.Event()

    async def ask(self, id: str, to: str, message: Any) -> str:
        """Send a message, with a line in the ledger before and after."""
        self._ledger.add(ask=id, to=to, type=type(message).__name__, body=json.encode(message).decode())
        try:
            receipt = await self._app.send(message, id=id)
        except DuplicateIdError:
            self._ledger.add(told=id, answer="refused")
            return "refused"
        except MainspringError as error:
            # A store in trouble: nobody knows whether the commit came through.
            self._ledger.add(told=id, answer="unknown", status=str(error))
            return "unknown"
        self._ledger.add(told=id, answer="ok", status=receipt.status)
        return receipt.status

    async def repeat_unknown(self, lines: list[dict[str, Any]]) -> None:
        """Ask again for some of what an earlier client was never told: the same ids, the same messages."""
        told = {line["told"] for line in lines if "told" in line}
        for line in lines:
            if "ask" in line and line["ask"] not in told and self._chance.random() < 0.5:
                message = json.decode(line["body"], type=MESSAGES[line["type"]])
                await self.ask(line["ask"], line["to"], message)

    async def travel(self, name: str) -> None:
        """Send one traveller on journeys, one after the other, until stopped."""
        number = 0
        while not self.stopping.is_set():
            number += 1
            await self._journey(f"{name}-{number}")

    async def _journey(self, journey: str) -> None:
        chance, to = self._chance, f"Journey/{journey}"
        account = f"account-{chance.randrange(ACCOUNTS)}"
        start = Start(journey, account, despairs=chance.random() < 0.2)
        await self.ask(f"{journey}-start", to, start)
        for n in range(chance.randrange(1, 5)):
            await self._pause()
            await self.ask(f"{journey}-note-{n}", to, Note(journey, n))
        if chance.random() < 0.3:
            await self.ask(f"{journey}-start", to, start)
        if chance.random() < 0.2:
            await self.ask(f"{journey}-start", to, Start(journey, "another", despairs=False))
        await self.ask(f"{journey}-deposit", f"Account/{account}", Deposit(account, 1))

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._chance.random() * PAUSE_SECONDS):
                await self.stopping.wait()
        except TimeoutError:
            pass


async def main(place: Place, generation: str, seed: int) -> None:
    """Send until asked to stop; then finish what was begun."""
    app = app_of(place)
    await started(app, work=False)
    client = Client(app, place, random.Random(f"{seed}-{generation}"))  # noqa: S311  no secret
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, client.stopping.set)
    try:
        await client.repeat_unknown(read_lines(place.ledger))
        await asyncio.gather(*(client.travel(f"j{generation}-{n}") for n in range(TRAVELLERS)))
    finally:
        await app.stop()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s client %(levelname)s %(message)s")
    asyncio.run(main(Place(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])))
