"""Rows as the store has them, where a test looks at what no view shows: bodies, contexts, keys."""

from __future__ import annotations

from typing import Any

from mainspring import Instance, Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.recording.stored_values import instance_id
from mainspring.port.records import DeadLetter, InstanceRow, Ref


async def row_of(app: Mainspring, instance: Instance[Any, Any]) -> InstanceRow:
    """Return the row of an instance."""
    own = instance_id(str(instance))
    loaded = (await internals_of(app).engine.store.load([Ref(own.workflow, own.id)], 0))[0]
    assert loaded is not None
    return loaded.row


async def letters_of(app: Mainspring) -> list[DeadLetter]:
    """Return the rows of all dead letters."""
    return await internals_of(app).engine.store.dead_letters(1_000, 0)
