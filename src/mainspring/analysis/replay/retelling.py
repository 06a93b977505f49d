"""A changed story: one instance that takes what comes to it, from a change of its recorded story on.

Its stream says what came from outside, and when, and what answered each output.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from itertools import count
from typing import Any, Final, Literal, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from mainspring.core.events import (
    AnswerRefused,
    Asked,
    Began,
    ChildStarted,
    Compensated,
    Compensating,
    FannedOut,
    Kept,
    Published,
    Received,
    Replied,
    Scheduled,
    Sent,
    StreamEvent,
)
from mainspring.core.failures import SendFailed
from mainspring.core.fold import fold, placed
from mainspring.core.messages import Envelope, InstanceId, Kind, output_id, type_of
from mainspring.core.open_work import OpenWork
from mainspring.core.saga import Ledger, advanced
from mainspring.core.step import Step, step
from mainspring.core.story import Entry
from mainspring.engine.recording.recorder import Recorder
from mainspring.engine.recording.redecision import row_of
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.recording.walk import StoredEnvelopes
from mainspring.engine.registry import WorkflowEntry
from mainspring.errors import shown, told
from mainspring.port.records import EventRow, Ref
from mainspring.purity.guarding import guarded_workflow

ANSWERABLE: Final = (Sent, ChildStarted, FannedOut, Asked)
"""Outputs to which an answer is to be expected."""
OUTPUTS: Final = (*ANSWERABLE, Published, Replied, Scheduled)

Key: TypeAlias = tuple[str, str | None, bytes | None]


class Heard(Struct, frozen=True):
    """An input that came, when, and at which version it was recorded.

    `cause` is the version of the output that it answers, None if it was not asked for. `undone` says that it is the
    outcome of a compensation, and no input to be decided on; `kept` that it came too late to be decided on.
    """

    version: int
    time_us: int
    envelope: Envelope[Any]
    cause: int | None
    undone: bool = False
    kept: bool = False


class Recollection:
    """The inputs of a stream, and which of them followed from which output."""

    def __init__(self, recorder: Recorder, ref: Ref, rows: Sequence[EventRow]) -> None:
        self._recorder = recorder
        self._ref = ref
        self.heard: list[Heard] = []
        self.times_us: dict[int, int] = {}
        self._answers: dict[int, list[Heard]] = {}
        self._outputs: dict[Key, list[int]] = {}
        self._used: dict[Key, int] = {}
        now_us = 0
        self._envelopes = StoredEnvelopes(ref)
        for row in rows:
            self._envelopes.note(row)
            now_us = max(now_us, row.time_us)  # a clock that was set back must not change the order
            self.times_us[row.version] = now_us
            self._take(row, recorder.event(row), now_us)

    @property
    def correlation_id(self) -> str:
        """The id that all messages of the instance have in common, empty if it has taken no input."""
        return self.heard[0].envelope.correlation_id if self.heard else ""

    def answers_to(self, event: StreamEvent[Any, Any]) -> Iterator[tuple[int, Heard]] | None:
        """Return what was answered to such an output, each with the microseconds after it; None if there was none such.

        Of several like it, the first is answered like the first, the next like the next, and more like the last.
        """
        key = self.key(event)
        versions = self._outputs.get(key)
        if not versions:
            return None
        used = self._used.get(key, 0)
        self._used[key] = used + 1
        version = versions[min(used, len(versions) - 1)]
        return ((heard.time_us - self.times_us[version], heard) for heard in self._answers.get(version, ()))

    def key(self, event: StreamEvent[Any, Any]) -> Key:
        """Return what makes two outputs the same: the kind, the type and the message; the key of a task or timer."""
        if isinstance(event, Asked):
            return "Asked", event.key, None
        row = row_of(self._recorder, event)
        name = f"{row.event} {event.key}" if isinstance(event, Scheduled) else row.event
        return name, row.type, row.body

    def forget_before(self, version: int) -> None:
        """Count the outputs before a version as answered already."""
        for key, versions in self._outputs.items():
            self._used[key] = sum(known < version for known in versions)

    def _take(self, row: EventRow, event: StreamEvent[Any, Any], now_us: int) -> None:
        if isinstance(event, OUTPUTS):
            self._outputs.setdefault(self.key(event), []).append(row.version)
        elif isinstance(event, Received | AnswerRefused | Kept | Compensated):
            undone = isinstance(event, Compensated)
            message = event.result if isinstance(event, Compensated) else event.message
            envelope = self._envelopes.of(row, message)
            heard = Heard(
                row.version, now_us, envelope, row.cause or self._cause(envelope), undone, isinstance(event, Kept)
            )
            self.heard.append(heard)
            if heard.cause is not None:
                self._answers.setdefault(heard.cause, []).append(heard)

    def _cause(self, envelope: Envelope[Any]) -> int | None:
        """Return the output that an answer to a task or another instance's reply follows from, by their ids."""
        for id in (envelope.id.removesuffix("/answer"), envelope.causation_id or ""):
            version = id.removeprefix(f"{self._ref}/")
            if version != id and version.isascii() and version.isdigit() and int(version) in self.times_us:
                return int(version)
        return None


STEPS_MOST: Final = 10_000
"""Inputs that a story may take after the change: one that answers itself would never end."""
MICROSECOND: Final = timedelta(microseconds=1)

What: TypeAlias = Literal["replace", "insert", "drop"]


class Edit(Struct, frozen=True):
    """What is changed: the input at a position is replaced by another message, or dropped, or one comes before it."""

    what: What
    position: int
    message: Any = None


class Untaken(Struct, frozen=True):
    """An input that cannot be taken. `position` is where it was recorded; None if it is the one that was inserted."""

    position: int | None
    message: Any
    reason: str


class _Coming(Struct, order=True):
    """Something on its way to the instance: what is due first is taken first, and then what was recorded first."""

    time_us: int
    place: float
    number: int
    envelope: Any
    timer: int | None = None
    cause: int | None = None
    kept: bool = False
    inserted: bool = False


class Retelling:
    """One instance that takes what comes, on the pure core."""

    def __init__(
        self, entry: WorkflowEntry, ref: Ref, memory: Recollection, until_us: int, silent: Collection[str]
    ) -> None:
        self._definition = entry.definition
        self._workflow = guarded_workflow(entry.workflow)
        self._ref = ref
        self._memory = memory
        self._until_us = until_us
        self._silent = silent
        self._queue: list[_Coming] = []
        self._numbers = count()
        self._now_us = 0
        self._open = OpenWork()
        self._ledger = Ledger()
        self._base = 0
        self.state: Any = entry.workflow.initial_state
        self.entries: list[Entry] = []
        self.unanswered: list[Entry] = []
        self.untaken: list[Untaken] = []
        self.assumed: list[Entry] = []
        self.error: str | None = None

    @property
    def version(self) -> int:
        """The version of the last event."""
        return self.entries[-1].position if self.entries else self._base

    def waiting(self) -> list[Entry]:
        """Return the timers that are not due yet."""
        return list(self._open.timers.values())

    # ---- the part that is as it was

    def recall(self, entry: Entry) -> None:
        """Take over a recorded event."""
        self._now_us = self._memory.times_us[entry.position]
        if isinstance(entry.event, Began):
            self._base = entry.position - 1  # the input that begins it records that it began
            return
        if entry.event.folded:
            if not self.entries:
                self._fold(Began(), entry.position - 1)
            self._fold(entry.event, entry.position, entry.cause)
        self._ledger.take(entry.position, entry.event)
        self._open.take(entry)
        self.entries.append(entry)

    def begin(self, edit: Edit) -> None:
        """Queue every input recorded from the change on that answers no output behind the change."""
        for heard in self._memory.heard:
            changed = heard.version == edit.position
            if changed and edit.what == "drop":
                self._open.timers.pop(heard.cause or 0, None)  # if it was a timer, it does not fire at all
                continue
            if heard.version < edit.position or heard.undone:
                continue
            if heard.cause is None or heard.cause < edit.position:
                replaced = changed and edit.what == "replace"
                envelope = replace(heard.envelope, message=edit.message) if replaced else heard.envelope
                timer = heard.cause if envelope.kind is Kind.TIMER else None
                self._await(heard.time_us, heard.version, envelope, timer, heard.cause, kept=heard.kept)
        fired = {coming.timer for coming in self._queue}
        for version, entry in self._open.timers.items():
            if version not in fired:
                self._set_timer(entry, _due_us(entry, self._memory.times_us[version]), math.inf)
        if edit.what == "insert":
            self._insert(edit)

    def _insert(self, edit: Edit) -> None:
        time_us = self._memory.times_us.get(edit.position, self._now_us)
        envelope: Envelope[Any] = Envelope(edit.message, "inserted", moment(time_us), self._memory.correlation_id)
        self._await(time_us, edit.position - 0.5, envelope, inserted=True)

    # ---- the part that goes otherwise

    def run(self) -> None:
        """Take queued inputs until none is left."""
        for _ in range(STEPS_MOST):
            if not self._queue or self.error is not None:
                return
            coming = heapq.heappop(self._queue)
            self._now_us = max(self._now_us, coming.time_us)
            self._take(coming)
        self.error = f"it has not ended after {STEPS_MOST:,} inputs"

    def _take(self, coming: _Coming) -> None:
        if coming.timer is not None and self._open.timers.pop(coming.timer, None) is None:
            return  # it was cancelled
        envelope = self._meant(coming)
        begins = not self.entries or (self._open.ended and self._begins_anew(envelope))
        if type(envelope.message) not in self._definition.inputs:
            self._leave(coming, "it is no input of this workflow")
        elif self._open.ended and not begins:
            self._leave(coming, "the instance has ended by then")
        elif begins and type(envelope.message) not in self._definition.begins:
            self._leave(coming, "there is no instance, and it begins none")
        elif envelope.kind is Kind.ANSWER and envelope.task not in self._open.tasks:
            self._leave(coming, "it is not asked for by then")
        else:
            self._step(replace(envelope, time=moment(self._now_us)), begins, coming.cause)

    def _meant(self, coming: _Coming) -> Envelope[Any]:
        """Return the envelope of an input. An inserted one may be a timer that fires early, or answer a task."""
        envelope: Envelope[Any] = coming.envelope
        if not coming.inserted:
            return envelope
        if self._open.fire(envelope.message):
            return replace(envelope, kind=Kind.TIMER)
        task = self._open.answered(type_of(cast("Any", type(envelope.message))).name)
        return envelope if task is None else replace(envelope, kind=Kind.ANSWER, task=task)

    def _begins_anew(self, envelope: Envelope[Any]) -> bool:
        asked_for = envelope.kind not in (Kind.COMMAND, Kind.EVENT)
        return self._definition.again == "anew" and not asked_for and type(envelope.message) in self._definition.begins

    def _leave(self, coming: _Coming, reason: str) -> None:
        if not coming.kept:
            version = None if coming.inserted else int(coming.place)
            self.untaken.append(Untaken(version, coming.envelope.message, reason))

    def _step(self, envelope: Envelope[Any], begins: bool, cause: int | None) -> None:
        state = self._workflow.initial_state if begins else self.state
        now = envelope.time
        try:
            taken = step(self._workflow, state, self.version, envelope, begins, now, cause)
            taken = advanced(self._workflow, self._ledger, taken, now)
        except Exception as error:  # noqa: BLE001  an author's decide or evolve may raise anything; it is the answer
            self.error = f"{told(error)}, on {shown(envelope.message, 200)}"
            return
        self._open.ended = False
        self._record(taken, envelope)
        if any(isinstance(event, Compensating) for event in taken.events):
            self._undo()

    def _record(self, taken: Step[Any, Any, Any], envelope: Envelope[Any] | None = None) -> None:
        self.state = taken.state
        time = moment(self._now_us)
        for version, event in enumerate(taken.events, taken.version - len(taken.events) + 1):
            if envelope is not None and event.direction == "input":
                entry = Entry(version, event, envelope.kind, envelope.id, time, envelope.actor)
            else:
                entry = Entry(version, event, time=time)
            self.entries.append(entry)
            self._open.take(entry)
            self._ask(entry)

    def _undo(self) -> None:
        """Undo what was done, one compensation after the other, and go on with `then` if there is one."""
        then = self._ledger.begun.then if self._ledger.begun is not None else None
        while self._ledger.compensation is not None:
            sent = self.entries[-1]
            answers = self._memory.answers_to(sent.event)
            result = next((heard.envelope.message for _, heard in answers or () if heard.undone), None)
            if answers is None:
                self.assumed.append(sent)
            done: Compensated[Any] = Compensated(self._ledger.compensation, result)
            self._fold(done, self.version + 1, sent.position)
            taken: Step[Any, Any, Any] = Step([done], self.state, self.version + 1)
            self._record(advanced(self._workflow, self._ledger, taken, moment(self._now_us)))
        if then is not None:
            id = output_id(InstanceId(self._ref.workflow, self._ref.id), self._ledger.begun_at)
            envelope = Envelope(then, id, moment(self._now_us), self._memory.correlation_id)
            self._await(self._now_us, self.version, envelope)

    def _fold(self, event: Any, position: int, cause: int | None = None) -> None:
        seen = placed(self._definition, [event], position - 1, moment(self._now_us), cause)
        self.state = fold(self._workflow, self.state, seen)

    # ---- what an event means for what comes

    def _ask(self, entry: Entry) -> None:
        """Queue what answered this output in the recorded story."""
        event = entry.event
        if isinstance(event, Scheduled):
            due_us, place = _due_us(entry, self._now_us), math.inf
            for after_us, heard in self._memory.answers_to(event) or ():
                due_us, place = max(due_us, self._now_us + after_us), heard.version
            self._set_timer(entry, due_us, place)
            return
        if not isinstance(event, OUTPUTS) or (isinstance(event, Sent) and event.undoes is not None):
            return
        answers = self._memory.answers_to(event)
        if answers is None and isinstance(event, ANSWERABLE) and not self._is_silent(event):
            self.unanswered.append(entry)
        for after_us, heard in answers or ():
            envelope = self._renamed(heard, entry.position)
            self._await(self._now_us + after_us, heard.version, envelope, cause=entry.position, kept=heard.kept)

    def _is_silent(self, event: StreamEvent[Any, Any]) -> bool:
        return isinstance(event, Sent) and type_of(cast("Any", type(event.message))).name in self._silent

    def _renamed(self, heard: Heard, version: int) -> Envelope[Any]:
        """Return an answer, addressed to the output at another version."""
        old, new = f"{self._ref}/{heard.cause}", f"{self._ref}/{version}"
        envelope, message = heard.envelope, heard.envelope.message
        if isinstance(message, SendFailed):
            message = dataclasses.replace(message, message_id=new)
        id = f"{new}{envelope.id.removeprefix(old)}" if envelope.id.startswith(old) else envelope.id
        return replace(envelope, message=message, id=id)

    def _set_timer(self, entry: Entry, due_us: int, place: float) -> None:
        """Let a timer fire when it is due, unless that time has not come yet."""
        if due_us <= self._until_us:
            message = cast("Scheduled[Any]", entry.event).message
            id, correlation_id = f"{self._ref}/{entry.position}", self._memory.correlation_id
            envelope = Envelope(message, id, moment(due_us), correlation_id, Kind.TIMER)
            self._await(due_us, place, envelope, entry.position, entry.position)

    def _await(
        self,
        time_us: int,
        place: float,
        envelope: Envelope[Any],
        timer: int | None = None,
        cause: int | None = None,
        *,
        kept: bool = False,
        inserted: bool = False,
    ) -> None:
        coming = _Coming(time_us, place, next(self._numbers), envelope, timer, cause, kept, inserted)
        heapq.heappush(self._queue, coming)


def _due_us(entry: Entry, set_us: int) -> int:
    scheduled = cast("Scheduled[Any]", entry.event)
    if scheduled.after is not None:
        return set_us + scheduled.after // MICROSECOND
    return set_us if scheduled.at is None else max(set_us, round(scheduled.at.timestamp() * 1_000_000))
