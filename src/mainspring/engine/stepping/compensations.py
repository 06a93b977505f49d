"""Compensations: what is committed of an instance while what it did is undone, one step of it after the other."""

from __future__ import annotations

from typing import Any

from mainspring.core.events import Compensated, Kept
from mainspring.core.failures import Undone
from mainspring.core.fold import fold, placed
from mainspring.core.messages import Kind
from mainspring.core.saga import Ledger, advanced
from mainspring.core.step import Step
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.stepping.disposition import Disposition, Fault, late
from mainspring.engine.stepping.lanes import Lane
from mainspring.engine.stepping.step_unit import Made, StepUnits
from mainspring.engine.stepping.units import Units


class Compensations:
    """Makes units by the ledgers of instances. None: a ledger is to be loaded, and then the input is taken again."""

    def __init__(self, steps: StepUnits, units: Units) -> None:
        self._steps = steps
        self._units = units

    def advanced(
        self, lane: Lane, pending: Pending, taken: Step[Any, Any, Any], now_us: int, *, anew: bool = False
    ) -> Made | None:
        """Return the unit of a step with what is to be undone next, or that nothing is left."""
        ledger = _ledger(lane, pending)
        if ledger is None:
            return None
        whole = lane.entry.watch.call(pending, advanced, lane.entry.workflow, ledger, taken, moment(now_us))
        return self._steps.undone(lane, pending, whole, now_us, ledger, anew=anew)

    def meanwhile(self, lane: Lane, pending: Pending, now_us: int) -> Made | Disposition | None:
        """Return what becomes of an input while something is undone: it is what that led to, or it came late."""
        ledger = _ledger(lane, pending)
        if ledger is None:
            return None
        if pending.cause is not None and pending.cause == ledger.under:
            return self._carried_out(lane, pending, ledger, now_us)
        if pending.kind is not Kind.TIMER and pending.cause is not None:
            unit = self._units.kept(lane, pending)
            ledger.take(lane.version, Kept(pending.message))
            return unit, []
        return late(lane, pending)

    def _carried_out(self, lane: Lane, pending: Pending, ledger: Ledger, now_us: int) -> Made | Disposition | None:
        """Record that a compensation was carried out, and send the next one, or end."""
        result = None if isinstance(pending.message, Undone) else pending.message
        compensated = Compensated(ledger.compensation, result)
        try:
            seen = placed(lane.entry.definition, [compensated], lane.version, moment(now_us), pending.cause)
            state = lane.entry.watch.call(pending, fold, lane.entry.workflow, lane.state, seen)
            return self.advanced(lane, pending, Step([compensated], state, lane.version + 1), now_us)
        except Exception as error:  # noqa: BLE001  an author's mistake blocks its own instance, nothing else
            return Fault(error)

    def failed(self, lane: Lane, pending: Pending, reason: str) -> str | None:
        """Return why an instance is suspended one of whose compensations failed for good, and what is still undone."""
        ledger = _ledger(lane, pending)
        if ledger is None:
            return None
        return f"{reason}; still to be undone, in this order: {', '.join(ledger.names())}"


def _ledger(lane: Lane, pending: Pending) -> Ledger | None:
    """Return the lane's ledger. If it is not loaded, the input is taken again when it is: decide is pure."""
    if lane.version == 0:
        lane.ledger = Ledger()
    if lane.ledger is not None and lane.ledger.version == lane.version:
        return lane.ledger
    lane.queue.appendleft(pending)
    lane.loaded = False
    lane.wants_ledger = True
    return None
