"""Calls of plain functions that were given up and still run: a thread cannot be killed.

Each keeps its thread, and another takes that thread's place, so that other handlers continue. That has a bound: where
so many calls hang, handlers that have at least an even share of them are called no more until some return.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from mainspring.logs import logger

HUNG_CALLS: Final = 128
"""How many calls may hang in a worker before the handlers that are to blame are held back."""
SAID_EVERY_SECONDS: Final = 60.0

log = logger("mainspring.engine")


class Hung:
    """The calls that hang, by the names of their handlers.

    >>> hung = Hung(lambda: 0)
    >>> hung.count("charge"), hung.holds_back("charge")
    (0, False)
    """

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._since_us: dict[str, dict[Future[Any], int]] = {}
        self._held_back: set[str] = set()
        self._said_us: dict[tuple[str, str], int] = {}
        self.quiet = False
        """Whether nothing is logged: a stop gives up what runs in any case."""
        self._heard_by: Callable[[], None] | None = None

    def subscribe(self, hear: Callable[[], None]) -> None:
        """Set the callback for one more hung call, or one that returned: the engine that runs now."""
        self._heard_by = hear

    def names(self) -> list[str]:
        """Return the handlers of which calls hang."""
        return sorted(self._since_us)

    def count(self, name: str) -> int:
        """Return how many calls of a handler hang."""
        return len(self._since_us.get(name, ()))

    def since_us(self, name: str) -> int:
        """Return when the first of those calls that hang was given up."""
        return min(self._since_us[name].values())

    def holds_back(self, name: str) -> bool:
        """Return True if a handler is not to be called for now."""
        return name in self._held_back

    def add(self, name: str, call: Future[Any]) -> None:
        """Note that a call was given up and still runs."""
        self._since_us.setdefault(name, {})[call] = self._now_us()
        loop = asyncio.get_running_loop()
        call.add_done_callback(lambda call: _tell(loop, lambda: self._returned(name, call)))
        self._say(
            logging.WARNING,
            name,
            "%s goes on though its time is up or its instance was cancelled, and a plain function cannot be ended: "
            "%d of its calls hang, with a thread each; give what it calls a time limit of its own",
        )
        self._changed()

    def _returned(self, name: str, call: Future[Any]) -> None:
        del self._since_us[name][call]
        if not self._since_us[name]:
            del self._since_us[name]
        self._changed()

    def _changed(self) -> None:
        before, self._held_back = self._held_back, self._to_blame()
        for name in sorted(self._held_back - before):
            self._say(
                logging.ERROR,
                name,
                "%s is held back, and others are not: %d of its calls hang, with a thread each; it goes on when some "
                "return, or when this worker is started anew",
            )
        for name in sorted(before - self._held_back):
            self._say(logging.WARNING, name, "%s is not held back any more: %d of its calls hang")
        if self._heard_by is not None:
            self._heard_by()

    def _to_blame(self) -> set[str]:
        counts = {name: len(calls) for name, calls in self._since_us.items()}
        if sum(counts.values()) < HUNG_CALLS:
            return set()
        # A handler with one by bad luck does not wait for one with a hundred.
        return {name for name, count in counts.items() if count * len(counts) >= HUNG_CALLS}

    def _say(self, level: int, name: str, text: str) -> None:
        """Log something about a handler, once a minute: thousands of its calls may come and go."""
        now_us, said_us = self._now_us(), self._said_us.get((name, text))
        if self.quiet or (said_us is not None and 0 <= now_us - said_us < SAID_EVERY_SECONDS * 1e6):
            return
        self._said_us[name, text] = now_us
        log.log(level, text, name, self.count(name))


def _tell(loop: asyncio.AbstractEventLoop, hear: Callable[[], None]) -> None:
    """Notify a loop from a thread; it may be closed by then, with everything that waited for it."""
    try:
        loop.call_soon_threadsafe(hear)
    except RuntimeError:
        log.debug("a call returned after its worker had ended")
