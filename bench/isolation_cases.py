"""Isolation's neighbours, and the few instances that disturb them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Never

from mainspring import Complete, Decisions, Event, Mainspring, Received, Reply, Retry, Send, Workflow

ENTRIES_PER_STEP = 999
LINES = 10_000
# A failing attempt comes back soon, so that there are many; after these the job is a dead letter, and stops.
RETRY = Retry(max_attempts=20, first=timedelta(milliseconds=20), cap=timedelta(milliseconds=20))


class PoisonError(Exception):
    """What the poisoned ones fail with."""


# ---- neighbours: cases that are noted, and jobs with a quick handler


@dataclass(frozen=True)
class Open:
    id: str


@dataclass(frozen=True)
class Note:
    id: str
    text: str


@dataclass(frozen=True)
class Noted:
    times: int = 0


class Cases(Workflow[Open | Note, Noted, Never]):
    """Neighbours, and the hot one."""

    begins = Open
    initial_state = Noted()

    def route(self, message: Open | Note) -> str | None:
        return message.id

    def decide(self, message: Open | Note, state: Noted) -> Decisions[Open | Note, Never] | None:
        return []

    def evolve(self, state: Noted, event: Event[Open | Note, Never]) -> Noted | None:
        match event:
            case Received(Note()):
                return Noted(state.times + 1)


@dataclass(frozen=True)
class Job:
    id: str


@dataclass(frozen=True)
class Work:
    id: str


@dataclass(frozen=True)
class Worked:
    id: str


@dataclass(frozen=True)
class Asked:
    pass


class Jobs(Workflow[Job | Worked, Asked, Work | Worked]):
    """Neighbours, and one whose handler always fails."""

    begins = Job
    initial_state = Asked()

    def route(self, message: Job | Worked) -> str | None:
        return message.id

    def decide(self, message: Job | Worked, state: Asked) -> Decisions[Job | Worked, Work | Worked] | None:
        match message:
            case Job(id):
                return [Send(Work(id))]
            case Worked():
                return [Complete(message)]

    def evolve(self, state: Asked, event: Event[Job | Worked, Work | Worked]) -> Asked | None:
        return None


# ---- poisoned


@dataclass(frozen=True)
class Taint:
    id: str


@dataclass(frozen=True)
class Poke:
    id: str


class Poisoned(Workflow[Taint | Poke, Noted, Never]):
    """Whatever pokes it, its decide raises."""

    begins = Taint
    initial_state = Noted()

    def route(self, message: Taint | Poke) -> str | None:
        return message.id

    def decide(self, message: Taint | Poke, state: Noted) -> Decisions[Taint | Poke, Never] | None:
        match message:
            case Taint():
                return []
            case Poke(id):
                raise PoisonError(id)

    def evolve(self, state: Noted, event: Event[Taint | Poke, Never]) -> Noted | None:
        return None


# ---- enormous


@dataclass(frozen=True)
class Line:
    sku: str
    quantity: int


@dataclass(frozen=True)
class Grow:
    """Makes the state large, if it has lines, and the stream longer by its entries."""

    id: str
    lines: tuple[Line, ...] = ()
    entries: int = 0


@dataclass(frozen=True)
class Entry:
    number: int


@dataclass(frozen=True)
class Grown:
    lines: tuple[Line, ...] = ()
    entries: int = 0


class LongStreams(Workflow[Grow, Grown, Entry]):
    """Its state is folded from the first event on, as that of any workflow is whose code has just changed."""

    begins = Grow
    initial_state = Grown()
    snapshot_every: ClassVar[int | None] = None

    def route(self, message: Grow) -> str | None:
        return message.id

    def decide(self, message: Grow, state: Grown) -> Decisions[Grow, Entry] | None:
        return [Reply(Entry(number)) for number in range(message.entries)]

    def evolve(self, state: Grown, event: Event[Grow, Entry]) -> Grown | None:
        match event:
            case Received(Grow(_, lines)):
                return Grown(lines or state.lines, state.entries + 1)
            case _:
                return Grown(state.lines, state.entries + 1)


@dataclass(frozen=True)
class Stretch:
    """Makes the state large, if it has lines."""

    id: str
    lines: tuple[Line, ...] = ()


class LargeStates(Workflow[Stretch, Grown, Never]):
    """Writes its state as a snapshot ten times as often as others do."""

    begins = Stretch
    initial_state = Grown()
    snapshot_every: ClassVar[int | None] = 10

    def route(self, message: Stretch) -> str | None:
        return message.id

    def decide(self, message: Stretch, state: Grown) -> Decisions[Stretch, Never] | None:
        return []

    def evolve(self, state: Grown, event: Event[Stretch, Never]) -> Grown | None:
        match event:
            case Received(Stretch(_, lines)):
                return Grown(lines or state.lines, state.entries + 1)


def lines(count: int) -> tuple[Line, ...]:
    return tuple(Line(f"sku-{number}", number) for number in range(count))


def isolation_app(url: str) -> Mainspring:
    """All of them, in one worker."""
    app = Mainspring(url)
    app.add(Cases(), Jobs(), Poisoned(), LongStreams(), LargeStates())

    # A breaker stops a handler for all, and when the neighbours rest, nothing but the poisoned job is left to fail.
    @app.handler(retry=RETRY, breaker=None)
    async def work(command: Work) -> Worked:  # pyright: ignore[reportUnusedFunction]  the app calls it
        if command.id.startswith("poisoned"):
            raise PoisonError(command.id)
        return Worked(command.id)

    return app
