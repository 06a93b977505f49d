"""What is paused of what an instance waits for: itself, and through its children and the parts of its fan-outs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from mainspring.analysis.awaited import OpenChild, awaited_of
from mainspring.engine.inputs.pending import instance_id
from mainspring.engine.operations.pauses import Pause
from mainspring.engine.registry import Registry
from mainspring.port.records import FAN_OUT, InputRow, OutputClaim, Ref
from mainspring.port.store import Store

INSTANCES_LOOKED_AT: Final = 50
EVENTS_LOOKED_AT: Final = 1_000
WAITING_LOOKED_AT: Final = 100


def paused_among(
    pauses: Sequence[Pause], ref: Ref, inputs: Sequence[InputRow], outputs: Sequence[OutputClaim], now_us: int
) -> list[str]:
    """Return which pauses let something wait that an instance waits for: its workflow's, and those of handlers."""
    late = any(claim.kind == "timer" and claim.due_us <= now_us for claim in outputs)
    commands = {claim.type for claim in outputs if claim.kind == "send"}
    replies = {claim.destination for claim in outputs if claim.kind != "send"}

    def holds(pause: Pause) -> bool:
        if pause.kind == "handler":
            return pause.name in commands
        return f"reply:{pause.name}" in replies or (pause.name == ref.workflow and (bool(inputs) or late))

    return [str(pause) for pause in pauses if holds(pause)]


async def paused_below(
    store: Store, pauses: Sequence[Pause], children: Iterable[OpenChild], registry: Registry | None
) -> list[str]:
    """Return which pauses keep children, or theirs, from going on, each with the first of them that was found.

    Not all of them are looked at: one that waits for a pause speaks for its siblings.
    """
    found: dict[str, Ref] = {}
    seeking, left = deque(_refs(children) if pauses else ()), INSTANCES_LOOKED_AT
    while seeking and left:
        ref, left = seeking.popleft(), left - 1
        inputs = await store.inbox(ref, 1)
        outputs = [
            claim
            for timers in (False, True)
            for claim in await store.outputs(ref, timers=timers, limit=WAITING_LOOKED_AT)
        ]
        for pause in paused_among(pauses, ref, inputs, outputs, store.now_us()):
            found.setdefault(pause, ref)
        (loaded,) = await store.load([ref], 0)
        if loaded is not None:
            seeking += _refs((await awaited_of(store, loaded.row, registry, EVENTS_LOOKED_AT)).children)
    return [f"it waits for {_named(ref)}, and that for a pause: {pause}" for pause, ref in found.items()]


def _named(ref: Ref) -> str:
    return "a fan-out" if ref.workflow == FAN_OUT else str(ref)


def _refs(children: Iterable[OpenChild]) -> list[Ref]:
    known = (instance_id(child.instance) for child in children if child.instance is not None)
    return [Ref(own.workflow, own.id) for own in known]
