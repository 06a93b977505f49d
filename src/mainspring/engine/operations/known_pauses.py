"""What this process knows to be paused. It looks now and then, and at once where this process pauses or resumes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from mainspring.engine.operations.pause_orders import WAY_OUT, read_orders, row_of_fleet
from mainspring.engine.operations.pauses import Pause
from mainspring.engine.paused_work import PausedWork
from mainspring.errors import told
from mainspring.logs import Quoted, logger
from mainspring.port.store import Store

LOOK_SECONDS: Final = 2.0
"""How often every process looks at what is paused."""

LOOKS_PER_READING: Final = 15
"""What could not be read is read again at every so many looks: a key may have come."""

log = logger("mainspring.engine")


class KnownPauses:
    """What was paused at the last look. While the store is in trouble, or the orders cannot be read, that holds."""

    def __init__(self, store: Store, paused: PausedWork, queue_of: Callable[[str], str]) -> None:
        self._store = store
        self._paused = paused
        # The name under which this process knows a message that was renamed since it was paused.
        self._queue_of = queue_of
        self._version = 0
        self._looks_unread = 0
        self._looking = asyncio.Lock()
        self.pauses: tuple[Pause, ...] = ()

    async def look(self) -> tuple[list[Pause], list[Pause]]:
        """Look, and return what is paused since the last look, and what is not any more."""
        async with self._looking:
            if not await self._is_news():
                return [], []
            found = await read_orders(self._store)
            version = 0 if found.row is None else found.row.version
            if found.error is not None:
                self._tell_unread(version, found.error)
                return [], []
            self._version, self._looks_unread = version, 0
            before, self.pauses = self.pauses, found.state.pauses
            self._hold_back()
            was, now = {pause.what for pause in before}, {pause.what for pause in self.pauses}
            began = [pause for pause in self.pauses if pause.what not in was]
            return began, [pause for pause in before if pause.what not in now]

    def _hold_back(self) -> None:
        workflows = frozenset(pause.name for pause in self.pauses if pause.kind == "workflow")
        handlers = {pause.name for pause in self.pauses if pause.kind == "handler"}
        handlers |= {queue for name in handlers if (queue := self._queue_of(name))}
        # What only paused workflows would take waits with them.
        waits = {f"{what}:{name}" for name in workflows for what in ("timer", "reply")}
        self._paused.workflows, self._paused.queues = workflows, frozenset(handlers | waits)

    async def _is_news(self) -> bool:
        """Return True if there are orders that were not read yet; of what could not be, now and then."""
        row = await row_of_fleet(self._store)
        if row is None:
            return False
        if row.version == self._version and self._looks_unread:
            self._looks_unread += 1
            return self._looks_unread % LOOKS_PER_READING == 0
        return row.version != self._version

    def _tell_unread(self, version: int, error: Exception) -> None:
        if version != self._version or not self._looks_unread:
            held = "what was known last holds" if self.pauses else "nothing is paused here"
            log.error("what is paused cannot be read, and %s: %s. %s", held, Quoted(str(error).rstrip(".")), WAY_OUT)
        self._version, self._looks_unread = version, max(1, self._looks_unread)


async def pauses_of(store: Store) -> tuple[Pause, ...]:
    """Return what is paused, as the store has it; nothing, where that cannot be read."""
    return (await read_orders(store)).state.pauses


async def unread_pauses(store: Store) -> str | None:
    """Return why what is paused cannot be read, if so."""
    error = (await read_orders(store)).error
    return None if error is None else f"What is paused cannot be read: {told(error)}"
