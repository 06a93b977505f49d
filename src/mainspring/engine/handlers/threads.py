"""Threads for functions that block."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Any, Final

THREAD_NAME: Final = "mainspring-handler"


class Call(Future[Any]):
    """A function that a thread is to call, for a handler of that name.

    `left`: its caller has stopped waiting, and its thread ends with it.
    """

    def __init__(self, function: Callable[[], Any], name: str) -> None:
        super().__init__()
        self.function = function
        self.name = name
        self.left = False


class Threads:
    """A few daemon threads for functions that block, started as they are needed.

    Daemons, because the interpreter waits at its end for the threads of a ThreadPoolExecutor: one handler that hangs
    would keep the whole process from exiting.
    """

    def __init__(self, most: int, name: str = THREAD_NAME, now_us: Callable[[], int] = lambda: 0) -> None:
        self._most = most
        self._name = name
        self._lock = threading.Lock()
        self._numbers = count()
        # Threads and calls that a caller waits for: a call beyond the threads needs one more.
        self._started = self._open = 0
        self._now_us = now_us
        # Since when no thread has become free for those that wait, if any do.
        self.taken_since_us: int | None = None
        self._running: set[Call] = set()
        self._calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()

    def run(self, function: Callable[[], Any], name: str = "") -> Call:
        """Let a thread call a function, as soon as one is free."""
        call = Call(function, name)
        self._calls.put(call)
        with self._lock:
            self._open += 1
            self._start()
            if self._open > self._started and self.taken_since_us is None:
                self.taken_since_us = self._now_us()
        return call

    def holders(self) -> dict[str, int]:
        """Return which handlers have how many threads, the one with most of them first."""
        return dict(Counter(call.name for call in self._running.copy() if not call.left).most_common())

    @property
    def waiting(self) -> int:
        """How many calls wait for a thread."""
        return max(0, self._open - self._started)

    def leave(self, call: Call) -> bool:
        """Wait for a call no longer. True: it still runs, and another thread takes the place of its own."""
        if call.cancel():
            return False
        with self._lock:
            if call.done() or call.left:
                return False
            call.left = True
            self._started -= 1
            self._open -= 1
            self._start()
            self._one_came_free()
        return True

    def close(self) -> None:
        """Cancel what has not begun, and let each thread end when it is free."""
        try:
            while call := self._calls.get_nowait():
                call.cancel()
        except queue.Empty:
            pass
        for _ in range(self._started):
            self._calls.put(None)

    def _start(self) -> None:
        if self._open > self._started and self._started < self._most:
            name = f"{self._name}_{next(self._numbers)}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
            self._started += 1

    def _one_came_free(self) -> None:
        self.taken_since_us = self._now_us() if self._open > self._started else None

    def _work(self) -> None:
        while call := self._calls.get():
            self._running.add(call)
            _settle(call)
            self._running.discard(call)
            with self._lock:
                if call.left:
                    return
                self._open -= 1
                if self.taken_since_us is not None:
                    self._one_came_free()
            # Else the last call's message and result would be kept alive until the next one.
            del call


def _settle(call: Call) -> None:
    if not call.set_running_or_notify_cancel():
        return
    try:
        result = call.function()
    except StopIteration as error:
        call.set_exception(_as_error(error))
    except Exception as error:  # noqa: BLE001  a handler may fail in any way
        call.set_exception(error)
    except BaseException as error:  # noqa: BLE001  sys.exit() in a handler must not end the thread
        call.set_exception(_as_error(error))
    else:
        call.set_result(result)


def _as_error(error: BaseException) -> RuntimeError:
    """Return an error that an await can raise: these would end the event loop, or cannot be raised there at all."""
    wrapped = RuntimeError(f"the handler raised {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped
