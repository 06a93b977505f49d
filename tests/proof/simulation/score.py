"""A workflow whose code changes while it runs: some processes have the older code, others the newer one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mainspring import Complete, Decisions, Event, Received, Reply, Workflow


@dataclass(frozen=True)
class Point:
    score: str
    number: int


@dataclass(frozen=True)
class Close:
    """Only the newer code knows it."""

    score: str


@dataclass(frozen=True)
class Counted:
    count: int = 0
    largest: int = 0


@dataclass(frozen=True)
class Standing:
    """How many points there are: what is decided depends on the state, so that one that is wrong is seen."""

    count: int


@dataclass(frozen=True)
class Closed:
    count: int
    largest: int


class OldScore(Workflow[Point, Counted, Standing | Closed]):
    """Counts. What its snapshots say is not enough for the newer code, which has to fold the stream anew."""

    name = "Score"
    begins = Point
    initial_state = Counted()
    snapshot_every: ClassVar[int | None] = 2

    def route(self, message: Point) -> str | None:
        return message.score

    def evolve(self, state: Counted, event: Event[Point, Standing | Closed]) -> Counted | None:
        match event:
            case Received():
                return Counted(state.count + 1)

    def decide(self, message: Point, state: Counted) -> Decisions[Point, Standing | Closed] | None:
        return [Reply(Standing(state.count + 1))]


class Score(Workflow[Point | Close, Counted, Standing | Closed]):
    """Counts, and knows the largest number."""

    begins = Point
    initial_state = Counted()
    snapshot_every: ClassVar[int | None] = 2

    def route(self, message: Point | Close) -> str | None:
        return message.score

    def evolve(self, state: Counted, event: Event[Point | Close, Standing | Closed]) -> Counted | None:
        match event:
            case Received(Point(_, number)):
                return Counted(state.count + 1, max(state.largest, number))

    def decide(self, message: Point | Close, state: Counted) -> Decisions[Point | Close, Standing | Closed] | None:
        match message:
            case Point():
                return [Reply(Standing(state.count + 1))]
            case Close():
                return [Complete(Closed(state.count, state.largest))]
