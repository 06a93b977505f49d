"""An output as the outbox has it, with its message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mainspring.errors import DamagedRecordError
from mainspring.port.records import OutputClaim
from mainspring.stores.commit.facts import Spot
from mainspring.stores.commit.rows import output_checksum, read_output


def check_output(row: Sequence[Any]) -> None:
    """Raise DamagedRecordError if an outbox row does not fit the checksum at its end."""
    *fields, checksum = row
    if checksum is not None and checksum != output_checksum(*fields):
        raise DamagedRecordError("outbox", f"instance {row[0]}, version {row[1]}")


def checked_output(row: Sequence[Any]) -> OutputClaim:
    """Return the output of a row of `outputs`, or raise DamagedRecordError."""
    key, checksum, *rest = row
    instance, version, _, _, kind, destination, attempts, due_us, priority, *_ = rest
    check_output((instance, version, kind, destination, due_us, priority, key, attempts, checksum))
    return read_output(rest)


def spot_of(row: Sequence[Any]) -> Spot:
    """Return which output a row of `outputs` is, damaged or not."""
    return row[2], row[3]
