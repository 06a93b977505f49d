"""Between the event loop and the threads: jobs go one way through queues, answers come back once per transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

import apsw

from mainspring.logs import logger
from mainspring.stores.sqlite.place import Place

T = TypeVar("T")

_log = logger(__name__)


class Thread(Protocol):
    """What is needed of a thread."""

    def start(self) -> None: ...

    def join(self) -> None: ...


class ThreadFactory(Protocol):
    """Makes threads; `threading.Thread` is one."""

    def __call__(self, *, target: Callable[[], None], name: str, daemon: bool) -> Thread: ...


class Answer(Generic[T]):
    """A future of the event loop that another thread will answer."""

    __slots__ = ("_error", "_value", "future", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self.loop.create_future()
        self._value: T | None = None
        self._error: BaseException | None = None

    def keep(self, value: T | None, error: BaseException | None = None) -> None:
        """Keep the answer until it is delivered. To be called in the thread."""
        self._value, self._error = value, error

    def resolve(self) -> None:
        """Hand over what was kept. To be called in the event loop. A caller that stopped waiting gets nothing."""
        if self.future.done():
            return
        if self._error is not None:
            self.future.set_exception(self._error)
        else:
            self.future.set_result(self._value)  # pyright: ignore[reportArgumentType]  kept without an error, it is a T


def deliver(answers: Iterable[Answer[Any]], and_then: Callable[[], None] | None = None) -> None:
    """Wake the event loop once for all these answers; mostly there is one loop, but nothing depends on that."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Answer[Any]]] = {}
    for answer in answers:
        by_loop.setdefault(answer.loop, []).append(answer)

    def resolve(answers: list[Answer[Any]]) -> None:
        for answer in answers:
            answer.resolve()
        if and_then is not None:
            and_then()

    for loop, own in by_loop.items():
        try:
            loop.call_soon_threadsafe(resolve, own)
        except RuntimeError:  # the loop was closed: no caller waits there any more
            continue


def close(connection: apsw.Connection | None, place: Place) -> None:
    """Close a thread's connection at its end. A caller that waits for that end is woken, whatever SQLite says."""
    try:
        if connection is not None:
            connection.close()
    except apsw.Error as error:
        _log.warning("%s: a connection could not be closed: %s", place, error)


class Read(Answer[T]):
    """A question for a reader thread."""

    __slots__ = ("ask",)

    def __init__(self, ask: Callable[[apsw.Connection], T]) -> None:
        super().__init__()
        self.ask = ask


class Readers:
    """A few threads that read, each with a connection of its own, started when they are needed."""

    def __init__(self, place: Place, threads: ThreadFactory, most: int = 2) -> None:
        self._place = place
        self._threads = threads
        self._most = most
        self._queue: SimpleQueue[Read[Any] | None] = SimpleQueue()
        self._started: list[tuple[Thread, Answer[None]]] = []
        self._under_way = 0

    async def read(self, ask: Callable[[apsw.Connection], T]) -> T:
        """Let a thread ask the database, and return what it says."""
        read = Read(ask)
        if self._under_way >= len(self._started) < self._most:
            self._start()
        self._under_way += 1
        try:
            self._queue.put(read)
            return await read.future
        finally:
            self._under_way -= 1

    def _start(self) -> None:
        ended: Answer[None] = Answer()
        name = f"mainspring-sqlite-reader-{len(self._started) + 1}"
        thread = self._threads(target=lambda: self._run(ended), name=name, daemon=True)
        self._started.append((thread, ended))
        thread.start()

    async def close(self) -> None:
        """Answer what was asked, and end."""
        started, self._started = self._started, []
        for _ in started:
            self._queue.put(None)
        for thread, ended in started:
            await ended.future
            thread.join()

    def _run(self, ended: Answer[None]) -> None:
        connection: apsw.Connection | None = None
        try:
            while (read := self._queue.get()) is not None:
                try:
                    if connection is None:
                        connection = self._place.connect(writes=False)
                    self._place.stay()  # or it would read a file that is gone from its place, or two at once
                    read.keep(read.ask(connection))
                except Exception as error:  # noqa: BLE001  whatever it is, it is the asker's
                    read.keep(None, self._place.error(error))
                deliver((read,))
        finally:
            close(connection, self._place)
            deliver((ended,))
