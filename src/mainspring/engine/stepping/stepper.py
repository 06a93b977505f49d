"""The stepper: takes inputs in their lanes, one after the other, and sees each through its commit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from msgspec.structs import replace

from mainspring.core.events import Compensated, Compensating, Kept
from mainspring.core.failures import ChildFailed, SendFailed, Undone
from mainspring.core.fold import fold
from mainspring.core.messages import Kind
from mainspring.core.saga import Ledger, advanced
from mainspring.core.step import Step, step
from mainspring.engine.committing.committer import Committer
from mainspring.engine.committing.strangers import told_why
from mainspring.engine.inputs.answered_command import command_sought
from mainspring.engine.inputs.duplicates import Repeats
from mainspring.engine.inputs.inbox import Inboxes
from mainspring.engine.inputs.lanes import Lane, Lanes
from mainspring.engine.inputs.loader import Loader
from mainspring.engine.inputs.pending import Pending, ReceiptStatus, moment
from mainspring.engine.inputs.refusals import not_met
from mainspring.engine.observer import about_input
from mainspring.engine.outputs.children import parent_of
from mainspring.engine.outputs.followers import Followers, keyed
from mainspring.engine.registry import Registry
from mainspring.engine.runtime import Runtime
from mainspring.engine.stepping.beginnings import begins_again, is_kept_late, is_no_new_child
from mainspring.engine.stepping.budget import look
from mainspring.engine.stepping.units import Units, error_text
from mainspring.errors import InstancePurgedError, NewerTypeError
from mainspring.logs import logger
from mainspring.port.preconditions import Precondition, Unmet
from mainspring.port.records import Committed, Conflict, Duplicate, Outcome, OutputClaim, OutputKey, Ref, Unit
from mainspring.port.store import Store
from mainspring.port.tasks import Refused

CONFLICTS_BEFORE_QUEUEING: Final = 5
# Shares of one instance in a commit, so that a burst for it leaves turns and commits to the others: one is under way
# while the other is made.
SHARES_UNDER_WAY: Final = 2

log = logger("mainspring.engine")


class Stepper:
    """Takes inputs. Everything here runs in the event loop, so a lane is never stepped twice at once."""

    def __init__(
        self, store: Store, registry: Registry, committer: Committer, runtime: Runtime, followers: Followers
    ) -> None:
        self._store = store
        self._registry = registry
        self._committer = committer
        self._runtime = runtime
        self._watch = runtime.watch
        self._observer = runtime.observer
        self._followers = followers
        self._units = Units(store, registry, followers)
        self._repeats = Repeats(self._units, committer, followers)
        self.lanes = Lanes()
        self._inboxes = Inboxes(self._units, self._repeats, committer, followers, runtime)
        self._loader = Loader(store, runtime, self.advance, committer.lull)
        # The workflows of which nothing is stepped now.
        self.paused: frozenset[str] = frozenset()

    def submit(self, pending: Pending) -> None:
        """Take an input when its turn comes: now, or once it is durable in the inbox if its workflow wants that."""
        entry = self._registry.workflows[pending.ref.workflow]
        from_outside = pending.position is None and pending.cause is None
        if from_outside and type(pending.message) in entry.definition.through_inbox:
            self._inboxes.put(pending, claimed=self._committer.worker != 0 and entry.name not in self.paused)
            return
        lane = self.lanes.at(pending.ref, entry, pending.time_us)
        lane.queue.append(pending)
        self.advance(lane)

    def outputs_in_hand(self) -> set[OutputKey]:
        """Return the outputs whose answers wait here."""
        return {pending.settles for pending in self._waiting() if pending.settles is not None}

    def inputs_in_hand(self) -> set[int]:
        """Return the positions of the inputs that wait here, of those that came from an inbox."""
        return {pending.position for pending in self._waiting() if pending.position is not None}

    def _waiting(self) -> Iterator[Pending]:
        return chain(self._inboxes.paused, *((*lane.queue, *lane.returned) for lane in self.lanes.busy()))

    @property
    def in_hand(self) -> int:
        """How many inputs wait or are under way in lanes."""
        return sum(len(lane.queue) + lane.under_way for lane in self.lanes.busy())

    def is_running(self, ref: Ref) -> bool:
        """Tell whether an instance is known here and has not ended."""
        lane = self.lanes.get(ref)
        return lane is not None and lane.loaded and not lane.ended

    def forget(self, ref: Ref) -> None:
        """Know an instance no longer, because somebody moved it behind the lane's back."""
        lane = self.lanes.get(ref)
        if lane is not None and lane.idle:
            self.lanes.drop(lane)

    def advance(self, lane: Lane) -> None:
        """Take what can be taken now."""
        if lane.broken or lane.loading or not lane.queue or (lane.waits and lane.under_way):
            return
        lane.waits = False
        if not lane.loaded:
            first = lane.queue[0]
            if lane.wants_ledger and lane.under_way:
                return  # the stream would lack what is under way
            known = lane.wants_ledger or first.position is not None or first.requires is not None
            if not known and type(first.message) in lane.entry.definition.begins:
                lane.assume_new()
            else:
                self._loader.request(lane)
                return
        # What is called late cannot be called back when the end loses its race: so the end must be durable first.
        most = SHARES_UNDER_WAY * self._committer.share
        while lane.queue and lane.loaded and not lane.broken and not lane.ending and lane.under_way < most:
            self._take(lane, lane.queue.popleft())
            if lane.waits:
                return
        if lane.queue and not lane.loaded:
            self.advance(lane)

    def _take(self, lane: Lane, pending: Pending) -> None:
        if self._observer is not None:
            self._observer.taking(lane, pending)
        definition = lane.entry.definition
        message: object = pending.message
        message_type = type(message)
        if pending.skipped is not None:
            self._repeats.repeated(pending, pending.skipped)
            lane.loaded = False  # whether the next one was skipped, the loader finds out
        elif pending.gives_up is not None and (message_type is not SendFailed or SendFailed not in definition.inputs):
            self._give_up(lane, pending, pending.gives_up)
        elif self.paused and lane.ref.workflow in self.paused:
            self._commit(lane, pending, self._units.parked(pending), "accepted")
            lane.loaded = lane.version > 0  # it was perhaps only taken for new
        elif pending.requires is not None and self._is_otherwise(lane, pending.requires):
            self._look_again(lane, pending)
        elif pending.context.parent is not None and is_no_new_child(lane, pending):
            self._refuse_child(lane, pending)
        elif pending.cause is not None and pending.cause in lane.abandoned:
            self._take_late(lane, pending)
        elif definition.again != "join" and begins_again(lane, pending):
            self._begin_again(lane, pending)
        elif lane.elsewhere is not None and lane.left and not (lane.ended and definition.again != "anew"):
            self._leave(lane, pending)
        elif lane.ended:
            self._take_late(lane, pending)
        elif pending.unreadable is not None and lane.status != "suspended":
            self._fault(lane, pending, pending.unreadable)
        elif lane.fold_error is not None and lane.status != "suspended":
            self._fault(lane, pending, lane.fold_error)
        elif lane.status == "suspended":
            self._commit(lane, pending, self._units.parked(pending), "suspended")
        elif lane.status == "compensating":
            self._take_meanwhile(lane, pending)
        elif lane.version == 0 and message_type not in definition.begins:
            reason = f"there is no instance {pending.ref}, and {pending.type} may not begin one"
            self._bury(lane, pending, reason)
            lane.loaded = False  # another process may begin it at any time
        elif message_type not in definition.inputs:
            self._take_undeclared(lane, pending)
        else:
            self._step(lane, pending)

    def _is_otherwise(self, lane: Lane, requires: Precondition) -> bool:
        position = lane.version if lane.purged_us is None else -1
        return requires.unmet(position=position, waiting=False) is not None

    def _look_again(self, lane: Lane, pending: Pending) -> None:
        """The instance is not as a sender asks, as far as is known here: read it anew, and then let the store judge."""
        if lane.purged_us is not None and pending.answer is not None:
            # That is for ever.
            pending.answer.fail(InstancePurgedError(str(pending.ref), lane.status, moment(lane.purged_us)))
        elif pending.conflicts:
            self._inboxes.put(pending, claimed=self._committer.worker != 0)
            lane.loaded = lane.version > 0  # another process may begin it at any time
        else:
            pending.conflicts = 1
            lane.queue.appendleft(pending)
            lane.loaded, lane.waits = False, lane.under_way > 0

    def _begin_again(self, lane: Lane, pending: Pending) -> None:
        if lane.entry.definition.again == "refuse":
            if self._waits(lane, pending):
                return
            reason = f"{pending.ref} has begun already"
            self._bury(lane, pending, reason)
            return
        lane.entry = lane.entry.newest
        lane.state, lane.fold_error = lane.entry.workflow.initial_state, None
        self._step(lane, pending, anew=True)

    def _waits(self, lane: Lane, pending: Pending) -> bool:
        """Take an input later that finds an instance begun: that may still fail, and then this one has to begin it."""
        if lane.under_way:
            lane.queue.appendleft(pending)
            lane.waits = True
        return lane.waits

    def _give_up(self, lane: Lane, pending: Pending, reason: str) -> None:
        """A command failed for good, and the workflow does not listen: stop, and show why."""
        if lane.ended or lane.version == 0 or pending.cause in lane.abandoned:
            self._commit(lane, pending, self._units.settled(pending), "stepped")
            return
        if lane.left:
            self._leave(lane, pending)
            return
        if pending.undoes is not None and lane.fold_error is None:
            ledger = self._ledger(lane, pending)
            if ledger is None:
                return
            reason = f"{reason}; still to be undone, in this order: {', '.join(ledger.names())}"
        elif lane.status == "compensating":
            self._commit(lane, pending, self._units.settled(pending), "stepped")
            return
        self._commit(lane, pending, self._units.suspended(lane, pending, reason), "suspended")

    def _keep(self, lane: Lane, pending: Pending) -> None:
        """Keep what the workflow does not listen for; only a child that failed is a reason to stop, and to show why."""
        failed = pending.message
        if not isinstance(failed, ChildFailed):
            self._commit(lane, pending, self._units.kept(lane, pending), "stepped")
            return
        # It waits in the inbox, to be taken by code that listens for it, or to be skipped.
        reason = f"its child {failed.child} has {failed.status}: {failed.error}"
        self._commit(lane, pending, self._units.faulted(lane, pending, reason), "suspended")

    def _refuse_child(self, lane: Lane, pending: Pending) -> None:
        """A child must begin: whoever wants to start one that is there already, or cannot begin, is told so."""
        if self._waits(lane, pending):
            return
        if lane.version and parent_of(lane.context) == pending.context.parent:
            # It began by this very message: only its settlement was lost.
            unit = self._units.settled(pending)
            self._committer.persist(unit, lambda outcome: self._child_refused(pending, unit, outcome))
            return
        if lane.version or lane.ended:
            reason = f"there is an instance {pending.ref} already, and it is {lane.status}"
        else:
            reason = f"{pending.type} may not begin an instance of {pending.ref.workflow}"
            lane.loaded = False  # another process may begin it at any time
        unit = self._units.refused(pending, reason)

        def then(outcome: Outcome) -> None:
            self._child_refused(pending, unit, outcome)
            if isinstance(outcome, Committed) and outcome.positions[0]:
                self._followers.accepted(unit.accepts[0], outcome.positions[0])

        self._committer.persist(unit, then)

    def _child_refused(self, pending: Pending, unit: Unit, outcome: Outcome) -> None:
        if self._observer is not None:
            self._observer.taken(pending, unit, outcome, "stepped")

    def _take_late(self, lane: Lane, pending: Pending) -> None:
        if pending.kind is Kind.TIMER:
            self._commit(lane, pending, self._units.settled(pending), "stepped")
        elif lane.purged_us is not None:
            # There is no stream any more that could keep it, not even an answer to what the instance asked.
            reason = f"{pending.ref} ended ({lane.status}) and was purged on {moment(lane.purged_us):%Y-%m-%d}"
            self._bury(lane, pending, reason)
        elif pending.cause is not None or pending.kind is Kind.REPLY or is_kept_late(lane, pending):
            self._commit(lane, pending, self._units.kept(lane, pending), "kept")
        else:
            reason = f"{pending.ref} " + (f"has {lane.status} already" if lane.ended else "is being compensated")
            self._bury(lane, pending, reason)

    def _bury(self, lane: Lane, pending: Pending, reason: str) -> None:
        """Make a dead letter of an input; where others wait before it, it waits too: one of them may begin it."""
        unit = replace(self._units.buried(pending, reason), direct=pending.position is None)
        self._commit(lane, pending, unit, "dead letter")

    def _take_undeclared(self, lane: Lane, pending: Pending) -> None:
        """Keep an answer that the workflow does not know; what came for a newer version of it is told to the sender."""
        if pending.kind in (Kind.COMMAND, Kind.EVENT) and pending.cause is None and len(lane.entry.versions) > 1:
            reason = f"{pending.ref} runs under version {lane.entry.version}, which does not take {pending.type}"
            self._bury(lane, pending, reason)
        else:
            self._keep(lane, pending)

    def _step(self, lane: Lane, pending: Pending, *, anew: bool = False) -> None:
        wants = lane.entry.definition.wants_envelope
        if wants and (sought := command_sought(pending, trims=lane.trims)) is not None:
            self._loader.recall(lane, pending, sought)
            return
        lane.steps_left -= 1
        try:
            if lane.steps_left < 0:
                look(lane, pending, self._store.now_us())
            envelope = pending.envelope(whole=wants)
            begins = anew or lane.version == 0
            taken = self._watch.call(pending, step, lane.entry.workflow, lane.state, lane.version, envelope, begins)
            if type(taken.events[-1]) is Compensating:
                self._undo(lane, pending, taken, anew=anew)
                return
            unit, outputs = self._units.stepped(lane, pending, taken, anew=anew)
        except Exception as error:  # noqa: BLE001  an author's mistake blocks its own instance, nothing else
            if anew:
                # It has ended well, and stays so.
                lane.loaded = False
                buried = self._units.buried(pending, f"{pending.ref} could not begin anew", error_text(error))
                self._commit(lane, pending, buried, "dead letter", fault=error)
            else:
                self._fault(lane, pending, error)
            return
        self._commit(lane, pending, unit, "stepped", outputs)

    # ---- sagas

    def _ledger(self, lane: Lane, pending: Pending) -> Ledger | None:
        """Return the lane's ledger. If it is not at hand, the input is taken again when it is: decide is pure."""
        if lane.version == 0:
            lane.ledger = Ledger()
        if lane.ledger is not None and lane.ledger.version == lane.version:
            return lane.ledger
        lane.queue.appendleft(pending)
        lane.loaded = False
        lane.wants_ledger = True
        return None

    def _take_meanwhile(self, lane: Lane, pending: Pending) -> None:
        """Take an input while the instance is being compensated: what its compensation led to, or what came late."""
        ledger = self._ledger(lane, pending)
        if ledger is None:
            return
        if pending.cause is not None and pending.cause == ledger.under:
            self._undone(lane, pending, ledger)
        elif pending.kind is not Kind.TIMER and pending.cause is not None:
            unit = self._units.kept(lane, pending)
            ledger.take(lane.version, Kept(pending.message))
            self._commit(lane, pending, unit, "stepped")
        else:
            self._take_late(lane, pending)

    def _undone(self, lane: Lane, pending: Pending, ledger: Ledger) -> None:
        """Record that a compensation was carried out, and send the next one, or end."""
        result = None if isinstance(pending.message, Undone) else pending.message
        compensated = Compensated(ledger.compensation, result)
        try:
            state = fold(lane.entry.workflow, lane.state, [compensated])
            self._undo(lane, pending, Step([compensated], state, lane.version + 1))
        except Exception as error:  # noqa: BLE001  an author's mistake blocks its own instance, nothing else
            self._fault(lane, pending, error)

    def _undo(self, lane: Lane, pending: Pending, taken: Step[Any, Any, Any], *, anew: bool = False) -> None:
        ledger = self._ledger(lane, pending)
        if ledger is not None:
            whole = advanced(lane.entry.workflow, ledger, taken)
            unit, outputs = self._units.undone(lane, pending, whole, ledger, anew=anew)
            self._commit(lane, pending, unit, "stepped", outputs)

    # ---- the way back

    def _fault(self, lane: Lane, pending: Pending, error: Exception) -> None:
        lane.ledger = None  # it may be ahead of what is recorded
        if isinstance(error, NewerTypeError):
            lane.leave(told_why(error))  # it is no fault: other code knows it, and what came behind it waits with it
            self._leave(lane, pending)
            return
        self._commit(lane, pending, self._units.faulted(lane, pending, error_text(error)), "suspended", fault=error)

    def _leave(self, lane: Lane, pending: Pending) -> None:
        """Let an input wait for a worker that can read its instance."""
        self._followers.leave(lane.ref, "" if lane.elsewhere is None else lane.elsewhere.why)
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
            self._followers.promise(outputs, 1)

        def came_back(outcome: Outcome | Exception) -> None:
            lane.under_way -= 1
            if outputs:
                self._followers.promise(outputs, -1)
            if self._observer is not None:
                self._observer.taken(pending, unit, outcome, status, fault)
            if type(outcome) is Committed:
                if fault is not None:
                    what = (
                        "%s is suspended: %s failed in it"
                        if status == "suspended"
                        else "%s: %s failed, and is a dead letter"
                    )
                    log.error(what, pending.ref, pending.type, exc_info=fault, extra=about_input(pending))
                if pending.answer is not None:
                    pending.answer.resolve(status)
                self._committed(lane, unit, outcome, outputs)
                if status == "suspended":
                    self._followers.ended(lane)
            else:
                self._refused(lane, pending, outcome)
            if not lane.under_way:
                self._settle(lane)
            elif lane.queue and lane.loaded:
                self.advance(lane)

        requires = pending.requires
        self._committer.add(unit if requires is None else replace(unit, requires=requires), came_back)

    def _committed(
        self, lane: Lane, unit: Unit, outcome: Committed, outputs: list[tuple[OutputClaim, Any]] | None
    ) -> None:
        if outcome.key:
            lane.key = outcome.key
        if outputs:
            self._followers.dispatch(keyed(outputs, outcome.key))
        if len(unit.outputs) > len(outputs or ()):
            for due_us in self._units.unclaimed_due(unit):
                self._followers.due_at(due_us)
        if unit.accepts:
            self._followers.due_at(0)
        if unit.cancel_all is not None:
            lane.ending = False
            if lane.ended:
                self._followers.ended(lane)

    def _refused(self, lane: Lane, pending: Pending, outcome: Outcome | Exception) -> None:
        """Whatever was built on this unit is void too: the lane begins again when all of it has come back."""
        lane.broken = True
        match outcome:
            case Conflict("version"):
                pending.conflicts += 1
                # What gave up has no message that could wait in the inbox.
                stays = pending.position is not None or pending.gives_up is not None
                if stays or pending.conflicts < CONFLICTS_BEFORE_QUEUEING:
                    lane.returned.append(pending)
                else:
                    self._inboxes.put(pending)
            case Conflict("inbox") if pending.position is None:
                self._inboxes.put(pending)
            case Conflict("inbox"):
                self._inboxes.give_back(pending)
            case Conflict():
                # Somebody else took the input, or relieved us of the output that it answers: theirs is the outcome.
                log.debug("%s: %s was taken by somebody else", pending.ref, pending.id)
            case Duplicate(same):
                self._repeats.repeated(pending, same)
            case Refused(reason):
                self._repeats.refused(pending, reason)
            case Unmet():
                not_met(pending, outcome)
            case _:
                self._failed(lane, pending, outcome)

    def _failed(self, lane: Lane, pending: Pending, error: Any) -> None:
        """The store is in trouble: callers learn of it; what came from the store itself is tried again."""
        if pending.answer is not None and not pending.awaits_end_of(error):
            pending.answer.fail(error)
        else:
            log.warning("%s: commit failed, will be tried again: %s", pending.ref, error)
            pending.conflicts = -1
            lane.returned.append(pending)

    def _settle(self, lane: Lane) -> None:
        """Nothing is under way in this lane any more."""
        if lane.broken:
            pause = any(pending.conflicts < 0 for pending in lane.returned)
            lane.queue.extendleft(reversed(lane.returned))
            lane.returned.clear()
            lane.forget()
            if pause:
                self._inboxes.later(lambda: self._mend(lane))
            else:
                self._mend(lane)
        elif lane.queue:
            self.advance(lane)
        elif lane.ended or lane.status == "suspended" or lane.elsewhere:
            # An instance may be resumed by another process: what is remembered of a suspended one grows stale.
            if lane.entry.definition.again == "anew":
                lane.forget()  # but not what it has spent: it may begin anew for ever
            else:
                self.lanes.drop(lane)

    def _mend(self, lane: Lane) -> None:
        lane.broken = False
        for pending in lane.queue:
            pending.conflicts = max(pending.conflicts, 0)
        if not lane.queue:
            self.lanes.drop(lane)
        elif not lane.loading:  # else a second answer would undo what was built on the first
            self._loader.request(lane)
