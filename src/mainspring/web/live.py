"""Live changes, as server-sent events: one query of the rows for all listeners, and none without listeners.

    rows ──▶ a look every second ──▶ what has changed ──▶ a queue for each listener ──▶ text/event-stream

Rows are truth here too: a listener that is too slow is let go, and comes back with the id of the last event it saw.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, json

from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.app.viewing import event_view, instance_view, stats_view
from mainspring.errors import MainspringError, told
from mainspring.logs import Quoted, logger
from mainspring.port.records import InstanceRow, Ref
from mainspring.port.store import Store
from mainspring.views import Stats
from mainspring.web.problems import Problem, Refusal

LOOK_SECONDS: Final = 1.0
HEARTBEAT_SECONDS: Final = 15.0
LIFE_SECONDS: Final = 3_600.0
"""After which a stream ends, and its client authenticates again."""
STREAMS: Final = 200
QUEUED: Final = 100
EVENTS_AT_ONCE: Final = 500
BACK_SECONDS: Final = 2.0

QUICK_SECONDS: Final = 0.05
"""A client that would wait longer for the figures of the app gets the last ones, while new ones are counted."""
COUNTED_TIMES: Final = 4.0
"""To count takes a fifth of a connection's time at most."""
OLDEST_SECONDS: Final = 120.0

HEARTBEAT: Final = b": still here\n\n"

Name: TypeAlias = Literal["stats", "instance", "events"]
Show: TypeAlias = Callable[[Any], Any]
"""Returns a view with nothing in it that may not be shown."""

Beside: TypeAlias = Callable[[Callable[[Store], Coroutine[Any, Any, "_Look"]]], Awaitable["_Look"]]
"""Asks a question on a connection of its own."""

log = logger("mainspring.web")


def event_text(name: Name, data: Any, id: int | None = None) -> bytes:
    r"""Return an event as it goes over the line.

    >>> event_text("stats", {"inbox": 0}, 7)
    b'id: 7\nevent: stats\ndata: {"inbox":0}\n\n'
    """
    # JSON has no line breaks of its own, so that it is one line of data.
    head = b"" if id is None else b"id: %d\n" % id
    return b"%sevent: %s\ndata: %s\n\n" % (head, name.encode(), json.encode(data))


class Listener:
    """A client that listens: to the app as a whole, or to one instance from a position on."""

    def __init__(self, ref: Ref | None, after: int | None) -> None:
        self.ref = ref
        self.after = after
        self.seen: Any = None
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(QUEUED)
        self._over = False

    def tell(self, text: bytes) -> None:
        """Send something; a client that does not read fast enough is disconnected."""
        if self._queue.full():
            self.end()
        elif not self._over:
            self._queue.put_nowait(text)

    def end(self) -> None:
        """Disconnect it, after what was sent to it."""
        self._over = True
        if not self._queue.full():
            self._queue.put_nowait(None)

    async def heard(self) -> AsyncIterator[bytes]:
        """Yield what is sent, and a heartbeat while there is nothing to send."""
        ends = time.monotonic() + LIFE_SECONDS
        yield b"retry: %d\n\n" % round(BACK_SECONDS * 1_000)
        while time.monotonic() < ends and not (self._over and self._queue.empty()):
            try:
                text = await asyncio.wait_for(self._queue.get(), HEARTBEAT_SECONDS)
            except TimeoutError:
                text = HEARTBEAT
            if text is None:
                return
            yield text


class _Look(Struct):
    """How much there was of everything, when that was asked, and how long it took."""

    stats: Stats
    time: float
    seconds: float


def as_it_is(view: Any) -> Any:
    """Return a view with all that is in it."""
    return view


async def _stats(store: Store) -> Stats:
    return stats_view(await store.stats())


class Live:
    """All clients that listen to an app.

    >>> Live(Mainspring("memory://")).listeners
    0
    """

    def __init__(
        self, app: Mainspring, show: Show = as_it_is, look_seconds: float = LOOK_SECONDS, beside: Beside | None = None
    ) -> None:
        self._app = app
        self._beside = beside
        self._show = show
        self._look_seconds = look_seconds
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[Stats] | None = None
        self._last: _Look | None = None

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._listeners)

    async def stats(self) -> Stats:
        """Return how much there is of everything, at most one interval old; many callers at once share one query.

        To count a million rows takes long. It is done on another connection, then, not more often than it may, and
        callers meanwhile get what was counted last.
        """
        last, age = self._last, 0.0
        if last is not None:
            age = time.monotonic() - last.time
            if age < max(self._look_seconds, COUNTED_TIMES * last.seconds):
                return last.stats
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._ask())
            self._asking.add_done_callback(self._asked)
        if last is not None and last.seconds > QUICK_SECONDS and age < OLDEST_SECONDS:
            return last.stats
        return await asyncio.shield(self._asking)

    async def _ask(self) -> Stats:
        async def counted(count: Callable[[], Awaitable[Stats]]) -> _Look:
            begun = time.monotonic()
            found = await count()
            now = time.monotonic()
            return _Look(found, now, now - begun)

        quick = self._last is not None and self._last.seconds <= QUICK_SECONDS
        if quick or self._beside is None:
            self._last = await counted(self._app.stats)
        else:
            self._last = await self._beside(lambda store: counted(lambda: _stats(store)))
        return self._last.stats

    def _asked(self, asking: asyncio.Task[Stats]) -> None:
        # Where it failed, old figures are no longer served, and the next caller gets the error.
        if asking.cancelled() or asking.exception() is not None:
            self._last = None

    async def listen(self, ref: Ref | None = None, after: int | None = None) -> AsyncIterator[bytes]:
        """Yield events, as long as they are read. `after` is the position that was seen last."""
        listener = self._add(ref, after)
        try:
            async for text in listener.heard():
                yield text
        finally:
            self._listeners.discard(listener)

    def check_room(self) -> None:
        """Refuse one more listener than there may be."""
        if len(self._listeners) >= STREAMS:
            detail = f"{STREAMS} listen already. Come back in a moment."
            raise Refusal(Problem(503, "busy", detail, "TooManyListeners"))

    def close(self) -> None:
        """Disconnect all listeners: the server is about to stop."""
        for listener in list(self._listeners):
            listener.end()

    def _add(self, ref: Ref | None, after: int | None) -> Listener:
        self.check_room()
        listener = Listener(ref, after)
        self._listeners.add(listener)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look_on(), name="mainspring-live")
        return listener

    # ---- looking

    async def _look_on(self) -> None:
        while self._listeners:
            try:
                await self._look()
            except Exception as error:
                # The database is away or too slow, the app has stopped, or whatever else it is: only this task looks on
                # behalf of listeners. They reconnect, and get the error.
                foreseen = isinstance(error, MainspringError | Refusal)
                log.warning("changes are not announced: %s", Quoted(told(error)), exc_info=None if foreseen else error)
                self.close()
                return
            await asyncio.sleep(self._look_seconds)

    async def _look(self) -> None:
        overview = [listener for listener in self._listeners if listener.ref is None]
        if overview:
            stats = await self.stats()
            text = event_text("stats", stats)
            for listener in overview:
                if listener.seen != stats:
                    listener.seen = stats
                    listener.tell(text)
        watched = {listener.ref for listener in self._listeners if listener.ref is not None}
        if watched:
            await self._look_at(sorted(watched, key=str))

    async def _look_at(self, refs: list[Ref]) -> None:
        found = await internals_of(self._app).engine.store.load(refs, 0)
        rows = {ref: loaded.row for ref, loaded in zip(refs, found, strict=True) if loaded is not None}
        behind: dict[tuple[Ref, int], list[Listener]] = {}
        for listener in list(self._listeners):
            row = None if listener.ref is None else rows.get(listener.ref)
            if row is None or listener.seen == row:
                continue
            if listener.after is None:
                listener.after = row.version
            behind.setdefault((listener.ref or refs[0], listener.after), []).append(listener)
        for (ref, after), listeners in behind.items():
            await self._tell(rows[ref], ref, after, listeners)

    async def _tell(self, row: InstanceRow, ref: Ref, after: int, listeners: Iterable[Listener]) -> None:
        events = (
            await internals_of(self._app).engine.store.stream(ref, after, EVENTS_AT_ONCE) if after < row.version else []
        )
        # More may be there than at the look: the next one reports them, and no listener gets anything twice.
        last = events[-1].version if events else after
        texts = [event_text("instance", self._show(instance_view(row)))]
        if events:
            documents = [self._show(event_view(ref, event)) for event in events]
            texts.append(event_text("events", documents, last))
        for listener in listeners:
            listener.after = last
            # Where none came, those that are missing were purged, or their history is not kept: none will come.
            listener.seen = row if last >= row.version or not events else None
            for text in texts:
                listener.tell(text)
