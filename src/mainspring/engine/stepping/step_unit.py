"""The unit of a step: its events as rows, its outputs, and all else that it changes, in one commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from mainspring.core.decisions import task_timer_key
from mainspring.core.events import (
    AnswerRefused,
    Asked,
    Began,
    Cancelled,
    ChildStarted,
    Compensated,
    Compensating,
    Completed,
    Failed,
    FannedOut,
    InitiatedBy,
    Published,
    Received,
    Replied,
    ScheduleCancelled,
    Scheduled,
    Sent,
    TaskClosed,
)
from mainspring.core.failures import SendFailed
from mainspring.core.saga import Ledger
from mainspring.core.step import Step
from mainspring.core.unkept import check_unkept
from mainspring.engine.inputs.outside_rule import names_barred
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.recording.children import CHILDREN_MARK, end_output
from mainspring.engine.recording.destinations import command, placed, timer
from mainspring.engine.recording.error_text import ERROR_CHARACTERS
from mainspring.engine.recording.event_details import read_detail
from mainspring.engine.recording.saga_rows import then_rows
from mainspring.engine.recording.stored_values import MICROSECOND, encode_context, instance_id, time_us_of
from mainspring.engine.registry import Registry
from mainspring.engine.stepping.lanes import DRAINING, OPEN, Lane
from mainspring.engine.stepping.open_tasks import opening_of
from mainspring.errors import OperationError
from mainspring.port.attributes import AttributeRow
from mainspring.port.records import (
    ARMED,
    ENDED,
    Context,
    DeadLetter,
    EventRow,
    OutputClaim,
    OutputKey,
    OutputRow,
    Snapshot,
    Status,
    Unit,
)
from mainspring.port.tasks import TaskOpening, TaskWork

Made: TypeAlias = tuple[Unit, list[tuple[OutputClaim, Any]]]
"""The unit of a step, and those of its outputs that are born claimed, each with its message."""

_UNKEYED: Final = 0
# `type` for values of any type: without a cast, which is a call.
_type: Callable[[Any], type[Any]] = type
_CARRIED_OUT: Final = frozenset({Sent, Published, Replied, Scheduled, ChildStarted, FannedOut})
_ONLY_RECORDED: Final = frozenset({Began, InitiatedBy, Received, AnswerRefused, Compensated})


class StepRows(Struct, eq=False):
    """A step's rows as they are written one after the other.

    A store cancels what it has, before it records what the step asks for: so what the step itself has set and takes
    back is left out here.

    >>> written = StepRows(asked=False)
    >>> written.outputs.append(OutputRow(3, "timer", "timer:Orders:Late", key="Late"))
    >>> written.note(ScheduleCancelled("Late"), 4)
    >>> written.outputs, written.cancels
    ([], ['Late'])
    """

    asked: bool
    rows: list[EventRow] = []
    outputs: list[OutputRow] = []
    claims: list[tuple[OutputClaim, Any]] = []
    cancels: list[str] = []
    closes: list[str] = []
    opens: list[TaskOpening] = []
    status: Status = "running"
    result: Any = None
    reason: str | None = None

    def note(self, event: Any, version: int) -> None:
        """Take in an event that has nothing to be carried out."""
        if isinstance(event, ScheduleCancelled):
            self._cancel(event.key)
        elif isinstance(event, Asked):
            if self.asked:
                self._close(event.key)
            self.opens.append(opening_of(event, version))
        elif isinstance(event, TaskClosed):
            self._close(event.key)
        elif isinstance(event, Completed | Failed | Cancelled | Compensating):
            self._end(cast("Any", event))

    def _end(self, event: Completed[Any] | Failed | Cancelled | Compensating[Any]) -> None:
        # Nothing is waited for any more, also not what this very step has set.
        self.outputs = [output for output in self.outputs if output.kind != "timer"]
        if isinstance(event, Completed):
            self.status, self.result = "completed", cast("Any", event).result
        elif isinstance(event, Compensating):
            self.status = "compensating"
        else:
            self.status = "failed" if isinstance(event, Failed) else "cancelled"
            self.result, self.reason = event.reason, event.reason[:ERROR_CHARACTERS]

    def _cancel(self, key: str) -> None:
        """Cancel the timers under a key, also those that this very step has set before."""
        self.cancels.append(key)
        self.outputs = [output for output in self.outputs if output.key != key]

    def _close(self, key: str) -> None:
        """Close the task under a key with its timers, also one that this very step has asked."""
        self.closes.append(key)
        self._cancel(task_timer_key(key))
        self.opens = [task for task in self.opens if task.key != key]


class StepUnits:
    """Makes the units of steps. Each moves its lane at once: the next step builds on it, committed or not."""

    def __init__(self, registry: Registry, capacity: Callable[[str], int]) -> None:
        self._registry = registry
        # How many outputs for a destination this worker may claim.
        self._capacity = capacity

    def stepped(
        self, lane: Lane, pending: Pending, taken: Step[Any, Any, Any], now_us: int, *, anew: bool = False
    ) -> Made:
        """Return the unit of a step, with what is to be dispatched of it.

        `now_us` is when it is recorded: the time by which evolve and the style of the workflow went too.
        """
        before, cause, first = lane.version, pending.cause, taken.events[0]
        pending.refusal = first.reason if type(first) is AnswerRefused else None
        state_name = lane.entry.definition.states[type(taken.state)]
        if before == 0 or anew:
            lane.context = encode_context(pending.context)
            lane.abandoned = range(1, before + 1)
        if before == 0:
            lane.trims = lane.entry.definition.history == "state"
        elif lane.trims:
            _check_trims(lane, taken, anew=anew)
        written = self._written(lane, pending, taken, now_us, state_name)
        attributes = _attributes(lane, taken.state) if lane.entry.searchable else None
        ended = written.status != "running"
        if written.status in ENDED:
            self._tell_of_end(lane, pending, written, now_us)
        snapshot = self._snapshot(lane, taken, ended=ended)
        lane.version, lane.state, lane.status, lane.error = taken.version, taken.state, written.status, written.reason
        lane.result = written.result
        # What is called late cannot be called back when the end loses its race: so the end must be durable first.
        lane.phase = DRAINING if ended else OPEN
        ref = lane.ref
        # In the order of its fields: one that is given by its name is looked for among all of them.
        unit = Unit(
            ref.workflow,
            ref.id,
            lane.key,
            before,
            tuple(written.rows),
            written.status,
            state_name,
            lane.error,
            lane.entry.definition.version,
            lane.context,
            anew,
            tuple(written.outputs),
            tuple(written.cancels),
            "timers" if ended else None,
            # The task fixes the id of its answer: after a refused one, the next would be a duplicate.
            pending.mark + pending.id if cause is None and pending.refusal is None else None,
            pending.position is None,
            pending.position,
            (),  # releases
            () if pending.settles is None else (pending.settles,),
            (),  # retries
            (),  # attempts
            pending.accepts,
            () if pending.failure is None else _unhandled(pending.failure.letter, taken),
            pending.discards,
            # A failure that had to wait has a dead letter since then.
            () if cause is None or taken.no_case or _type(pending.message) is not SendFailed else (cause,),
            pending.remembers,
            snapshot,
            _task_work(lane, pending, written) if lane.asked or written.opens else None,
            attributes,
            lane.trims,
            pending.requires,
            lane.era,
        )
        return unit, written.claims

    def undone(
        self, lane: Lane, pending: Pending, taken: Step[Any, Any, Any], now_us: int, ledger: Ledger, *, anew: bool
    ) -> Made:
        """Return the unit of a step in which something is to be undone, or the last of it was."""
        unit, claims = self.stepped(lane, pending, taken, now_us, anew=anew)
        begins = ledger.begun_at > (unit.expected_version or 0)
        accepts = unit.accepts
        if ledger.active:
            lane.status, lane.error = "compensating", ledger.reason
        elif lane.status not in ENDED:
            lane.status = "running"
            accepts = (*accepts, *then_rows(lane.entry.recorder, lane.ref, ledger, pending.context, now_us))
        lane.phase = DRAINING if begins or lane.ended else OPEN
        cancel_all = "forward" if begins else unit.cancel_all
        return replace(unit, status=lane.status, error=lane.error, cancel_all=cancel_all, accepts=accepts), claims

    def _written(
        self, lane: Lane, pending: Pending, taken: Step[Any, Any, Any], now_us: int, state_name: str
    ) -> StepRows:
        """Return the events of a step as rows, with what is to be carried out and cancelled."""
        context = b""
        events: Sequence[Any] = taken.events
        rows = lane.entry.recorder.step_rows(
            events, lane.version, now_us, pending, state_name, lane.context, trims=lane.trims
        )
        written = StepRows(lane.asked, rows)
        for event, row in zip(events, rows, strict=True):
            kind = _type(event)
            if kind in _ONLY_RECORDED:
                continue
            if kind not in _CARRIED_OUT:
                written.note(event, row.version)
                continue
            output = self._output(lane, event, row)
            if output is not None:
                written.outputs.append(output)
                if output.claimed:
                    context = context or self._output_context(pending)
                    message = None if kind is FannedOut else event.message
                    written.claims.append((self._claim(lane, output, row, now_us, context), message))
        return written

    def _snapshot(self, lane: Lane, taken: Step[Any, Any, Any], *, ended: bool) -> Snapshot | None:
        if lane.trims:
            return lane.entry.recorder.snapshot(taken.state, taken.version, "")
        if ended:
            return None
        every = lane.entry.workflow.snapshot_every
        if every is None or taken.version - lane.snapshot_version < every:
            return None
        if lane.abandoned:
            return None  # behind one, it would no longer show which part of the stream counts
        lane.snapshot_version = taken.version
        mark = CHILDREN_MARK if lane.children else ""
        return lane.entry.recorder.snapshot(taken.state, taken.version, lane.entry.fingerprint + mark)

    def _tell_of_end(self, lane: Lane, pending: Pending, written: StepRows, now_us: int) -> None:
        """Add what notifies a parent of the instance's end, and children."""
        ended = end_output(written.rows[-1], lane.entry.name, written.status, lane.context, children=lane.children)
        if ended is None:
            return
        row, output = ended[0], replace(ended[1], claimed=self._capacity(ended[1].destination) > 0)
        written.rows[-1] = row
        written.outputs.append(output)
        if output.claimed:
            claim = self._claim(lane, output, row, now_us, self._output_context(pending))
            written.claims.append((claim, written.result))

    def _output(self, lane: Lane, event: Any, row: EventRow) -> OutputRow | None:
        """Return what is to be carried out of an event; None for a reply that no caller waits for."""
        capacity = self._capacity
        match event:
            case Sent():
                queue = row.type or ""
                destination = queue if row.type_version == 1 else placed(queue, row.type_version)
                handler = self._registry.handlers.get(queue)
                priority = 0 if handler is None else handler.options.priority
                key = None if cast("Any", event).compensate is None else ARMED
                return OutputRow(row.version, "send", destination, 0, None, key, priority, capacity(destination) > 0)
            case Published():
                destination = placed(f"publish:{row.type}", row.type_version)
                return OutputRow(row.version, "publish", destination, claimed=capacity(destination) > 0)
            case Replied():
                reply_to = read_detail(row.detail).reply_to
                if reply_to is None:
                    return None
                # A queue of the workers that know the workflow that asked.
                scheme, _, rest = reply_to.partition(":")
                destination = f"reply:{instance_id(rest).workflow if scheme == 'instance' else lane.entry.name}"
                return OutputRow(row.version, "reply", destination, claimed=capacity(destination) > 0)
            case Scheduled(after=after, at=at, key=key):
                after_us = 0 if after is None else after // MICROSECOND
                at_us = None if at is None else time_us_of(at)
                return OutputRow(row.version, "timer", timer(lane.entry.name, row), after_us, at_us, key)
            case ChildStarted() | FannedOut():
                lane.children = True
                destination = command(row)
                return OutputRow(row.version, "child", destination, claimed=capacity(destination) > 0)
            case _:
                raise TypeError(f"{type(event).__name__} is not carried out")

    def _claim(self, lane: Lane, output: OutputRow, row: EventRow, now_us: int, context: bytes) -> OutputClaim:
        return OutputClaim(
            OutputKey(lane.key or _UNKEYED, output.version),
            lane.ref.workflow,
            lane.ref.id,
            output.kind,
            output.destination,
            0,
            now_us,
            output.priority,
            row.type or "",
            row.type_version,
            row.body or b"",
            row.detail,
            context,
        )

    def _output_context(self, pending: Pending) -> bytes:
        context = pending.context
        trace = context.trace if pending.observed is None else pending.observed.trace
        ref, outside = f"{pending.ref.workflow}/{pending.ref.id}", context.outside
        return encode_context(Context(context.correlation_id, pending.id, ref, None, trace, outside=outside))


def _task_work(lane: Lane, pending: Pending, written: StepRows) -> TaskWork | None:
    """Return what a step does to its instance's tasks; one that never asked has none to close."""
    if pending.refusal is not None:
        answer = pending.task_answer
        return TaskWork(reopens=pending.asked_at[1]) if answer is None else TaskWork(answer, refuses=True)
    close_all = written.status != "running" and lane.asked
    closes = tuple(written.closes) if lane.asked else ()
    opens = tuple(written.opens) if written.status == "running" else ()
    bars = names_barred(lane.entry, pending) if lane.asked else ()
    if not (close_all or closes or opens or pending.task_answer or bars):
        return None
    lane.asked = True
    lane.entry.know_answers([name for task in opens for name in task.answers])
    return TaskWork(pending.task_answer, closes, close_all, opens, bars=bars)


def _unhandled(letter: DeadLetter, taken: Step[Any, Any, Any]) -> tuple[DeadLetter, ...]:
    """A failure that a case has taken is settled by that; but not what another instance could not take."""
    return (letter,) if taken.no_case or letter.output is None else ()


def _check_trims(lane: Lane, taken: Step[Any, Any, Any], *, anew: bool) -> None:
    """An instance without history stays so, also when its workflow keeps histories by now: refuse what needs one."""
    check_unkept(lane.entry.name, taken.events)
    if anew:
        raise OperationError(str(lane.ref), "cannot begin anew: its history is not kept", "Begin another instance.")


def _attributes(lane: Lane, state: Any) -> tuple[AttributeRow, ...] | None:
    """Return what an instance can be searched by from now on, or None where that has not changed."""
    attributes = lane.entry.attributes(state)
    if attributes == lane.attributes:
        return None
    lane.attributes = attributes
    return attributes
