"""The model of an instance: its workflow's own step, one input at a time, without a store and without an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, NamedTuple

from mainspring import (
    Asked,
    ChildStarted,
    Compensating,
    Completed,
    Failed,
    Replied,
    ScheduleCancelled,
    Scheduled,
    Sent,
    TaskClosed,
    Workflow,
)
from mainspring.core.definition import definition_of
from mainspring.core.messages import Kind
from mainspring.core.step import step
from mainspring.errors import StepError
from mainspring.testing.envelopes import envelope


class Unknown(Enum):
    """What stands for no value: a reply that nobody has seen, the state of an instance that has not begun."""

    REPLY = 1
    STATE = 2


ANYTHING: Final = Unknown.REPLY
NOTHING: Final = Unknown.STATE


# ---- what clients do


@dataclass(frozen=True)
class Take:
    """An input was taken; as the answer to a task, if it names one.

    What was accepted to be decided later may be `late`: it may find an instance that has ended meanwhile, and is a dead
    letter then. Of what was accepted once more under its id that is certain.
    """

    message: Any
    reply: Any = ANYTHING
    task: str | None = None
    late: Literal["never", "maybe", "surely"] = "never"


@dataclass(frozen=True)
class See:
    """A state was read. At rest, nothing that was owed is still to come."""

    state: Any
    at_rest: bool = False


@dataclass(frozen=True)
class End:
    """A result was read, or that there will be none."""

    status: Literal["completed", "failed"]
    result: Any = None


@dataclass(frozen=True)
class NotTaken:
    """An input found nobody to take it."""

    message: Any


# ---- how an instance stands


class Owed(NamedTuple):
    """An input that comes from inside, some time: a handler's result or a timer. `number` tells equal ones apart."""

    message: Any
    key: str | None = None
    number: int = 0


class Standing(NamedTuple):
    state: Any
    status: Literal["none", "running", "compensating", "completed", "failed"] = "none"
    result: Any = None
    owed: frozenset[Owed] = frozenset()
    tasks: frozenset[str] = frozenset()


def nothing(_: Any) -> Iterable[Any]:
    return ()


def whatever(state: Any, seen: Any) -> bool:
    return True


@dataclass(frozen=True)
class Instance:
    """The model. `results` are what comes back of a command; `grows_to` tells whether a state may become another."""

    workflow: Workflow[Any, Any, Any]
    results: Callable[[Any], Iterable[Any]] = nothing
    grows_to: Callable[[Any, Any], bool] = whatever

    @property
    def beginning(self) -> Standing:
        return Standing(self.workflow.initial_state)

    def after(self, standing: Standing, what: Take | See | End | NotTaken) -> Standing | None:
        match what:
            case Take():
                return self._take(standing, what)
            case See(state, at_rest):
                same = standing.status == "none" if state is NOTHING else _shown(standing) == state
                return standing if same and not (at_rest and standing.owed) else None
            case End(status, result):
                ended = ("failed", "compensating") if status == "failed" else (status,)
                return standing if standing.status in ended and standing.result == result else None
            case NotTaken(message):
                return None if self._takes(standing, message) else standing

    def inside(self, standing: Standing) -> Iterator[Standing]:
        if standing.status == "running":
            for owed in sorted(standing.owed, key=repr):
                kind = Kind.RESULT if owed.key is None else Kind.TIMER
                left = standing._replace(owed=standing.owed - {owed})
                if (taken := self._step(left, owed.message, kind)) is not None:
                    yield taken[0]

    def leads(self, standing: Standing, what: Any) -> bool:
        if not isinstance(what, See) or standing.status == "none":
            return True
        return what.state is not NOTHING and self.grows_to(standing.state, what.state)

    def _take(self, standing: Standing, taken: Take) -> Standing | None:
        if not self._takes(standing, taken.message):
            return None if taken.late == "never" else standing
        if taken.late == "surely" or (taken.task is not None and taken.task not in standing.tasks):
            return None
        kind = Kind.COMMAND if taken.task is None else Kind.ANSWER
        if (stepped := self._step(standing, taken.message, kind, taken.task)) is None:
            return None
        after, reply = stepped
        return after if taken.reply is ANYTHING or taken.reply == reply else None

    def _takes(self, standing: Standing, message: Any) -> bool:
        if standing.status == "none":
            return type(message) in definition_of(type(self.workflow)).begins
        return standing.status == "running"

    def _step(
        self, standing: Standing, message: Any, kind: Kind, task: str | None = None
    ) -> tuple[Standing, Any] | None:
        """Return how it stands after a step, and the last reply made in it; None where there is no such step."""
        begins = standing.status == "none"
        try:
            taken = step(self.workflow, standing.state, 0, envelope(message, kind=kind, task=task), begins)
        except StepError:
            return None
        after, reply = standing._replace(state=taken.state, status="running"), None
        for event in taken.events:
            match event:
                case Sent(command) | ChildStarted(command):
                    for result in self.results(command):
                        after = _owing(after, Owed(result))
                case Scheduled(timer):
                    after = _owing(after, Owed(timer, event.key))
                case ScheduleCancelled(key):
                    after = after._replace(owed=frozenset(owed for owed in after.owed if owed.key != key))
                case Asked(key):
                    after = after._replace(tasks=after.tasks | {key})
                case TaskClosed(key):
                    after = after._replace(tasks=after.tasks - {key})
                case Replied(message):
                    reply = message
                case Completed(result):
                    after = Standing(after.state, "completed", result)
                case Failed() | Compensating():
                    after = Standing(after.state, "failed" if isinstance(event, Failed) else "compensating")
                case _:
                    pass
        return after, reply


def _shown(standing: Standing) -> Any:
    return NOTHING if standing.status == "none" else standing.state


def _owing(standing: Standing, owed: Owed) -> Standing:
    while owed in standing.owed:
        owed = owed._replace(number=owed.number + 1)
    return standing._replace(owed=standing.owed | {owed})
