"""Moments in which a busy machine does not let a process run."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Event, Thread
from time import monotonic
from typing import Any, Final, Self

from mainspring.errors import BrokerError

_LOOK_SECONDS: Final = 0.05
_ATTEMPTS: Final = 5


class Stalls:
    """Measures for how long, at most, this process was not carried out."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._over = Event()
        self._thread = Thread(target=self._measure, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _measure(self) -> None:
        before = monotonic()
        while not self._over.wait(_LOOK_SECONDS):
            self._note(monotonic() - before)
            before = monotonic()
        self._note(monotonic() - before)

    def _note(self, seconds: float) -> None:
        self.longest = max(self.longest, seconds)


def again_if_stalled(test: Callable[[Any], None], seconds: float) -> Callable[[Any], None]:
    """Let a test that failed begin anew if the process was stalled for so long meanwhile, and only then.

    For those who have to show a sign of life to a server within a time that cannot be long.
    """

    @wraps(test)
    def run(suite: Any) -> None:
        for left in reversed(range(_ATTEMPTS)):
            with Stalls() as stalls:
                try:
                    return test(suite)
                except (AssertionError, BrokerError):
                    if not left or stalls.longest < seconds:
                        raise
        return None

    return run
