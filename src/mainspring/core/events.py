"""Events: what is recorded, in the past tense. A stream of them is an instance's whole story.

Inputs and decisions stand in one stream, so evolve sees both. Each class says in which `direction` its message went and
what `kind` of message it was; an input's kind comes from its envelope.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar, Union

from msgspec import Struct

from mainspring.core.decisions import Value, WhenParentEnds
from mainspring.core.messages import Kind

In_co = TypeVar("In_co", covariant=True)
Out_co = TypeVar("Out_co", covariant=True)
State_co = TypeVar("State_co", covariant=True)
In = TypeVar("In")
Out = TypeVar("Out")

Direction: TypeAlias = Literal["input", "output", "lifecycle"]


class Recorded(Struct, frozen=True, gc=False):
    """The base of all events.

    >>> Began().direction
    'lifecycle'
    """

    direction: ClassVar[Direction] = "lifecycle"
    kind: ClassVar[Kind | None] = None
    folded: ClassVar[bool] = True


class Began(Recorded, frozen=True, gc=False):
    """The instance began to exist, at position 1; or began anew after an end, further on (`again = "anew"`).

    >>> Began()
    Began()
    """


class Received(Recorded, Generic[In_co], frozen=True, gc=False):
    """An input was taken.

    >>> Received("paid").message
    'paid'
    """

    direction: ClassVar[Direction] = "input"
    message: In_co


class InitiatedBy(Received[In_co], Generic[In_co], frozen=True, gc=False):
    """The input that began the instance. It is a Received too: who matches `Received(...)` cannot miss it.

    >>> isinstance(InitiatedBy("placed"), Received)
    True
    """


class Sent(Recorded, Generic[Out_co], frozen=True, gc=False, repr_omit_defaults=True):
    """A message was sent, to exactly one destination.

    `compensate` undoes it; `undoes` is the position of what this undoes.

    >>> Sent("charge").kind
    <Kind.COMMAND: 'command'>
    """

    direction: ClassVar[Direction] = "output"
    kind: ClassVar[Kind | None] = Kind.COMMAND
    message: Out_co
    compensate: Out_co | None = None
    undoes: int | None = None


class Published(Recorded, Generic[Out_co], frozen=True, gc=False):
    """A message was published, to none or many.

    >>> Published("order abandoned").kind
    <Kind.EVENT: 'event'>
    """

    direction: ClassVar[Direction] = "output"
    kind: ClassVar[Kind | None] = Kind.EVENT
    message: Out_co


class Replied(Recorded, Generic[Out_co], frozen=True, gc=False):
    """A reply was given: to the sender of the input, or to the message whose id is in `to`.

    >>> Replied("in stock").to is None
    True
    """

    direction: ClassVar[Direction] = "output"
    kind: ClassVar[Kind | None] = Kind.REPLY
    message: Out_co
    to: str | None = None


class Scheduled(Recorded, Generic[In_co], frozen=True, gc=False):
    """A message to the instance itself was scheduled, `after` or `at` as the author wrote it.

    >>> Scheduled("timed out", after=timedelta(minutes=5), at=None, key="timeout").after
    datetime.timedelta(seconds=300)
    """

    direction: ClassVar[Direction] = "output"
    kind: ClassVar[Kind | None] = Kind.TIMER
    message: In_co
    after: timedelta | None
    at: datetime | None
    key: str


class ScheduleCancelled(Recorded, frozen=True, gc=False):
    """What was scheduled under a key was cancelled.

    >>> ScheduleCancelled("PaymentTimedOut").key
    'PaymentTimedOut'
    """

    direction: ClassVar[Direction] = "output"
    kind: ClassVar[Kind | None] = Kind.TIMER
    key: str


class Asked(Recorded, frozen=True, gc=False):
    """A person, or anyone with a role, was asked: a task is open, `due` as the author wrote it.

    >>> Asked("approval", "Approve e-1", ("Approve",), role="manager").kind
    <Kind.TASK: 'task'>
    """

    direction: ClassVar[Direction] = "output"
    kind: ClassVar[Kind | None] = Kind.TASK
    key: str
    title: str
    answers: tuple[str, ...]
    role: str | None = None
    person: str | None = None
    excludes: tuple[str, ...] = ()
    reject: str | None = None
    due: timedelta | datetime | None = None
    data: dict[str, Value] = {}


class TaskClosed(Recorded, frozen=True, gc=False):
    """The task that was asked under a key is closed, with its timers: it was answered, or the workflow moved on.

    >>> TaskClosed("approval").key
    'approval'
    """

    direction: ClassVar[Direction] = "output"
    kind: ClassVar[Kind | None] = Kind.TASK
    key: str


class AnswerRefused(Recorded, Generic[In_co], frozen=True, gc=False):
    """An answer to a task was refused by the workflow, and the task with this key stays open. Outside the fold.

    >>> AnswerRefused("approve", "approval", "the amount is missing").folded
    False
    """

    direction: ClassVar[Direction] = "input"
    folded: ClassVar[bool] = False
    message: In_co
    task: str
    reason: str


class ChildStarted(Recorded, Generic[Out_co], frozen=True, gc=False):
    """An instance of another workflow was asked to begin, as this one's child.

    >>> ChildStarted("ship the order").when_parent_ends
    'cancel'
    """

    direction: ClassVar[Direction] = "output"
    kind: ClassVar[Kind | None] = Kind.COMMAND
    message: Out_co
    when_parent_ends: WhenParentEnds = "cancel"


class FannedOut(Recorded, Generic[Out_co], frozen=True, gc=False):
    """Many children or commands were asked for; one input of the type named `into` joins them.

    >>> FannedOut(("square 1", "square 2"), "PartsDone", "squares").key
    'squares'
    """

    direction: ClassVar[Direction] = "output"
    kind: ClassVar[Kind | None] = Kind.COMMAND
    messages: tuple[Out_co, ...]
    into: str
    key: str


class Became(Recorded, Generic[State_co], frozen=True, gc=False):
    """The state that decide returned, recorded whole (state-returning style)."""

    state: State_co


class Completed(Recorded, Generic[Out_co], frozen=True, gc=False):
    """The instance ended well.

    >>> Completed().result is None
    True
    """

    result: Out_co | None = None


class Failed(Recorded, frozen=True, gc=False):
    """The instance ended badly, by its own decision.

    >>> Failed("out of stock").reason
    'out of stock'
    """

    reason: str


class Compensating(Recorded, Generic[In_co], frozen=True, gc=False, repr_omit_defaults=True):
    """The forward part is over: what was done is undone from here on, and `then` is what is taken afterwards.

    `cancelled` says that the instance was ended from outside, and not by its own decision.

    >>> Compensating("no car").reason
    'no car'
    """

    reason: str
    then: In_co | None = None
    cancelled: bool = False


class Compensated(Recorded, Generic[Out_co], frozen=True, gc=False, repr_omit_defaults=True):
    """A compensation was carried out; `result` is what its handler returned.

    >>> Compensated("refund").message
    'refund'
    """

    direction: ClassVar[Direction] = "input"
    kind: ClassVar[Kind | None] = Kind.RESULT
    message: Out_co
    result: Any = None


class Suspended(Recorded, frozen=True, gc=False, repr_omit_defaults=True):
    """Stepping stopped: by an operator, or because an input or a handler failed. Outside the fold.

    Where the cause was a sent message, `failed` is its position if it was a compensation, or certainly did not happen.

    >>> Suspended("ZeroDivisionError: division by zero").folded
    False
    """

    folded: ClassVar[bool] = False
    reason: str
    failed: int | None = None


class Resumed(Recorded, frozen=True, gc=False):
    """Stepping continued. Outside the fold.

    >>> Resumed().folded
    False
    """

    folded: ClassVar[bool] = False


class Cancelled(Recorded, frozen=True, gc=False):
    """The instance was ended from outside. Outside the fold."""

    folded: ClassVar[bool] = False
    reason: str


class Terminated(Recorded, frozen=True, gc=False):
    """The instance was ended from outside, and nothing was undone. Outside the fold."""

    folded: ClassVar[bool] = False
    reason: str


class Reset(Recorded, frozen=True, gc=False):
    """The instance went back to an earlier position: what was recorded behind it does not count. Outside the fold."""

    folded: ClassVar[bool] = False
    position: int
    reason: str


class Migrated(Recorded, frozen=True, gc=False):
    """The instance continues under another version of its definition. Outside the fold."""

    folded: ClassVar[bool] = False
    workflow_version: int


class Retried(Recorded, frozen=True, gc=False):
    """A command that was known to have failed is carried out again, so its compensation is armed. Outside the fold.

    `position` is where the command was sent.

    >>> Retried(3).folded
    False
    """

    folded: ClassVar[bool] = False
    position: int


class Resent(Recorded, Generic[Out_co], frozen=True, gc=False, repr_omit_defaults=True):
    """A command that had become a dead letter was sent once more by an operator, corrected. Outside the fold.

    `compensate` is that of the command in whose place it stands.

    >>> Resent("charge").kind
    <Kind.COMMAND: 'command'>
    """

    direction: ClassVar[Direction] = "output"
    kind: ClassVar[Kind | None] = Kind.COMMAND
    folded: ClassVar[bool] = False
    message: Out_co
    compensate: Out_co | None = None


class Skipped(Recorded, Generic[In_co], frozen=True, gc=False):
    """An input was passed over by an operator. Outside the fold.

    >>> Skipped("broken").folded
    False
    """

    direction: ClassVar[Direction] = "input"
    folded: ClassVar[bool] = False
    message: In_co


class Kept(Recorded, Generic[In_co], frozen=True, gc=False):
    """An input that was recorded but never stepped. Outside the fold.

    It is an answer or a published event that came after the end, an answer that came while the instance was being
    compensated, or what is no declared input.

    >>> Kept("too late").folded
    False
    """

    direction: ClassVar[Direction] = "input"
    folded: ClassVar[bool] = False
    message: In_co


Event: TypeAlias = Union[  # noqa: UP007  a subscriptable alias: Event[Input, Output]
    Received[In],
    InitiatedBy[In],
    Scheduled[In],
    Compensating[In],
    Compensated[Out],
    Sent[Out],
    Published[Out],
    Replied[Out],
    ChildStarted[Out],
    FannedOut[Out],
    Completed[Out],
    ScheduleCancelled,
    Asked,
    TaskClosed,
    AnswerRefused[In],
    Became[Any],
    Began,
    Failed,
]

StreamEvent: TypeAlias = Union[  # noqa: UP007  all that may stand in a stream, what operators did among it
    Event[In, Out],
    Suspended,
    Resumed,
    Cancelled,
    Terminated,
    Reset,
    Migrated,
    Retried,
    Resent[Out],
    Skipped[In],
    Kept[In],
]

E_co = TypeVar("E_co", covariant=True)


class Occurrence(Struct, Generic[E_co], frozen=True, gc=False):
    """An event with its place in the stream, for an evolve or an authoring style that asks for it by annotation.

    `time` is when it was recorded, and the same at every replay; `cause` is, of an input, the position of the output
    that it answers.

    >>> Occurrence(Received("paid"), datetime(2026, 1, 1), 5, cause=3).folded
    True
    """

    event: E_co
    time: datetime
    position: int
    cause: int | None = None

    @property
    def folded(self) -> bool:
        """Whether a fold sees it."""
        return self.event.folded  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


ENDS: Final = (Completed, Failed)
OUTPUTS: Final = (Sent, Published, Replied, Scheduled, ScheduleCancelled, Asked, TaskClosed, ChildStarted, FannedOut)
