"""An office whose cases go wrong in every way that was reported, and a worker of it to be started as a process."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from mainspring import (
    Ask,
    Breaker,
    Complete,
    Decisions,
    Event,
    Fail,
    Mainspring,
    Retry,
    Send,
    SendFailed,
    Workflow,
)
from mainspring.engine import engine
from mainspring.engine.stepping import step_watch as watch
from mainspring.errors import DoNotRetryError

BRIEFLY = timedelta(milliseconds=300)


@dataclass(frozen=True)
class Open:
    id: str
    what: str


@dataclass(frozen=True)
class Done:
    id: str


@dataclass(frozen=True)
class Note:
    id: str
    last: bool


@dataclass(frozen=True)
class Approve:
    id: str


@dataclass(frozen=True)
class Think:
    id: str


@dataclass(frozen=True)
class Do:
    id: str
    what: str


@dataclass(frozen=True)
class Hang:
    id: str


@dataclass(frozen=True)
class Look:
    id: str


@dataclass(frozen=True)
class Opened:
    pass


Input: TypeAlias = Open | Done | Note | Approve | Think | SendFailed


class Case(Workflow[Input, Opened, Do | Hang | Look | Note]):
    """Does what its opening says."""

    begins = Open
    initial_state = Opened()

    def route(self, message: Input) -> str | None:
        return None if isinstance(message, SendFailed) else message.id

    def evolve(self, state: Opened, event: Event[Input, Any]) -> Opened | None:
        return None

    def decide(self, message: Input, state: Opened) -> Decisions[Any, Any] | None:
        match message:
            case Open(id, "hang"):
                return [Send(Hang(id))]
            case Open(id, "look"):
                return [Send(Look(id))]
            case Open(id, "ask"):
                return [Ask("Approve it?", Approve, role="boss", key="approval")]
            case Open(_, "wait"):
                return []
            case Open(_, what) if what.startswith("tell:"):
                return [Send(Note(what.removeprefix("tell:"), last=True)), Complete()]
            case Open(id, what):
                return [Send(Do(id, what))]
            case Note(_, last):
                return [Complete()] if last else []
            case SendFailed():
                return [Fail(message.error)]
            case Think():
                while True:
                    pass
            case _:
                return [Complete()]


def office(app: Mainspring) -> Mainspring:
    """Return the app with its cases, and those who work on them."""
    app.add(Case())

    @app.handler(retry=Retry(max_attempts=2, first=timedelta(milliseconds=1)), breaker=Breaker(failures=3))
    async def do(command: Do) -> Done:  # pyright: ignore[reportUnusedFunction]
        if command.what == "decline":
            raise DoNotRetryError("declined")
        if command.what == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return Done(command.id)

    @app.handler(retry=Retry(max_attempts=1), timeout=BRIEFLY, concurrency=50)
    def hang(command: Hang) -> None:  # pyright: ignore[reportUnusedFunction]
        threading.Event().wait()

    @app.handler
    def look(command: Look) -> Done:  # pyright: ignore[reportUnusedFunction]
        return Done(command.id)

    return app


async def _work(url: str) -> None:
    async with office(Mainspring(url)):
        await asyncio.Event().wait()


def main(url: str) -> None:
    """Work until something ends the process."""
    engine_module: Any = engine
    watch_module: Any = watch
    engine_module.RELIEVE_SECONDS, watch_module.STEP_SECONDS = 0.1, 0.5
    asyncio.run(_work(url))
