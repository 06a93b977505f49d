"""A client: sends inputs, and writes down what it was told."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from msgspec import json

from mainspring import Mainspring
from tests.proof.crash.files import Lines, Place
from tests.proof.crash.journey import MESSAGES, Deposit, Note, Start
from tests.proof.crash.saga_workflows import RunErrand, Turn
from tests.proof.histories.calls import Witness

T = TypeVar("T")

TRAVELLERS = 4
ACCOUNTS = 3
PAUSE_SECONDS = 0.04
PATIENCE = timedelta(seconds=10)
ASKED = {**MESSAGES, "RunErrand": RunErrand, "Turn": Turn}


class Client:
    """Asks, and keeps the answers. What was asked and never answered stays unknown."""

    def __init__(self, app: Mainspring, place: Place, chance: random.Random, name: str = "") -> None:
        self._app = app
        self._name = name
        self._ledger = Lines(place.ledger)
        self.witness = Witness(app, place.history(f"client-{name}"), f"client-{name}")
        self._chance = chance
        self.stopping = asyncio.Event()

    async def ask(self, id: str, to: str, message: Any) -> str:
        """Send a message, with a line in the ledger before and after."""
        self._write(ask=id, to=to, type=type(message).__name__, body=json.encode(message).decode())
        status = await self.witness.send(to, message, id)
        if status in ("refused", "unknown"):
            self._write(told=id, answer=status)
        else:
            self._write(told=id, answer="ok", status=status)
        return status

    def _write(self, **line: Any) -> None:
        self._ledger.add(client=self._name, **line)

    async def repeat_unknown(self, lines: list[dict[str, Any]]) -> None:
        """Ask again for some of what an earlier client was never told: the same ids, the same messages."""
        told = {line["told"] for line in lines if "told" in line}
        for line in lines:
            if "ask" in line and line["ask"] not in told and self._chance.random() < 0.5:
                message = json.decode(line["body"], type=ASKED[line["type"]])
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
        # Only who knows that it has begun sends more: without a beginning there would be nobody to take it.
        while await self.ask(f"{journey}-start", to, start) == "unknown":
            await self._pause()
        for n in range(chance.randrange(1, 5)):
            await self._pause()
            await self.ask(f"{journey}-note-{n}", to, Note(journey, n))
            await self.witness.state(to)
        if chance.random() < 0.3:
            await self.ask(f"{journey}-start", to, start)
        if chance.random() < 0.2:
            await self.ask(f"{journey}-start", to, Start(journey, "another", despairs=False))
        await self.ask(f"{journey}-deposit", f"Account/{account}", Deposit(account, 1))
        # For a while: what is under way grows no faster than workers can follow.
        await self.unless_stopped(self.witness.result(to, timeout=PATIENCE))

    async def unless_stopped(self, waiting: Coroutine[Any, Any, T]) -> T | None:
        """Wait, but not longer than until this client is to begin nothing more."""
        waited = asyncio.ensure_future(waiting)
        stopped = asyncio.ensure_future(self.stopping.wait())
        await asyncio.wait((waited, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if waited.done():
            return waited.result()
        waited.cancel()
        with suppress(asyncio.CancelledError):
            await waited
        return None

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._chance.random() * PAUSE_SECONDS):
                await self.stopping.wait()
        except TimeoutError:
            pass
