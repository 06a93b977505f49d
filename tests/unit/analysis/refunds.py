"""Refunds: a workflow whose behaviour tests change under recorded streams, by the attributes of its class."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

from mainspring import (
    CancelSchedule,
    Complete,
    Decisions,
    Event,
    Fail,
    Mainspring,
    Publish,
    Received,
    Schedule,
    Send,
    Workflow,
)
from tests.support.running import run
from tests.unit.analysis.quiet import quiet

T = TypeVar("T")


@dataclass(frozen=True)
class Claim:
    id: str
    amount: int
    card: str = "4111-card"


@dataclass(frozen=True)
class Note:
    id: str
    text: str


@dataclass(frozen=True)
class Reviewed:
    id: str


@dataclass(frozen=True)
class Overdue:
    id: str


@dataclass(frozen=True)
class Review:
    id: str
    amount: int


@dataclass(frozen=True)
class Paid:
    id: str


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class InReview:
    amount: int
    notes: int = 0


@dataclass(frozen=True)
class Closed:
    pass


Input = Claim | Note | Reviewed | Overdue
State = New | InReview | Closed
Output = Review | Paid


class Refund(Workflow[Input, State, Output]):
    begins = Claim
    again = "anew"
    initial_state = New()
    snapshot_every = 5
    limit: ClassVar = 100
    patience: ClassVar = timedelta(days=1)
    weight: ClassVar = 1
    closes: ClassVar = True
    decide_raises: ClassVar[type[Exception] | None] = None
    evolve_raises: ClassVar[type[Exception] | None] = None

    def route(self, message: Input) -> str | None:
        return message.id

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case _, Received(Claim(_, amount)):
                return InReview(amount)
            case InReview(), Received(Note()) if self.evolve_raises is not None:
                raise self.evolve_raises("planted")
            case InReview(amount, notes), Received(Note()):
                return InReview(amount, notes + self.weight)
            case InReview(), Received(Reviewed()) if self.closes:
                return Closed()

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Note(), _ if self.decide_raises is not None:
                raise self.decide_raises("planted")
            case Claim(id, amount), _ if amount > self.limit:
                return [Send(Review(id, amount)), Schedule(Overdue(id), after=self.patience)]
            case Claim(id), _:
                return [Publish(Paid(id)), Complete()]
            case Note(), InReview():
                return []
            case Reviewed(id), InReview():
                return [CancelSchedule(Overdue), Complete(Paid(id))]
            case Overdue(), InReview():
                return [Fail("nobody has looked at it")]


def refunds(url: str = "sqlite:///refunds.db", **settings: Any) -> Mainspring:
    app = Mainspring(url, **settings)
    app.add(Refund())
    app.external(Review)
    return app


app = refunds()


def differing(url: str) -> Mainspring:
    """An app whose refunds have another limit; in every process."""
    app = Mainspring(url)
    app.add(Unlimited())
    app.external(Review)
    return app


class Unlimited(Refund):
    name = "Refund"
    limit = 10_000


def missing() -> Mainspring:
    raise ValueError("no such app")


async def fill(app: Mainspring) -> None:
    """Six claims: two are paid at once, three wait for their review, one of them with notes, and one is reviewed."""
    await app.send(Claim("small-1", 20), id="m-1", actor="ann")
    await app.send(Claim("small-2", 30), id="m-2")
    await app.send(Claim("waits-1", 150), id="m-3", actor="bob")
    await app.send(Claim("waits-2", 900), id="m-4")
    await app.send(Claim("noted", 400), id="m-5")
    for number in range(4):
        await app.send(Note("noted", f"note {number}"), id=f"n-{number}")
    await app.send(Claim("reviewed", 300), id="m-6")
    await app.send(Reviewed("reviewed"), id="m-7", actor="eve")
    await quiet(app)


def running(app: Mainspring, use: Callable[[Mainspring], Awaitable[T]], *, work: bool = False) -> T:
    """Use an app that runs, and stop it."""

    async def used() -> T:
        await app.start(work=work)
        try:
            return await use(app)
        finally:
            await app.stop()

    return run(used)
