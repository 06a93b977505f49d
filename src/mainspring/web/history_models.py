"""What answers about an instance's history are made of: time travel, links, attributes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from mainspring.analysis.replay.branches import Branch
from mainspring.analysis.replay.explain import Evolved
from mainspring.views import EventInfo, Status


class StateShown(Struct, frozen=True):
    """A state."""

    type: Annotated[str, Meta(examples=["AwaitingPayment"])]
    state: Any


class PlaceChanged(Struct, frozen=True):
    """One place in which two states differ."""

    path: Annotated[str, Meta(examples=["lines[0].amount"])]
    what: Literal["changed", "added", "removed"]
    before: Any
    after: Any


class StateChanged(Struct, frozen=True):
    """What differs between two states; before and after are the names of their types."""

    before: str
    after: str
    places: list[PlaceChanged]
    cut: Annotated[bool, Meta(description="Whether there are more places.")]


class MomentEvent(EventInfo, frozen=True):
    """An event, and what it made of the state; null where it left it alone."""

    change: StateChanged | None


class DecidedEvent(Struct, frozen=True):
    """An event that was decided anew."""

    event: Annotated[str, Meta(examples=["Sent"])]
    direction: Literal["input", "output", "lifecycle"]
    kind: str | None
    type: str | None
    message: Any
    key: str | None
    after_seconds: float | None
    at: datetime | None
    to: str | None
    reason: str | None


class ExplanationDocument(Struct, frozen=True):
    """Why something was decided."""

    workflow_version: int
    fingerprint: str
    asked: Annotated[
        bool, Meta(description="False where it was decided under another version of the workflow, before a migration.")
    ]
    agrees: Annotated[bool, Meta(description="Whether today's code decides what was recorded.")]
    cut: Annotated[bool, Meta(description="Whether decide ran for too long to be followed to its end.")]
    decide: tuple[Branch, ...]
    evolve: list[Evolved]
    decided: Annotated[list[DecidedEvent], Meta(description="What today's code decides.")]
    error: str | None


class MomentDocument(Struct, frozen=True):
    """An input with what was decided for it, or an event that stands alone."""

    position: int
    last: Annotated[int, Meta(description="The position of its last event.")]
    step: Annotated[bool, Meta(description="Whether an input was taken.")]
    begins: bool
    abandoned: Annotated[bool, Meta(description="Whether a reset has left it behind.")]
    migrated: Annotated[
        bool, Meta(description="Whether the instance went on under another version of its workflow later.")
    ]
    events: list[MomentEvent]
    after: StateShown
    explanation: ExplanationDocument | None


class ExplainedMoment(MomentDocument, frozen=True):
    """A moment, with the state before it and why it was decided so."""

    instance: str
    before: StateShown


class StoppedDocument(Struct, frozen=True):
    """Why nothing can be shown from a position on."""

    position: int
    problem: str


class MomentPage(Struct, frozen=True):
    """A page of moments; each begins with the state that the one before has left."""

    items: list[MomentDocument]
    before: Annotated[StateShown | None, Meta(description="The state before the first of them.")]
    next: Annotated[
        int | None, Meta(description="What to give as `after` for the next page; null behind the last one.")
    ]
    stopped: StoppedDocument | None


class ToldEvent(DecidedEvent, frozen=True):
    """An event of a counterfactual story, or of the recorded one beside it."""

    position: int
    time: datetime | None


class UntakenDocument(Struct, frozen=True):
    """An input that cannot be taken in the other story, though it came in the recorded one, or was inserted."""

    position: Annotated[int | None, Meta(description="Where it was recorded; null if it is the one that was inserted.")]
    type: str
    message: Any
    reason: str


class CounterfactualDocument(Struct, frozen=True):
    """The recorded story and the other one, both from the change on."""

    instance: str
    what: Literal["replace", "insert", "drop"]
    at: int
    recorded: list[ToldEvent]
    told: list[ToldEvent]
    differs_at: Annotated[
        int | None, Meta(description="The first position that is not as recorded; null if all of it is.")
    ]
    recorded_state: StateShown
    state: StateShown
    change: StateChanged | None
    unanswered: Annotated[list[ToldEvent], Meta(description="Commands without a known answer.")]
    assumed: list[ToldEvent]
    untaken: list[UntakenDocument]
    waiting: Annotated[list[ToldEvent], Meta(description="Timers that are not due yet.")]
    left_out: Annotated[list[ToldEvent], Meta(description="What operators did.")]
    error: Annotated[str | None, Meta(description="Why the other story stops: its instance would be suspended.")]


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
