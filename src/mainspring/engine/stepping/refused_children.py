"""Refused children: starts of what is there already, or cannot begin. The parent that asked gets an error."""

from __future__ import annotations

from mainspring.engine.committing.committer import Committer
from mainspring.engine.inputs.pending import Inputs, Pending
from mainspring.engine.observer import Observer
from mainspring.engine.recording.children import parent_of
from mainspring.engine.stepping.lanes import Lane
from mainspring.engine.stepping.units import Units
from mainspring.port.records import Committed, Outcome, Unit


class RefusedChildren:
    """Notifies parents. It goes past the lane of the instance that is there, which nothing of this concerns."""

    def __init__(self, units: Units, committer: Committer, observer: Observer | None, inputs: Inputs) -> None:
        self._units = units
        self._committer = committer
        self._observer = observer
        self._inputs = inputs

    def refuse(self, lane: Lane, pending: Pending) -> None:
        """Settle a start that begins nothing: with an error, or without one where the child began by it before."""
        if lane.version and parent_of(lane.context) == pending.context.parent:
            # It began by this very message: only its settlement was lost.
            unit = self._units.settled(pending)
            self._committer.persist(unit, lambda outcome: self._note(pending, unit, outcome))
            return
        if lane.version or lane.ended:
            reason = f"there is an instance {pending.ref} already, and it is {lane.status}"
        else:
            reason = f"{pending.type} may not begin an instance of {pending.ref.workflow}"
            lane.loaded = False  # another process may begin it at any time
        unit = self._units.refused(pending, reason)

        def then(outcome: Outcome) -> None:
            self._note(pending, unit, outcome)
            if isinstance(outcome, Committed) and outcome.positions[0]:
                self._inputs.accepted(unit.accepts[0], outcome.positions[0])

        self._committer.persist(unit, then)

    def _note(self, pending: Pending, unit: Unit, outcome: Outcome) -> None:
        if self._observer is not None:
            self._observer.taken(pending, unit, outcome, "stepped")
