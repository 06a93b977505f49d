"""The gate: inputs and calls of handlers pass it, or wait at it while a test steps through."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class Gate:
    """Lets everything through, unless it is closed; then one at a time, in the order of arrival.

    >>> gate, passed = Gate(), []
    >>> gate.closed = True
    >>> gate.when_open(lambda: passed.append("input"))
    >>> list(passed), gate.let_one_through(), passed
    ([], True, ['input'])
    """

    def __init__(self) -> None:
        self.closed = False
        self._held: deque[Callable[[], None]] = deque()
        self.waiting: set[asyncio.Task[object]] = set()
        """The tasks of handlers whose call is held."""

    def when_open(self, go_on: Callable[[], None]) -> None:
        """Continue now, or when the gate lets it."""
        if self.closed:
            self._held.append(go_on)
        else:
            go_on()

    async def passed(self) -> None:
        """Return now, or when the gate lets it."""
        task = asyncio.current_task()
        if not self.closed or task is None:
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._held.append(lambda: None if turn.done() else turn.set_result(None))
        self.waiting.add(task)
        try:
            await turn
        finally:
            self.waiting.discard(task)

    def let_one_through(self) -> bool:
        """Let the first one through. Return whether there was one."""
        if not self._held:
            return False
        self._held.popleft()()
        return True

    def open(self) -> None:
        """Let all through, now and later."""
        self.closed = False
        while self.let_one_through():
            pass
