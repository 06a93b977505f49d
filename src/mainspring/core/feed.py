"""An event as a projection sees it: with the instance that it belongs to, and its place among those of all."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from mainspring.core.events import Received, StreamEvent


class FeedEntry(Struct, frozen=True):
    """One event of the feed: its `position` there, and its `stream_position` in the stream of its instance.

    >>> from datetime import UTC
    >>> from mainspring.core.events import Received
    >>> entry = FeedEntry(7, "Orders", "o-1", 2, Received("PlaceOrder"), datetime(2026, 1, 1, tzinfo=UTC))
    >>> entry.input, entry.output
    ('PlaceOrder', None)
    """

    position: int
    workflow: str
    instance: str
    stream_position: int
    event: StreamEvent[Any, Any]
    time: datetime
    message_id: str | None = None
    actor: str | None = None

    # There is no `message`: what one instance sends to another stands in the streams of both, and would count twice.

    @property
    def input(self) -> Any:
        """The message that this instance took; None where the event is none of an input, or it was not taken.

        What came after the end, what the workflow refused and what an operator skipped is recorded outside the fold,
        and so outside yours.
        """
        return self.event.message if isinstance(self.event, Received) else None

    @property
    def output(self) -> Any:
        """The message that this instance sent, published, replied or scheduled; None where it did none of these.

        An output that was corrected and sent again is still the same output.
        """
        given = self.event.direction == "output" and self.event.folded
        return getattr(self.event, "message", None) if given else None
