"""A client that asks again what it was told an error of, and that may give up in the middle of asking."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from mainspring import Mainspring
from mainspring.errors import StoreError
from tests.proof.crash.files import Place
from tests.proof.crash_points.client import Client, Look
from tests.proof.store_faults.calls import Calls

TRIES: Final = 5
"""One call fails: who asks so often in vain met something else."""

log = logging.getLogger(__name__)


class PersistentClient(Client):
    """Tells its script whatever happens to a call. Only what a store says in its own words is an answer to it."""

    def __init__(self, app: Mainspring, place: Place, look: Look, patience_seconds: float, calls: Calls) -> None:
        super().__init__(app, place, look, patience_seconds)
        self._calls = calls
        self._loop = asyncio.get_running_loop()
        calls.give_up = self._give_up_soon
        self._asking: asyncio.Task[None] | None = None
        self._gave_up = False

    async def ask(self, id: str, to: str, message: Any) -> None:
        await self._until_told(lambda: super(PersistentClient, self).ask(id, to, message))

    async def request(self, id: str, to: str, message: Any) -> None:
        await self._until_told(lambda: super(PersistentClient, self).request(id, to, message))

    async def act(self, name: str, acting: Callable[[], Awaitable[Any]]) -> None:
        await self._until_told(lambda: super(PersistentClient, self).act(name, acting))

    async def _until_told(self, asking: Callable[[], Awaitable[None]]) -> None:
        for left in reversed(range(TRIES)):
            self._asking = asyncio.ensure_future(asking())
            try:
                async with asyncio.timeout(self._patience_seconds):
                    await self._asking
            except StoreError as error:
                log.warning("asks again: %s", error)
                if not left:
                    raise
            except asyncio.CancelledError:
                if not self._gave_up:
                    raise
                self._gave_up = False
                log.warning("gave up, and asks again")
            else:
                return

    def _give_up_soon(self) -> bool:
        """Give up what is asked for now; a store's thread may say so too."""
        if self._asking is None or self._asking.done():
            return False
        self._loop.call_soon_threadsafe(self._give_up)
        return True

    def _give_up(self) -> None:
        if self._asking is not None and not self._asking.done():
            self._gave_up = self._asking.cancel()
