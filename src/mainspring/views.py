"""What an app shows of itself: returned by Python, printed by the command line with `--json`, sent over HTTP.

One record for each noun, the same at all three: times are datetimes, places in a stream positions. A `message` is the
message itself in Python, and its JSON elsewhere; where it cannot be read it is None, and `unreadable` says why. A
field that has a default is left out of JSON where it has nothing to say.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from mainspring.core.events import (
    Cancelled,
    Kept,
    Migrated,
    Resent,
    Reset,
    Resumed,
    Retried,
    Skipped,
    Suspended,
    Terminated,
)
from mainspring.core.execution import LogLine
from mainspring.core.story import Entry

__all__ = [
    "Attempt",
    "BulkReport",
    "Cancelled",
    "DeadLetter",
    "Entry",
    "EventInfo",
    "Form",
    "FormField",
    "Frame",
    "FunctionText",
    "InstanceInfo",
    "Kept",
    "Lag",
    "LogLine",
    "Migrated",
    "OpenChild",
    "PauseInfo",
    "ProjectionStatus",
    "PurgeReport",
    "Refusal",
    "Resent",
    "Reset",
    "Resumed",
    "Retried",
    "ScheduleInfo",
    "Skipped",
    "StateInfo",
    "Stats",
    "Suspended",
    "Task",
    "TaskOutcome",
    "Terminated",
    "Variable",
    "Waiting",
    "WaitingCode",
    "WaitingInput",
    "WaitingOutput",
    "WaitsAt",
]

Status: TypeAlias = Literal["running", "suspended", "compensating", "completed", "failed", "cancelled", "terminated"]
ReceiptStatus: TypeAlias = Literal[
    "stepped", "refused", "kept", "accepted", "duplicate", "suspended", "dead letter", "pending"
]
Action: TypeAlias = Literal["suspend", "resume", "retry", "skip", "cancel", "terminate", "reset", "migrate"]


class InstanceInfo(Struct, frozen=True, omit_defaults=True):
    """An instance: its status, the name of its state, its error and its times.

    A `purged` one is a tombstone: its stream is gone.
    """

    instance: Annotated[str, Meta(examples=["OrderFulfilment/o-1"])]
    workflow: Annotated[str, Meta(examples=["OrderFulfilment"])]
    id: Annotated[str, Meta(examples=["o-1"])]
    status: Status
    state: Annotated[str | None, Meta(description="The name of the state's type.", examples=["AwaitingPayment"])]
    workflow_version: Annotated[int, Meta(description="The version of the workflow under which it runs.")]
    position: Annotated[int, Meta(description="That of the last event in its stream.")]
    error: str | None
    began: datetime
    updated: datetime
    key: Annotated[int, Meta(description="Its place in the order of beginning: what `after` takes.")]
    purged: datetime | None = None


class EventInfo(Struct, frozen=True):
    """One event of a stream as JSON has it; in Python, see `Entry`."""

    position: int
    time: datetime
    event: Annotated[str, Meta(examples=["Received"])]
    direction: Literal["input", "output", "lifecycle"]
    kind: str | None
    type: Annotated[str | None, Meta(examples=["PlaceOrder"])]
    message: Any
    message_id: str | None
    actor: str | None
    state: str | None
    attempt: int | None
    key: str | None
    after_seconds: float | None
    at: datetime | None
    to: str | None
    reason: str | None


class StateInfo(Struct, frozen=True):
    """A state at a position, or the problem for which there is none."""

    position: int
    type: str | None
    state: Any
    problem: str | None


class WaitingInput(Struct, frozen=True, omit_defaults=True):
    """An input that waits for its step."""

    message_id: str
    kind: str
    type: str
    message: Any
    time: datetime
    actor: str | None
    unreadable: str | None = None


class WaitingOutput(Struct, frozen=True, omit_defaults=True):
    """An output that is not carried out yet: a command, or a timer. `error` is that of its last attempt."""

    instance: Annotated[str, Meta(examples=["OrderFulfilment/o-1"])]
    position: int
    kind: str
    key: str | None
    type: str
    message: Any
    due: datetime
    attempts: int
    error: str | None = None
    unreadable: str | None = None

    @property
    def workflow(self) -> str:
        """The workflow of its instance."""
        return self.instance.partition("/")[0]


class OpenChild(Struct, frozen=True):
    """A child or a fan-out that has not ended."""

    position: Annotated[int, Meta(description="Where the stream says that it was begun.")]
    type: Annotated[str | None, Meta(description="The type of the message that began the child; null of a fan-out.")]
    began: datetime
    done: Annotated[int | None, Meta(description="How many parts of a fan-out are done.")]
    total: Annotated[int | None, Meta(description="How many parts a fan-out has; null where it was not counted.")]
    instance: Annotated[str | None, Meta(description="Which it is, by today's route; null where that is not known.")]

    @property
    def is_fan_out(self) -> bool:
        """Whether it has parts."""
        return self.done is not None

    @property
    def progress(self) -> str:
        """How many of its parts are done, in words."""
        return "" if self.total is None else f"{self.done or 0:,} of {self.total:,} parts done"


class Waiting(Struct, frozen=True):
    """What an instance waits for; the next hundred of each."""

    inbox: list[WaitingInput]
    outbox: list[WaitingOutput]
    timers: list[WaitingOutput]
    children: list[OpenChild]
    children_since: Annotated[
        int, Meta(description="They are looked for behind this position: among its last 20,000 events.")
    ]
    tasks: Annotated[list[str], Meta(description="The ids of open tasks, the last twenty that were asked.")]
    held_back: Annotated[
        list[str],
        Meta(description="Why some of these wait: what they wait for is paused or away, or no worker can read them."),
    ]


class Variable(Struct, frozen=True):
    """A local variable. `value` is what it holds, shortened; None where only types may be seen."""

    name: str
    type: str
    value: str | None


class Frame(Struct, frozen=True):
    """A call of an author's function that has not returned: the line that it is at, and its local variables.

    >>> str(Frame("shop.py", 12, "fulfil", "await receive(Paid)", ()))
    'shop.py:12 in fulfil'
    """

    file: str
    line: int
    function: str
    text: Annotated[str, Meta(description="The line itself.")]
    variables: tuple[Variable, ...]
    more: Annotated[int, Meta(description="How many more variables it has.")] = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


class WaitingCode(Struct, frozen=True):
    """A task of asyncio that waits, in words what for, and its calls, the innermost first.

    `position` is that of what was asked for, `due` when a timer lets it go on, `times_out` when one ends the wait.
    """

    task: Annotated[str, Meta(examples=["fulfil"])]
    awaits: Annotated[str, Meta(examples=["the step charge", "a message Confirmed"])]
    kind: Literal["step", "command", "child", "fan-out", "task", "message", "timer", "code"]
    frames: tuple[Frame, ...]
    position: int | None = None
    due: datetime | None = None
    times_out: datetime | None = None
    more: Annotated[int, Meta(description="How many more calls lie between the first and the others.")] = 0


class FunctionText(Struct, frozen=True):
    """The source of a function in which code waits; `line` is that of its first line."""

    file: str
    function: str
    line: int
    text: str


class WaitsAt(Struct, frozen=True):
    """At which lines a flow waited behind a position, the flow's own task first, and the functions they are in.

    `ended`: it had ended by then. `problem` says why it cannot be told, as where today's code has drifted.

    >>> WaitsAt(4, is_flow=False).first is None
    True
    """

    position: int
    is_flow: Annotated[bool, Meta(description="False of any other workflow: none of its code waits.")] = True
    ended: bool = False
    waiting: tuple[WaitingCode, ...] = ()
    more: Annotated[int, Meta(description="How many more tasks wait.")] = 0
    functions: tuple[FunctionText, ...] = ()
    problem: str | None = None

    @property
    def first(self) -> Frame | None:
        """The innermost call of the flow's own task."""
        return next((code.frames[0] for code in self.waiting if code.frames), None)


class Attempt(Struct, frozen=True):
    """A failed attempt at what an instance sent at a `position`. `worker` is the name of who made it.

    `number` counts from 1, and from 1 again after a dead letter was retried. `began` is None where the call did not
    even begin.
    """

    position: int
    number: int
    worker: str
    began: datetime | None
    ended: datetime
    error: str | None

    @property
    def duration(self) -> timedelta | None:
        """How long it took."""
        return None if self.began is None else self.ended - self.began


class DeadLetter(Struct, frozen=True, omit_defaults=True):
    """A message that could not be carried out, and why.

    `headers` are those of a message that an edge could not take; its `instance` names the edge.
    """

    id: int
    instance: Annotated[str, Meta(examples=["OrderFulfilment/o-1"])]
    message_id: str
    kind: str
    type: str
    message: Any
    time: datetime
    reason: str
    error: str | None
    attempts: int
    actor: str | None
    headers: dict[str, str] | None = None
    unreadable: str | None = None

    @property
    def workflow(self) -> str:
        """The workflow of its instance."""
        return self.instance.partition("/")[0]


class Stats(Struct, frozen=True):
    """How much of everything there is; `instances` by their status."""

    instances: Annotated[dict[str, int], Meta(examples=[{"running": 12, "completed": 340}])]
    inbox: int
    outbox: int
    timers: int
    dead_letters: int
    workers: int
    oldest_due: datetime | None


class Task(Struct, frozen=True):
    """A task. `status` is `open`, `answered` or `closed`; `claimed_by` is who holds it.

    >>> Task.__struct_fields__[:3]
    ('id', 'workflow', 'instance')
    """

    id: Annotated[str, Meta(examples=["ExpenseApproval/e-1/3"])]
    workflow: str
    instance: str
    key: str
    title: str
    answers: Annotated[tuple[str, ...], Meta(examples=[["ApproveExpense", "RejectExpense"]])]
    role: str | None
    person: str | None
    excludes: tuple[str, ...]
    reject: str | None
    data: dict[str, Any]
    opened_at: datetime
    due_at: datetime | None
    overdue: bool
    status: Literal["open", "answered", "closed"]
    claimed_by: str | None
    claimed_at: datetime | None
    answered_by: str | None
    answer: str | None
    ended_at: datetime | None


class FormField(Struct, frozen=True):
    """One field of a form: its JSON Schema, whether it must be given, and the value that is known already."""

    name: str
    schema: dict[str, Any]
    required: bool
    value: Any = None


class Form(Struct, frozen=True):
    """One way to answer a task. `definitions` are the schemas that fields refer to as `#/$defs/…`."""

    answer: str
    message_version: int
    rejects: bool
    fields: tuple[FormField, ...]
    definitions: dict[str, Any]


class TaskOutcome(Struct, frozen=True):
    """How a task was answered: by which person, when, with which message. `first` says whether by this very call.

    `status` is that of the receipt: `stepped`, `accepted` or `suspended` for the first; for the others `duplicate`, or
    `accepted` while the first waits to be taken: if it is refused, the task is open again.

    >>> from datetime import UTC
    >>> TaskOutcome("Leave/l-1/3", True, "stepped", "ann", datetime(2026, 1, 1, tzinfo=UTC), "Grant", None).answered_by
    'ann'
    """

    id: str
    first: bool
    status: ReceiptStatus
    answered_by: str
    answered_at: datetime
    answer: str
    message: Any


class ScheduleInfo(Struct, frozen=True):
    """A schedule as it stands: when it fires, what it sends, and when next."""

    name: str
    calendar: Annotated[str, Meta(examples=["0 3 * * *"])]
    catch_up: Literal["skip", "once", "all"]
    message: str
    status: Literal["active", "paused", "removed", "suspended", "not started"]
    next: datetime | None


class PauseInfo(Struct, frozen=True):
    """What is paused, why, by which actor and since when, and how many messages wait for it: so many or `more`."""

    what: Annotated[str, Meta(examples=["handler:ChargeCard"])]
    kind: Literal["handler", "workflow"]
    name: str
    reason: str
    actor: str | None
    since: datetime
    waiting: Annotated[int, Meta(description="How many messages wait for it.")]
    more: Annotated[bool, Meta(description="Whether it is so many or more: among the next thousand commands.")]

    def __str__(self) -> str:
        by = "" if self.actor is None else f" by {self.actor}"
        return f"the {self.kind} {self.name} is paused{by} since {self.since:%Y-%m-%d %H:%M:%S} UTC: {self.reason}"


class Lag(Struct, frozen=True):
    """A generation of a projection, and how far it is behind the feed: in events (100,000 at most) and in seconds."""

    generation: int
    version: int
    position: int
    events: int
    seconds: float
    error: str | None


class ProjectionStatus(Struct, frozen=True):
    """How a projection is: the live generation, and the one that is being built beside it, if any.

    `declared` says whether this app's code has it, `left` what a worker that runs cannot read and leaves to those of a
    newer release.

    >>> ProjectionStatus("orders", declared=True, live=None, building=None).stopped
    False
    """

    name: str
    declared: bool
    live: Lag | None
    building: Lag | None
    left: str | None = None

    @property
    def stopped(self) -> bool:
        """Whether an error has stopped one of them. It is retried with growing pauses."""
        return any(lag is not None and lag.error is not None for lag in (self.live, self.building))


class Refusal(Struct, frozen=True):
    """An instance on which an operation made no sense, or that moved on meanwhile, and why."""

    instance: str
    why: str


class BulkReport(Struct, frozen=True):
    """What became of an operation on many instances; while it runs, how far it is. `refused` are the first thousand.

    >>> BulkReport("cancel", matched=3, done=2).left
    1
    """

    action: Action
    matched: int = 0
    done: int = 0
    refusals: int = 0
    refused: tuple[Refusal, ...] = ()
    dry_run: bool = False

    @property
    def left(self) -> int:
        """How many are still to be operated on."""
        return 0 if self.dry_run else self.matched - self.done - self.refusals


class PurgeReport(Struct, frozen=True):
    """How far a purge has come: instances and events that are gone (or would be), and events that were archived."""

    instances: int = 0
    events: int = 0
    archived: int = 0
