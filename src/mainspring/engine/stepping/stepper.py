"""The stepper: takes inputs in their lanes, one after the other, and sees each through its commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final

from msgspec.structs import replace

from mainspring.core.events import AnswerRefused, Compensating
from mainspring.core.messages import Kind
from mainspring.core.step import step
from mainspring.engine.claimable.arrivals import Arrivals
from mainspring.engine.claimable.strangers import Strangers, told_why
from mainspring.engine.claimable.wakeups import Wakeups
from mainspring.engine.committing.committer import Committer
from mainspring.engine.inputs.budget import look
from mainspring.engine.inputs.pending import Inputs, Pending, ReceiptStatus
from mainspring.engine.inputs.sought_command import answered, command_sought, recall_command
from mainspring.engine.inputs.stored_input import from_inbox
from mainspring.engine.outputs.awaited_ends import AwaitedEnds, End
from mainspring.engine.outputs.dispatcher import Dispatcher
from mainspring.engine.paused_work import PausedWork
from mainspring.engine.recording.error_text import error_text
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.registry import Registry
from mainspring.engine.runtime import Runtime
from mainspring.engine.stepping.broken_lanes import BrokenLanes
from mainspring.engine.stepping.compensations import Compensations
from mainspring.engine.stepping.disposition import (
    STEP,
    Bury,
    Disposition,
    Fault,
    Keep,
    Park,
    Plain,
    Repeat,
    Suspend,
    disposition,
)
from mainspring.engine.stepping.duplicates import Duplicates
from mainspring.engine.stepping.fault_report import report_fault
from mainspring.engine.stepping.inbox import Inbox
from mainspring.engine.stepping.lanes import BROKEN, DRAINING, OPEN, Lane, Lanes
from mainspring.engine.stepping.loader import Loader
from mainspring.engine.stepping.open_tasks import unread_task
from mainspring.engine.stepping.refused_children import RefusedChildren
from mainspring.engine.stepping.step_unit import StepUnits
from mainspring.engine.stepping.units import Units
from mainspring.errors import InstancePurgedError, NewerTypeError, UnaskedRefusalError
from mainspring.port.records import (
    ENDED,
    Committed,
    InputRow,
    Outcome,
    OutputClaim,
    OutputKey,
    Ref,
    Unit,
)
from mainspring.port.store import Store

# Shares of one instance in a commit, so that a burst for it leaves turns and commits to the others: one is under way
# while the other is made.
SHARES_UNDER_WAY: Final = 2
# What may be refused though it answers no task: its sender has a dead letter then.
_SENT: Final = (Kind.COMMAND, Kind.EVENT)


class Stepper:
    """Takes inputs. Everything here runs in the event loop, so a lane is never stepped twice at once."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        committer: Committer,
        runtime: Runtime,
        lanes: Lanes,
        wakeups: Wakeups,
        arrivals: Arrivals,
        strangers: Strangers,
        ends: AwaitedEnds,
        paused: PausedWork,
        outputs: Callable[[Inputs], Dispatcher],
    ) -> None:
        self._store = store
        self._registry = registry
        self._committer = committer
        self._runtime = runtime
        self._watch = registry.watch
        self._observer = runtime.observer
        self.lanes = lanes
        self._wakeups = wakeups
        self._arrivals = arrivals
        self._strangers = strangers
        self._ends = ends
        # Results are inputs: the dispatcher that carries outputs out gets this stepper to return them to.
        self.dispatcher = outputs(self)
        self._steps = StepUnits(registry, self.dispatcher.capacity)
        self._units = Units(store, registry)
        self._duplicates = Duplicates(self._units, committer, wakeups, self.dispatcher.settlements)
        self._compensations = Compensations(self._steps, self._units)
        self._refused_children = RefusedChildren(self._units, committer, runtime.observer, self)
        self._inbox = Inbox(self._units, self._duplicates, committer, runtime, wakeups, self)
        self._loader = Loader(store, runtime, self.advance, committer.lull)
        self._broken = BrokenLanes(lanes, self._loader, self._inbox, self._duplicates)
        self._paused = paused

    def submit(self, pending: Pending) -> None:
        """Take an input when its turn comes: now, or once it is durable in the inbox if its workflow wants that."""
        entry = self._registry.workflows[pending.ref.workflow]
        from_outside = pending.position is None and pending.cause is None
        if from_outside and type(pending.message) in entry.definition.through_inbox:
            self._inbox.put(pending, claimed=self._committer.worker != 0 and entry.name not in self._paused.workflows)
            return
        lane = self.lanes.at(pending.ref, entry, pending.time_us)
        lane.queue.append(pending)
        self.advance(lane)

    def accepted(self, row: InputRow, position: int) -> None:
        """Take an input that was accepted into the inbox and claimed by this worker."""
        pending = from_inbox(self._registry.codec, row)
        pending.position = position
        self._arrivals.came(position)
        self.submit(pending)

    def outputs_in_hand(self) -> set[OutputKey]:
        """Return the outputs whose answers wait here."""
        return {pending.settles for pending in self._waiting() if pending.settles is not None}

    def inputs_in_hand(self) -> set[int]:
        """Return the positions of the inputs that wait here, of those that came from an inbox."""
        return {pending.position for pending in self._waiting() if pending.position is not None}

    def _waiting(self) -> Iterator[Pending]:
        return chain(self._inbox.waiting, *((*lane.queue, *lane.returned) for lane in self.lanes.busy()))

    @property
    def in_hand(self) -> int:
        """How many inputs wait or are under way in lanes."""
        return sum(len(lane.queue) + lane.under_way for lane in self.lanes.busy())

    def is_running(self, ref: Ref) -> bool:
        """Return True if an instance is known here and has not ended."""
        lane = self.lanes.get(ref)
        return lane is not None and lane.loaded and not lane.ended

    def advance(self, lane: Lane) -> None:
        """Take what can be taken now."""
        if lane.phase is DRAINING and not lane.under_way:
            lane.phase = OPEN
        if lane.phase is not OPEN or not lane.queue:
            return
        if not lane.loaded and not self._assumed_new(lane):
            if lane.under_way and lane.wants_ledger:
                return  # the stream would lack what is under way
            self._loader.request(lane)
            return
        most = SHARES_UNDER_WAY * self._committer.share
        while lane.queue and lane.loaded and lane.phase is OPEN and lane.under_way < most:
            self._take(lane, lane.queue.popleft())
        if lane.queue and not lane.loaded:
            self.advance(lane)

    def _assumed_new(self, lane: Lane) -> bool:
        """Assume that there is no such instance, where the first input may begin one: the commit conflicts if not."""
        first = lane.queue[0]
        known = lane.wants_ledger or first.position is not None or first.requires is not None
        if known or type(first.message) not in lane.entry.definition.begins:
            return False
        lane.assume_new(self._loader.era() if self._loader.era else None)
        return True

    def _take(self, lane: Lane, pending: Pending) -> None:
        if self._observer is not None:
            self._observer.taking(pending, lane.context)
        found = disposition(lane, pending, self._paused.workflows)
        if found is STEP:
            self._step(lane, pending)
        else:
            self._dispose(lane, pending, found)

    def _dispose(self, lane: Lane, pending: Pending, found: Disposition) -> None:
        """Do with an input what was found, other than to step it."""
        match found:
            case Plain.BEGIN_ANEW:
                lane.entry = lane.entry.newest
                lane.state, lane.unfolded = lane.entry.workflow.initial_state, None
                self._step(lane, pending, anew=True)
            case Plain.UNDO:
                self._undo(lane, pending)
            case Plain.SETTLE:
                self._commit(lane, pending, self._units.settled(pending), "stepped")
            case Plain.LEAVE:
                self._leave(lane, pending)
            case Plain.WAIT:
                lane.queue.appendleft(pending)
                lane.phase = DRAINING
            case Plain.LOOK_AGAIN:
                self._look_again(lane, pending)
            case Plain.REFUSE_CHILD:
                self._refused_children.refuse(lane, pending)
            case Park(status, unsure):
                self._commit(lane, pending, self._units.parked(pending), status)
                if unsure:
                    lane.loaded = lane.version > 0
            case Keep(status):
                self._commit(lane, pending, self._units.kept(lane, pending), status)
            case Bury(reason, unknown):
                self._bury(lane, pending, reason)
                if unknown:
                    lane.loaded = False  # another process may begin it at any time
            case Suspend(reason, undoing):
                self._suspend(lane, pending, reason, undoing=undoing)
            case Fault(error, reason):
                self._fault(lane, pending, error, reason)
            case Repeat(same):
                self._duplicates.take(pending, same)
                lane.loaded = False  # whether the next one was skipped, the loader finds out

    def _look_again(self, lane: Lane, pending: Pending) -> None:
        """The instance is not as a sender asks, as far as is known here: read it anew, and then let the store judge."""
        if lane.purged_us is not None and pending.answer is not None:
            # That is for ever.
            pending.answer.fail(InstancePurgedError(str(pending.ref), lane.status, moment(lane.purged_us)))
        elif pending.conflicts:
            self._inbox.put(pending, claimed=self._committer.worker != 0)
            lane.loaded = lane.version > 0  # another process may begin it at any time
        else:
            pending.conflicts = 1
            lane.queue.appendleft(pending)
            lane.loaded = False
            lane.phase = DRAINING if lane.under_way else OPEN

    def _suspend(self, lane: Lane, pending: Pending, reason: str, *, undoing: bool) -> None:
        """Stop an instance for a command that failed for good."""
        whole = self._compensations.failed(lane, pending, reason) if undoing else reason
        if whole is not None:
            self._commit(lane, pending, self._units.suspended(lane, pending, whole), "suspended")

    def _undo(self, lane: Lane, pending: Pending) -> None:
        """Take an input while the instance is being compensated."""
        found = self._compensations.meanwhile(lane, pending, self._store.now_us())
        if isinstance(found, tuple):
            self._commit(lane, pending, found[0], "stepped", found[1])
        elif found is not None:
            self._dispose(lane, pending, found)

    def _bury(self, lane: Lane, pending: Pending, reason: str, error: str | None = None) -> None:
        """Make a dead letter of an input; where others wait before it, it waits too: one of them may begin it."""
        buried = self._units.buried(pending, reason, error)
        self._commit(lane, pending, replace(buried, direct=pending.position is None), "dead letter")

    def _step(self, lane: Lane, pending: Pending, *, anew: bool = False) -> None:
        definition, now_us = lane.entry.definition, self._store.now_us()
        if (wants := definition.wants_envelope) and (sought := command_sought(pending, trims=lane.trims)) is not None:
            self._loader.recall(lane, pending, partial(recall_command, pending, sought))
            return
        lane.steps_left -= 1
        try:
            if lane.steps_left < 0:
                look(lane, lane.entry.budget, pending, now_us)
            version, envelope = lane.version, pending.envelope(whole=wants)
            now, cause = (moment(now_us), answered(pending)) if definition.wants_occurrences else (None, None)
            begins = anew or version == 0
            taken = self._watch.call(
                pending, step, lane.entry.workflow, lane.state, version, envelope, begins, now, cause
            )
            if type(taken.events[-1]) is Compensating:
                made = self._compensations.advanced(lane, pending, taken, now_us, anew=anew)
            elif type(taken.events[0]) is AnswerRefused and (read := unread_task(pending, lane)):
                self._loader.recall(lane, pending, read)
                return
            else:
                made = self._steps.stepped(lane, pending, taken, now_us, anew=anew)
        except Exception as error:  # noqa: BLE001  an author's mistake blocks its own instance, nothing else
            if anew:
                # It has ended well, and stays so.
                lane.loaded = False
                buried = self._units.buried(pending, f"{pending.ref} could not begin anew", error_text(error))
                self._commit(lane, pending, buried, "dead letter", fault=error)
            elif isinstance(error, UnaskedRefusalError) and lane.version and pending.kind in _SENT:
                self._bury(lane, pending, f"{pending.ref} refused it", error_text(error))
            else:
                self._fault(lane, pending, error)
            return
        if made is not None:
            self._commit(lane, pending, made[0], "stepped" if pending.refusal is None else "refused", made[1])

    # ---- failures and outcomes

    def _fault(self, lane: Lane, pending: Pending, error: Exception | None, reason: str = "") -> None:
        lane.ledger = None  # it may be ahead of what is recorded
        if isinstance(error, NewerTypeError):
            lane.leave(told_why(error))  # it is no fault: other code knows it, and what came behind it waits with it
            self._leave(lane, pending)
            return
        text = reason if error is None else error_text(error)
        self._commit(lane, pending, self._units.faulted(lane, pending, text), "suspended", fault=error)

    def _leave(self, lane: Lane, pending: Pending) -> None:
        """Let an input wait for a worker that can read its instance."""
        self._strangers.meet_instance(lane.ref, "" if lane.elsewhere is None else lane.elsewhere.why)
        self._commit(lane, pending, self._units.parked(pending), "accepted")

    def _commit(
        self,
        lane: Lane,
        pending: Pending,
        unit: Unit,
        status: ReceiptStatus,
        outputs: list[tuple[OutputClaim, Any]] | None = None,
        fault: Exception | None = None,
    ) -> None:
        lane.under_way += 1
        if outputs:
            self.dispatcher.promise(outputs, 1)
        if pending.requires is not None:
            unit = replace(unit, requires=pending.requires)
        # No closure, which would be a cell for each of these: many are under way, and a collection walks over them all.
        self._committer.add(unit, partial(self._came_back, lane, pending, unit, status, outputs, fault))

    def _came_back(
        self,
        lane: Lane,
        pending: Pending,
        unit: Unit,
        status: ReceiptStatus,
        outputs: list[tuple[OutputClaim, Any]] | None,
        fault: Exception | None,
        outcome: Outcome | Exception,
    ) -> None:
        lane.under_way -= 1
        if outputs:
            # First: whatever goes wrong below, nothing stays promised that is never carried out.
            if type(outcome) is Committed:
                lane.key = outcome.key
                self.dispatcher.begin_all(outputs, outcome.key)
            else:
                self.dispatcher.promise(outputs, -1)
        if self._observer is not None:
            self._observer.taken(pending, unit, outcome, status, fault)
        if type(outcome) is Committed:
            if fault is not None:
                report_fault(pending, status, fault)
            if pending.answer is not None:
                pending.answer.resolve(status)
            self._committed(lane, unit, outcome, len(outputs or ()))
            if status == "suspended":
                self._ends.tell(lane.ref, End("suspended", lane.error))
        else:
            self._broken.refused(lane, pending, outcome)
        if not lane.under_way:
            self._settle(lane)
        elif lane.queue and lane.loaded:
            self.advance(lane)

    def _committed(self, lane: Lane, unit: Unit, outcome: Committed, begun: int) -> None:
        if outcome.key:
            lane.key = outcome.key
        if len(unit.outputs) > begun:
            for due_us in self._units.unclaimed_due(unit):
                self._wakeups.due_at(due_us)
        if unit.accepts:
            self._wakeups.due_at(0)
        if unit.cancel_all is not None and lane.status in ENDED:
            self._ends.tell(lane.ref, End(lane.status, lane.result))

    def _settle(self, lane: Lane) -> None:
        """Nothing is under way in this lane any more."""
        if lane.phase is BROKEN:
            self._broken.settle(lane)
        elif lane.queue:
            self.advance(lane)
        elif lane.status in ENDED or lane.status == "suspended" or lane.elsewhere:
            # An instance may be resumed by another process: what is remembered of a suspended one grows stale.
            if lane.entry.definition.again == "anew":
                lane.forget()  # but not what it has spent: it may begin anew for ever
            else:
                self.lanes.drop(lane)
