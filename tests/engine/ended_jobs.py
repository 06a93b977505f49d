"""A workflow whose instances end and are purged, and a purge that loses its life in the middle."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Complete, Decisions, Event, Mainspring, Received, Reply, Send, Workflow
from mainspring.app.internals import internals_of
from mainspring.port.purges import Purged
from mainspring.testing.clock import VirtualClock
from tests.support.apps import MakeApp

MONTH = timedelta(days=30)
DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Start:
    id: str
    asks: bool = False


@dataclass(frozen=True)
class Note:
    id: str
    text: str = ""


@dataclass(frozen=True)
class Finish:
    id: str


@dataclass(frozen=True)
class Answer:
    id: str


@dataclass(frozen=True)
class Ask:
    id: str


@dataclass(frozen=True)
class Done:
    id: str


@dataclass(frozen=True)
class Notes:
    texts: tuple[str, ...] = ()


Input = Start | Note | Finish | Answer
Output = Ask | Done


class Job(Workflow[Input, Notes, Output]):
    """Takes notes until it is finished; may end with a question that is answered much later."""

    begins = Start
    initial_state = Notes()

    def route(self, message: Input) -> str | None:
        return message.id

    def decide(self, message: Input, state: Notes) -> Decisions[Input, Output] | None:
        match message:
            case Start(id, True):
                return [Send(Ask(id)), Complete()]
            case Finish(id):
                return [Complete(Done(id))]
            case Note(_, "break"):
                raise ZeroDivisionError
            case _:
                return []

    def evolve(self, state: Notes, event: Event[Input, Output]) -> Notes | None:
        match event:
            case Received(Note(_, text)):
                return Notes((*state.texts, text))


@dataclass(frozen=True)
class Tell:
    id: str


class Oracle(Workflow[Ask | Tell, Notes, Answer]):
    """Answers a question when it is told to."""

    begins = Ask
    initial_state = Notes()

    def route(self, message: Ask | Tell) -> str | None:
        return message.id

    def decide(self, message: Ask | Tell, state: Notes) -> Decisions[Ask | Tell, Answer] | None:
        return [Reply(Answer(message.id))] if isinstance(message, Tell) else []

    def evolve(self, state: Notes, event: Event[Ask | Tell, Answer]) -> Notes | None:
        return None


class Brief(Job):
    name = "Brief"
    retention = timedelta(days=1)


class Recurring(Job):
    name = "Recurring"
    again = "anew"


class Kept(Job):
    name = "Kept"
    retention = timedelta.max


def on(make_app: MakeApp, clock: VirtualClock, *workflows: Workflow[Any, Any, Any]) -> Mainspring:
    app = make_app(clock)
    app.add(*(workflows or (Job(), Oracle())))
    return app


async def finished(app: Mainspring, clock: VirtualClock, *ids: str, notes: int = 1) -> None:
    """Begin and finish jobs, and let 31 days go by."""
    for id in ids or ("j-1",):
        await app.send(Start(id), id=f"start-{id}")
        await app.send_many([Note(id, f"n{n}") for n in range(notes)])
        await app.send(Finish(id))
    clock.advance(31 * DAY_SECONDS)


@contextmanager
def crash_after(transactions: int, app: Mainspring) -> Generator[None]:
    """Let the process lose its life, as far as the purge can tell, after so many of its transactions."""
    store = internals_of(app).engine.store
    purge, made = store.purge, iter(range(transactions))

    async def mortal(*values: Any) -> Purged:
        if next(made, None) is None:
            raise KeyboardInterrupt
        return await purge(*values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "purge", mortal)
        yield
