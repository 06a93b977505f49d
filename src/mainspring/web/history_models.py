"""What the documents about an instance's history look like, for OpenAPI: time travel, links, log, attributes."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from mainspring.port.records import Status
from mainspring.web.models import Document, EventDocument


class StateShown(Document):
    """A state."""

    type: str = Field(examples=["AwaitingPayment"])
    state: Any


class PlaceChanged(Document):
    """One place in which two states differ."""

    path: str = Field(examples=["lines[0].amount"])
    what: Literal["changed", "added", "removed"]
    before: Any
    after: Any


class StateChanged(Document):
    """What differs between two states; before and after are the names of their types."""

    before: str
    after: str
    places: list[PlaceChanged]
    cut: bool = Field(description="Whether there are more places.")


class MomentEvent(EventDocument):
    """An event, and what it made of the state; null where it left it alone."""

    change: StateChanged | None


class GuardDocument(Document):
    """A case whose pattern fitted, and whose guard said no."""

    line: int
    text: str


class BranchDocument(Document):
    """A branch of decide or evolve that was taken."""

    kind: Literal["case", "no case", "if", "if not"]
    text: str = Field(examples=["case CardCharged(order_id), AwaitingPayment()"])
    function: str = Field(examples=["OrderFulfilment.decide"])
    file: str = Field(examples=["shop/orders.py"])
    line: int
    refused: list[GuardDocument]


class EvolvedDocument(Document):
    """The branches of evolve that an event led to."""

    position: int
    branches: list[BranchDocument]


class DecidedEvent(Document):
    """An event that was decided anew."""

    event: str = Field(examples=["Sent"])
    direction: Literal["input", "output", "lifecycle"]
    kind: str | None
    type: str | None
    message: Any
    key: str | None
    after_seconds: float | None
    at: datetime | None
    to: str | None
    reason: str | None


class ExplanationDocument(Document):
    """Why something was decided."""

    workflow_version: int
    fingerprint: str
    asked: bool = Field(
        description="False where it was decided under another version of the workflow, before a migration."
    )
    agrees: bool = Field(description="Whether today's code decides what was recorded.")
    cut: bool = Field(description="Whether decide ran for too long to be followed to its end.")
    decide: list[BranchDocument]
    evolve: list[EvolvedDocument]
    decided: list[DecidedEvent] = Field(description="What today's code decides.")
    error: str | None


class MomentDocument(Document):
    """An input with what was decided for it, or an event that stands alone."""

    position: int
    last: int = Field(description="The position of its last event.")
    step: bool = Field(description="Whether an input was taken.")
    begins: bool
    abandoned: bool = Field(description="Whether a reset has left it behind.")
    migrated: bool = Field(description="Whether the instance went on under another version of its workflow later.")
    events: list[MomentEvent]
    after: StateShown
    explanation: ExplanationDocument | None


class ExplainedMoment(MomentDocument):
    """A moment, with the state before it and why it was decided so."""

    instance: str
    before: StateShown


class StoppedDocument(Document):
    """Why nothing can be shown from a position on."""

    position: int
    problem: str


class MomentPage(Document):
    """A page of moments; each begins with the state that the one before has left."""

    items: list[MomentDocument]
    before: StateShown | None = Field(description="The state before the first of them.")
    next: int | None = Field(description="What to give as `after` for the next page; null behind the last one.")
    stopped: StoppedDocument | None


class ToldEvent(DecidedEvent):
    """An event of a counterfactual story, or of the recorded one beside it."""

    position: int
    time: datetime | None


class UntakenDocument(Document):
    """An input that cannot be taken in the other story, though it came in the recorded one, or was inserted."""

    position: int | None = Field(description="Where it was recorded; null if it is the one that was inserted.")
    type: str
    message: Any
    reason: str


class CounterfactualDocument(Document):
    """The recorded story and the other one, both from the change on."""

    instance: str
    what: Literal["replace", "insert", "drop"]
    at: int
    recorded: list[ToldEvent]
    told: list[ToldEvent]
    differs_at: int | None = Field(description="The first position that is not as recorded; null if all of it is.")
    recorded_state: StateShown
    state: StateShown
    change: StateChanged | None
    unanswered: list[ToldEvent] = Field(description="Commands to which nobody knows an answer.")
    assumed: list[ToldEvent]
    untaken: list[UntakenDocument]
    waiting: list[ToldEvent] = Field(description="Timers that are not due yet.")
    left_out: list[ToldEvent] = Field(description="What operators did.")
    error: str | None = Field(description="Why the other story stops: its instance would be suspended.")


class LogLine(Document):
    """One line of the execution log."""

    position: int
    what: str = Field(examples=["Started"])
    time: datetime | None
    about: str = Field(examples=["PlaceOrder"])
    state: str | None
    actor: str | None
    kind: str | None
    command: str | None = Field(description="Of an attempt that failed: the type of what was sent.")
    attempt: int | None
    seconds: float | None = Field(description="How long the handler's attempt took, which gave this result or failed.")
    answered_after_seconds: float | None = Field(
        description="Of an answer or a failure: the time since the command, timer, task, child or fan-out was recorded."
    )
    waited_seconds: float | None = Field(description="Of a timer: how long it was due when it was taken.")


class LogPage(Document):
    """A page of the execution log."""

    items: list[LogLine]
    next: int | None = Field(description="What to give as `after` for the next page; null behind the last one.")


class LinkedInstance(Document):
    """Another instance that this one has to do with, and by which of its own events."""

    relation: Literal["parent", "child", "sender", "receiver"]
    instance: str = Field(examples=["Shipping/o-1"])
    workflow: str
    id: str
    position: int | None = Field(description="The position of this instance's event.")
    type: str | None = Field(description="The message that went between them.")
    status: Status | None = Field(description="Null where there is no such instance, or not yet.")
    state: str | None


class LinksDocument(Document):
    """The instances that an instance has to do with; the first of them where there are too many."""

    instance: str
    links: list[LinkedInstance]
    cut: bool = Field(description="Whether there may be more.")
    unread: int = Field(description="How many messages cannot be read any more: nobody can tell where they went.")


class GivenWhenThen(Document):
    """A step as a test."""

    file: str = Field(examples=["test_order_fulfilment.py"])
    text: str = Field(examples=["from mainspring.testing import given …"])


class AttributesDocument(Document):
    """What an instance can be searched by."""

    instance: str
    attributes: dict[str, Any] = Field(examples=[{"customer": "c-7", "amount": 4200}])
