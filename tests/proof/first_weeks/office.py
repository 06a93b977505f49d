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
    Received,
    Retry,
    Schedule,
    Send,
    SendFailed,
    Workflow,
)
from mainspring.engine import engine
from mainspring.engine.watching import code_watch as watch
from mainspring.errors import DoNotRetryError
from mainspring.stores.postgres import session
from tests.support.restarted import Started

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
    clear: bool = True


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
class Reminded:
    id: str


@dataclass(frozen=True)
class Sign:
    id: str


@dataclass(frozen=True)
class Opened:
    what: str = ""


Input: TypeAlias = Open | Done | Note | Approve | Think | SendFailed


class Case(Workflow[Input, Opened, Do | Hang | Look | Note]):
    """Does what its opening says."""

    begins = Open
    initial_state = Opened()

    def route(self, message: Input) -> str | None:
        return None if isinstance(message, SendFailed) else message.id

    def evolve(self, state: Opened, event: Event[Input, Any]) -> Opened | None:
        match event:
            case Received(Open(_, what)):
                return Opened(what)
            case _:
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
            case Open(id, "leave"):
                return [Send(Do(id, "decline")), Complete()]
            case Open(_, what) if what.startswith("tell:"):
                return [Send(Note(what.removeprefix("tell:"), last=True)), Complete()]
            case Open(id, what):
                return [Send(Do(id, what))]
            case Note(_, last):
                return [Complete()] if last else []
            case SendFailed():
                return [] if state.what == "shrug" else [Fail(message.error)]
            case Approve(_, False):
                raise LookupError("it cannot be decided")
            case Think():
                while True:
                    pass
            case _:
                return [Complete()]


class CaseOfTomorrow(  # pyright: ignore[reportGeneralTypeIssues]  an author would change the one class
    Case, Workflow[Input | Reminded, Opened, Do | Hang | Look | Note | Sign]
):
    """What the next release knows: a timer and a command more."""

    name = "Case"

    def decide(self, message: Any, state: Opened) -> Decisions[Any, Any] | None:
        match message:
            case Open(id, "remind"):
                return [Schedule(Reminded(id), after=timedelta(0))]
            case Reminded(id):
                return [Send(Sign(id))]
            case _:
                return super().decide(message, state)


def office(app: Mainspring, *, newer: bool = False) -> Mainspring:
    """Return the app with its cases, and those who work on them; as the next release has them if it is newer."""
    app.add(CaseOfTomorrow() if newer else Case())

    @app.handler(retry=Retry(max_attempts=2, first=timedelta(milliseconds=1)), breaker=Breaker(failures=3))
    async def do(command: Do) -> Done:  # pyright: ignore[reportUnusedFunction]
        if command.what in ("decline", "shrug"):
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

    if newer:

        @app.handler
        async def sign(command: Sign) -> Done:  # pyright: ignore[reportUnusedFunction]
            return Done(command.id)

    return app


async def _work(url: str, started: Started) -> None:
    async with office(Mainspring(url)):
        started.release()
        await asyncio.Event().wait()


def main(url: str, started: Started) -> None:
    """Work until something ends the process."""
    engine_module: Any = engine
    watch_module: Any = watch
    engine_module.RELIEVE_SECONDS, watch_module.STEP_SECONDS = 0.1, 0.5
    asyncio.run(_work(url, started))


def hurry() -> None:
    """Give up soon on a server that says nothing, where there is no time to wait as long as one does elsewhere."""
    session_module: Any = session
    # Longer than a busy machine keeps a server from answering: a worker that cannot connect at its start is dead.
    session_module.CONNECT_SECONDS, session_module.ANSWER_SECONDS = 2.0, 4.0


def hurried(url: str, started: Started) -> None:
    """Work, and give up soon on a server that says nothing."""
    hurry()
    main(url, started)
