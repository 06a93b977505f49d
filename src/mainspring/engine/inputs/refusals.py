"""Refusals: what the store did not take in for its sender's own sake, raised to that sender."""

from __future__ import annotations

from typing import Final

from mainspring.engine.inputs.pending import Pending
from mainspring.errors import NoSuchInstanceError, PositionConflictError, SettingError, TaskRefusedError
from mainspring.port.preconditions import Precondition, Unmet
from mainspring.port.tasks import RefusalReason

LARGEST_POSITION: Final = 2**63 - 1


def precondition(*, must_exist: bool, expected_position: int | None) -> Precondition | None:
    """Return what a sender asks of the instance, if anything, or say why that makes no sense.

    >>> precondition(must_exist=False, expected_position=7)
    Precondition(exists=False, position=7)
    """
    if type(must_exist) is not bool:
        raise SettingError("must_exist", must_exist, "Use True or False.")
    if expected_position is None:
        return Precondition(exists=True) if must_exist else None
    if type(expected_position) is not int or not 0 <= expected_position <= LARGEST_POSITION:
        fix = "Use the position that you have read: `row().position`, or 0 for an instance that has not begun."
        raise SettingError("expected_position", expected_position, fix)
    if must_exist and not expected_position:
        raise SettingError("expected_position", 0, "At 0 there is no instance: leave must_exist out.")
    return Precondition(must_exist, expected_position)


def not_answered(pending: Pending, reason: RefusalReason) -> None:
    """Fail an answer to a task with the reason why it is not taken."""
    if pending.answer is not None and pending.task_answer is not None:
        answer = pending.task_answer
        pending.answer.fail(TaskRefusedError(f"{pending.ref}/{answer.version}", reason, answer.actor))


def not_met(pending: Pending, unmet: Unmet) -> None:
    """Fail an input whose instance is not as its sender requires."""
    if pending.answer is not None:
        pending.answer.fail(unmet_error(pending, unmet))


def unmet_error(pending: Pending, unmet: Unmet) -> Exception:
    """Return in what an instance is otherwise, as an error."""
    instance, expected = str(pending.ref), None if pending.requires is None else pending.requires.position
    if expected is None:
        return NoSuchInstanceError(instance)
    return PositionConflictError(instance, expected, max(unmet.position, 0), waiting=unmet.waiting)
