"""The watch over authors' code in the event loop: what does not return blocks all that its worker holds.

It stands in a thread of its own, for the event loop is what is blocked. It says what does not return, and ends it if
that is Python that runs; a call into C that never returns cannot be ended, and costs the worker its lease. What blocks
the loop otherwise, as an async handler that does not await, is named by `loop_watch`, and not ended.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from threading import get_ident
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from mainspring.engine.watching.loop_watch import LoopWatch
from mainspring.errors import SlowStepError
from mainspring.logs import logger
from mainspring.port.records import Ref

STEP_SECONDS: Final = 10.0
"""A step, or another call of an author's pure code, that takes longer is reported, and ended where it can be."""
CHECKS: Final = 10
"""How often within that time it is checked whether the same call is still under way."""

TURNS: Final = 100

T = TypeVar("T")

log = logger("mainspring.engine")


class Watched(Protocol):
    """What is called: for a step its instance, and the type of what is taken."""

    @property
    def ref(self) -> Ref | None: ...

    @property
    def type(self) -> str: ...


class Load(Struct, gc=False):
    """The fold of what an instance has recorded, as it is watched like a step."""

    ref: Ref | None
    type: str


class Code(Struct, gc=False):
    """Pure code that belongs to no step, by its name: a route, an upcaster, a projection's function."""

    type: str
    ref: Ref | None = None


class _Ended(BaseException):
    """Raised in a call that takes too long. No Exception, so that no `except Exception` of its author keeps it."""


class CodeWatch:
    """Knows which call is under way, by its number.

    No lock: the watch says what it is about to end before it looks whether that is still under way, and a call that
    ends says so before it looks whether it was to be ended. One of them sees the other.

    >>> CodeWatch().call(Code("arithmetic"), divmod, 7, 2)
    (3, 1)
    """

    def __init__(self) -> None:
        self._calls = self._now = 0
        self._what: Watched | None = None
        # The calls that the watch is about to end, has looked at, and has ended.
        self._chosen = self._looked_at = self._ended = 0
        self._watched = 0
        self._over = threading.Event()

    def call(self, what: Watched, function: Callable[..., T], *args: Any) -> T:
        """Call an author's code. Raise a SlowStepError where a step had to be ended, and a TimeoutError for the rest.

        What is called within another call ends with that, and other threads than the event loop's are not watched.
        """
        if self._now or get_ident() != self._watched:
            return function(*args)
        self._calls = number = self._calls + 1
        self._what, self._now = what, number
        try:
            try:
                result = function(*args)
            finally:
                self._now = 0
                if self._chosen == number:
                    self._await(number)
        except BaseException as error:
            if self._ended != number or isinstance(error, KeyboardInterrupt):
                raise
            raise _slow(what) from None
        if self._ended == number:  # the code that was called swallowed it
            raise _slow(what)
        return result

    def _await(self, number: int) -> None:
        """Let what is to be raised be raised here, at the turn of a loop, and never later."""
        while self._looked_at != number:
            time.sleep(0)  # lets the watch run
        for _ in range(TURNS):
            pass

    def start(self, loop: LoopWatch | None = None) -> None:
        """Watch the calls of the calling thread, and its event loop."""
        watched, over = get_ident(), threading.Event()
        self._watched, self._over = watched, over  # of this start's own: an earlier one's thread may not have ended yet
        threading.Thread(target=lambda: self._watch(watched, over, loop), name="mainspring-watch", daemon=True).start()

    def stop(self) -> None:
        """Watch no more."""
        self._watched = 0
        self._over.set()

    def _watch(self, watched: int, over: threading.Event, loop: LoopWatch | None) -> None:
        seen = times = 0
        while not over.wait(STEP_SECONDS / CHECKS):
            now, what = self._now, self._what
            times = times + 1 if now and now == seen else 0
            seen = now
            if now and what is not None and times and times % CHECKS == 0:
                self._end(now, what, watched, first=times == CHECKS)
            if loop is not None and not _is_debugged(watched):
                loop.look(watched, CHECKS, STEP_SECONDS, called=now > 0)

    def _end(self, number: int, what: Watched, watched: int, *, first: bool) -> None:
        if first:
            does = "goes on" if what.ref is None else "is being decided on"
            log.error("%s %s for %.0f s; nothing else goes on in this worker", _named(what), does, STEP_SECONDS)
        if _is_debugged(watched):
            return
        self._looked_at, self._chosen = 0, number
        if self._now == number:
            self._ended = number
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(watched), ctypes.py_object(_Ended))
        self._looked_at = number


def _named(what: Watched) -> str:
    return what.type if what.ref is None else f"{what.ref}: {what.type}"


def _slow(what: Watched) -> Exception:
    if what.ref is None:
        return TimeoutError(f"{what.type} had not returned after {STEP_SECONDS:g} s, and was ended")
    return SlowStepError(str(what.ref), what.type, STEP_SECONDS)


def _is_debugged(watched: int) -> bool:
    """Return True if a debugger steps through a thread, which takes its time."""
    frame = sys._current_frames().get(watched)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  there is no other way
    while frame is not None:
        if frame.f_trace is not None:
            return True
        frame = frame.f_back
    return False
