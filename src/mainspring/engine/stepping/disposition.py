"""Disposition: what becomes of an input whose turn it is, derived from its lane, itself and what is paused.

The order of the questions is the rule. A later question knows that all earlier ones were answered with no.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct

from mainspring.core.failures import ChildFailed, SendFailed
from mainspring.core.messages import Kind
from mainspring.engine.inputs.pending import Pending, ReceiptStatus
from mainspring.engine.recording.children import parent_of
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.stepping.lanes import Lane
from mainspring.port.records import ENDED


class Plain(Enum):
    """The dispositions that carry no data."""

    STEP = auto()
    """Decide on it."""
    BEGIN_ANEW = auto()
    """Decide on it as the first input of the instance, which has ended and begins anew."""
    UNDO = auto()
    """It comes while the instance is being compensated: the ledger shows whether it continues the compensation."""
    SETTLE = auto()
    """It changes nothing any more, and is only taken away."""
    LEAVE = auto()
    """It waits for a worker that can read its instance."""
    WAIT = auto()
    """It is taken when nothing is under way: what it found may still fail."""
    LOOK_AGAIN = auto()
    """The instance is not as its sender asks, as far as is known here: it is read anew."""
    REFUSE_CHILD = auto()
    """It is to begin a child, and cannot: its parent is notified."""


class Park(Struct, frozen=True):
    """It waits in the inbox; its sender gets that status. `unsure` says that its instance may only seem new."""

    status: ReceiptStatus
    unsure: bool = False


class Keep(Struct, frozen=True):
    """It is recorded in the stream, and not stepped."""

    status: ReceiptStatus


class Bury(Struct, frozen=True):
    """It becomes a dead letter. `unknown` says that there is no such instance, which another process may begin."""

    reason: str
    unknown: bool = False


class Suspend(Struct, frozen=True):
    """Its instance is suspended: by a command that failed for good, which has no message that could wait."""

    reason: str
    undoing: bool = False
    """Whether it was a compensation, so that the reason names what is still to be undone."""


class Fault(Struct, frozen=True):
    """Its instance is suspended and it waits first in the inbox: for an error, or for a reason without one."""

    error: Exception | None
    reason: str = ""


class Repeat(Struct, frozen=True):
    """One of its id was passed over before: it is a duplicate if that was the same, and else a clash."""

    same: bool


Disposition: TypeAlias = Plain | Park | Keep | Bury | Suspend | Fault | Repeat

# What becomes of most: a member of an Enum takes many times as long to find as a name.
STEP: Final = Plain.STEP
PAUSED: Final = Park("accepted", unsure=True)
SUSPENDED: Final = Park("suspended")
KEPT_LATE: Final = Keep("kept")
KEPT: Final = Keep("stepped")


def disposition(lane: Lane, pending: Pending, paused: frozenset[str] = frozenset()) -> Disposition:
    """Return what becomes of an input, in a lane that is loaded. `paused` are workflows of which nothing is stepped."""
    definition = lane.entry.definition
    ended = lane.status in ENDED
    message_type = cast("type[Any]", type(pending.message))
    if pending.skipped is not None:
        return Repeat(pending.skipped)
    if pending.failure is not None and (message_type is not SendFailed or SendFailed not in definition.inputs):
        return _of_failure(lane, pending, pending.failure.reason)
    if paused and lane.ref.workflow in paused:
        return PAUSED
    if pending.requires is not None and _is_otherwise(lane, pending):
        return Plain.LOOK_AGAIN
    if pending.context.parent is not None and is_no_new_child(lane, pending):
        return Plain.WAIT if lane.under_way else Plain.REFUSE_CHILD
    if pending.cause is not None and pending.cause in lane.abandoned:
        return late(lane, pending)
    if definition.again != "join" and begins_again(lane, pending):
        if definition.again != "refuse":
            return Plain.BEGIN_ANEW
        return Plain.WAIT if lane.under_way else Bury(f"{pending.ref} has begun already")
    if lane.elsewhere is not None and lane.left and not (ended and definition.again != "anew"):
        return Plain.LEAVE
    if ended:
        return late(lane, pending)
    if lane.status == "suspended":
        return SUSPENDED
    if pending.unreadable is not None:
        return Fault(pending.unreadable)
    if lane.unfolded is not None:
        return Fault(lane.unfolded.error)
    if lane.status == "compensating":
        return Plain.UNDO
    if lane.version == 0 and message_type not in definition.begins:
        return Bury(f"there is no instance {pending.ref}, and {pending.type} may not begin one", unknown=True)
    return STEP if message_type in definition.inputs else _undeclared(lane, pending)


def begins_again(lane: Lane, pending: Pending) -> bool:
    """Return True if a message that begins instances has come to one that has begun, and that is no input to it."""
    definition = lane.entry.definition
    asked_for = pending.cause is not None or pending.kind in (Kind.ANSWER, Kind.REPLY)
    if asked_for or lane.elsewhere or not lane.version or type(pending.message) not in definition.begins:
        return False
    # Whether it is a redelivery of what began a purged instance before can no longer be known.
    return definition.again == "refuse" or (lane.ended and lane.purged_us is None)


def is_no_new_child(lane: Lane, pending: Pending) -> bool:
    """Return True if a child's start finds an instance, or cannot begin one."""
    if lane.ended and lane.entry.definition.again == "anew":
        return parent_of(lane.context) == pending.context.parent or not begins_again(lane, pending)
    return bool(lane.version or lane.ended) or type(pending.message) not in lane.entry.definition.begins


def _of_failure(lane: Lane, pending: Pending, reason: str) -> Disposition:
    """A command failed for good, and the workflow does not listen: stop, and show why."""
    if lane.ended or lane.version == 0 or pending.cause in lane.abandoned:
        return Plain.SETTLE
    if lane.left:
        return Plain.LEAVE
    if pending.undoes is not None and lane.unfolded is None:
        return Suspend(reason, undoing=True)
    return Plain.SETTLE if lane.status == "compensating" else Suspend(reason)


def _is_otherwise(lane: Lane, pending: Pending) -> bool:
    position = lane.version if lane.purged_us is None else -1
    return pending.requires is not None and pending.requires.unmet(position=position, waiting=False) is not None


def late(lane: Lane, pending: Pending) -> Disposition:
    """Return what becomes of an input for an instance that has ended, is being compensated, or continued without it."""
    if pending.kind is Kind.TIMER:
        return Plain.SETTLE
    if lane.purged_us is not None:
        # There is no stream any more that could keep it, not even an answer to what the instance asked.
        return Bury(f"{pending.ref} ended ({lane.status}) and was purged on {moment(lane.purged_us):%Y-%m-%d}")
    if pending.cause is not None or pending.kind is Kind.REPLY or _is_kept_late(lane, pending):
        return KEPT_LATE
    return Bury(f"{pending.ref} " + (f"has {lane.status} already" if lane.ended else "is being compensated"))


def _is_kept_late(lane: Lane, pending: Pending) -> bool:
    """Return True if an event that came after the end is recorded; one that never began has no stream for it."""
    late = lane.ended and lane.version > 0 and pending.kind is Kind.EVENT
    return late and lane.entry.definition.late_events == "kept"


def _undeclared(lane: Lane, pending: Pending) -> Disposition:
    """What the workflow does not take: kept; what came for a newer version of it is reported to the sender."""
    if pending.kind in (Kind.COMMAND, Kind.EVENT) and pending.cause is None and len(lane.entry.versions) > 1:
        return Bury(f"{pending.ref} runs under version {lane.entry.version}, which does not take {pending.type}")
    failed = pending.message
    if isinstance(failed, ChildFailed):
        # It waits in the inbox, to be taken by code that listens for it, or to be skipped.
        return Fault(None, f"its child {failed.child} has {failed.status}: {failed.error}")
    return KEPT
