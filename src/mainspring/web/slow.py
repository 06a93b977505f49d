"""Slow questions: answered beside the event loop, within a time limit, and remembered for a while.

What reads many rows has a thread with an event loop and a connection of its own, so that neither requests nor a worker
in this process wait for it; it reads page by page, so that the database is never held at an old moment. What runs
authors' code has a thread too.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct

from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.handlers.threads import Threads
from mainspring.port.store import Store
from mainspring.web.problems import Problem, Refusal

LIMIT_SECONDS: Final = 30.0
READS_AT_ONCE: Final = 2
THREADS: Final = 6
ANSWERS_KEPT: Final = 64
KEPT_SECONDS: Final = 5.0
# An answer is kept for so many times as long as it took: one that is asked for again and again takes a fifth of a core.
KEPT_TIMES: Final = 4.0
QUICK_SECONDS: Final = 0.5
"""A client that would wait longer for an answer gets the last one, while a new one is made."""
OLDEST_SECONDS: Final = 60.0
"""How long after its time an answer is still given."""

T = TypeVar("T")
Ask: TypeAlias = Callable[[Store], Coroutine[Any, Any, T]]


class _Kept(Struct):
    """An answer, or a question under way with the answer before it."""

    task: asyncio.Task[Any]
    until: float | None = None
    seconds: float = 0.0
    before: asyncio.Task[Any] | None = None

    def is_fresh(self, now: float) -> bool:
        return self.until is None or now < self.until

    def is_usable(self, now: float) -> bool:
        """Return True if it will do while there is none that is fresh."""
        return self.until is not None and self.seconds > QUICK_SECONDS and now < self.until + OLDEST_SECONDS


class Slow:
    """Answers slow questions. The same question at the same time is asked once.

    >>> slow = Slow(Mainspring("memory://"))
    >>> asyncio.run(slow.compute(lambda: 6 * 7))
    42
    """

    def __init__(self, app: Mainspring, limit_seconds: float = LIMIT_SECONDS) -> None:
        self._app = app
        self._limit_seconds = limit_seconds
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._make_threads()

    def _make_threads(self) -> None:
        self._threads = Threads(THREADS, "mainspring-web")
        # Python lets a call be watched by one at a time.
        self._watching = Threads(1, "mainspring-watched")

    def close(self) -> None:
        """Let the threads end, each when it is free. A later start gets others."""
        self._threads.close()
        self._watching.close()
        self._make_threads()

    async def read(self, key: Hashable, ask: Ask[T]) -> T:
        """Return the answer to a question about many rows; one that was given a moment ago will do."""
        kept, now = self._kept.get(key), time.monotonic()
        if kept is None or not kept.is_fresh(now):
            before = kept.task if kept is not None and kept.is_usable(now) else None
            if before is not None and self._is_busy:
                return before.result()
            kept = self._begin(key, ask, before)
        self._kept.move_to_end(key)
        if kept.before is not None and not kept.task.done():
            return kept.before.result()
        # A caller that stops waiting does not stop it: others may wait for the same, or retry.
        return await asyncio.shield(kept.task)

    async def beside(self, ask: Ask[T]) -> T:
        """Return the answer to a question about many rows, asked on a connection of its own, and not remembered."""
        return await self._read(ask)

    async def compute(self, function: Callable[[], T], *, watched: bool = False) -> T:
        """Return what a function returns that needs the processor, or runs authors' code, for longer than a moment.

        One that watches what that code does is `watched`: these run one after the other.
        """
        threads = self._watching if watched else self._threads
        try:
            async with asyncio.timeout(self._limit_seconds):
                return await asyncio.wrap_future(threads.run(function))
        except TimeoutError:
            raise self._too_long() from None

    @property
    def _is_busy(self) -> bool:
        return sum(kept.until is None for kept in self._kept.values()) >= READS_AT_ONCE

    def _begin(self, key: Hashable, ask: Ask[T], before: asyncio.Task[Any] | None) -> _Kept:
        if self._is_busy:
            detail = f"{READS_AT_ONCE} analyses are under way. Ask again in a moment."
            raise Refusal(Problem(503, "busy", detail, "AnalysisBusy"))
        kept = _Kept(asyncio.ensure_future(self._read(ask)), before=before)
        self._kept[key] = kept
        begun = time.monotonic()
        kept.task.add_done_callback(lambda task: self._end(key, kept, task, begun))
        return kept

    def _end(self, key: Hashable, kept: _Kept, task: asyncio.Task[Any], begun: float) -> None:
        now = time.monotonic()
        kept.seconds, kept.before = now - begun, None
        kept.until = now + max(KEPT_SECONDS, KEPT_TIMES * kept.seconds)
        # Its exception is retrieved here in any case: perhaps no caller waits for it.
        if (task.cancelled() or task.exception() is not None) and self._kept.get(key) is kept:
            del self._kept[key]
        while len(self._kept) > ANSWERS_KEPT:
            self._kept.popitem(last=False)

    async def _read(self, ask: Ask[T]) -> T:
        store = internals_of(self._app).another_store()
        try:
            if store is None:
                async with asyncio.timeout(self._limit_seconds):
                    return await ask(internals_of(self._app).engine.store)
            # The time limit is inside, so that the thread is free when it is over.
            reading = self._threads.run(lambda: asyncio.run(_reading(store, ask, self._limit_seconds)))
            return await asyncio.wrap_future(reading)
        except TimeoutError:
            raise self._too_long() from None

    def _too_long(self) -> Refusal:
        detail = (
            f"It takes longer than {self._limit_seconds:g} s. Narrow the question, by time, workflow or sample; "
            "the command line has no such limit."
        )
        return Refusal(Problem(504, "not in time", detail, "AnalysisTimeout"))


async def _reading(store: Store, ask: Ask[T], limit_seconds: float) -> T:
    async with asyncio.timeout(limit_seconds):
        await store.open()
        try:
            return await ask(store)
        finally:
            await store.close()
