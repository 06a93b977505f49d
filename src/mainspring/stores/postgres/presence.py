"""A connection that shows others that this process lives, and notifies it when others have work for it.

The server keeps the advisory locks of a session until it ends, however it ends. So a worker whose lock is free is gone.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from mainspring.logs import logger
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.session import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, Session, connect

# Notifications reach every listening process one after the other: a rush of work sends one.
NOTIFY_SECONDS: Final = 0.01
# All are notified of new work at the same moment; if all looked then, most would look in vain.
SPREAD_SECONDS: Final = 0.005
# A process that came in vain lets others go first the next time, and waits up to so many times longer.
MOST_TIMES_LONGER: Final = 16

_log = logger(__name__)


class Presence:
    """Holds the locks of this process's workers, listens, and notifies. It connects again when it has to."""

    def __init__(self, address: Address, statements: Mapping[str, str], on_news: Callable[[], None]) -> None:
        self._address = address
        self._statements = statements
        self._on_news = on_news
        self.session: Session | None = None
        self._alone = asyncio.Lock()
        self.workers: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._telling: asyncio.Task[None] | None = None
        self._closed = False
        self._times_longer = 1

    async def open(self, session: Session) -> None:
        """Listen on a connection, which is this one's from now on."""
        async with self._alone:
            await self._use(session)

    async def close(self) -> None:
        """Disconnect: from now on others may relieve this process's workers."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.session is not None:
            await self.session.close()

    async def hold(self, worker: int) -> None:
        """Take a worker's lock, before any process can see the worker."""
        async with self._alone:
            if self.session is None or self.session.closed:
                await self._use(await connect(self._address))
            if self.session is not None:
                await self.session.rows(self._statements["lock_worker"], self._address.lock_class, worker)
            self.workers.add(worker)

    async def drop(self, worker: int) -> None:
        """Release a worker's lock, when no process can see the worker any more."""
        if worker not in self.workers:
            return
        self.workers.discard(worker)
        async with self._alone:
            if self.session is not None and not self.session.closed:
                try:
                    await self.session.rows(self._statements["unlock_worker"], self._address.lock_class, worker)
                except Exception as error:  # noqa: BLE001  it may be ignored: the server frees it with the connection
                    _log.info("the lock of a worker that is gone was not given up: %s", error)

    def tell(self) -> None:
        """Notify other processes, soon, that there is unclaimed work."""
        if not self._closed and (self._telling is None or self._telling.done()):
            self._telling = self._spawn(self._tell())

    def came(self, *, in_vain: bool) -> None:
        """Note whether another process took what this one came for."""
        self._times_longer = min(MOST_TIMES_LONGER, 2 * self._times_longer) if in_vain else 1

    async def _tell(self) -> None:
        async with self._alone:
            if self.session is None or self.session.closed:
                return  # it is a hint: others look themselves too
            try:
                await self.session.rows(self._statements["notify"], self._address.channel)
            except Exception as error:  # noqa: BLE001  as above
                _log.info("others were not told of work: %s", error)
                return
        await asyncio.sleep(NOTIFY_SECONDS)

    async def _use(self, session: Session) -> None:
        try:
            await session.listen(self._address.channel, lambda pid: self._heard(pid, session))
            for worker in sorted(self.workers):
                await session.rows(self._statements["lock_worker"], self._address.lock_class, worker)
        except BaseException:
            session.drop()
            raise
        session.when_lost(self._lost)
        self.session = session

    def _heard(self, pid: int, session: Session) -> None:
        if pid != session.pid:  # this process's own news are known already
            spread = random.uniform(0, SPREAD_SECONDS * self._times_longer)  # noqa: S311  no secret
            asyncio.get_running_loop().call_later(spread, self._on_news)

    def _lost(self) -> None:
        if not self._closed:
            self._spawn(self._come_back())

    async def _come_back(self) -> None:
        """Connect again, and take the locks again: at once, for others may relieve this process's workers meanwhile."""
        pause = 0.0
        while not self._closed:
            try:
                async with self._alone:
                    if self.session is None or self.session.closed:
                        await self._use(await connect(self._address))
            except Exception as error:  # noqa: BLE001  also a lock that the server still has in the name of the lost session
                pause = min(LONGEST_PAUSE_SECONDS, max(FIRST_PAUSE_SECONDS, 2 * pause))
                _log.warning("not connected, will try again: %s", error)
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  no secret
            else:
                self._on_news()  # notifications in between were lost
                return

    def _spawn(self, body: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(body)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
