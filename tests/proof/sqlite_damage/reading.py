"""Everything that a store answers when it is asked, as one value that can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from mainspring.engine.runtime import SystemClock
from mainspring.port.records import InstanceFilter, Ref
from mainspring.port.tasks import TaskFilter
from mainspring.stores.sqlite import SqliteStore

MANY: Final = 1_000_000

Reading = dict[str, Any]


async def read_all(path: Path, known: Sequence[Ref] | None = None) -> Reading:
    """Open a store, ask for all there is, and close it; of instances that are known, or else of those it lists."""
    store = SqliteStore(path, SystemClock())
    await store.open()
    try:
        instances = await store.instances(InstanceFilter(), MANY)
        refs = [Ref(row.workflow, row.id) for row in instances] if known is None else known
        return {
            "instances": instances,
            "loaded": await store.load(refs),
            "streams": [await store.stream(ref, 0, MANY) for ref in refs],
            "feed": await store.feed(0, MANY),
            "inbox": [await store.inbox(ref, MANY) for ref in refs],
            "outputs": await store.outputs(None, timers=False, limit=MANY),
            "timers": await store.outputs(None, timers=True, limit=MANY),
            "dead_letters": await store.dead_letters(MANY),
            "attributes": [await store.attributes(ref) for ref in refs],
            "tasks": await store.tasks(TaskFilter(), MANY),
            "checkpoints": await store.checkpoints(),
        }
    finally:
        await store.close()
