"""Moments, explanations and counterfactuals as the command line prints them and HTTP sends them: one set of records.

Who asks says what may be shown: see `Show`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar

from msgspec import Meta, Raw, Struct, json
from msgspec.structs import asdict, replace

from mainspring.analysis.reading.model import shortened
from mainspring.analysis.replay.branches import Branch
from mainspring.analysis.replay.changes import state_change
from mainspring.analysis.replay.counterfactual import Counterfactual
from mainspring.analysis.replay.explain import Evolved, Explanation
from mainspring.app.viewing import event_view
from mainspring.core.changes import NOTHING
from mainspring.core.events import StreamEvent
from mainspring.core.story import Entry
from mainspring.engine.recording.redecision import row_of
from mainspring.engine.recording.walk import Moment, Stopped
from mainspring.engine.registry import WorkflowEntry
from mainspring.port.records import EventRow, Ref
from mainspring.views import EventInfo

V = TypeVar("V", bound=Struct)

_KEY: Final = re.compile(r"\['([^\W\d]\w*)'\]")


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

    cause: Annotated[int | None, Meta(description="The position of what it answers, or was decided for.")]
    change: StateChanged | None


class DecidedEvent(Struct, frozen=True):
    """An event that was decided again."""

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


# ---- from what was found


class Show(Protocol):
    """What may be shown of bodies, events and errors: all of it on the command line, redacted over HTTP."""

    def body(self, type: str | None, body: bytes | None) -> Raw | None:
        """Return a stored body as it may be shown."""
        ...

    def shown(self, view: V) -> V:
        """Return a view with its message and its reason as they may be shown."""
        ...

    def error(self, text: str | None) -> str | None:
        """Return what may be shown of an error."""
        ...


class All:
    """Shows everything, as it is stored.

    >>> All().error("KeyError: 'price'")
    "KeyError: 'price'"
    """

    def body(self, type: str | None, body: bytes | None) -> Raw | None:
        """Return a body."""
        return None if type is None or body is None else Raw(body)

    def shown(self, view: V) -> V:
        """Return a view."""
        return view

    def error(self, text: str | None) -> str | None:
        """Return an error's text."""
        return text


class Documents:
    """Makes the records of one instance."""

    def __init__(self, show: Show, entry: WorkflowEntry, ref: Ref) -> None:
        self._show = show
        self._entry = entry
        self._ref = ref

    def moment(self, moment: Moment, rows: Sequence[EventRow], why: Explanation | None) -> MomentDocument:
        """Return a moment, of which `rows` are the events, and why it was decided so."""
        known = self.state(moment.before)
        events: list[MomentEvent] = []
        for happened, row in zip(moment.happened, rows, strict=False):  # fewer, where the next one could not be folded
            same = state_change(happened.before, happened.state) is None
            state = known if same else self.state(happened.state)
            event: EventInfo = self._show.shown(event_view(self._ref, row))
            events.append(MomentEvent(**asdict(event), cause=happened.entry.cause, change=state_changed(known, state)))
            known = state
        return MomentDocument(
            position=moment.position,
            last=moment.last,
            step=moment.is_step,
            begins=moment.begins,
            abandoned=moment.abandoned,
            migrated=moment.migrated,
            events=events,
            after=known,
            explanation=None if why is None else self._explanation(why),
        )

    def explained(self, document: MomentDocument, before: StateShown) -> ExplainedMoment:
        """Return a moment by itself, with the state before it."""
        return ExplainedMoment(**asdict(document), instance=str(self._ref), before=before)

    def stopped(self, stopped: Stopped) -> StoppedDocument:
        """Return why nothing can be shown from a position on."""
        return self._show.shown(StoppedDocument(stopped.position, stopped.problem))

    def counterfactual(self, story: Counterfactual) -> CounterfactualDocument:
        """Return the recorded story and the other one."""
        recorded, otherwise = self.state(story.recorded_state), self.state(story.state)
        return CounterfactualDocument(
            instance=str(self._ref),
            what=story.edit.what,
            at=story.edit.position,
            recorded=self._told(story.recorded),
            told=self._told(story.told),
            differs_at=story.differs_at,
            recorded_state=recorded,
            state=otherwise,
            change=state_changed(recorded, otherwise) if state_change(story.recorded_state, story.state) else None,
            unanswered=self._told(story.unanswered),
            assumed=self._told(story.assumed),
            untaken=[
                UntakenDocument(
                    each.position,
                    type(each.message).__name__,
                    self._message(each.message),
                    self._show.error(each.reason) or "",
                )
                for each in story.untaken
            ],
            waiting=self._told(story.waiting),
            left_out=self._told(story.left_out),
            error=self._show.error(story.error),
        )

    def state(self, state: Any) -> StateShown:
        """Return a state."""
        stored = self._entry.recorder.snapshot(state, 0, "")
        return StateShown(stored.type, self._show.body(stored.type, stored.body))

    def _explanation(self, why: Explanation) -> ExplanationDocument:
        return ExplanationDocument(
            workflow_version=why.workflow_version,
            fingerprint=why.fingerprint,
            asked=why.asked,
            agrees=why.agrees,
            cut=why.cut,
            decide=_placed(why.decide),
            evolve=[replace(each, branches=_placed(each.branches)) for each in why.evolve],
            decided=[self._decided(event) for event in why.decided],
            error=self._show.error(why.error),
        )

    def _decided(self, event: StreamEvent[Any, Any]) -> DecidedEvent:
        """Return an event that was decided, but never recorded."""
        recorder = self._entry.recorder
        row = row_of(recorder, event)
        message = getattr(event, "message", None)
        if row.type is None and message is not None:  # an input: where one is recorded, its envelope says what it is
            encoded = recorder.encoded(message)
            row = replace(row, type=encoded.name, type_version=encoded.version, body=encoded.body)
        view: EventInfo = self._show.shown(event_view(self._ref, row))
        return DecidedEvent(*(getattr(view, name) for name in DecidedEvent.__struct_fields__))

    def _told(self, entries: Sequence[Entry]) -> list[ToldEvent]:
        return [
            ToldEvent(
                **asdict(replace(self._decided(entry.event), kind=entry.kind or entry.event.kind)),
                position=entry.position,
                time=entry.time,
            )
            for entry in entries
        ]

    def _message(self, message: Any) -> Raw | None:
        encoded = self._entry.recorder.encoded(message)
        return self._show.body(encoded.name, encoded.body)


def _placed(branches: Sequence[Branch]) -> tuple[Branch, ...]:
    """Return branches of the code, each with its place from where Python finds the module."""
    return tuple(replace(branch, file=shortened(branch.file, sys.path)) for branch in branches)


def state_changed(before: StateShown, after: StateShown) -> StateChanged | None:
    """Return what differs between two states as they are shown: what is not shown does not differ.

    >>> from msgspec import Raw
    >>> one, other = (StateShown("Counted", Raw(text)) for text in (b'{"times":1}', b'{"times":2}'))
    >>> state_changed(one, other).places
    [PlaceChanged(path='times', what='changed', before=1, after=2)]
    """
    if before == after:
        return None
    found = state_change(json.decode(bytes(before.state)), json.decode(bytes(after.state)))
    places = [
        PlaceChanged(
            _KEY.sub(r".\1", place.path).removeprefix("."),
            place.what,
            None if place.before is NOTHING else place.before,
            None if place.after is NOTHING else place.after,
        )
        for place in (() if found is None else found.places)
    ]
    return StateChanged(before.type, after.type, places, found is not None and found.cut)
