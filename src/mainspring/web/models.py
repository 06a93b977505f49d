"""What answers are made of beside the views of `mainspring.views`. OpenAPI is made from both."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Generic, Literal, TypeVar

from msgspec import Meta, Struct
from pydantic import BaseModel, ConfigDict, model_validator

from mainspring.analysis.lint.rules import FindingDocument, IntendedFinding
from mainspring.analysis.replay.documents import MomentDocument, StateShown, StoppedDocument
from mainspring.views import (
    DeadLetter,
    EventInfo,
    Form,
    InstanceInfo,
    LogLine,
    PauseInfo,
    ReceiptStatus,
    Refusal,
    Status,
    Task,
)

T = TypeVar("T")
Next = TypeVar("Next")

MOST_FIELDS: Final = 100


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


class Page(Struct, Generic[T, Next], frozen=True):
    """A page of a list. It may be short, or empty, and yet have a next one."""

    items: list[T]
    next: Annotated[
        Next | None, Meta(description="What to give as `after` for the next page; null behind the last one.")
    ]


class InstancePage(Page[InstanceInfo, int], frozen=True):
    """A page of instances. It may be short, or empty, and yet have a next one."""


class StreamPage(Page[EventInfo, int], frozen=True):
    """A page of a stream."""


class LogPage(Page[LogLine, int], frozen=True):
    """A page of the execution log."""


class ShownLetter(DeadLetter, frozen=True, kw_only=True):
    """A dead letter, with those that are like it."""

    letter_kind: Annotated[str, Meta(description="Those that are alike, as /api/dead-letter-kinds names them.")]


class LetterPage(Page[ShownLetter, int], frozen=True):
    """A page of dead letters."""


class TaskPage(Page[Task, str], frozen=True):
    """A page of tasks."""


class TaskWithForms(Task, frozen=True):
    """A task with the forms by which it is answered."""

    forms: list[Form]


class ProblemDocument(Struct, frozen=True, omit_defaults=True):
    """What went wrong (RFC 9457)."""

    type: Annotated[str, Meta(examples=["urn:mainspring:error:NoSuchInstanceError"])]
    title: Annotated[str, Meta(examples=["no such instance"])]
    status: Annotated[int, Meta(examples=[404])]
    detail: Annotated[str, Meta(examples=["There is no instance Orders/o-1. Check the id."])]
    position: Annotated[int | None, Meta(description="Of 412: where the instance's stream ends; 0 if nowhere.")] = None
    waiting: Annotated[bool | None, Meta(description="Of 412: whether inputs wait that will move it.")] = None
    reason: Annotated[str | None, Meta(description="Of a refused answer or claim: why.", examples=["guard"])] = None


class Taken(Struct, frozen=True):
    """What became of a message: it is durable whatever the status says."""

    instance: Annotated[str, Meta(examples=["OrderFulfilment/o-1"])]
    status: ReceiptStatus
    message_id: Annotated[str, Meta(examples=["checkout-17"])]


class Published(Struct, frozen=True):
    """What became of an event, in each instance that it went to."""

    receipts: list[Taken]


class HookTaken(Struct, frozen=True):
    """What became of a webhook: it is durable."""

    status: Literal["taken", "kept"]


class Ended(Struct, frozen=True):
    """How an instance ended."""

    instance: str
    result: Any


class Replied(Struct, frozen=True):
    """The reply to a request."""

    reply: Any


class AttributeName(Struct, frozen=True):
    """A name by which instances can be found, and what it is compared with."""

    name: Annotated[str, Meta(examples=["customer"])]
    kind: Literal["text", "number", "flag", "time"]


class Settled(Struct, frozen=True):
    """What became of a dead letter."""

    id: int
    left: Annotated[bool, Meta(description="Whether it is a dead letter still.")]


class LetterKind(Struct, frozen=True):
    """Dead letters that are alike: of one workflow and type, with one reason, and errors that differ in values only."""

    kind: Annotated[str, Meta(examples=["8c1f0a2b9d3e4f5061728394"])]
    workflow: str
    type: str
    reason: str
    error: Annotated[str | None, Meta(description="That of the first.")]
    count: int
    first: Annotated[int, Meta(description="The id of the oldest.")]


class LetterKinds(Struct, frozen=True):
    """What kinds of dead letters there are."""

    kinds: list[LetterKind]
    others: Annotated[int, Meta(description="How many are of further kinds.")]
    looked_at: int
    cut: Annotated[bool, Meta(description="Whether there may be more than were read.")]


class LetterRefusal(Struct, frozen=True):
    """A dead letter that could not be settled."""

    id: int
    why: str


class ManySettled(Struct, frozen=True):
    """What became of many dead letters."""

    operation: Literal["retry", "discard"]
    dry_run: Annotated[bool, Meta(description="Whether they were only counted.")]
    matched: int
    done: int
    left: Annotated[int, Meta(description="How many more there are: ask again.")]
    refusals: int
    refused: Annotated[list[LetterRefusal], Meta(description="The first hundred.")]


class PausesDocument(Struct, frozen=True):
    """What is paused, and what can be."""

    paused: list[PauseInfo]
    pausable: Annotated[list[str], Meta(examples=[["handler:ChargeCard", "workflow:Orders"]])]


class NextTimes(Struct, frozen=True):
    """When a schedule is to fire."""

    name: str
    times: list[datetime]


class WorkflowDocument(Struct, frozen=True):
    """A workflow of the app."""

    name: str
    workflow_version: int
    purpose: Annotated[str | None, Meta(description="The first lines of its docstring.")]
    inputs: list[str]
    begins: list[str]


class FindingsDocument(Struct, frozen=True):
    """What lint found in a workflow."""

    workflow: str
    findings: list[FindingDocument]
    intended: list[IntendedFinding]


class BulkDocument(Struct, frozen=True):
    """How far an operation on many instances is."""

    id: str
    operation: Annotated[str, Meta(examples=["retry"])]
    dry_run: Annotated[bool, Meta(description="Whether they are only counted.")]
    status: Literal["running", "done", "stopped", "failed"]
    matched: int
    done: int
    left: int
    refusals: int
    refused: Annotated[list[Refusal], Meta(description="The first hundred.")]
    error: str | None


class WorkerDocument(Struct, frozen=True):
    """A worker that is alive, as far as its lease shows."""

    key: int
    name: Annotated[str, Meta(examples=["host:4711"])]
    heard: Annotated[datetime, Meta(description="When it was last heard of.")]
    until: Annotated[datetime, Meta(description="Until when it is waited for.")]
    lease_seconds: float
    held_back: Annotated[list[str], Meta(description="What it holds back, and why, as of when it was last heard of.")]


class Health(Struct, frozen=True):
    """Whether the process lives, or is ready to serve."""

    status: Literal["ok"]


class MomentPage(Struct, frozen=True):
    """A page of moments; each begins with the state that the one before has left."""

    items: list[MomentDocument]
    before: Annotated[StateShown | None, Meta(description="The state before the first of them.")]
    next: Annotated[
        int | None, Meta(description="What to give as `after` for the next page; null behind the last one.")
    ]
    stopped: StoppedDocument | None


class LinkedInstance(Struct, frozen=True):
    """Another instance that this one has to do with, and by which of its own events."""

    relation: Literal["parent", "child", "sender", "receiver"]
    instance: Annotated[str, Meta(examples=["Shipping/o-1"])]
    workflow: str
    id: str
    position: Annotated[int | None, Meta(description="The position of this instance's event.")]
    type: Annotated[str | None, Meta(description="The message that went between them.")]
    status: Annotated[Status | None, Meta(description="Null where there is no such instance, or not yet.")]
    state: str | None


class LinksDocument(Struct, frozen=True):
    """The instances that an instance has to do with; the first of them where there are too many."""

    instance: str
    links: list[LinkedInstance]
    cut: Annotated[bool, Meta(description="Whether there may be more.")]
    unread: Annotated[
        int, Meta(description="How many messages cannot be read any more, so that where they went is not known.")
    ]


class GivenWhenThen(Struct, frozen=True):
    """A step as a test."""

    file: Annotated[str, Meta(examples=["test_order_fulfilment.py"])]
    text: Annotated[str, Meta(examples=["from mainspring.testing import given …"])]


class AttributesDocument(Struct, frozen=True):
    """What an instance can be searched by."""

    instance: str
    attributes: Annotated[dict[str, Any], Meta(examples=[{"customer": "c-7", "amount": 4200}])]
