"""What the documents look like, for OpenAPI. They are written by `mainspring.app.documents`; a test compares both."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mainspring.port.records import Status

MOST_FIELDS: Final = 100


class Document(BaseModel):
    """The base of all: nothing is in them that is not said."""

    model_config = ConfigDict(extra="forbid")


class Asked(BaseModel):
    """The base of what is asked for in a body: a few fields, all of which are known."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few(cls, given: Any) -> Any:
        # Each that is not known would become an error of its own, of which 20 are reported: a second for 150,000.
        if isinstance(given, dict) and len(given) > MOST_FIELDS:  # pyright: ignore[reportUnknownArgumentType]  JSON of any kind
            raise ValueError(f"It has more than {MOST_FIELDS} fields")
        return given  # pyright: ignore[reportUnknownVariableType]  as above


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str = Field(examples=["urn:mainspring:error:NoSuchInstanceError"])
    title: str = Field(examples=["no such instance"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["There is no instance Orders/o-1. Check the id, or send a message that begins it."])
    position: int | None = Field(default=None, description="Of 412: where the instance's stream ends; 0 if nowhere.")
    waiting: bool | None = Field(default=None, description="Of 412: whether inputs wait that will move it.")


class Taken(Document):
    """What became of a message: it is durable whatever the status says."""

    instance: str = Field(examples=["OrderFulfilment/o-1"])
    status: Literal["stepped", "kept", "accepted", "duplicate", "suspended", "dead letter"]
    message_id: str = Field(examples=["checkout-17"])


class Published(Document):
    """What became of an event, in each instance that it went to."""

    receipts: list[Taken]


class HookTaken(Document):
    """What became of a webhook: it is durable."""

    status: Literal["taken", "kept"]


class Ended(Document):
    """How an instance ended."""

    instance: str
    result: Any


class Replied(Document):
    """The reply to a request."""

    reply: Any


class InstanceDocument(Document):
    """An instance."""

    instance: str = Field(examples=["OrderFulfilment/o-1"])
    workflow: str = Field(examples=["OrderFulfilment"])
    id: str = Field(examples=["o-1"])
    status: Status
    state: str | None = Field(description="The name of the state's type.", examples=["AwaitingPayment"])
    workflow_version: int = Field(description="The version of the workflow under which it runs.")
    position: int = Field(description="That of the last event in its stream.")
    error: str | None
    began: datetime
    updated: datetime
    key: int = Field(description="Its place in the order of beginning.")


class InstancePage(Document):
    """A page of instances. It may be short, or empty, and yet have a next one."""

    items: list[InstanceDocument]
    next: int | None = Field(description="What to give as `after` for the next page; null behind the last one.")


class AttributeName(Document):
    """A name by which instances can be found, and what it is compared with."""

    name: str = Field(examples=["customer"])
    kind: Literal["text", "number", "flag", "time"]


class EventDocument(Document):
    """One event of a stream."""

    position: int
    time: datetime
    event: str = Field(examples=["Received"])
    direction: Literal["input", "output", "lifecycle"]
    kind: str | None
    type: str | None = Field(examples=["PlaceOrder"])
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


class StreamPage(Document):
    """A page of a stream."""

    items: list[EventDocument]
    next: int | None = Field(description="What to give as `after` for the next page; null behind the last one.")


class StateDocument(Document):
    """A state at a position, or the problem for which there is none."""

    position: int
    type: str | None
    state: Any
    problem: str | None


class InputDocument(Document):
    """An input that waits."""

    message_id: str
    kind: str
    type: str
    message: Any
    time: datetime
    actor: str | None


class OutputDocument(Document):
    """An output that is not carried out yet: a command, or a timer."""

    instance: str
    position: int
    kind: str
    key: str | None
    type: str
    message: Any
    due: datetime
    attempts: int


class ChildDocument(Document):
    """A child or a fan-out that has not ended."""

    position: int = Field(description="Where the stream says that it was begun.")
    type: str | None = Field(description="The type of the message that began the child; null of a fan-out.")
    began: datetime
    done: int | None = Field(description="How many parts of a fan-out are done.")
    total: int | None = Field(description="How many parts a fan-out has; null where it was not counted.")
    instance: str | None = Field(description="Which it is, by today's route; null where nobody can tell.")


class WaitingDocument(Document):
    """What an instance waits for."""

    inbox: list[InputDocument]
    outbox: list[OutputDocument]
    timers: list[OutputDocument]
    children: list[ChildDocument]
    children_since: int = Field(description="They are looked for behind this position: among its last 20,000 events.")
    tasks: list[str] = Field(description="The ids of open tasks, the last twenty that were asked.")
    held_back: list[str] = Field(
        description="Why some of these wait: what they wait for is paused or away, or no worker can read them."
    )


class LetterDocument(Document):
    """A dead letter."""

    id: int
    instance: str
    message_id: str
    kind: str
    type: str
    message: Any
    time: datetime
    reason: str
    error: str | None
    attempts: int
    actor: str | None
    letter_kind: str = Field(description="Those that are alike, as /api/dead-letter-kinds names them.")
    headers: dict[str, str] | None = Field(
        default=None, description="What came with a message that an edge could not take; left out of others."
    )


class LetterPage(Document):
    """A page of dead letters."""

    items: list[LetterDocument]
    next: int | None = Field(description="What to give as `after` for the next page; null behind the last one.")


class Settled(Document):
    """What became of a dead letter."""

    id: int
    left: bool = Field(description="Whether it is a dead letter still.")


class LetterKind(Document):
    """Dead letters that are alike: of one workflow and type, with one reason, and errors that differ in values only."""

    kind: str = Field(examples=["8c1f0a2b9d3e4f5061728394"])
    workflow: str
    type: str
    reason: str
    error: str | None = Field(description="That of the first.")
    count: int
    first: int = Field(description="The id of the oldest.")


class LetterKinds(Document):
    """What kinds of dead letters there are."""

    kinds: list[LetterKind]
    others: int = Field(description="How many are of further kinds.")
    looked_at: int
    cut: bool = Field(description="Whether there may be more than were looked at.")


class LetterRefusal(Document):
    """A dead letter that could not be settled."""

    id: int
    why: str


class ManySettled(Document):
    """What became of many dead letters."""

    operation: Literal["retry", "discard"]
    dry_run: bool = Field(description="Whether they were only counted.")
    matched: int
    done: int
    left: int = Field(description="How many more there are: ask again.")
    refusals: int
    refused: list[LetterRefusal] = Field(description="The first hundred.")


class TaskDocument(Document):
    """A task."""

    id: str = Field(examples=["ExpenseApproval/e-1/3"])
    workflow: str
    instance: str
    key: str
    title: str
    answers: list[str] = Field(examples=[["ApproveExpense", "RejectExpense"]])
    role: str | None
    person: str | None
    excludes: list[str]
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


class TaskPage(Document):
    """A page of tasks."""

    items: list[TaskDocument]
    next: str | None = Field(description="What to give as `after` for the next page; null behind the last one.")


class FormField(Document):
    """One field of a form."""

    name: str
    schema_: dict[str, Any] = Field(alias="schema", description="Its JSON Schema.")
    required: bool
    value: Any = Field(description="What is known of it already.")


class FormDocument(Document):
    """One way to answer a task."""

    answer: str
    message_version: int
    rejects: bool
    fields: list[FormField]
    definitions: dict[str, Any] = Field(description="What fields refer to as #/$defs/…")


class TaskWithForms(TaskDocument):
    """A task with the forms by which it is answered."""

    forms: list[FormDocument]


class TaskOutcomeDocument(Document):
    """How a task was answered."""

    id: str
    first: bool = Field(description="Whether it was by this very request.")
    status: str
    answered_by: str
    answered_at: datetime
    answer: str
    message: Any


class ScheduleDocument(Document):
    """A schedule."""

    name: str
    calendar: str = Field(examples=["0 3 * * *"])
    catch_up: str
    message: str
    status: str
    next: datetime | None


class PauseDocument(Document):
    """A handler or a workflow that is paused for all workers."""

    what: str = Field(examples=["handler:ChargeCard"])
    kind: Literal["handler", "workflow"]
    name: str
    reason: str
    actor: str | None
    since: datetime
    waiting: int = Field(description="How many messages wait for it.")
    more: bool = Field(description="Whether it is so many or more: among the next thousand commands.")


class PausesDocument(Document):
    """What is paused, and what can be."""

    paused: list[PauseDocument]
    pausable: list[str] = Field(examples=[["handler:ChargeCard", "workflow:Orders"]])


class NextTimes(Document):
    """When a schedule is to fire."""

    name: str
    times: list[datetime]


class WorkflowDocument(Document):
    """A workflow of the app."""

    name: str
    workflow_version: int
    purpose: str | None = Field(description="The first lines of its docstring.")
    inputs: list[str]
    begins: list[str]


class FindingDocument(Document):
    """Something that lint found."""

    level: Literal["error", "warning", "note"]
    code: str = Field(examples=["MS202"])
    rule: str = Field(examples=["dead-end"])
    about: list[str]
    file: str
    line: int
    what: str
    fix: str


class IntendedFinding(FindingDocument):
    """A finding that a comment says is intended, and why."""

    reason: str


class FindingsDocument(Document):
    """What lint found in a workflow."""

    workflow: str
    findings: list[FindingDocument]
    intended: list[IntendedFinding]


class BulkRefusal(Document):
    """An instance on which an operation made no sense."""

    instance: str
    why: str


class BulkDocument(Document):
    """How far an operation on many instances is."""

    id: str
    operation: str = Field(examples=["retry"])
    dry_run: bool = Field(description="Whether they are only counted.")
    status: Literal["running", "done", "stopped", "failed"]
    matched: int
    done: int
    left: int
    refusals: int
    refused: list[BulkRefusal] = Field(description="The first hundred.")
    error: str | None


class WorkerDocument(Document):
    """A worker that is alive, as far as its lease shows."""

    key: int
    name: str = Field(examples=["host:4711"])
    heard: datetime = Field(description="When it was last heard of.")
    until: datetime = Field(description="Until when it is waited for.")
    lease_seconds: float
    held_back: list[str] = Field(description="What it holds back, and why, as of when it was last heard of.")


class StatsDocument(Document):
    """How much of everything there is."""

    instances: dict[str, int] = Field(examples=[{"running": 12, "completed": 340}])
    inbox: int
    outbox: int
    timers: int
    dead_letters: int
    workers: int
    oldest_due: datetime | None


class Health(Document):
    """Whether the process lives, or is ready to serve."""

    status: Literal["ok"]
