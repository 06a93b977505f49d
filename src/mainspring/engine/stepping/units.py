"""What a lane commits: one unit for each thing that can become of an input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from mainspring.core.events import (
    Began,
    ChildStarted,
    Compensated,
    FannedOut,
    InitiatedBy,
    Published,
    Received,
    Replied,
    Scheduled,
    Sent,
    Suspended,
)
from mainspring.core.failures import ChildFailed, SendFailed
from mainspring.core.saga import Ledger
from mainspring.core.step import Step
from mainspring.core.unkept import check_unkept
from mainspring.engine.committing.strangers import INSTANCE_LEFT_SECONDS
from mainspring.engine.inputs.lanes import Lane
from mainspring.engine.inputs.outside_rule import names_barred
from mainspring.engine.inputs.pending import MICROSECOND, Pending, encode_context, instance_id, read_context, time_us_of
from mainspring.engine.outputs.children import CHILDREN_MARK, end_output, outcome
from mainspring.engine.outputs.destinations import command, placed, timer
from mainspring.engine.registry import Registry
from mainspring.engine.stepping.sagas import then_rows
from mainspring.engine.stepping.step_rows import ERROR_CHARACTERS, Written
from mainspring.errors import OperationError, told
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
    Retry,
    Snapshot,
    Unit,
)
from mainspring.port.store import Store
from mainspring.port.tasks import TaskWork

_UNKEYED: Final = 0
# `type` for values of any type: without a cast, which is a call.
_type: Callable[[Any], type[Any]] = type
_CARRIED_OUT: Final = frozenset({Sent, Published, Scheduled, ChildStarted, FannedOut})


def error_text(error: BaseException) -> str:
    """Return an error's type and text, bounded.

    >>> error_text(ValueError("no"))
    'ValueError: no'
    """
    return told(error, ERROR_CHARACTERS)


class Units:
    """Makes units. A method that moves its lane (a step, a fault, a kept result) moves it at once."""

    def __init__(self, store: Store, registry: Registry, room: Callable[[str], int]) -> None:
        self._store = store
        self._registry = registry
        # How many outputs for a destination may come into this worker's hands.
        self._room = room

    def stepped(
        self, lane: Lane, pending: Pending, taken: Step[Any, Any, Any], *, anew: bool = False
    ) -> tuple[Unit, list[tuple[OutputClaim, Any]]]:
        """Return the unit of a step, and those of its outputs that are born claimed, each with its message."""
        before, cause = lane.version, pending.cause
        state_name = lane.entry.definition.states[type(taken.state)]
        if before == 0 or anew:
            lane.context = encode_context(pending.context)
            lane.abandoned = range(1, before + 1)
        if before == 0:
            lane.trims = lane.entry.definition.history == "state"
        elif lane.trims:
            _check_trims(lane, taken, anew=anew)
        written = self._written(lane, pending, taken, state_name)
        attributes = _attributes(lane, taken.state) if lane.entry.searchable else None
        ended = written.status != "running"
        if written.status in ENDED:
            self._tell_of_end(lane, pending, written)
        snapshot = self._snapshot(lane, taken, ended=ended)
        lane.version, lane.state, lane.status, lane.error = taken.version, taken.state, written.status, written.reason
        lane.result = written.result
        # What is called late cannot be called back when the end loses its race: so the end must be durable first.
        lane.drain(needed=ended)
        unit = Unit(
            workflow=lane.ref.workflow,
            instance=lane.ref.id,
            key=lane.key,
            expected_version=before,
            events=tuple(written.rows),
            status=written.status,
            state=state_name,
            error=lane.error,
            definition_version=lane.entry.definition.version,
            context=lane.context,
            renews=anew,
            outputs=tuple(written.outputs),
            cancels=tuple(written.cancels),
            cancel_all="timers" if ended else None,
            dedupe=pending.mark + pending.id if pending.cause is None else None,
            direct=pending.position is None,
            consumes=pending.position,
            settles=() if pending.settles is None else (pending.settles,),
            dead_letters=() if pending.dead_letter is None else _unhandled(pending.dead_letter, taken),
            # A failure that had to wait has a dead letter since then.
            handles=() if cause is None or taken.no_case or _type(pending.message) is not SendFailed else (cause,),
            remembers=pending.remembers,
            discards=pending.discards,
            accepts=pending.accepts,
            snapshot=snapshot,
            tasks=_task_work(lane, pending, written) if lane.asked or written.opens else None,
            attributes=attributes,
            trims=lane.trims,
        )
        return unit, written.claims

    def undone(
        self, lane: Lane, pending: Pending, taken: Step[Any, Any, Any], ledger: Ledger, *, anew: bool
    ) -> tuple[Unit, list[tuple[OutputClaim, Any]]]:
        """Return the unit of a step in which something is to be undone, or the last of it was."""
        unit, claims = self.stepped(lane, pending, taken, anew=anew)
        begins = ledger.begun_at > (unit.expected_version or 0)
        accepts = unit.accepts
        if ledger.active:
            lane.status, lane.error = "compensating", ledger.reason
        elif lane.status not in ENDED:
            lane.status = "running"
            accepts = (
                *accepts,
                *then_rows(lane.entry.recorder, lane.ref, ledger, pending.context, self._store.now_us()),
            )
        lane.drain(needed=begins or lane.ended)
        cancel_all = "forward" if begins else unit.cancel_all
        return replace(unit, status=lane.status, error=lane.error, cancel_all=cancel_all, accepts=accepts), claims

    def _written(self, lane: Lane, pending: Pending, taken: Step[Any, Any, Any], state_name: str) -> Written:
        """Return the events of a step as rows, with what is to be carried out and cancelled."""
        recorder, now_us, context = lane.entry.recorder, self._store.now_us(), b""
        written = Written(lane.asked)
        version = cause = lane.version
        events: Sequence[Any] = taken.events
        for event in events:
            version += 1
            kind = _type(event)
            if kind is Received or kind is InitiatedBy:
                cause = version
                row = recorder.input_row(kind.__name__, version, now_us, pending, state_name)
                written.rows.append(recorder.unkept(row) if lane.trims else row)
                continue
            output = None
            if kind is Replied:
                reply_to = self._reply_to(lane, pending, event)
                row = recorder.reply_row(event, version, now_us, reply_to, cause)
                if reply_to is not None:
                    output = self._reply(lane, row, reply_to)
            elif kind is Compensated:
                row = recorder.compensated_row(event, version, now_us, pending.cause, pending.actor)
                row = replace(row, attempt=pending.attempt, duration_us=pending.duration_us)
                cause = version
            else:
                row = recorder.row(event, version, now_us, cause=cause)
                if kind in _CARRIED_OUT:
                    output = self._output(lane, event, row)
                elif kind is not Began:
                    written.note(event, version)
            written.rows.append(row)
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
            return None  # behind one, nobody would see any more which part of the stream counts
        lane.snapshot_version = taken.version
        mark = CHILDREN_MARK if lane.children else ""
        return lane.entry.recorder.snapshot(taken.state, taken.version, lane.entry.fingerprint + mark)

    def _tell_of_end(self, lane: Lane, pending: Pending, written: Written) -> None:
        """Add what tells a parent of the instance's end, and children."""
        ended = end_output(written.rows[-1], lane.entry.name, written.status, lane.context, children=lane.children)
        if ended is None:
            return
        row, output = ended[0], replace(ended[1], claimed=self._room(ended[1].destination) > 0)
        written.rows[-1] = row
        written.outputs.append(output)
        if output.claimed:
            claim = self._claim(lane, output, row, self._store.now_us(), self._output_context(pending))
            written.claims.append((claim, written.result))

    def faulted(self, lane: Lane, pending: Pending, text: str) -> Unit:
        """Return the unit of a failed step: the input waits in the inbox, the instance is suspended."""
        before = lane.version
        # A stream begins with Began: an instance that could not even begin is suspended without an event.
        events = () if before == 0 else (lane.entry.recorder.row(Suspended(text), before + 1, self._store.now_us()),)
        lane.version += len(events)
        lane.status, lane.error = "suspended", text
        return replace(
            self._moved(lane, pending, before, events),
            context=lane.context or encode_context(pending.context),
            accepts=pending.accepts if pending.position is not None else (pending.input_row(), *pending.accepts),
            # What waits in the inbox was no duplicate when it came there, and must not be taken for its own now.
            dedupe=None if pending.position is not None or pending.cause is not None else pending.mark + pending.id,
            consumes=None,
            releases=() if pending.position is None else (pending.position,),
        )

    def kept(self, lane: Lane, pending: Pending) -> Unit:
        """Return the unit that records an input without stepping it."""
        before, recorder = lane.version, lane.entry.recorder
        row = recorder.input_row("Kept", before + 1, self._store.now_us(), pending, None)
        lane.version += 1
        return self._moved(lane, pending, before, (recorder.unkept(row) if lane.trims else row,))

    def suspended(self, lane: Lane, pending: Pending, reason: str) -> Unit:
        """Return the unit of a command that failed for good in a workflow that does not listen."""
        before = lane.version
        failed = pending.cause if pending.definite or pending.undoes is not None else None
        row = lane.entry.recorder.row(Suspended(reason, failed), before + 1, self._store.now_us())
        row = replace(row, cause=pending.cause)  # so that it is known which dead letter it waits for
        lane.version += 1
        lane.status, lane.error = "suspended", reason
        return replace(self._moved(lane, pending, before, (row,)), dedupe=None, direct=False)

    def parked(self, pending: Pending) -> Unit:
        """Return the unit that lets an input wait in the inbox, of a suspended instance or for another worker."""
        letter = pending.dead_letter
        if pending.message is None and pending.settles is not None and letter is not None:
            # What gave up has no message that could wait: the command does, for a last attempt where it is understood.
            again = Retry(pending.settles, letter.attempts - 1, int(INSTANCE_LEFT_SECONDS * 1e6), letter.error or "")
            return Unit(pending.ref.workflow, pending.ref.id, retries=(again,))
        if pending.position is not None:
            return Unit(pending.ref.workflow, pending.ref.id, releases=(pending.position,))
        return self.accepted(pending)

    def accepted(self, pending: Pending, *, claimed: bool = False) -> Unit:
        """Return the unit that puts an input into the inbox, and settles what it answers."""
        return Unit(
            pending.ref.workflow,
            pending.ref.id,
            accepts=(pending.input_row(claimed=claimed), *pending.accepts),
            settles=() if pending.settles is None else (pending.settles,),
            dead_letters=() if pending.dead_letter is None else (pending.dead_letter,),
            remembers=pending.remembers,
            discards=pending.discards,
            tasks=_answer(pending),
        )

    def settled(self, pending: Pending) -> Unit:
        """Return the unit that only takes an input away."""
        return Unit(
            pending.ref.workflow,
            pending.ref.id,
            consumes=pending.position,
            settles=() if pending.settles is None else (pending.settles,),
            dead_letters=() if pending.dead_letter is None else (pending.dead_letter,),
            remembers=pending.remembers,
            discards=pending.discards,
            accepts=pending.accepts,
            tasks=_answer(pending),
        )

    def buried(self, pending: Pending, reason: str, error: str | None = None) -> Unit:
        """Return the unit that makes an input a dead letter; one that was retried in vain stays the letter it is."""
        return replace(
            self.settled(pending),
            dead_letters=() if pending.discards else (pending.as_dead_letter(reason, error),),
            discards=(),
            dedupe=pending.mark + pending.id if pending.cause is None else None,
        )

    def refused(self, pending: Pending, reason: str) -> Unit:
        """Return the unit that tells a parent why its child did not begin."""
        failed = ChildFailed(str(pending.ref), "refused", reason)
        parent = pending.context.parent or ""
        told = outcome(self._registry.codec, parent, failed, pending.context, self._store.now_us())
        return replace(self.settled(pending), accepts=(told.input_row(claimed=True),))

    def unclaimed_due(self, unit: Unit) -> list[int]:
        """Return when the unit's unclaimed outputs become due, roughly: the store's clock has the last word."""
        now_us = self._store.now_us()
        return [o.at_us if o.at_us is not None else now_us + o.after_us for o in unit.outputs if not o.claimed]

    def _moved(self, lane: Lane, pending: Pending, before: int, events: tuple[EventRow, ...]) -> Unit:
        return Unit(
            workflow=lane.ref.workflow,
            instance=lane.ref.id,
            key=lane.key,
            expected_version=before,
            events=events,
            status=lane.status,
            state=_state_name(lane),
            error=lane.error,
            definition_version=lane.entry.definition.version,
            context=lane.context,
            dedupe=pending.mark + pending.id if pending.cause is None else None,
            direct=pending.position is None,
            consumes=pending.position,
            settles=() if pending.settles is None else (pending.settles,),
            dead_letters=() if pending.dead_letter is None else (pending.dead_letter,),
            remembers=pending.remembers,
            discards=pending.discards,
            accepts=pending.accepts,
            tasks=_answer(pending),
        )

    def _output(self, lane: Lane, event: Any, row: EventRow) -> OutputRow:
        room = self._room
        match event:
            case Sent():
                queue = row.type or ""
                destination = queue if row.type_version == 1 else placed(queue, row.type_version)
                handler = self._registry.handlers.get(queue)
                priority = 0 if handler is None else handler.options.priority
                key = None if cast("Any", event).compensate is None else ARMED
                return OutputRow(row.version, "send", destination, 0, None, key, priority, room(destination) > 0)
            case Published():
                destination = placed(f"publish:{row.type}", row.type_version)
                return OutputRow(row.version, "publish", destination, claimed=room(destination) > 0)
            case Scheduled(after=after, at=at, key=key):
                after_us = 0 if after is None else after // MICROSECOND
                at_us = None if at is None else time_us_of(at)
                return OutputRow(row.version, "timer", timer(lane.entry.name, row), after_us, at_us, key)
            case ChildStarted() | FannedOut():
                lane.children = True
                destination = command(row)
                return OutputRow(row.version, "child", destination, claimed=room(destination) > 0)
            case _:
                raise TypeError(f"{type(event).__name__} is not carried out")

    def _reply(self, lane: Lane, row: EventRow, reply_to: str) -> OutputRow:
        """Return the output of a reply, in a queue that workers who know the workflow that asked look at."""
        scheme, _, rest = reply_to.partition(":")
        destination = f"reply:{instance_id(rest).workflow if scheme == 'instance' else lane.entry.name}"
        return OutputRow(row.version, "reply", destination, claimed=self._room(destination) > 0)

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

    def _reply_to(self, lane: Lane, pending: Pending, event: Replied[Any]) -> str | None:
        """A reply goes where it says, else to the sender of the input, else to whoever began the instance."""
        if event.to is not None:
            return f"message:{event.to}"
        own = _return_address(pending.context)
        if own is None and lane.context is not None:
            own = _return_address(read_context(lane.context))
        return own

    def _output_context(self, pending: Pending) -> bytes:
        context = pending.context
        trace = context.trace if pending.observed is None else pending.observed.trace
        ref, outside = str(pending.ref), context.outside
        return encode_context(Context(context.correlation_id, pending.id, ref, None, trace, outside=outside))


def _state_name(lane: Lane) -> str | None:
    if lane.elsewhere is not None:
        return lane.elsewhere.state
    if lane.fold_error is not None:
        return lane.recorded_state
    return lane.entry.definition.states.get(cast("type[Any]", type(lane.state)))


def _task_work(lane: Lane, pending: Pending, written: Written) -> TaskWork | None:
    """Return what a step does to its instance's tasks; one that never asked anybody has none to close."""
    close_all = written.status != "running" and lane.asked
    closes = tuple(written.closes) if lane.asked else ()
    opens = tuple(written.opens) if written.status == "running" else ()
    bars = names_barred(lane.entry, pending) if lane.asked else ()
    if not (close_all or closes or opens or pending.task_answer or bars):
        return None
    lane.asked = True
    lane.entry.know_answers([name for task in opens for name in task.answers])
    return TaskWork(pending.task_answer, closes, close_all, opens, bars=bars)


def _answer(pending: Pending) -> TaskWork | None:
    return None if pending.task_answer is None else TaskWork(pending.task_answer)


def _unhandled(letter: DeadLetter, taken: Step[Any, Any, Any]) -> tuple[DeadLetter, ...]:
    """A failure that a case has taken is settled by that; but not what another instance could not take."""
    return (letter,) if taken.no_case or letter.output is None else ()


def _return_address(context: Context) -> str | None:
    return context.reply_to or (f"instance:{context.sender}" if context.sender else None)


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
