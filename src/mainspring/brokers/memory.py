"""A broker in memory: what each verb of the contract means, in few lines; and a stand-in for users' own tests."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final

from mainspring.brokers.port import Delivery, Outgoing, Subscription
from mainspring.errors import BrokerError

MESSAGES_KEPT: Final = 1_000_000


class MemoryBroker:
    """A broker for one process. With `down` set, every verb fails, as when a server is away; nothing is lost by that.

    >>> async def main() -> None:
    ...     broker = MemoryBroker()
    ...     print(await broker.publish([Outgoing("orders", "m-1", b"{}"), Outgoing("orders", "m-1", b"{}")]))
    ...     subscription = await broker.subscribe("orders", "shop", prefetch=10)
    ...     print([delivery.identity for delivery in await subscription.receive(10, wait_seconds=1)])
    >>> asyncio.run(main())
    [None, None]
    ['memory:orders/1']
    """

    def __init__(self) -> None:
        self.down = False
        self._logs: dict[str, list[Outgoing]] = {}
        self._known: set[tuple[str, str]] = set()
        self._groups: dict[tuple[str, str], _Group] = {}
        self._news = asyncio.Event()

    async def open(self) -> None:
        """Have nothing to prepare."""

    async def close(self) -> None:
        """Keep all that is kept: a test may open it again."""

    async def subscribe(self, address: str, group: str, prefetch: int) -> Subscription:
        self.check()
        found = self._groups.setdefault((address, group), _Group())
        return _MemorySubscription(self, address, found, prefetch)

    async def publish(self, messages: Sequence[Outgoing]) -> list[Exception | None]:
        self.check()
        for message in messages:
            log = self._logs.setdefault(message.address, [])
            if len(log) >= MESSAGES_KEPT:
                raise BrokerError("memory", f"{message.address} is full", "Use a real broker for so many messages.")
            if (message.address, message.id) not in self._known:
                self._known.add((message.address, message.id))
                log.append(message)
        self.tell()
        return [None] * len(messages)

    async def lag(self, address: str, group: str) -> int | None:
        self.check()
        done = self._groups.get((address, group), _Group()).acknowledged
        return len(self.log(address)) - len(done)

    def log(self, address: str) -> Sequence[Outgoing]:
        """Return all that was ever published to an address, in its order."""
        return self._logs.get(address, ())

    def redeliver(self, address: str, group: str) -> None:
        """Deliver everything once more, as a broker may do that has lost its acknowledgements."""
        self._groups[address, group].acknowledged.clear()
        self.tell()

    def check(self) -> None:
        """Fail if it is down."""
        if self.down:
            raise BrokerError("memory", "is down", "Set `down = False`.")

    def tell(self) -> None:
        """Wake the waiting consumers."""
        self._news.set()
        self._news = asyncio.Event()

    async def changed(self, seconds: float) -> bool:
        """Wait until there may be something new. False: nothing came in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        return True


class _Group:
    """Consumers that share what comes to an address, in the order of their coming: the first has the turn."""

    def __init__(self) -> None:
        self.members: list[_MemorySubscription] = []
        self.acknowledged: set[int] = set()
        self.attempts: Counter[int] = Counter()


class _MemorySubscription:
    def __init__(self, broker: MemoryBroker, address: str, group: _Group, prefetch: int) -> None:
        self._broker = broker
        self._address = address
        self._group = group
        self._prefetch = prefetch
        self._out: set[int] = set()
        group.members.append(self)

    async def receive(self, limit: int, wait_seconds: float) -> list[Delivery]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_seconds
        while True:
            self._broker.check()
            if found := self._next(limit):
                return found
            if not await self._broker.changed(deadline - loop.time()):
                return []

    def _next(self, limit: int) -> list[Delivery]:
        if self._group.members[0] is not self:
            return []
        room = min(limit, self._prefetch - len(self._out))
        taken = self._group.acknowledged | self._out
        log = self._broker.log(self._address)
        free = [position for position in range(1, len(log) + 1) if position not in taken][: max(room, 0)]
        self._out.update(free)
        self._group.attempts.update(free)
        return [self._delivery(position, log[position - 1]) for position in free]

    def _delivery(self, position: int, message: Outgoing) -> Delivery:
        headers = {name.lower(): value for name, value in message.headers.items()}
        identity = f"memory:{self._address}/{position}"
        return Delivery(message.body, headers, identity, None, self._group.attempts[position], position)

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        self._broker.check()
        positions = {delivery.token for delivery in deliveries}
        self._group.acknowledged |= positions & self._out
        self._out -= positions

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        self._broker.check()
        self._out -= {delivery.token for delivery in deliveries}
        self._broker.tell()

    async def extend(self, deliveries: Sequence[Delivery]) -> None:
        self._broker.check()

    async def close(self) -> None:
        self._out.clear()
        if self in self._group.members:
            self._group.members.remove(self)
        self._broker.tell()
