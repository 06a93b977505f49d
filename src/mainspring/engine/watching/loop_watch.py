"""The watch over the event loop: names what blocks it, as a handler that is async and does not await."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mainspring.logs import logger

log = logger("mainspring.engine")


class LoopWatch:
    """Asks the event loop for an answer, again and again, from the watch's thread."""

    def __init__(self, attempts: Callable[[], Iterable[tuple[asyncio.Task[Any], str, int]]]) -> None:
        self._loop = asyncio.get_running_loop()
        # The attempts that run now: tasks with the names of their handlers.
        self._attempts = attempts
        self._answered = True
        self._missed = 0

    def look(self, watched: int, most: int, seconds: float, *, called: bool) -> None:
        """Report a loop that has not answered for so many looks, unless a call is under way that is watched itself."""
        if self._answered:
            self._answered, self._missed = False, 0
            try:
                self._loop.call_soon_threadsafe(self._answer)
            except RuntimeError:
                log.debug("the event loop was closed before its worker had stopped")
        elif not called and self._loop.is_running():  # between two runs of a loop nobody waits for it
            self._missed += 1
            if self._missed == most:
                self._say(watched, seconds)

    def _answer(self) -> None:
        self._answered = True

    def _say(self, watched: int, seconds: float) -> None:
        log.warning(
            "%s has blocked the event loop for %.0f s, at %s: nothing else goes on in this worker, and others take "
            "over what it holds if that lasts. Let it await, or make a plain function of it, which gets a thread",
            self._blocking(),
            seconds,
            _place(watched),
        )

    def _blocking(self) -> str:
        task = asyncio.current_task(self._loop)
        if task is None:
            return "a callback"
        try:
            name = next((name for attempt, name, _ in self._attempts() if attempt is task), None)
        except RuntimeError:  # it goes on just now, and what runs changes
            name = None
        return f"the task {task.get_name()}" if name is None else f"the handler {name}"


def _place(watched: int) -> str:
    """Return where a thread stands: the innermost line."""
    frame = sys._current_frames().get(watched)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  there is no other way
    if frame is None:
        return "an unknown place"
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"
