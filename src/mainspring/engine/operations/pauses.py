"""What is paused for the whole fleet: one instance of a workflow of its own, whose state every process reads.

So a pause needs no table and no leader: it is durable, two pauses at once both succeed, and its stream shows who
paused and resumed what, when and why. It ends when nothing is paused any more, and begins anew with the next pause: so
only what is paused now has to be read, and an order that can no longer be read blocks nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, Never, TypeAlias

from mainspring.core.decisions import Complete, Decisions
from mainspring.core.events import Event, Received
from mainspring.core.messages import message
from mainspring.core.workflow import Workflow
from mainspring.port.records import Ref

PAUSES: Final = "mainspring.Pauses"
FLEET: Final = Ref(PAUSES, "fleet")

Pausable: TypeAlias = Literal["handler", "workflow"]


@dataclass(frozen=True)
class Pause:
    """A handler, named by its message, or a workflow that is paused: why, by which actor, and since when.

    >>> from datetime import UTC
    >>> Pause("handler", "Charge", "the bank moves", "ann", datetime(2026, 1, 1, tzinfo=UTC)).what
    'handler:Charge'
    """

    kind: Pausable
    name: str
    reason: str
    actor: str | None
    since: datetime

    @property
    def what(self) -> str:
        """What is paused, as it can be named wherever one pauses or resumes."""
        return f"{self.kind}:{self.name}"

    @property
    def fact(self) -> str:
        """That it is paused, by which actor and since when; not why, which may be for few to read."""
        by = "" if self.actor is None else f" by {self.actor}"
        return f"the {self.kind} {self.name} is paused{by} since {self.since:%Y-%m-%d %H:%M:%S} UTC"

    def __str__(self) -> str:
        return f"{self.fact}: {self.reason}"


@message(name="mainspring.PauseWork")
@dataclass(frozen=True)
class PauseWork:
    """Let all workers begin nothing more of this. Where it is paused already, this is who, since when and why."""

    pause: Pause


@message(name="mainspring.ResumeWork")
@dataclass(frozen=True)
class ResumeWork:
    """Resume it."""

    kind: Pausable
    name: str


@dataclass(frozen=True)
class Paused:
    """All that is paused, in the order in which it was.

    >>> Paused().pauses
    ()
    """

    pauses: tuple[Pause, ...] = ()

    def with_one(self, pause: Pause) -> Paused:
        """Return it with one more, or with this one in the place of an earlier one: who, since when and why are one."""
        if pause.what not in {each.what for each in self.pauses}:
            return Paused((*self.pauses, pause))
        return Paused(tuple(pause if each.what == pause.what else each for each in self.pauses))

    def without(self, kind: Pausable, name: str) -> Paused:
        """Return it without one."""
        return Paused(tuple(each for each in self.pauses if (each.kind, each.name) != (kind, name)))


class Pauses(Workflow[PauseWork | ResumeWork, Paused, Never]):
    """Remembers what is paused."""

    name = PAUSES
    begins = PauseWork
    # One that has ended holds nothing back, and can begin once more.
    again = "anew"
    # It is read from its end back to where it began, and no further.
    snapshot_every = None
    initial_state = Paused()

    def route(self, message: PauseWork | ResumeWork, /) -> str | None:
        """Take nothing by itself: there is one instance, and it is addressed by its name."""
        return None

    def decide(
        self, message: PauseWork | ResumeWork, state: Paused, /
    ) -> Decisions[PauseWork | ResumeWork, Never] | None:
        """End with the last pause. For the rest the processes of the fleet look at the state."""
        match message:
            case ResumeWork(kind, name) if not state.without(kind, name).pauses:
                return [Complete()]
            case _:
                return []

    def evolve(self, state: Paused, event: Event[PauseWork | ResumeWork, Never], /) -> Paused | None:
        """Fold what is paused."""
        match event:
            case Received(PauseWork(pause)):
                return state.with_one(pause)
            case Received(ResumeWork(kind, name)):
                return state.without(kind, name)
            case _:
                return None
