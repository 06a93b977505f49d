"""The app for programs without an event loop: scripts, Flask, Django. The same methods; each waits for its answer."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, InvalidStateError
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from mainspring.app.instance import Instance
from mainspring.app.pauses import Pauses
from mainspring.app.posting import Post
from mainspring.app.projections import ProjectionHandle, Projections
from mainspring.app.schedules import Schedules
from mainspring.app.tasks import Tasks
from mainspring.app.transactions import Transaction
from mainspring.errors import WiringError

if TYPE_CHECKING:
    from mainspring.app.app import Mainspring

T = TypeVar("T")


class Blocking:
    """An object whose async methods can be called without `await`: an app, an instance, a receipt, a projection.

    It is not a second implementation: every call is made on the object itself, in the app's own event loop, which runs
    in a thread of its own.
    """

    def __init__(self, target: Any, loop: EventLoopThread) -> None:
        self._target = target
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if isinstance(value, Projections):
            return BlockingProjections(value, self._loop)
        if isinstance(value, Tasks | Schedules | Pauses):
            return Blocking(value, self._loop)
        if isinstance(value, Post):
            return value.blocking  # it needs no event loop, but the connection's own thread
        return functools.partial(self._call, value) if inspect.ismethod(value) else value

    def __str__(self) -> str:
        return str(self._target)

    def _call(self, method: Any, /, *args: Any, **options: Any) -> Any:
        result = method(*args, **options)
        if inspect.iscoroutine(result):
            result = self._loop.run(result)
        return self._wrapped(result)

    def _wrapped(self, result: Any) -> Any:
        if isinstance(result, Transaction):
            return BlockingTransaction(result, self._loop)
        if isinstance(result, Instance | ProjectionHandle):
            return Blocking(result, self._loop)
        if isinstance(result, list):
            return [self._wrapped(item) for item in cast("list[Any]", result)]
        return result


class BlockingProjections(Blocking):
    """The projections of an app, for programs without an event loop: `shop.projections("orders").get("o-1")`."""

    # Of these alone: what is callable is called by a template of Django that only wants to show it.
    def __call__(self, name: str) -> Blocking:
        """Return a handle on a projection."""
        return self._call(self._target, name)


class BlockingTransaction(Blocking):
    """A transaction for programs without an event loop: `with shop.transaction() as transaction`.

    Its limit holds here too, and its verbs are the same, without `await`.
    """

    def __enter__(self) -> Self:
        self._loop.run(self._target.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._loop.run(self._target.__aexit__(kind, error, trace))


class BlockingApp(Blocking):
    """A running app for programs without an event loop.

    >>> from mainspring import Mainspring
    >>> from mainspring.testing.samples import Count, Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> with app.blocking() as blocking:
    ...     receipts = [blocking.send(Count("c-1")) for _ in range(3)]
    ...     print(receipts[-1].result())
    CountedThrice(counter='c-1')
    """

    def __init__(self, app: Mainspring, *, work: bool = True) -> None:
        super().__init__(app, EventLoopThread())
        self._work = work

    def __enter__(self) -> Self:
        self._loop.start()
        try:
            self._loop.run(self._target.start(work=self._work))
        except BaseException:
            self._loop.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._loop.run(self._target.stop())
        finally:
            self._loop.stop()


class EventLoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._awaited: set[Future[Any]] = set()

    def start(self) -> None:
        """Start the loop."""
        started = threading.Event()

        def turn() -> None:
            self._loop = asyncio.new_event_loop()
            self._loop.call_soon(started.set)
            try:
                self._loop.run_forever()
            finally:
                # Also where a KeyboardInterrupt ended it: a caller must not wait for ever for its answer.
                self._loop.close()
                for answer in list(self._awaited):
                    _never_answered(answer)

        self._thread = threading.Thread(target=turn, name="mainspring-loop", daemon=True)
        self._thread.start()
        started.wait()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the loop and wait for it."""
        if self._loop is None or not self._loop.is_running():
            work.close()
            raise WiringError("This app is not running", "Use it inside `with app.blocking() as …:`.")
        if threading.current_thread() is self._thread:
            work.close()
            raise WiringError(
                "The blocking app was called in its own event loop, which cannot wait for itself",
                "Await the method of the app itself there, or make the handler a plain function.",
            )
        answer = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._awaited.add(answer)
        if self._loop.is_closed():  # it ended just now, and may have missed this one
            _never_answered(answer)
        try:
            return answer.result()
        finally:
            self._awaited.discard(answer)

    def stop(self) -> None:
        """Stop the loop."""
        if self._loop is not None and self._thread is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


def _never_answered(answer: Future[Any]) -> None:
    """Fail callers whose answer will not come. What was answered before stays so."""
    with contextlib.suppress(InvalidStateError):
        answer.set_exception(WiringError("The app's event loop has ended", "Start the app again."))
