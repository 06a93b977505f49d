"""What crosses the port. Times are microseconds since 1970 (UTC); bodies are the exact JSON bytes that were written."""

from mainspring.port.records.backlog import Stats, Waiting
from mainspring.port.records.claims import NO_LEAVES, Cause, Claims, Leaves, OutputClaim, Relayed
from mainspring.port.records.events import Context, EventRow, Loaded, Outline, OutlineSpot, Snapshot
from mainspring.port.records.instances import ENDED, ENGINES_OWN, FAN_OUT, InstanceFilter, InstanceRow, Status, Tally
from mainspring.port.records.units import CancelAll, Committed, Conflict, ConflictReason, Duplicate, Outcome, Unit
from mainspring.port.records.work import ARMED, EDGE, DeadLetter, InputRow, OutputKind, OutputRow, Remembered, Retry
from mainspring.port.refs import OutputKey, Ref

__all__ = [
    "ARMED",
    "EDGE",
    "ENDED",
    "ENGINES_OWN",
    "FAN_OUT",
    "NO_LEAVES",
    "CancelAll",
    "Cause",
    "Claims",
    "Committed",
    "Conflict",
    "ConflictReason",
    "Context",
    "DeadLetter",
    "Duplicate",
    "EventRow",
    "InputRow",
    "InstanceFilter",
    "InstanceRow",
    "Leaves",
    "Loaded",
    "Outcome",
    "Outline",
    "OutlineSpot",
    "OutputClaim",
    "OutputKey",
    "OutputKind",
    "OutputRow",
    "Ref",
    "Relayed",
    "Remembered",
    "Retry",
    "Snapshot",
    "Stats",
    "Status",
    "Tally",
    "Unit",
    "Waiting",
]
