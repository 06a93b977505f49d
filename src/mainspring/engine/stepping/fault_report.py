"""What is logged when an instance is suspended: here, when that is durable, and nowhere else.

A suspension for an error has a line with its trace. One for a command that failed for good has none: `settlements` has
logged the command's end, as it does where the workflow listens. One for a budget of steps is an error like others,
behind the warning of `budget` that it comes near.
"""

from __future__ import annotations

from mainspring.engine.inputs.pending import Pending, ReceiptStatus
from mainspring.engine.observer import about_input
from mainspring.logs import logger

log = logger("mainspring.engine")


def report_fault(pending: Pending, status: ReceiptStatus, fault: Exception) -> None:
    """Log what went wrong in the step of an input, and what became of it."""
    suspended = status == "suspended"
    what = "%s is suspended: %s failed in it" if suspended else "%s: %s failed, and is a dead letter"
    log.error(what, pending.ref, pending.type, exc_info=fault, extra=about_input(pending))
