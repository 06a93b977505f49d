"""The relay: what programs have posted in transactions of their own goes into the inboxes, and is claimed from there.

Claims show that something was posted, so that an idle worker makes no extra query. The store moves it; nothing here can
lose or duplicate a message.
"""

from __future__ import annotations

import asyncio
from typing import Final

from mainspring.engine.runtime import Runtime
from mainspring.logs import logger
from mainspring.port.store import Store

POSTED_AT_ONCE: Final = 500
PAUSE_AFTER_STORE_ERROR_SECONDS: Final = 1.0

log = logger("mainspring.engine")


class Relay:
    """Moves posted messages, in a task of its own: a failure here does not stop claiming."""

    def __init__(self, store: Store, runtime: Runtime) -> None:
        self._store = store
        self._runtime = runtime
        self._hint = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Note that something was posted. The first time, a task begins."""
        self._hint.set()
        if self._task is None:
            self._task = self._runtime.spawn(self._run(), "mainspring-relay")

    async def stop(self) -> None:
        """Move no more. What is under way is moved or not, as a whole."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await self._hint.wait()
            self._hint.clear()
            try:
                # Until nothing is left: a worker that came meanwhile, and found another one relaying, has gone again.
                while (relayed := await self._store.relay(POSTED_AT_ONCE)).count:
                    for letter in relayed.letters:
                        ref = f"{letter.workflow}/{letter.instance}"
                        log.error("a message posted for %s became a dead letter: %s", ref, letter.reason)
                        if self._runtime.observer is not None:
                            self._runtime.observer.buried(letter)
            except Exception as error:  # noqa: BLE001  whatever it is, the messages are there, and it is tried again
                log.warning("posted messages could not be moved, will be tried again: %s", error)
                await self._runtime.clock.sleep(PAUSE_AFTER_STORE_ERROR_SECONDS)
                self._hint.set()
