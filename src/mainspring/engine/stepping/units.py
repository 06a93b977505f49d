"""What a lane commits of an input that is not stepped: one unit for each thing that can become of it."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from mainspring.core.events import Suspended
from mainspring.core.failures import ChildFailed
from mainspring.engine.claimable.strangers import INSTANCE_LEFT_SECONDS
from mainspring.engine.inputs.delivered_output import child_end
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.recording.stored_values import encode_context
from mainspring.engine.registry import Registry
from mainspring.engine.stepping.lanes import Lane
from mainspring.port.records import EventRow, Retry, Unit
from mainspring.port.store import Store
from mainspring.port.tasks import TaskWork


class Units:
    """Makes units. A method that moves its lane (a fault, a kept result) moves it at once."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry

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
        definite = pending.failure is not None and pending.failure.definite
        failed = pending.cause if definite or pending.undoes is not None else None
        row = lane.entry.recorder.row(Suspended(reason, failed), before + 1, self._store.now_us())
        row = replace(row, cause=pending.cause)  # so that it is known which dead letter it waits for
        lane.version += 1
        lane.status, lane.error = "suspended", reason
        return replace(self._moved(lane, pending, before, (row,)), dedupe=None, direct=False)

    def parked(self, pending: Pending) -> Unit:
        """Return the unit that lets an input wait in the inbox, of a suspended instance or for another worker."""
        if pending.message is None and pending.settles is not None and pending.failure is not None:
            # The failure has no message that could wait: the command does, for a last attempt where it is understood.
            letter = pending.failure.letter
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
            dead_letters=pending.letters,
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
            dead_letters=pending.letters,
            remembers=pending.remembers,
            discards=pending.discards,
            accepts=pending.accepts,
            tasks=_answer(pending),
        )

    def buried(self, pending: Pending, reason: str, error: str | None = None) -> Unit:
        """Return the unit that makes an input a dead letter; one that was retried in vain stays one."""
        return replace(
            self.settled(pending),
            dead_letters=() if pending.discards else (pending.as_dead_letter(reason, error),),
            discards=(),
            dedupe=pending.mark + pending.id if pending.cause is None else None,
        )

    def refused(self, pending: Pending, reason: str) -> Unit:
        """Return the unit that notifies a parent why its child did not begin."""
        failed = ChildFailed(str(pending.ref), "refused", reason)
        parent = pending.context.parent or ""
        told = child_end(self._registry.codec, parent, failed, pending.context, self._store.now_us())
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
            dead_letters=pending.letters,
            remembers=pending.remembers,
            discards=pending.discards,
            accepts=pending.accepts,
            tasks=_answer(pending),
            era=lane.era,
        )


def _state_name(lane: Lane) -> str | None:
    if lane.elsewhere is not None:
        return lane.elsewhere.state
    if lane.unfolded is not None:
        return lane.unfolded.state
    return lane.entry.definition.states.get(cast("type[Any]", type(lane.state)))


def _answer(pending: Pending) -> TaskWork | None:
    return None if pending.task_answer is None else TaskWork(pending.task_answer)
