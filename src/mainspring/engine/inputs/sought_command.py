"""The command that an input answers, where it must be read before the input can be stepped."""

from __future__ import annotations

from mainspring.core.messages import Kind
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.recording.answered_commands import caused_by, command_in
from mainspring.port.store import Store


def command_sought(pending: Pending, *, trims: bool) -> int | None:
    """Return the version of the command that an input answers, where what it says must be read first.

    Where the history is not kept (`trims`), it would depend on the way that an answer takes whether it is still there:
    no answer has one.
    """
    if trims:
        pending.command = None
        return None
    if pending.command is not None:
        return None
    if pending.kind is Kind.RESULT:
        return pending.cause
    return caused_by(pending.ref, pending.context) if pending.kind is Kind.REPLY else None


def answered(pending: Pending) -> int | None:
    """Return the version of what an input answers, as its row is going to say."""
    if pending.cause is not None or pending.kind not in (Kind.REPLY, Kind.ANSWER):
        return pending.cause
    return caused_by(pending.ref, pending.context)


async def recall_command(pending: Pending, version: int, store: Store) -> None:
    """Read the command at a version for the input that answers it."""
    rows = await store.stream(pending.ref, version - 1, 1)
    pending.command = command_in(next((row for row in rows if row.version == version), None))
