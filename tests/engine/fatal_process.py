"""A worker whose handler, or whose decide, ends its process: as an OOM kill does."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from mainspring import Complete, Decisions, Event, Mainspring, Received, Schedule, Send, Workflow
from mainspring.engine import engine
from tests.support.restarted import Started


@dataclass(frozen=True)
class Begin:
    id: str


@dataclass(frozen=True)
class Do:
    id: str


@dataclass(frozen=True)
class Did:
    id: str


@dataclass(frozen=True)
class Poke:
    id: str


@dataclass(frozen=True)
class Rang:
    id: str


doomed = asyncio.Event()


def die() -> None:
    """End this process as the system does it, if it is a worker's."""
    assert doomed.is_set(), "only workers take what is fatal"
    os.kill(os.getpid(), signal.SIGKILL)


class Fragile(Workflow[Begin | Did | Poke | Rang, int, Do]):
    """Does one thing. Being poked, or called by its timer, is too much for it."""

    begins = Begin
    initial_state = 0

    def route(self, message: Begin | Did | Poke | Rang) -> str | None:
        return message.id

    def evolve(self, state: int, event: Event[Begin | Did | Poke | Rang, Do]) -> int | None:
        if doomed.is_set() and isinstance(event, Received) and event.message.id.startswith("evolve"):
            die()
        return state + 1 if isinstance(event, Received) else None

    def decide(self, message: Begin | Did | Poke | Rang, state: int) -> Decisions[Any, Do] | None:
        match message:
            case Begin(id) if id.startswith("timer"):
                return [Schedule(Rang(id), after=timedelta(milliseconds=10), key="ring")]
            case Begin(id) if id.startswith(("poked", "evolve")):
                return []
            case Begin(id):
                return [Send(Do(id))]
            case Did():
                return [Complete()]
            case Poke() | Rang():
                die()
                return []


def fragile(app: Mainspring) -> Mainspring:
    """Return the app with its workflow and its handler."""
    app.add(Fragile())

    @app.handler
    async def do(command: Do) -> Did:  # pyright: ignore[reportUnusedFunction]
        if command.id.startswith("fatal"):
            die()
        return Did(command.id)

    return app


async def _work(url: str, started: Started) -> None:
    module: Any = engine
    module.RELIEVE_SECONDS = 0.1
    async with fragile(Mainspring(url)):
        started.release()
        await asyncio.Event().wait()


def main(url: str, started: Started) -> None:
    """Work until something ends the process."""
    doomed.set()
    asyncio.run(_work(url, started))
