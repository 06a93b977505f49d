"""Publishing to several addresses at once: one that is in trouble keeps its own messages waiting, and no others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from mainspring.brokers.port import Outgoing

Publish = Callable[[str, list[Outgoing]], Awaitable[list[Exception | None]]]


async def published_by_address(messages: Sequence[Outgoing], publish: Publish) -> list[Exception | None]:
    """Return the outcomes in the order of the messages, which `publish` was given address by address.

    >>> async def publish(address: str, messages: list[Outgoing]) -> list[Exception | None]:
    ...     return [None if address == "orders" else KeyError(address)] * len(messages)
    >>> there = [Outgoing(address, "1", b"{}") for address in ("orders", "other", "orders")]
    >>> asyncio.run(published_by_address(there, publish))
    [None, KeyError('other'), None]
    """
    outcomes: list[Exception | None] = [None] * len(messages)
    by_address: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        by_address.setdefault(message.address, []).append(index)

    async def publish_to(address: str, indexes: list[int]) -> None:
        batch = [messages[index] for index in indexes]
        for index, outcome in zip(indexes, await publish(address, batch), strict=True):
            outcomes[index] = outcome

    await asyncio.gather(*(publish_to(address, indexes) for address, indexes in by_address.items()))
    return outcomes
