"""A workflow as a state machine, as far as its code tells: what every tool that draws, checks or explains one works on.

    Machine      ─┬─ State        a state, with its fields; the initial one; those in which the instance has ended
                  ├─ Message      an input or an output type, with its fields, and how an input can come
                  ├─ Transition   in a state, a message, under a guard: what is decided, and the state after it
                  ├─ Gap          in a state, a message for which decide has no case: an unknown transition
                  └─ Unresolved   a place that could not be read: what the machine says about it may be too little

Everything is plain data with the names that streams and tables have, so it can be written as JSON.

Places in code as people write them: from where Python finds the module, the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

Way: TypeAlias = Literal["message", "timer", "answer", "result", "reply", "child", "join", "then", "undone"]
"""How an input comes: from outside (`message`); as a due timer; as the answer to a task; as the result of a handler; as
another workflow's reply; as a child's outcome; as the join of a fan-out; as what follows compensation (`then`); or,
with the message type COMPENSATED, when something was undone."""

Ends: TypeAlias = Literal["completed", "failed"]

COMPENSATED: Final = "Compensated"
"""The message of transitions that happen when a compensation was carried out. It stands for no type of the author's."""

ANSWERS_TASK: Final = "it answers a task"
ANSWERS_NO_TASK: Final = "it answers no task"
"""How a guard tells an answer that came through a task from a message of the same type that came past it."""

UNREAD_GUARD: Final = "(a condition that could not be read)"
"""The guard of one of several outcomes that depend on what only a run could show, such as an element of a loop."""

ANY_STATE: Final = "(any state)"
"""The target of a transition whose state after could not be read."""


class Place(Struct, frozen=True, order=True):
    """Where something is written.

    >>> str(Place("shop.py", 12))
    'shop.py:12'
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Field(Struct, frozen=True):
    """A field of a message or a state, with its type as it is written."""

    name: str
    type: str
    required: bool = True


class State(Struct, frozen=True):
    """A state of the machine.

    `ended` says that an instance can end in it; `reachable`, that transitions lead from the initial state to it.
    """

    name: str
    doc: str = ""
    fields: tuple[Field, ...] = ()
    initial: bool = False
    ended: bool = False
    reachable: bool = True
    place: Place | None = None


class Message(Struct, frozen=True):
    """A type of message that the workflow takes or gives.

    `begins` says that it may begin an instance. `ways` are how it can come, for an input; what only an app can know,
    such as the results of handlers, is among them when the machine was read with that app.

    >>> Message("PlaceOrder", begins=True).ways
    ()
    """

    name: str
    doc: str = ""
    fields: tuple[Field, ...] = ()
    begins: bool = False
    ways: tuple[Way, ...] = ()
    place: Place | None = None


class Output(Struct, frozen=True):
    """A decision, as it is written.

    `decision` is its name: Send, Publish, Schedule … `message` is the type that it carries: for Ask the task's key, for
    CancelSchedule and CloseTask the key; None if there is none. `messages` are the types that come back by it, as far
    as the decision itself says: a timer's, a task's answers and timers, the input that joins a fan-out, what follows
    compensation. `detail` are its other arguments as they are written, and `when` is when a timer or a task comes due,
    in words if that is known. `key` is that under which it is found again: a timer's, a task's, or the one that is
    cancelled or closed. `timers` is how many of `messages` are timers, the last ones; all of a Schedule's are.
    `compensate` is the type that undoes it. `repeated`: none, one or many of it.

    >>> str(Output("Schedule", "PaymentTimedOut", ("PaymentTimedOut",), "after=PATIENCE"))
    'Schedule(PaymentTimedOut, after=PATIENCE)'
    """

    decision: str
    message: str | None = None
    messages: tuple[str, ...] = ()
    detail: str = ""
    when: str = ""
    key: str | None = None
    timers: int = 0
    repeated: bool = False
    compensate: str | None = None
    place: Place | None = None

    def __str__(self) -> str:
        undo = f"compensate={self.compensate}" if self.compensate else None
        inside = ", ".join(part for part in (self.message, undo, self.detail) if part)
        return f"{'*' if self.repeated else ''}{self.decision}({inside})"


class Transition(Struct, frozen=True):
    """In the state `source`, the message: what is decided, and the state after it.

    `guard` is the condition under which this is so, "" for always; where a message has several transitions in a state,
    their guards exclude each other as far as they can be told. `begins` says that it is the first step of an instance.
    `ignored` says that nothing was decided and the state stayed what it was: `return []`. `decided` is where decide
    returns, and `evolved` where evolve returned the states on the way to the target. `failed` are the commands of whose
    SendFailed it is so; () for a message that is none.
    """

    source: str
    message: str
    target: str
    guard: str = ""
    outputs: tuple[Output, ...] = ()
    ends: Ends | None = None
    begins: bool = False
    ignored: bool = False
    ways: tuple[Way, ...] = ()
    decided: Place | None = None
    evolved: tuple[Place, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def moves(self) -> bool:
        """Whether the instance is in another state afterwards, or has ended."""
        return self.target != self.source or self.ends is not None


class Gap(Struct, frozen=True):
    """In the state `source`, decide has no case for the message, at least under the guard.

    It is an unknown transition if such a message comes, or is ignored where it is a timer or the workflow says so.
    `failed` are the commands of whose SendFailed it is so; () for a message that is none.
    """

    source: str
    message: str
    guard: str = ""
    ways: tuple[Way, ...] = ()
    begins: bool = False
    failed: tuple[str, ...] = ()


class Unresolved(Struct, frozen=True, order=True):
    """A place that could not be read. Transitions in this state and by this message may be missing, or say too much.

    `source` and `message` are "" where all may be concerned.

    >>> str(Unresolved(Place("shop.py", 12), "exec(rule)", "a call that cannot be followed", "New", "PlaceOrder"))
    'shop.py:12: exec(rule): a call that cannot be followed (PlaceOrder in New)'
    """

    place: Place
    text: str
    reason: str
    source: str = ""
    message: str = ""

    def __str__(self) -> str:
        which = f" ({self.message or 'any message'} in {self.source or 'any state'})"
        return f"{self.place}: {self.text}: {self.reason}{which if self.source or self.message else ''}"


class Machine(Struct, frozen=True):
    """A workflow as a state machine, as far as its code tells.

    What is not listed cannot happen, but for what `unresolved` names, for what operators do, and for older code.
    `cases` are the places of the cases that some message in some state comes to.

    >>> Machine("Counter").leaving("Counted")
    ()
    """

    workflow: str
    version: int = 1
    doc: str = ""
    states: tuple[State, ...] = ()
    inputs: tuple[Message, ...] = ()
    outputs: tuple[Message, ...] = ()
    transitions: tuple[Transition, ...] = ()
    gaps: tuple[Gap, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
    cases: tuple[Place, ...] = ()
    place: Place | None = None

    def state(self, name: str) -> State:
        """Return the state of a name."""
        return next(state for state in self.states if state.name == name)

    def input(self, name: str) -> Message:
        """Return the input type of a name."""
        return next(message for message in self.inputs if message.name == name)

    def leaving(self, state: str) -> tuple[Transition, ...]:
        """Return the transitions of a state, in the order of their messages."""
        return tuple(transition for transition in self.transitions if transition.source == state)


T = TypeVar("T")


def without_roots(machine: Machine, roots: Sequence[str]) -> Machine:
    """Return a machine whose places begin where Python looks for modules: `roots` is `sys.path`.

    >>> machine = Machine("Door", place=Place("/srv/app/doors/door.py", 12))
    >>> str(without_roots(machine, ["/srv", "/srv/app"]).place)
    'doors/door.py:12'
    """
    return _moved(machine, _nearest_first(roots))


def shortened(file: str, roots: Sequence[str]) -> str:
    """Return a file's path from where Python looks for modules.

    >>> shortened("/srv/app/doors/door.py", ["/srv", "/srv/app"])
    'doors/door.py'
    """
    return _shortened(PurePath(file), _nearest_first(roots))


def _nearest_first(roots: Sequence[str]) -> list[PurePath]:
    return [PurePath(root) for root in sorted((root for root in roots if root), key=len, reverse=True)]


def _moved(value: T, roots: Sequence[PurePath]) -> T:
    moved: Any = value
    if isinstance(value, Place):
        moved = Place(_shortened(PurePath(value.file), roots), value.line)
    elif isinstance(value, tuple):
        moved = tuple(_moved(part, roots) for part in cast("tuple[object, ...]", value))
    elif isinstance(value, Struct):
        moved = replace(value, **{name: _moved(getattr(value, name), roots) for name in value.__struct_fields__})
    return moved


def _shortened(path: PurePath, roots: Sequence[PurePath]) -> str:
    root = next((root for root in roots if path.is_relative_to(root)), None)
    return (path if root is None else path.relative_to(root)).as_posix()
