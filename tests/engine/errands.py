"""Errands whose answers the next release gives in new types: replies, results of children, parts of fan-outs.

`errands(app)` is the release before; `errands(app, newer=True)` the next one, which does what `Strange` asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

from mainspring import (
    ChildFailed,
    Complete,
    Decisions,
    Event,
    FanOut,
    Mainspring,
    Reply,
    Send,
    StartChild,
    Workflow,
)

Strange: TypeAlias = Literal["reply", "end", "part"]
STRANGE: Final[tuple[Strange, ...]] = get_args(Strange)
KINDS: Final[dict[Strange, str]] = {"reply": "reply", "end": "end", "part": "child"}
"""As which kind of output each travels."""


@dataclass(frozen=True)
class Run:
    id: str
    way: Strange
    newer: bool = False


@dataclass(frozen=True)
class Question:
    id: str
    newer: bool = False


@dataclass(frozen=True)
class Told:
    id: str


@dataclass(frozen=True)
class Task:
    id: str
    newer: bool = False


@dataclass(frozen=True)
class Made:
    id: str


@dataclass(frozen=True)
class Piece:
    id: str


@dataclass(frozen=True)
class Fetched:
    results: tuple[Made, ...]
    failures: tuple[ChildFailed, ...]


# ---- what the next release brings


@dataclass(frozen=True)
class ToldMore:
    id: str


@dataclass(frozen=True)
class MadeMore:
    id: str


@dataclass(frozen=True)
class LargerPiece:
    id: str


@dataclass(frozen=True)
class Nothing:
    pass


class _Rules:
    knows_more: ClassVar = False
    """Of the release before: whatever a message asks for, it does what it always did."""

    def route(self, message: Any) -> str | None:
        return getattr(message, "id", None)

    def evolve(self, state: Nothing, event: Event[Any, Any]) -> Nothing | None:
        return None


class Errand(_Rules, Workflow[Run | Told | Made | Fetched, Nothing, Question | Task | Piece]):
    begins = Run
    initial_state = Nothing()

    def decide(self, message: Any, state: Nothing) -> Decisions[Any, Any] | None:
        match message:
            case Run(id, "reply", newer):
                return [Send(Question(id, newer))]
            case Run(id, "end", newer):
                return [StartChild(Task(id, newer))]
            case Run(id, _, newer):
                return [FanOut([LargerPiece(id) if newer and self.knows_more else Piece(id), Piece(id)], into=Fetched)]
            case _:
                return [Complete()]


class ErrandOfTomorrow(  # pyright: ignore[reportGeneralTypeIssues]  an author would change the one class
    Errand, Workflow[Run | Told | ToldMore | Made | MadeMore | Fetched, Nothing, Question | Task | Piece | LargerPiece]
):
    name = "Errand"
    knows_more = True


class Desk(_Rules, Workflow[Question, Nothing, Told]):
    initial_state = Nothing()

    def decide(self, message: Question, state: Nothing) -> Decisions[Any, Any] | None:
        return [Reply(ToldMore(message.id) if message.newer and self.knows_more else Told(message.id)), Complete()]


class DeskOfTomorrow(Desk, Workflow[Question, Nothing, Told | ToldMore]):  # pyright: ignore[reportGeneralTypeIssues]
    name = "Desk"
    knows_more = True


class Shop(_Rules, Workflow[Task, Nothing, Made]):
    initial_state = Nothing()

    def decide(self, message: Task, state: Nothing) -> Decisions[Any, Any] | None:
        return [Complete(MadeMore(message.id) if message.newer and self.knows_more else Made(message.id))]


class ShopOfTomorrow(Shop, Workflow[Task, Nothing, Made | MadeMore]):  # pyright: ignore[reportGeneralTypeIssues]
    name = "Shop"
    knows_more = True


def errands(app: Mainspring, *, newer: bool = False) -> Mainspring:
    """Return the app with what belongs to a release."""
    app.add(*((ErrandOfTomorrow(), DeskOfTomorrow(), ShopOfTomorrow()) if newer else (Errand(), Desk(), Shop())))

    @app.handler
    async def piece(command: Piece) -> Made:  # pyright: ignore[reportUnusedFunction]
        return Made(command.id)

    if newer:

        @app.handler
        async def larger(command: LargerPiece) -> Made:  # pyright: ignore[reportUnusedFunction]
            return Made(command.id)

    return app
