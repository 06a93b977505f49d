"""Broken lanes: a commit was refused, and whatever was built on it is void too. A lane begins again from the store."""

from __future__ import annotations

from typing import Any, Final

from mainspring.engine.inputs.pending import Pending
from mainspring.engine.inputs.refusals import not_met
from mainspring.engine.stepping.duplicates import Duplicates
from mainspring.engine.stepping.inbox import Inbox
from mainspring.engine.stepping.lanes import BROKEN, OPEN, Lane, Lanes
from mainspring.engine.stepping.loader import Loader
from mainspring.logs import logger
from mainspring.port.preconditions import Unmet
from mainspring.port.records import Conflict, Duplicate, Outcome
from mainspring.port.tasks import Refused

CONFLICTS_BEFORE_QUEUEING: Final = 5

log = logger("mainspring.engine")


class BrokenLanes:
    """Takes what was refused, and mends its lane when nothing of it is under way any more."""

    def __init__(self, lanes: Lanes, loader: Loader, inbox: Inbox, duplicates: Duplicates) -> None:
        self._lanes = lanes
        self._loader = loader
        self._inbox = inbox
        self._duplicates = duplicates

    def refused(self, lane: Lane, pending: Pending, outcome: Outcome | Exception) -> None:
        """Do what a refusal asks for: step it again, let it wait in the inbox, or notify its sender."""
        lane.phase = BROKEN
        match outcome:
            case Conflict("version"):
                pending.conflicts += 1
                # A failure may have no message that could wait in the inbox.
                stays = pending.position is not None or pending.failure is not None
                if stays or pending.conflicts < CONFLICTS_BEFORE_QUEUEING:
                    lane.returned.append(pending)
                else:
                    self._inbox.put(pending)
            case Conflict("inbox") if pending.position is None:
                self._inbox.put(pending)
            case Conflict("inbox"):
                self._inbox.give_back(pending)
            case Conflict():
                # Another worker took the input, or relieved us of the output that it answers: its outcome counts.
                log.debug("%s: %s was taken by another worker", pending.ref, pending.id)
            case Duplicate(same):
                self._duplicates.take(pending, same)
            case Refused(reason):
                self._duplicates.refused(pending, reason)
            case Unmet():
                not_met(pending, outcome)
            case _:
                self._failed(lane, pending, outcome)

    def _failed(self, lane: Lane, pending: Pending, error: Any) -> None:
        """The store is in trouble: callers get the error; what came from the store itself is retried."""
        if pending.answer is not None and not pending.awaits_end_of(error):
            pending.answer.fail(error)
        else:
            log.warning("%s: commit failed, will be tried again: %s", pending.ref, error)
            pending.conflicts = -1
            lane.returned.append(pending)

    def settle(self, lane: Lane) -> None:
        """Put what is stepped again in front, and load the lane anew; after a while where the store is in trouble."""
        pause = any(pending.conflicts < 0 for pending in lane.returned)
        lane.queue.extendleft(reversed(lane.returned))
        lane.returned.clear()
        lane.forget()
        if pause:
            self._inbox.later(lambda: self._mend(lane))
        else:
            self._mend(lane)

    def _mend(self, lane: Lane) -> None:
        lane.phase = OPEN
        for pending in lane.queue:
            pending.conflicts = max(pending.conflicts, 0)
        if lane.queue or self._loader.loads(lane):
            self._loader.request(lane)
        else:
            self._lanes.drop(lane)
