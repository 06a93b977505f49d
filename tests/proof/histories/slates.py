"""Slates: what several write on at once. Its state is all that was written, so that whoever reads it says a lot."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Final

from mainspring import (
    Ask,
    Complete,
    Context,
    Decisions,
    Event,
    Mainspring,
    MainspringError,
    Received,
    Reply,
    Send,
    Workflow,
)
from mainspring.core.fold import fold
from mainspring.core.story import Entry
from tests.proof.crash.files import Place
from tests.proof.histories.calls import Witness, read_calls
from tests.proof.histories.model import Instance

ROLE: Final = "scribe"
SCRIBES: Final = 4
SLATES: Final = 2
"""So many are written on at once."""
SLATE_SECONDS: Final = 3.0
"""All turn to new slates together, so that no history becomes long."""
PAUSE_SECONDS: Final = 0.04
REPLY_TIMEOUT: Final = timedelta(seconds=3)
RESULT_TIMEOUT: Final = timedelta(milliseconds=200)
REMEMBERED: Final = 8
TRIED_AGAIN: Final = 12


@dataclass(frozen=True)
class Chalk:
    slate: str
    mark: str


@dataclass(frozen=True)
class Drop:
    """Goes through the inbox: it is acknowledged before it is decided."""

    slate: str
    mark: str


@dataclass(frozen=True)
class Tally:
    """A request. It writes too."""

    slate: str
    mark: str


@dataclass(frozen=True)
class Copy:
    """Has a handler write: a worker steps the slate, in another process."""

    slate: str
    mark: str


@dataclass(frozen=True)
class Vote:
    """Asks people. There is one answer."""

    slate: str
    mark: str


@dataclass(frozen=True)
class Wipe:
    """Ends it."""

    slate: str
    mark: str


@dataclass(frozen=True)
class Yea:
    slate: str
    mark: str
    by: str


@dataclass(frozen=True)
class Nay:
    slate: str
    mark: str
    by: str


@dataclass(frozen=True)
class Traced:
    slate: str
    mark: str


@dataclass(frozen=True)
class Trace:
    slate: str
    mark: str


@dataclass(frozen=True)
class Tallied:
    marks: int
    last: str


@dataclass(frozen=True)
class Wiped:
    marks: int


@dataclass(frozen=True)
class Marks:
    marks: tuple[str, ...] = ()


SlateInput = Chalk | Drop | Tally | Copy | Vote | Wipe | Yea | Nay | Traced
SlateOutput = Trace | Tallied | Wiped


class Slate(Workflow[SlateInput, Marks, SlateOutput]):
    begins = Chalk | Drop | Tally | Copy | Vote | Wipe
    initial_state = Marks()
    mode: ClassVar = {Drop: "inbox"}
    snapshot_every = 7

    def route(self, message: SlateInput) -> str | None:
        return message.slate

    def evolve(self, state: Marks, event: Event[SlateInput, SlateOutput]) -> Marks | None:
        return Marks((*state.marks, _written(event.message))) if isinstance(event, Received) else None

    def decide(self, message: SlateInput, state: Marks) -> Decisions[SlateInput, SlateOutput]:
        match message:
            case Tally():
                return [Reply(_tallied(state))]
            case Copy(slate, mark):
                return [Send(Trace(slate, mark))]
            case Vote(_, mark):
                return [Ask(f"{mark}?", answer=Yea | Nay, role=ROLE, key=mark)]
            case Wipe():
                return [Complete(Wiped(len(state.marks)))]
            case _:
                return []


@dataclass(frozen=True)
class Scrawl:
    scrap: str
    mark: str


@dataclass(frozen=True)
class Reckon:
    """A request."""

    scrap: str
    mark: str


class Scrap(Workflow[Scrawl | Reckon, Marks, Tallied]):
    """The same with nothing but its state kept."""

    begins = Scrawl | Reckon
    initial_state = Marks()
    history = "state"

    def route(self, message: Scrawl | Reckon) -> str | None:
        return message.scrap

    def evolve(self, state: Marks, event: Event[Scrawl | Reckon, Tallied]) -> Marks | None:
        return Marks((*state.marks, _written(event.message))) if isinstance(event, Received) else None

    def decide(self, message: Scrawl | Reckon, state: Marks) -> Decisions[Scrawl | Reckon, Tallied]:
        return [Reply(_tallied(state))] if isinstance(message, Reckon) else []


def _written(message: Any) -> str:
    by = f" by {message.by}" if isinstance(message, (Yea, Nay)) else ""
    return f"{type(message).__name__} {message.mark}{by}"


def _tallied(state: Marks) -> Tallied:
    return Tallied(len(state.marks), state.marks[-1] if state.marks else "")


def _grows_to(state: Marks, seen: Marks) -> bool:
    return seen.marks[: len(state.marks)] == state.marks


TYPES: Final[dict[str, type[Any]]] = {
    cls.__name__: cls
    for cls in (
        *(Chalk, Drop, Tally, Copy, Vote, Wipe, Yea, Nay, Traced, Trace, Tallied, Wiped, Marks, Scrawl, Reckon),
    )
}
MODELS: Final = {
    "Slate": Instance(
        Slate(),
        results=lambda command: [Traced(command.slate, command.mark)],
        grows_to=_grows_to,
    ),
    "Scrap": Instance(Scrap(), grows_to=_grows_to),
}


def _folded(entries: list[Entry]) -> Marks:
    events: list[Any] = [entry.event for entry in entries]
    return fold(Slate(), Slate.initial_state, events)


def add_slates(app: Mainspring) -> None:
    """Let an app have slates."""
    app.add(Slate(), Scrap())

    @app.handler
    async def trace(command: Trace, context: Context) -> Traced:
        return Traced(command.slate, command.mark)


class Scribe:
    """Writes and reads, one thing after the other, on slates that others write on at the same time."""

    def __init__(self, app: Mainspring, witness: Witness, chance: random.Random, name: str) -> None:
        self._app = app
        self._witness = witness
        self._chance = chance
        self._name = name
        self._marks = 0
        self._sent: list[tuple[str, Any, str]] = []

    async def write(self, stopping: asyncio.Event) -> None:
        """Go on until told to stop."""
        while not stopping.is_set():
            await self.turn(f"{time.monotonic_ns() // int(SLATE_SECONDS * 1e9)}-{self._chance.randrange(SLATES)}")
            try:
                async with asyncio.timeout(self._chance.random() * PAUSE_SECONDS):
                    await stopping.wait()
            except TimeoutError:
                pass

    async def turn(self, slate: str) -> None:
        """Do one thing: read, write, ask, answer, or repeat what was done before."""
        to, scrap = f"Slate/{slate}", f"Scrap/{slate}"
        match self._chance.choices(range(11), (50, 10, 24, 24, 10, 20, 12, 16, 12, 10, 1))[0]:
            case 0:
                await self._witness.state(to)
            case 1:
                await self._witness.state(scrap)
            case 2:
                await self._send(to, Chalk(slate, self._mark()))
            case 3:
                await self._send(to, Drop(slate, self._mark()))
            case 4:
                mark = self._mark()
                await self._witness.request(to, Tally(slate, mark), mark, timeout=REPLY_TIMEOUT)
            case 5:
                await self._send(to, Copy(slate, self._mark()))
            case 6:
                await self._vote(slate, to)
            case 7:
                await self._send(scrap, Scrawl(slate, self._mark()))
            case 8:
                await self._repeat()
            case 9:
                await self._witness.stream(to, _folded)
            case _:
                await self._send(to, Wipe(slate, self._mark()))
                await self._witness.result(to, timeout=RESULT_TIMEOUT)

    async def _send(self, to: str, message: Any) -> None:
        await self._witness.send(to, message, message.mark)
        self._sent = [*self._sent[1 - REMEMBERED :], (to, message, message.mark)]

    async def _repeat(self) -> None:
        """Send something again: as it was or, now and then, something else under its id."""
        if not self._sent:
            return
        to, message, id = self._chance.choice(self._sent)
        another = type(message)(to.partition("/")[2], f"{id} instead")
        await self._witness.send(to, another if self._chance.random() < 0.1 else message, id)

    async def _vote(self, slate: str, to: str) -> None:
        """Ask, and answer what was asked lately: together with all others who see it."""
        await self._send(to, Vote(slate, self._mark()))
        try:
            tasks = await self._app.tasks.list(role=ROLE, workflow="Slate")
        except MainspringError:
            return
        open = [task for task in tasks if task.instance == slate][-3:]
        answers = [(task, kind) for task in open for kind in (Yea, Nay)]
        await asyncio.gather(
            *(self._answer(to, task.id, task.key, kind(slate, task.key, self._mark())) for task, kind in answers)
        )

    async def _answer(self, to: str, task: str, key: str, answer: Any) -> None:
        await self._witness.answer(to, task, key, answer, [ROLE])

    def _mark(self) -> str:
        self._marks += 1
        return f"{self._name}.{self._marks}"


async def write_slates(app: Mainspring, place: Place, chance: random.Random, name: str, stop: asyncio.Event) -> None:
    """Be some who write on slates, and write down what they were told, until told to stop."""
    witness = Witness(app, place.history(name), name)
    await _try_again(witness, place, chance)
    scribes = [Scribe(app, witness, chance, f"{name}{letter}") for letter in "abcdefgh"[:SCRIBES]]
    await asyncio.gather(*(scribe.write(stop) for scribe in scribes))


async def _try_again(witness: Witness, place: Place, chance: random.Random) -> None:
    """Send some of what nobody was told about once more, with the same ids: a client before this one may have died."""
    calls = read_calls(place.histories(), MODELS, TYPES)
    lost = [call for call in calls if call.verb == "send" and call.outcome == "unknown"]
    for call in lost[-TRIED_AGAIN:]:
        if chance.random() < 0.5:
            await witness.send(call.to, call.message, call.id)
