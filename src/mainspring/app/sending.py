"""Sending many messages together, in few commits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mainspring.app.instance import Receipt
from mainspring.app.internals import Internals
from mainspring.engine.inputs.intake import INPUTS_PER_TURN
from mainspring.engine.inputs.pending import Pending
from mainspring.errors import OperationError


async def send_many(
    internals: Internals,
    messages: Iterable[Any],
    ids: Iterable[str] | None,
    actor: str | None,
    *,
    must_exist: bool,
    workflow: str | type[Any] | None,
) -> list[Receipt[Any]]:
    """Send many messages together, in few commits."""
    intake, items = internals.engine.intake, list(messages)
    identities = [None] * len(items) if ids is None else list(ids)
    if len(identities) != len(items):
        raise OperationError(
            "send_many",
            f"got {len(items)} messages and {len(identities)} ids",
            "Give one id for each message, or none at all.",
        )
    pendings: list[Pending] = []
    for message, id in zip(items, identities, strict=True):
        pendings.append(intake.sent(message, id=id, actor=actor, must_exist=must_exist, workflow=workflow))
        if len(pendings) % INPUTS_PER_TURN == 0:
            await intake.rest()
    await intake.all_answered(pendings)
    return [Receipt(internals, pending) for pending in pendings]
