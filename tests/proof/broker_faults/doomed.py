"""A broker in whose hands a worker dies: at a point that the drill has chosen."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from mainspring.brokers.port import Broker, Delivery, Outgoing, Subscription

Point = Literal["before acknowledging", "after acknowledging", "after publishing"]

# An acknowledgement is not answered: it has left for the broker within this.
LEFT_SECONDS: Final = 0.05


def doom(folder: Path) -> Path:
    """The file that names the point at which the worker shall die next."""
    return folder / "doom"


class DoomedBroker:
    """Passes everything on."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self._broker = broker
        self._doom = doom(folder)

    async def open(self) -> None:
        await self._broker.open()

    async def close(self) -> None:
        await self._broker.close()

    async def subscribe(self, address: str, group: str, prefetch: int) -> Subscription:
        return _DoomedSubscription(await self._broker.subscribe(address, group, prefetch), self)

    async def publish(self, messages: Sequence[Outgoing]) -> list[Exception | None]:
        outcomes = await self._broker.publish(messages)
        if None in outcomes:
            self.reached("after publishing")
        return outcomes

    async def lag(self, address: str, group: str) -> int | None:
        return await self._broker.lag(address, group)

    def reached(self, point: Point) -> None:
        """Die, if it shall be here."""
        if self.is_doomed(point):
            self._doom.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    def is_doomed(self, point: Point) -> bool:
        return self._doom.exists() and self._doom.read_text() == point


class _DoomedSubscription:
    def __init__(self, subscription: Subscription, broker: DoomedBroker) -> None:
        self._subscription = subscription
        self._broker = broker

    async def receive(self, limit: int, wait_seconds: float) -> list[Delivery]:
        return await self._subscription.receive(limit, wait_seconds)

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        self._broker.reached("before acknowledging")
        await self._subscription.acknowledge(deliveries)
        if self._broker.is_doomed("after acknowledging"):
            await asyncio.sleep(LEFT_SECONDS)  # no broker answers an acknowledgement; see there
            self._broker.reached("after acknowledging")

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        await self._subscription.give_back(deliveries)

    async def extend(self, deliveries: Sequence[Delivery]) -> None:
        await self._subscription.extend(deliveries)

    async def close(self) -> None:
        await self._subscription.close()
