"""Skipped first inputs: an instance that never began has no stream that could show which ids it has had."""

from __future__ import annotations

from collections.abc import Iterable

from mainspring.engine.inputs.pending import NEVER_US, Pending
from mainspring.port.digests import digested, same_message
from mainspring.port.records import Ref, Remembered
from mainspring.port.store import Store


def skipped(pending: Pending) -> Remembered:
    """Return what is remembered of an input that an operator has passed over: enough to recognise a duplicate."""
    type, body = digested((pending.type, pending.body))
    return Remembered(_key(pending.ref, pending), type, 1, body or b"null", NEVER_US)


async def note_skipped(store: Store, inputs: Iterable[Pending]) -> None:
    """Note which inputs of an instance that has not begun were passed over before. A dead letter may be retried."""
    for pending in inputs:
        if pending.discards or pending.cause is not None:
            continue
        known = await store.remembered(_key(pending.ref, pending))
        if known is not None:
            pending.skipped = same_message((pending.type, pending.body), (known.type, known.body))


def _key(ref: Ref, pending: Pending) -> str:
    return f"skipped:{ref}/{pending.mark}{pending.id}"
