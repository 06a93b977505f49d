"""A broker whose addresses are others than those that are asked for: so that tests do not meet at one server."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from mainspring.brokers.port import Broker, Outgoing, Subscription


class RenamedBroker:
    """Passes everything on, under other addresses."""

    def __init__(self, broker: Broker, rename: Callable[[str], str]) -> None:
        self._broker = broker
        self._rename = rename

    async def open(self) -> None:
        await self._broker.open()

    async def close(self) -> None:
        await self._broker.close()

    async def subscribe(self, address: str, group: str, prefetch: int) -> Subscription:
        return await self._broker.subscribe(self._rename(address), group, prefetch)

    async def publish(self, messages: Sequence[Outgoing]) -> list[Exception | None]:
        return await self._broker.publish([replace(each, address=self._rename(each.address)) for each in messages])

    async def lag(self, address: str, group: str) -> int | None:
        return await self._broker.lag(self._rename(address), group)
