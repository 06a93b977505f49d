"""Dispatch: recorded outputs to a handler, to another workflow's instance, to subscribers, to a waiting caller."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from msgspec.structs import replace

from mainspring.core.failures import Undone
from mainspring.core.messages import Kind
from mainspring.engine.claimable.arrivals import Arrivals
from mainspring.engine.claimable.wakeups import Wakeups
from mainspring.engine.committing.committer import Committer
from mainspring.engine.handlers.job import MICROSECONDS, Job
from mainspring.engine.handlers.runners import Runners
from mainspring.engine.inputs.delivered_output import fired, input_of
from mainspring.engine.inputs.pending import Inputs, Pending
from mainspring.engine.outputs.child_deliveries import CancelChild, ChildDeliveries
from mainspring.engine.outputs.replies import Replies
from mainspring.engine.outputs.settlements import Settlements
from mainspring.engine.outputs.subscriptions import Subscriptions
from mainspring.engine.paused_work import PausedWork
from mainspring.engine.recording.error_text import error_text
from mainspring.engine.recording.saga_rows import undone_by
from mainspring.engine.registry import Registry, WorkflowEntry
from mainspring.engine.runtime import Runtime
from mainspring.engine.this_worker import ThisWorker
from mainspring.errors import DamagedRecordError
from mainspring.logs import logger
from mainspring.port.records import OutputClaim, OutputKey, Ref, Retry, Unit
from mainspring.port.store import Store

OUTPUTS_IN_HAND: Final = 10_000
OUTPUTS_LOOKED_AT: Final = 10_000
UNDO_PAUSE_US: Final = 100_000

log = logger("mainspring.engine")


class Dispatcher:
    """Carries outputs out. It knows for each kind of output what settles it."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        committer: Committer,
        runtime: Runtime,
        wakeups: Wakeups,
        arrivals: Arrivals,
        inputs: Inputs,
        settlements: Settlements,
        runners: Runners,
        worker: ThisWorker,
        paused: PausedWork,
        cancel_child: CancelChild,
    ) -> None:
        self._store = store
        self._registry = registry
        self._committer = committer
        self._runtime = runtime
        self._observer = runtime.observer
        self._wakeups = wakeups
        self._arrivals = arrivals
        self._inputs = inputs
        self.settlements = settlements
        self.runners = runners
        self.replies = Replies(store, registry, committer, runtime, inputs, settlements, runners)
        self.subscriptions = Subscriptions(store, registry, runtime, inputs, settlements, runners)
        self.children = ChildDeliveries(store, registry, runtime, committer, inputs, settlements, paused, cancel_child)
        self._worker = worker
        self._paused = paused
        # By destinations: the queue, or an empty text where it is not for this worker.
        self._queue_at: dict[str, str] = {}
        self._promised: Counter[str] = Counter()
        self._undoing: set[OutputKey] = set()
        # Nothing new is claimed: something is tried alone.
        self.resting = False

    # ---- what is in hand

    @property
    def in_hand(self) -> int:
        """How many commands wait or run here."""
        published = self.subscriptions.waiting + self.subscriptions.running
        return self.runners.in_hand + published + len(self.children.in_hand)

    def outputs_in_hand(self) -> set[OutputKey]:
        """Return the outputs that a runner, a subscription or a task of their own has here."""
        carried_out = self.runners.outputs_in_hand() | self.subscriptions.outputs_in_hand()
        return carried_out | self.children.in_hand | self.replies.in_hand | self._undoing

    def promise(self, outputs: list[tuple[OutputClaim, Any]], times: int) -> None:
        """Count outputs that are to be dispatched when their commit comes back; -1 times where it failed."""
        for claim, _ in outputs:
            self._promised[self._queue_at[claim.destination]] += times

    def begin_all(self, outputs: list[tuple[OutputClaim, Any]], key: int) -> None:
        """Carry out what was promised and is durable now, with the key that the store gave its instance."""
        self.promise(outputs, -1)
        for claim, message in outputs:
            own = claim if claim.output.instance == key else replace(claim, output=OutputKey(key, claim.output.version))
            self.begin(own, message)

    def capacity(self, destination: str) -> int:
        """Return how many outputs for this destination this worker may claim."""
        if self._worker.closing or self.resting:
            return 0
        queue = self._queue_at.get(destination)
        if queue is None:
            known = self._registry.queue_of(destination)
            queue = self._queue_at[destination] = known if self.serves(known) else ""
        if not queue or queue in self._paused.queues:
            return 0
        handler = self._registry.handlers.get(queue)
        if handler is None:
            return OUTPUTS_IN_HAND - self._promised[queue] - self.subscriptions.waiting
        runner = self.runners.by_queue.get(queue) or self.runners.of(handler, queue)
        capacity = min(OUTPUTS_IN_HAND, runner.prefetch.most) - self._promised[queue] - runner.in_hand
        if capacity <= 0:
            runner.turned_away = True
        # What would only wait here goes to others.
        return 0 if runner.held_back else capacity

    def leave_rest(self, queue: str) -> None:
        """Note that there may be more than there was capacity for: it is claimed when there is capacity again."""
        if runner := self.runners.by_queue.get(queue):
            runner.turned_away = True

    def serves(self, queue: str) -> bool:
        """Return True if this worker's pools take in the handler of this queue."""
        handler = self._registry.handlers.get(queue)
        return handler is None or self._worker.serves(handler.options.pool)

    # ---- carrying out

    def begin(self, claim: OutputClaim, message: Any) -> None:
        """Begin to carry an output out. What comes of it is committed later; what cannot even begin is buried."""
        if self._arrivals.heeded:
            self._arrivals.came(claim.output)
        try:
            self._begin(claim, message)
        except Exception as error:
            log.exception("%s/%s/%d cannot be carried out", claim.workflow, claim.instance, claim.output.version)
            self.settlements.bury(claim, "it cannot be carried out", error)

    def _begin(self, claim: OutputClaim, message: Any) -> None:
        match claim.kind:
            case "timer":
                self._inputs.submit(self._timer(claim, message))
            case "reply":
                self.replies.deliver(claim, message)
            case "publish":
                self.subscriptions.publish(claim, message)
            case "send":
                undoes = None if claim.detail is None else undone_by(claim)
                if undoes is None:
                    self._send(claim, message)
                else:
                    self._undoing.add(claim.output)
                    self._runtime.spawn(self._undo(claim, message, undoes), "mainspring-undo")
            case "child":
                self.children.start(claim, message)
            case "end":
                self.children.tell(claim)
            case kind:
                raise DamagedRecordError("outbox", f"{claim.workflow}/{claim.instance}, the kind {kind!r}")

    async def _undo(self, claim: OutputClaim, message: Any, undoes: int) -> None:
        """Carry a compensation out when what it undoes is over: an attempt that still runs could have its effect later.

        What is unclaimed is cancelled instead of awaited. Waiting costs no attempt.
        """
        try:
            outputs = await self._store.outputs(Ref(claim.workflow, claim.instance), False, OUTPUTS_LOOKED_AT)
            if len(outputs) < OUTPUTS_LOOKED_AT and all(output.output.version != undoes for output in outputs):
                self._send(claim, message)
                return
            error = "waits for the end of what it undoes"
        except Exception as failure:  # noqa: BLE001  this task is not awaited: a compensation that it dropped would be lost
            error = error_text(failure)
        finally:
            self._undoing.discard(claim.output)
        unit = Unit(
            claim.workflow,
            claim.instance,
            retries=(Retry(claim.output, claim.attempts, UNDO_PAUSE_US, error),),
            cancel_all="forward",
        )
        self._committer.persist(unit, lambda _: self._wakeups.due_at(self._store.now_us() + UNDO_PAUSE_US))

    def _send(self, claim: OutputClaim, message: Any) -> None:
        queue = self._queue_at.get(claim.destination) or self._registry.queue_of(claim.destination)
        handler = self._registry.handlers.get(queue)
        if handler is not None:
            (self.runners.by_queue.get(queue) or self.runners.of(handler, queue)).put(Job(claim, message))
            return
        takers = self._registry.takers(message)
        if takers:
            self._to_workflow(claim, message, takers[0])
        else:
            self.settlements.retry(claim, claim.attempts, MICROSECONDS, f"nothing here takes {claim.type}")

    def _timer(self, claim: OutputClaim, message: Any) -> Pending:
        if self._observer is not None:
            self._observer.fired(claim, self._store.now_us())
        return fired(claim, message, self._store.now_us())

    def _to_workflow(self, claim: OutputClaim, message: Any, entry: WorkflowEntry) -> None:
        try:
            id = entry.route(message)
        except Exception as error:  # noqa: BLE001  an author's route may fail in any way
            self.settlements.bury(claim, f"{entry.name} could not route it", error)
            return
        if id is None:
            self.settlements.bury(claim, f"{entry.name} does not want it: its route returned None", None)
            return
        pending = input_of(claim, message, Ref(entry.name, id), Kind.COMMAND, self._store.now_us())
        undoes = undone_by(claim)
        if undoes is None:
            self._inputs.submit(pending)
        else:
            # It is undone when the other instance has it: both in the commit that sends the next compensation.
            done = self.settlements.result(Job(claim, message), Undone(), 1, 0)
            done.accepts = (pending.input_row(),)
            self._inputs.submit(done)
