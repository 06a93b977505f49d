"""What an instance waits for beside its inbox, its outbox and its timers: children, fan-outs and people.

These leave no row that waits, so they are read from its stream: what was begun and has no outcome yet. How many parts
of a fan-out are done stands in the stream of its own instance.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from msgspec import DecodeError, Struct, ValidationError, json
from msgspec.structs import replace

from mainspring.analysis.stuck.links import child_of
from mainspring.core.messages import Kind
from mainspring.engine.inputs.stored_streams import rows_at
from mainspring.engine.recording.event_details import read_detail
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.registry import Registry
from mainspring.port.records import ENDED, FAN_OUT, EventRow, InstanceRow, Ref
from mainspring.port.store import Store
from mainspring.port.tasks import TaskRow
from mainspring.views import OpenChild

EVENTS_PER_READ: Final = 20_000
CHILDREN_TOLD: Final = 100
FAN_OUTS_COUNTED: Final = 10
TASKS_LOOKED_AT: Final = 20


class Awaited(Struct, frozen=True):
    """Children and fan-outs without an outcome, the first hundred, and open tasks.

    `since` is the position behind which they were looked for.
    """

    children: list[OpenChild]
    tasks: list[TaskRow]
    since: int = 0


class _Total(Struct):
    total: int


async def awaited_of(
    store: Store, row: InstanceRow, registry: Registry | None = None, events: int | None = None
) -> Awaited:
    """Return what an instance waits for that has no row in its inbox or outbox.

    What has ended waits for nothing: its children are cancelled, or go on alone. Which instance a child is, the `route`
    of the app's workflows says. Only that many of its last `events` are read; all, if that is None.
    """
    if row.status in ENDED:
        return Awaited([], [])
    ref = Ref(row.workflow, row.id)
    since = 0 if events is None else max(0, row.version - events)
    children, asked = await _open(store, ref, row.key, since)
    told = await _told(store, row, children[:CHILDREN_TOLD], registry)
    tasks = [task for position in asked if (task := await store.task(ref, position)) is not None]
    return Awaited(told, [task for task in tasks if task.status == "open"], since)


async def _told(
    store: Store, row: InstanceRow, children: Sequence[OpenChild], registry: Registry | None
) -> list[OpenChild]:
    """Return children with their instances, and the first fan-outs with their progress."""
    ref, known = Ref(row.workflow, row.id), None if registry is None else registry.workflows.get(row.workflow)
    entry = None if known is None else known.at(row.definition_version)
    counted = [child.position for child in children if child.is_fan_out][:FAN_OUTS_COUNTED]
    begun = await rows_at(store, ref, (child.position for child in children))
    told: list[OpenChild] = []
    for child in children:
        event = begun.get(child.position)
        found = None if event is None or registry is None else child_of(registry, entry, ref, event)
        whole = replace(child, instance=None if found is None else str(found))
        told.append(
            whole if event is None or child.position not in counted else await _counted(store, ref, whole, event)
        )
    return told


async def _open(store: Store, ref: Ref, key: int, since: int) -> tuple[list[OpenChild], Sequence[int]]:
    """Return which children and fan-outs have no outcome yet, and the positions of the last tasks that were asked.

    The stream behind the position `since` is read, in pages: what it waits for may be as old as it is.
    """
    children: dict[int, OpenChild] = {}
    asked: deque[int] = deque(maxlen=TASKS_LOOKED_AT)
    while events := await store.outlines([(key, since)], EVENTS_PER_READ):
        for _, position, event, time_us, type, kind, cause, *_ in events:
            if event in ("ChildStarted", "FannedOut"):
                fan_out = event == "FannedOut"
                began, none_done = moment(time_us), 0 if fan_out else None
                children[position] = OpenChild(position, None if fan_out else type, began, none_done, None, None)
            elif event == "Asked":
                asked.append(position)
            elif event == "Began":
                children.clear()  # one that begins anew waits for nothing yet
            elif event == "Reset":
                back_to = await _back_to(store, ref, position)
                children = {begun: child for begun, child in children.items() if begun <= back_to}
            elif kind is not None and cause is not None:
                children.pop(cause, None)
        since = events[-1][1]
    return list(children.values()), asked


async def _back_to(store: Store, ref: Ref, position: int) -> int:
    """Return the position behind which nothing counts since a Reset."""
    [reset] = await store.stream(ref, position - 1, 1)
    return read_detail(reset.detail).version or 0


async def _counted(store: Store, parent: Ref, child: OpenChild, begun: EventRow) -> OpenChild:
    """Return a fan-out with its progress: the instance that counts its parts has the id of the event that began it."""
    try:
        total = json.decode(begun.body or b"", type=_Total).total
    except (DecodeError, ValidationError):
        return child  # a seal hides it, or it was trimmed
    own = Ref(FAN_OUT, f"{parent}/{child.position}")
    (loaded,) = await store.load([own], 0)
    after, answered = 0, set[int]()
    while loaded is not None and (events := await store.outlines([(loaded.row.key, after)], EVENTS_PER_READ)):
        answered |= {cause for _, _, _, _, _, kind, cause, *_ in events if kind == Kind.RESULT and cause is not None}
        after = events[-1][1]
    return replace(child, done=len(answered), total=total)
