"""Operators beside the clients, who run errands, answer tasks at once, suspend, resume, and retry dead letters."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from datetime import timedelta
from typing import Any

from mainspring import Mainspring, MainspringError
from tests.proof.crash.client import PATIENCE, Client
from tests.proof.crash.files import Lines, Place
from tests.proof.crash.saga_workflows import ROLE, Approve, Errand, Peek, Refuse, RunErrand, Turn

METERS = 3
ROUND_SECONDS = 0.15
REPLY_SECONDS = timedelta(seconds=5)


class Operators:
    """Some who share a process with a client. What they were told is written down."""

    def __init__(self, app: Mainspring, place: Place, client: Client, chance: random.Random, name: str) -> None:
        self._app = app
        self._client = client
        self._chance = chance
        self._name = name
        self._lines = Lines(place.people)

    async def run_errands(self) -> None:
        """Run errands, one after the other, until the client stops. Some are suspended for a while."""
        number = 0
        while not self._client.stopping.is_set():
            number += 1
            errand = f"e{self._name}-{number}"
            stubborn = self._chance.random() < 0.3
            await self._client.ask(f"{errand}-run", f"Errand/{errand}", RunErrand(errand, stubborn))
            if self._chance.random() < 0.3:
                await self._hold_up(errand)
            await self._turn(errand)
            with suppress(MainspringError):
                await self._client.unless_stopped(self._app.instance(Errand, errand).result(PATIENCE))

    async def _hold_up(self, errand: str) -> None:
        # It may have ended, or somebody may have resumed it; and who suspends may die before they resume.
        with suppress(MainspringError):
            await self._app.instance(Errand, errand).suspend(actor=self._name)
            await asyncio.sleep(self._chance.random() * ROUND_SECONDS)  # so long it is held up
            await self._app.instance(Errand, errand).resume(actor=self._name)

    async def _turn(self, errand: str) -> None:
        meter, number = f"meter-{self._chance.randrange(METERS)}", self._chance.randrange(2**40)
        await self._client.ask(f"{errand}-turn", f"Meter/{meter}", Turn(meter, number))
        await self.peek(meter, f"{errand}-peek")

    async def peek(self, meter: str, id: str) -> None:
        """Ask a meter how often it was turned."""
        asked = self._client.witness.request(f"Meter/{meter}", Peek(meter), id, timeout=REPLY_SECONDS)
        reply = await self._client.unless_stopped(asked)
        if reply is not None:
            self._lines.add(request=id, meter=meter, turns=reply.turns)
        await self._client.witness.state(f"Meter/{meter}")

    async def look_after(self) -> None:
        """Answer tasks, two people at once, and mend what is stuck, until the process ends."""
        while True:
            with suppress(MainspringError):
                tasks = await self._app.tasks.list(role=ROLE)
                await asyncio.gather(*(self._answer(task.id, task.instance) for task in tasks))
                await self.mend()
            await asyncio.sleep(ROUND_SECONDS)  # people look now and then

    async def _answer(self, task: str, errand: str) -> None:
        answers: list[Any] = [Approve(errand), Approve(errand), Refuse(errand)]
        self._chance.shuffle(answers)
        await asyncio.gather(*(self.complete(task, answer, n) for n, answer in enumerate(answers[:2])))

    async def complete(self, task: str, answer: Any, number: int) -> None:
        """Answer a task as one of some who do so at once, and write down what came of it."""
        by = f"{self._name}-{number}"
        with suppress(MainspringError):
            outcome = await self._app.tasks.complete(task, answer, actor=by, roles=[ROLE])
            self._lines.add(task=task, by=by, first=outcome.first, won=outcome.answered_by, answer=outcome.answer)

    async def mend(self) -> None:
        """Look into what could not work so far, have it tried again, and let errands go on that it has suspended."""
        after = 0
        while letters := await self._app.dead_letters(after=after):
            for letter in letters:
                after = letter.id
                if letter.type == "Mend":
                    self._lines.add(looked_into=letter.message_id)
                    with suppress(MainspringError):
                        await self._app.retry_dead_letter(letter.id, actor=self._name)
        for row in await self._app.instances(workflow="Errand", status="suspended"):
            with suppress(MainspringError):
                await self._app.instance(Errand, row.id).resume(actor=self._name)
