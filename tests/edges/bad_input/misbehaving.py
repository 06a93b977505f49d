"""The app that bad input is tried on: a desk that does as it is told, also what no desk should do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from mainspring import (
    Ask,
    Complete,
    Decisions,
    Event,
    FeedEntry,
    Mainspring,
    Received,
    Reply,
    Retry,
    Schedule,
    Send,
    Workflow,
)


@dataclass(frozen=True)
class Go:
    id: str
    what: str = ""


@dataclass(frozen=True)
class Note:
    id: str
    value: Any = None


@dataclass(frozen=True)
class Later:
    id: str


@dataclass(frozen=True)
class Yes:
    id: str
    why: str = ""


@dataclass(frozen=True)
class Done:
    id: str
    value: Any = None


@dataclass(frozen=True, repr=False, eq=False)
class Rude:
    """A message that cannot be shown, compared or hashed."""

    id: str

    def __repr__(self) -> str:
        raise ValueError("not to be shown")

    def __eq__(self, other: object) -> bool:
        raise ValueError("not to be compared")

    def __hash__(self) -> int:
        raise ValueError("not to be hashed")


@dataclass(frozen=True)
class Work:
    id: str
    what: str = ""


@dataclass(frozen=True)
class Open:
    notes: int = 0


Input = Go | Note | Later | Yes | Done | Rude

# What decide, evolve and the handler do for a Go that names it; filled in by the tests of authors' mistakes.
DECIDES: Final[dict[str, Callable[[Go, Open], Any]]] = {}
EVOLVES: Final[dict[str, Callable[[Open], Any]]] = {}
ROUTES: Final[dict[str, Callable[[], Any]]] = {}
HANDLES: Final[dict[str, Callable[[Work], Any]]] = {}

A_DAY: Final = timedelta(days=1)


class Desk(Workflow[Input, Open, Work | Done]):
    """Sends, waits, asks, and counts notes."""

    begins = (Go, Rude)
    initial_state = Open()

    def route(self, message: Input) -> str | None:
        return ROUTES[message.what]() if isinstance(message, Go) and message.what in ROUTES else message.id

    def decide(self, message: Input, state: Open) -> Decisions[Input, Work | Done] | None:
        match message:
            case Go(_, what) if what in DECIDES:
                return DECIDES[what](message, state)
            case Go(id, what):
                later = Schedule(Later(id), after=A_DAY)
                return [Send(Work(id, what)), later, Ask("Ok?", Yes, role="boss", data={"why": "so"})]
            case Rude():
                raise ValueError("rude")
            case Yes(id):
                return [Complete(Done(id))]
            case Note(id, value="total?"):
                return [Reply(Done(id, state.notes))]
            case _:
                return []

    def evolve(self, state: Open, event: Event[Input, Work | Done]) -> Open | None:
        match event:
            case Received(Go(_, what)) if what in EVOLVES:
                return EVOLVES[what](state)
            case Received(Note()):
                return Open(state.notes + 1)
            case _:
                return None

    def attributes(self, state: Open) -> dict[str, int]:
        return {"notes": state.notes}


def desk(app: Mainspring) -> Mainspring:
    """Return the app with the desk, its handler and its read model."""
    app.add(Desk())

    @app.handler(retry=Retry(max_attempts=1), timeout=timedelta(seconds=0.2), breaker=None)
    async def work(command: Work) -> Any:
        handle = HANDLES.get(command.what)
        result: Any = None if handle is None else handle(command)
        return await result if hasattr(result, "__await__") else result

    @app.projections.add(key=lambda entry: entry.instance, workflows=[Desk])
    def moves(document: Open | None, entry: FeedEntry) -> Open | None:
        return Open((document or Open()).notes + 1)

    return app
