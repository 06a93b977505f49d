"""Duplicates: inputs whose ids are known already. The same message counts once, and another must not vanish."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from mainspring.core.messages import Kind
from mainspring.engine.claimable.wakeups import Wakeups
from mainspring.engine.committing.committer import Committer
from mainspring.engine.handlers.job import Job
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.inputs.refusals import not_answered
from mainspring.engine.outputs.settlements import Settlements
from mainspring.engine.recording.stored_values import encode_context, instance_id
from mainspring.engine.stepping.units import Units
from mainspring.errors import DuplicateIdError, NotFromOutsideError
from mainspring.logs import logger
from mainspring.port.records import DeadLetter, Duplicate, Outcome, OutputClaim
from mainspring.port.tasks import RefusalReason

CLASH: Final = "its id was used before, for another message"
PAST_ITS_TASK: Final = "it came from outside, past the open task that it answers, which knows who may"

log = logger("mainspring.engine")


class Duplicates:
    """Handles inputs that the store has refused because it knows their ids."""

    def __init__(self, units: Units, committer: Committer, wakeups: Wakeups, settlements: Settlements) -> None:
        self._units = units
        self._committer = committer
        self._wakeups = wakeups
        self._settlements = settlements

    def take(self, pending: Pending, same: bool) -> None:
        """Take a duplicate input away, and notify its sender."""
        if pending.answer is None and not same:
            self._clashed(pending)
            return
        if pending.settles is not None or pending.position is not None:
            self._committer.add(self._units.settled(pending), lambda _: None)
        if pending.answer is None:
            return
        if same:
            pending.answer.resolve("duplicate")
        else:
            pending.answer.fail(DuplicateIdError(str(pending.ref), pending.id))

    def refused(self, pending: Pending, reason: RefusalReason) -> None:
        """Report why an answer to a task is not taken; if it bypassed the task and no caller waits, bury it."""
        if reason != "asked":
            not_answered(pending, reason)
        elif pending.answer is not None:
            pending.answer.fail(NotFromOutsideError(pending.ref.workflow, pending.type, "answer"))
        else:
            log.warning("%s: %s %s is a dead letter: %s", pending.ref, pending.type, pending.id, PAST_ITS_TASK)

            def then(outcome: Outcome) -> None:
                if isinstance(outcome, Duplicate):
                    self.take(pending, outcome.same)
                self._wakeups.due_at(0)

            self._committer.persist(self._units.buried(pending, PAST_ITS_TASK), then)

    def _clashed(self, pending: Pending) -> None:
        """Keep a message from inside that cannot be taken, and notify the instance that sent it."""
        letter, job = _letter(pending), _job(pending)
        log.error("%s: %s %s is a dead letter: %s", pending.ref, pending.type, pending.id, CLASH)
        if job is not None:
            self._settlements.refuse(job, letter)
        elif pending.context.parent is not None:
            unit = replace(self._units.refused(pending, CLASH), dead_letters=(letter,))
            self._committer.persist(unit, lambda _: self._wakeups.due_at(0))
        else:
            self._committer.persist(replace(self._units.settled(pending), dead_letters=(letter,)))


def _letter(pending: Pending) -> DeadLetter:
    """Return the dead letter that such an input becomes, at the instance that it was for."""
    return replace(pending.as_dead_letter(CLASH), attempts=1)


def _job(pending: Pending) -> Job | None:
    """Return the command that such an input was, whose sender is to be notified. None: no sender waits for it."""
    context = pending.context
    if pending.settles is None or pending.kind is not Kind.COMMAND or context.sender is None or context.parent:
        return None
    sender = instance_id(context.sender)
    claim = OutputClaim(
        output=pending.settles,
        workflow=sender.workflow,
        instance=sender.id,
        kind="send",
        destination=pending.type,
        attempts=0,
        due_us=pending.time_us,
        priority=0,
        type=pending.type,
        type_version=pending.type_version,
        body=pending.body,
        detail=None,
        context=encode_context(context),
    )
    return Job(claim, pending.message)
