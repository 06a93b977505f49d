"""Processes for handlers that compute: each makes one call at a time, and is killed when the call has no time left.

    event loop ── a thread of the pool ══ pipe ══ a process
       call ────────▶ takes one ────▶ function and message
       time begins ◀── begun ◀────── both are read, the function is called
       result ◀─────── answer ◀────── result or error

Started anew, not forked: a forked one would inherit the database's connections, and close or use them. A pool of one's
own, because Python's breaks as a whole when one of its processes dies: here only the call that it was making fails.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final

from mainspring.engine.handlers.threads import Threads
from mainspring.errors.base import told

START_SECONDS: Final = 60.0
CLOSE_SECONDS: Final = 2.0
BEGUN: Final = b"begun"  # what is pickled begins with another byte
THREAD_NAME: Final = "mainspring-process"

_SPAWN = multiprocessing.get_context("spawn")


class ProcessPool:
    """A few processes, started as they are needed."""

    def __init__(self, most: int) -> None:
        self._threads = Threads(most, THREAD_NAME)
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._children: set[Child] = set()
        self._closed = False
        # An app that was never stopped: without this the interpreter would wait at its end for a call that hangs.
        atexit.register(self.close)

    async def call(self, function: Callable[[Any], Any], message: Any, begun: Callable[[], None]) -> Any:
        """Let a process call a function. `begun` is called, in a thread, when that begins.

        Cancelling the wait ends the call: its process is killed, and another one is started for the next.
        """
        call = _Call(self, function, message, begun)
        try:
            return await asyncio.wrap_future(self._threads.run(call.make))
        except asyncio.CancelledError:
            call.stop()
            raise

    @property
    def pids(self) -> list[int]:
        """The processes that are there."""
        with self._lock:
            return sorted(child.pid for child in self._children)

    def take(self) -> Child:
        """Return an idle process, the last one that was used: the others may stay idle."""
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.is_alive():
                    return child
                self._children.discard(child)
        child = Child()
        with self._lock:
            if not self._closed:
                self._children.add(child)
                return child
        child.end()
        raise ChildProcessError("the app has stopped")

    def put_back(self, child: Child) -> None:
        """Return it to the pool."""
        with self._lock:
            self._idle.append(child)

    def drop(self, child: Child) -> None:
        """End a process that cannot be used any more."""
        child.end()
        with self._lock:
            self._children.discard(child)

    def close(self, patience_seconds: float = 0.0) -> None:
        """End all processes: those without work by themselves, in so much time, and then whatever is left."""
        atexit.unregister(self.close)
        self._threads.close()
        with self._lock:
            self._closed = True
            idle, children = list(self._idle), list(self._children)
            self._idle.clear()
            self._children.clear()
        deadline = time.monotonic() + patience_seconds
        if patience_seconds:
            for child in idle:
                child.hang_up()
            for child in idle:
                child.wait(max(0.0, deadline - time.monotonic()))
        for child in children:
            child.kill()
        for child in children:
            child.wait(CLOSE_SECONDS)


class _Call:
    """A call, which can be ended from outside as long as it is made."""

    def __init__(
        self, pool: ProcessPool, function: Callable[[Any], Any], message: Any, begun: Callable[[], None]
    ) -> None:
        self._pool = pool
        self._function = function
        self._message = message
        self._begun = begun
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._stopped = False

    def make(self) -> Any:
        """Make it, and wait for its end; in a thread."""
        call = pickle.dumps((self._function, self._message))
        while True:
            child = self._pool.take()
            if not self._hold(child):
                self._pool.put_back(child)
                return None  # its caller has stopped waiting
            try:
                answer = child.answer(call, self._begun)
            except BaseException as error:
                wanted = self._let_go()
                self._pool.drop(child)
                if wanted and isinstance(error, DiedIdleError):
                    continue
                raise
            if self._let_go():
                self._pool.put_back(child)
            else:
                self._pool.drop(child)
            return _result(answer)

    def stop(self) -> None:
        """End it if it is being made; else never begin."""
        with self._lock:
            self._stopped = True
            if self._child is not None:
                self._child.kill()

    def _hold(self, child: Child) -> bool:
        with self._lock:
            self._child = None if self._stopped else child
            return not self._stopped

    def _let_go(self) -> bool:
        """From now on it is not killed. Return True if it has not been."""
        with self._lock:
            self._child = None
            return not self._stopped


class DiedIdleError(ChildProcessError):
    """A process that has made calls ended before it began this one, which another may make: nothing has happened."""


class Child:
    """A process that makes calls, seen from the one that started it."""

    def __init__(self) -> None:
        self._connection, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=serve, args=(theirs,), name=THREAD_NAME)
        self._process.start()
        self._has_served = False
        # Else the pipe would stay open, and silent, when the process has died.
        theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def answer(self, call: bytes, begun: Callable[[], None]) -> bytes:
        """Hand a call over and return the answer, or raise how the process ended."""
        begins = False
        try:
            self._connection.send_bytes(call)
            if not self._connection.poll(START_SECONDS):
                raise ChildProcessError(f"its process did not begin the call within {START_SECONDS:.0f} s")
            answer = self._connection.recv_bytes()
            if answer == BEGUN:
                begins = True
                begun()
                answer = self._connection.recv_bytes()
        except (EOFError, ConnectionError):
            # Its death is not always seen before: a process is there until its last thread is gone.
            kind = DiedIdleError if self._has_served and not begins else ChildProcessError
            raise kind(self._death(begins=begins)) from None
        self._has_served = True
        return answer

    def hang_up(self) -> None:
        """Let it end by itself."""
        self._connection.close()

    def wait(self, seconds: float) -> None:
        """Return when it has ended, or after so long."""
        self._process.join(seconds)

    def kill(self) -> None:
        """End it at once, whatever it does; a caller that waits for its answer gets an error."""
        self._process.kill()

    def end(self) -> None:
        """Kill it and wait for that."""
        self._process.kill()
        self._process.join(CLOSE_SECONDS)
        self._connection.close()

    def _death(self, *, begins: bool) -> str:
        self._process.join(CLOSE_SECONDS)
        code = self._process.exitcode
        by = "for no reason that is known" if code is None else f"with exit code {code}"
        if code is not None and code < 0:
            by = f"by {signal.Signals(-code).name}"
        if begins:
            return f"its process ended {by} in the middle of the call"
        return (
            f"its process ended {by} before the call began: what it says is on standard error. "
            'A script that starts an app does so under `if __name__ == "__main__":`.'
        )


def serve(connection: Connection) -> None:
    """Make calls, one after the other, until the worker closes the connection; in a process of its own."""
    # The worker drains when it is stopped, and ends this one itself. Not ignored, or what is started here would
    # inherit that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stay)
    threading.Thread(target=_end_with_parent, name="mainspring-parent", daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        while True:
            connection.send_bytes(_answered(connection, connection.recv_bytes()))


def _answered(connection: Connection, call: bytes) -> bytes:
    try:
        function, message = pickle.loads(call)  # noqa: S301  from the worker that started this process
        connection.send_bytes(BEGUN)
        return pickle.dumps((function(message), None))
    except BaseException as error:  # noqa: BLE001  a handler may fail in any way
        return _failure(error)


def _stay(*_: object) -> None:
    """Ignore a signal."""


def _end_with_parent() -> None:
    """End with the worker, as its threads do: the result of what runs here is lost from then on."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _failure(error: BaseException) -> bytes:
    """Return an error as the worker can raise it: as it is, or put together anew, or at least its text."""
    if not isinstance(error, Exception) or isinstance(error, StopIteration):
        error = RuntimeError(f"the handler raised {type(error).__name__}")
    error.add_note("".join(traceback.format_exception(error)))
    parts = _Parts(type(error), error.args, vars(error))
    for form in (error, parts, RuntimeError(told(error))):
        with contextlib.suppress(Exception):
            packed = pickle.dumps((None, form))
            pickle.loads(packed)  # noqa: S301  our own
            return packed
    return pickle.dumps((None, RuntimeError("an error that cannot be shown")))


class _Parts:
    """An error in parts: one whose constructor takes other arguments than it keeps cannot be pickled as it is."""

    def __init__(self, cls: type[Exception], arguments: tuple[Any, ...], fields: dict[str, Any]) -> None:
        self.cls = cls
        self.arguments = arguments
        self.fields = fields

    def together(self) -> Exception:
        error = self.cls.__new__(self.cls, *self.arguments)
        error.args = self.arguments
        vars(error).update(self.fields)
        return error


def _result(answer: bytes) -> Any:
    """Return what a handler returned, or raise what it raised."""
    result, error = pickle.loads(answer)  # noqa: S301  from a process that this one started
    if isinstance(error, _Parts):
        error = error.together()
    if error is not None:
        raise error
    return result
