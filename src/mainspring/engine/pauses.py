"""What this process knows to be paused. It looks now and then, and at once where somebody here pauses or resumes."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Final

from mainspring.codec import Codec
from mainspring.engine.loader import present_state
from mainspring.engine.long_streams import EVENTS_AT_ONCE
from mainspring.engine.pausing import FLEET, Pause, Pauses
from mainspring.engine.registry import WorkflowEntry
from mainspring.port.records import ENDED
from mainspring.port.store import Store

LOOK_SECONDS: Final = 2.0
"""So often every process looks at what is paused."""


class KnownPauses:
    """What was paused at the last look. While the store is in trouble, that holds."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version = 0
        self._looking = asyncio.Lock()
        self.pauses: tuple[Pause, ...] = ()

    @property
    def workflows(self) -> frozenset[str]:
        """The workflows of which nothing is stepped."""
        return frozenset(pause.name for pause in self.pauses if pause.kind == "workflow")

    @property
    def queues(self) -> frozenset[str]:
        """What is not to be carried out: commands of handlers, and what only paused workflows would take."""
        handlers = {pause.name for pause in self.pauses if pause.kind == "handler"}
        return frozenset(handlers | {f"{what}:{name}" for name in self.workflows for what in ("timer", "reply")})

    async def look(self) -> tuple[list[Pause], list[Pause]]:
        """Look, and return what is paused since the last look, and what is not any more."""
        async with self._looking:
            (found,) = await self._store.load([FLEET], 0)
            if found is None or found.row.version == self._version:
                return [], []
            before, self.pauses = self.pauses, await pauses_of(self._store)
            self._version = found.row.version
            was, now = {pause.what for pause in before}, {pause.what for pause in self.pauses}
            began = [pause for pause in self.pauses if pause.what not in was]
            return began, [pause for pause in before if pause.what not in now]


async def pauses_of(store: Store) -> tuple[Pause, ...]:
    """Return what is paused, as the store has it."""
    (loaded,) = await store.load([FLEET], EVENTS_AT_ONCE)
    if loaded is None or loaded.row.status in ENDED:
        return ()
    state = await present_state(store, _entry(), loaded, _at_once)
    return state.pauses


@cache
def _entry() -> WorkflowEntry:
    """Return the workflow, for those who have a store and no app."""
    return WorkflowEntry(Pauses(), Codec())


async def _at_once() -> None:
    await asyncio.sleep(0)
