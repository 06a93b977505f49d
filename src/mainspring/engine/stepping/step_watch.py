"""The watch over steps: a decide or an evolve that does not return blocks all that its worker holds.

It stands in a thread of its own, for the event loop is what is blocked. It says which instance it is, and ends the
step if that is Python that runs; a call into C that never returns cannot be ended, and costs the worker its lease.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from mainspring.errors import SlowStepError
from mainspring.logs import logger
from mainspring.port.records import Ref

STEP_SECONDS: Final = 10.0
"""A step that takes longer is reported, and ended where it can be."""
CHECKS: Final = 10
"""How often within that time it is checked whether the same step is still under way."""

TURNS: Final = 100

T = TypeVar("T")

log = logger("mainspring.engine")


class Watched(Protocol):
    """What a step is for: its instance, and the type of what is taken."""

    ref: Ref
    type: str


class _Ended(BaseException):
    """Raised in a step that takes too long. No Exception, so that no `except Exception` of its author keeps it."""


class StepWatch:
    """Knows which step is under way.

    No lock: the watch says what it is about to end before it looks whether that is still under way, and a step that
    ends says so before it looks whether it was to be ended. One of them sees the other.

    >>> from types import SimpleNamespace
    >>> StepWatch().call(SimpleNamespace(ref=Ref("Orders", "o-1"), type="PlaceOrder"), divmod, 7, 2)
    (3, 1)
    """

    def __init__(self) -> None:
        self._now: Watched | None = None
        # What the watch is about to end, has looked at, and has ended.
        self._chosen: Watched | None = None
        self._looked_at: Watched | None = None
        self._ended: Watched | None = None
        self._over = threading.Event()

    def call(self, taken: Watched, function: Callable[..., T], *args: Any) -> T:
        """Call what takes an input, and raise a SlowStepError where it had to be ended."""
        if self._chosen is taken:  # it is taken once more, after a conflict
            self._chosen = self._ended = None
        self._now = taken
        try:
            try:
                result = function(*args)
            finally:
                self._now = None
                if self._chosen is taken:
                    self._await(taken)
        except BaseException as error:
            if self._ended is not taken or isinstance(error, KeyboardInterrupt):
                raise
            raise SlowStepError(str(taken.ref), taken.type, STEP_SECONDS) from None
        if self._ended is taken:  # the code that was called swallowed it
            raise SlowStepError(str(taken.ref), taken.type, STEP_SECONDS)
        return result

    def _await(self, taken: Watched) -> None:
        """Let what is to be raised be raised here, at the turn of a loop, and never later."""
        while self._looked_at is not taken:
            time.sleep(0)  # lets the watch run
        for _ in range(TURNS):
            pass

    def start(self) -> None:
        """Watch the steps of the calling thread."""
        watched, over = threading.get_ident(), threading.Event()
        self._over = over  # of this start's own: the thread of an earlier one may not have ended yet
        threading.Thread(target=lambda: self._watch(watched, over), name="mainspring-watch", daemon=True).start()

    def stop(self) -> None:
        """Watch no more."""
        self._over.set()

    def _watch(self, watched: int, over: threading.Event) -> None:
        seen, times = None, 0
        while not over.wait(STEP_SECONDS / CHECKS):
            now = self._now
            times = times + 1 if now is not None and now is seen else 0
            seen = now
            if now is not None and times and times % CHECKS == 0:
                self._end(now, watched, first=times == CHECKS)

    def _end(self, taken: Watched, watched: int, *, first: bool) -> None:
        if first:
            what = "%s: %s is being decided on for %.0f s; nothing else goes on in this worker"
            log.error(what, taken.ref, taken.type, STEP_SECONDS)
        if _is_debugged(watched):
            return
        self._looked_at, self._chosen = None, taken
        if self._now is taken:
            self._ended = taken
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(watched), ctypes.py_object(_Ended))
        self._looked_at = taken


def _is_debugged(watched: int) -> bool:
    """Return True if a debugger steps through a thread, which takes its time."""
    frame = sys._current_frames().get(watched)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  there is no other way
    while frame is not None:
        if frame.f_trace is not None:
            return True
        frame = frame.f_back
    return False
