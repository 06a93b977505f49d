"""Sagas in rows: which outputs belong to one, and the message with which an instance continues after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from mainspring.core.messages import InstanceId, Kind, output_id
from mainspring.core.saga import Ledger
from mainspring.engine.recording.event_details import read_detail
from mainspring.engine.recording.event_rows import matters_to_ledger
from mainspring.engine.recording.recorder import Recorder
from mainspring.engine.recording.stored_values import encode_context
from mainspring.errors import OperationError
from mainspring.port.ids import MARK
from mainspring.port.records import Context, EventRow, InputRow, OutputClaim, Ref

Doomed: TypeAlias = Literal["all", "forward", "armed"]
"""What is stopped: all, all but compensations, or only what is about to be undone."""


def undone_by(claim: OutputClaim) -> int | None:
    """Return the version that an output undoes, None if it is no compensation."""
    return None if claim.detail is None else read_detail(claim.detail).undoes


def is_armed(claim: OutputClaim) -> bool:
    """Return True if an output has a compensation."""
    return claim.detail is not None and read_detail(claim.detail).compensate is not None


def then_rows(recorder: Recorder, ref: Ref, ledger: Ledger, context: Context, now_us: int) -> tuple[InputRow, ...]:
    """Return the input with which an instance continues after all was undone. Its id follows from the stream."""
    if ledger.begun is None or ledger.begun.then is None:
        return ()
    encoded = recorder.encoded(ledger.begun.then)
    id = output_id(InstanceId(ref.workflow, ref.id), ledger.begun_at)
    own = Context(context.correlation_id, context.causation_id, None, None, context.trace)
    return (
        InputRow(
            workflow=ref.workflow,
            instance=ref.id,
            message_id=MARK + id,
            kind=Kind.COMMAND.value,
            type=encoded.name,
            type_version=encoded.version,
            body=encoded.body,
            time_us=now_us,
            context=encode_context(own),
            cause=ledger.begun_at,
        ),
    )


def take_row(ledger: Ledger, recorder: Recorder, row: EventRow) -> None:
    """Let a ledger take in a row of its stream."""
    if matters_to_ledger(row):
        ledger.take(row.version, recorder.event(row))
    elif row.event == "Received":
        ledger.go_on()


def check_rewind(recorder: Recorder, ref: Ref, rows: Sequence[EventRow], version: int) -> None:
    """Refuse to go back to where something was being undone, or behind the undoing of what was done by then."""
    ledger = Ledger()
    was_active = False
    for row in rows:
        take_row(ledger, recorder, row)
        if row.version == version:
            was_active = ledger.active
    if was_active or ledger.active or any(step <= version < at for step, at in ledger.undone.items()):
        raise OperationError(
            str(ref),
            f"cannot be reset to position {version}: what it did was undone, or is about to be",
            "Choose a position behind that, or begin another instance.",
        )
