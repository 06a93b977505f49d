"""Messages that have come for a flow, and its code that waits for them."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from mainspring.errors import FlowError
from mainspring.flows.loop import FlowFuture

UNREAD_MOST: Final = 10_000
"""Messages that have come and that the code has not received."""


class Mail:
    """What has come and was not received, oldest first, and who waits. What comes early is kept for whoever asks."""

    def __init__(self, unread: tuple[tuple[Any, int], ...] = ()) -> None:
        self.unread: deque[tuple[Any, int]] = deque(unread)
        """The messages with their positions in the stream."""
        self._waiting: list[tuple[tuple[type[Any], ...], FlowFuture]] = []

    @property
    def is_awaited(self) -> bool:
        """Whether the code waits for a message."""
        return any(not future.done() for _, future in self._waiting)

    @property
    def waiting(self) -> list[tuple[tuple[type[Any], ...], FlowFuture]]:
        """What is waited for, by these types, and the futures that do."""
        return [waiting for waiting in self._waiting if not waiting[1].done()]

    def wait(self, types: tuple[type[Any], ...], future: FlowFuture) -> None:
        """Let a future have the next message of one of these types."""
        for place, (message, _) in enumerate(self.unread):
            if isinstance(message, types):
                del self.unread[place]
                future.set_result(message)
                return
        self._waiting.append((types, future))

    def come(self, flow: str, message: Any, position: int) -> None:
        """Give a message to the one that waits for it the longest, or keep it."""
        # A wait that was cancelled has gone.
        self._waiting = [waiting for waiting in self._waiting if not waiting[1].done()]
        for place, (types, future) in enumerate(self._waiting):
            if isinstance(message, types):
                del self._waiting[place]
                future.set_result(message)
                return
        if len(self.unread) >= UNREAD_MOST:
            raise FlowError(
                f"{flow} has {UNREAD_MOST:,} messages that it has not received",
                "Receive them, as in `await receive(…)` in a loop, or do not send so many.",
            )
        self.unread.append((message, position))
