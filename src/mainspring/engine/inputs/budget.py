"""Budgets of steps: an instance that never stops is reported, and suspended before it has filled the disk."""

from __future__ import annotations

import sys
from typing import Final, Protocol

from mainspring.core.definition import LEAST_STEPS_PER_HOUR
from mainspring.core.messages import Kind
from mainspring.engine.inputs.pending import Pending
from mainspring.errors import SettingError, StepBudgetError
from mainspring.logs import logger

LOOKS: Final = 10
"""How often within a budget the clock is read. Between two looks a step costs a number counted down."""
TOLD_AT: Final = 8
"""After so many of them within an hour it is reported."""
HOUR_US: Final = 3_600_000_000

log = logger("mainspring.engine")


class Budget:
    """How many steps an instance may take in an hour; None for any number.

    >>> Budget(1_000_000).every, Budget(25).every
    (100000, 3)
    """

    __slots__ = ("every", "steps")

    def __init__(self, steps: int | None) -> None:
        self.steps = steps
        # Rounded up, so that what it may take is never less.
        self.every = sys.maxsize if steps is None else -(-steps // LOOKS)


def checked_steps(steps: object) -> int | None:
    """Return what an app allows, if that makes sense.

    >>> checked_steps(5_000)
    5000
    """
    if steps is not None and (type(steps) is not int or steps < LEAST_STEPS_PER_HOUR):
        fix = f"Use a whole number from {LEAST_STEPS_PER_HOUR}, or None for any number."
        raise SettingError("steps_per_hour", steps, fix)
    return steps


class Spender(Protocol):
    """Who spends a budget: a number that is counted down, and the times of the last looks.

    A lane counts for itself: what another worker stepped, and what was stepped before an idle lane was forgotten, it
    does not know.
    """

    steps_left: int
    looks: tuple[int, ...]


def look(spender: Spender, budget: Budget, pending: Pending, now_us: int) -> None:
    """Look at what was spent, before one more step. Raise if that is all the instance has."""
    spender.steps_left = budget.every - 1
    spender.looks = (*spender.looks, now_us)[-LOOKS - 1 :]
    within = sum(at_us > now_us - HOUR_US for at_us in spender.looks) - 1
    if within >= LOOKS:
        spender.looks = (now_us,)  # resuming it grants as much again
        raise StepBudgetError(str(pending.ref), budget.steps or 0, _came(pending))
    if within >= TOLD_AT:
        what = "%s has taken %s steps within an hour, now %s; at %s it is suspended (steps_per_hour)"
        log.warning(what, pending.ref, f"{within * budget.every:,}", _came(pending), f"{budget.steps:,}")


def _came(pending: Pending) -> str:
    """Return what an instance is about to take, and its sender."""
    sender = pending.context.sender
    if pending.kind is Kind.TIMER:
        return f"{pending.type}, a timer of its own"
    if pending.cause is not None:
        return f"{pending.type}, the answer to a command of its own"
    if sender == str(pending.ref):
        return f"{pending.type}, which it sends to itself"
    return f"{pending.type} from {sender or 'outside'}"
