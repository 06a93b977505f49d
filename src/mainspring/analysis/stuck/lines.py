"""At which lines of their code flows are stuck: many that wait at one line have one cause."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from mainspring.analysis.reading.model import shortened
from mainspring.analysis.stuck.stuck import Stuck, StuckLine
from mainspring.app.waiting import Compute, waits_at
from mainspring.engine.registry import Registry
from mainspring.errors import MainspringError
from mainspring.port.records import Ref
from mainspring.port.store import Store

FLOWS_MOST: Final = 200


async def lines_of(
    store: Store, registry: Registry, stuck: Sequence[Stuck], compute: Compute | None = None
) -> tuple[StuckLine, ...]:
    """Return the lines at which flows among these wait, the one with most of them first; of the worst two hundred."""
    places: dict[tuple[str, str], list[str]] = {}
    for one in stuck[:FLOWS_MOST]:
        place = await _line(store, registry, Ref(one.workflow, one.id), compute)
        if place is not None:
            places.setdefault(place, []).append(one.instance)
    found = [StuckLine(line, text, tuple(instances)) for (line, text), instances in places.items()]
    return tuple(sorted(found, key=lambda line: -len(line.instances)))


async def _line(store: Store, registry: Registry, ref: Ref, compute: Compute | None) -> tuple[str, str] | None:
    """Return the line at which a flow's own task waits, and its text; None where that cannot be told."""
    (loaded,) = await store.load([ref], 0)
    if loaded is None or loaded.row.purged_us is not None:
        return None
    try:
        frame = (await waits_at(store, registry, loaded, values=False, compute=compute)).first
    except MainspringError:
        return None
    return (
        None if frame is None else (f"{shortened(frame.file, sys.path)}:{frame.line} in {frame.function}", frame.text)
    )
