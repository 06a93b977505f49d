"""An event as a projection sees it: with the instance that it belongs to, and its place among those of all."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from mainspring.core.events import StreamEvent


class FeedEntry(Struct, frozen=True):
    """One event of the feed.

    >>> from datetime import UTC
    >>> from mainspring.core.events import Received
    >>> entry = FeedEntry(7, "Orders", "o-1", 2, Received("PlaceOrder"), datetime(2026, 1, 1, tzinfo=UTC))
    >>> entry.message
    'PlaceOrder'
    """

    position: int
    workflow: str
    instance: str
    version: int
    event: StreamEvent[Any, Any]
    time: datetime
    message_id: str | None = None
    actor: str | None = None

    @property
    def message(self) -> Any:
        """The message that was received, sent, published or scheduled; None where the event has none."""
        return getattr(self.event, "message", None)
