"""The conformance suite of the brokers' contract: every adapter passes it, ours and those of others.

```
class TestMyBroker(BrokerContract):
    def make_broker(self):
        return MyBroker("my://localhost")
```

pytest finds the rest. One behaviour a test, and its name is the sentence that fails. For failures that show the values,
call `pytest.register_assert_rewrite("mainspring.testing.broker_contract")` before the import. It needs a server that
the tests may fill: each test uses addresses of its own.
"""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, ClassVar, Final
from unittest import SkipTest
from uuid import uuid4

from mainspring.brokers.port import Broker, Delivery, Outgoing, Subscription
from mainspring.errors import BrokerError

__all__ = ["BrokerContract"]

GROUP: Final = "readers"
PREFETCH: Final = 100
PATIENCE_SECONDS: Final = 60.0
LULL_SECONDS: Final = 0.3
LARGE_BYTES: Final = 100_000

Test = Callable[[Any], Awaitable[None]]


def behaviour(test: Test) -> Callable[[Any], None]:
    """Let pytest run a coroutine as a test.

    >>> @behaviour
    ... async def test(suite: object) -> None:
    ...     assert suite
    >>> test("a suite")
    """

    @wraps(test)
    def run(suite: Any) -> None:
        asyncio.run(asyncio.wait_for(test(suite), 3 * PATIENCE_SECONDS))

    return run


class BrokerContract:
    """All the tests. Override `make_broker`; `prepare` where an address must be made; the flags for what it cannot do.

    >>> from mainspring.brokers.memory import MemoryBroker
    >>> class TestMemoryBroker(BrokerContract):
    ...     vanishes = False
    ...     def make_broker(self):
    ...         return MemoryBroker()
    """

    deduplicates: ClassVar[bool] = True
    """Whether a message that is published twice under one id is there once."""
    vanishes: ClassVar[bool] = True
    """Whether closing the broker under a subscription is as if its process were gone: others take over."""
    counts_lag: ClassVar[bool] = True
    """Whether `lag` counts exactly, soon after everything is quiet."""

    def make_broker(self) -> Broker:
        """Return a broker that is not open yet; each that a test makes speaks to the same server."""
        raise NotImplementedError

    def make_mortal_broker(self) -> Broker:
        """Return one whose end is noticed soon, where that is a setting: only the test of such an end waits for it.

        `make_broker` may then return brokers that no stall of a busy machine lets appear dead.
        """
        return self.make_broker()

    async def prepare(self, broker: Broker, address: str) -> None:
        """Make an address, where that does not happen by itself."""

    # ---- what the tests stand on

    @asynccontextmanager
    async def _opened(self, *, mortal: bool = False) -> AsyncGenerator[tuple[Broker, str]]:
        broker = self.make_mortal_broker() if mortal else self.make_broker()
        address = f"contract.{uuid4().hex}"
        await broker.open()
        try:
            await self.prepare(broker, address)
            yield broker, address
        finally:
            await broker.close()

    @asynccontextmanager
    async def _subscribed(
        self, broker: Broker, address: str, group: str = GROUP, prefetch: int = PREFETCH
    ) -> AsyncGenerator[Subscription]:
        subscription = await broker.subscribe(address, group, prefetch)
        try:
            yield subscription
        finally:
            await subscription.close()

    # ---- what is published comes

    @behaviour
    async def test_what_is_published_comes_in_its_order_with_its_bytes_and_headers(self) -> None:
        async with self._opened() as (broker, address), self._subscribed(broker, address) as subscription:
            bodies = [b'{"n":1}', bytes(range(256)), b"x" * LARGE_BYTES]
            await _published(broker, address, *bodies, headers={"ce-type": "PlaceOrder", "ce-subject": "%C3%B6/1"})
            came = await _received(subscription, 3)
            assert [delivery.body for delivery in came] == bodies
            for delivery in came:
                assert {"ce-type": "PlaceOrder", "ce-subject": "%C3%B6/1"}.items() <= dict(delivery.headers).items()

    @behaviour
    async def test_a_message_published_twice_under_one_id_is_there_once(self) -> None:
        if not self.deduplicates:
            raise SkipTest("it does not deduplicate")
        async with self._opened() as (broker, address), self._subscribed(broker, address) as subscription:
            message = Outgoing(address, "m-1", b"1", key="k")
            assert await broker.publish([message]) == [None]
            assert await broker.publish([message, Outgoing(address, "m-2", b"2", key="k")]) == [None, None]
            assert [delivery.body for delivery in await _received(subscription, 2)] == [b"1", b"2"]

    @behaviour
    async def test_the_same_id_at_two_addresses_is_two_messages(self) -> None:
        async with self._opened() as (broker, address):
            other = f"{address}.other"
            await self.prepare(broker, other)
            messages = [Outgoing(address, "m-1", b"1", key="k"), Outgoing(other, "m-1", b"2", key="k")]
            assert await broker.publish(messages) == [None, None]
            for place, body in ((address, b"1"), (other, b"2")):
                async with self._subscribed(broker, place) as subscription:
                    assert [delivery.body for delivery in await _received(subscription, 1)] == [body]

    @behaviour
    async def test_publishing_nothing_is_nothing(self) -> None:
        async with self._opened() as (broker, _):
            assert await broker.publish([]) == []

    @behaviour
    async def test_a_new_group_begins_with_the_oldest_message(self) -> None:
        async with self._opened() as (broker, address):
            async with self._subscribed(broker, address):
                await _published(broker, address, b"1", b"2")
            async with self._subscribed(broker, address) as subscription:
                assert [delivery.body for delivery in await _received(subscription, 2)] == [b"1", b"2"]

    @behaviour
    async def test_receiving_ends_without_a_message_where_there_is_none(self) -> None:
        async with self._opened() as (broker, address), self._subscribed(broker, address) as subscription:
            assert await subscription.receive(10, LULL_SECONDS) == []

    # ---- acknowledged or not

    @behaviour
    async def test_what_is_acknowledged_never_comes_again_and_the_rest_does_in_its_order(self) -> None:
        async with self._opened() as (broker, address):
            await _published(broker, address, b"1", b"2", b"3", b"4")
            async with self._subscribed(broker, address) as subscription:
                came = await _received(subscription, 4)
                await subscription.acknowledge(came[:2])
            async with self._subscribed(broker, address) as subscription:
                again = await _received(subscription, 2)
                assert [delivery.body for delivery in again] == [b"3", b"4"]
                assert [delivery.identity for delivery in again] == [delivery.identity for delivery in came[2:]]
                await subscription.acknowledge(again)
                assert await subscription.receive(10, LULL_SECONDS) == []

    @behaviour
    async def test_a_delivery_has_an_identity_of_its_own_or_none(self) -> None:
        async with self._opened() as (broker, address), self._subscribed(broker, address) as subscription:
            await _published(broker, address, b"1", b"1", b"1")
            identities = [delivery.identity for delivery in await _received(subscription, 3)]
            assert set(identities) == {None} or len({*identities} - {None}) == 3

    @behaviour
    async def test_what_is_given_back_comes_again_before_anything_behind_it(self) -> None:
        async with self._opened() as (broker, address), self._subscribed(broker, address) as subscription:
            await _published(broker, address, b"1", b"2", b"3")
            came = await _received(subscription, 2, limit=2)
            await subscription.give_back(came)
            again = await _received(subscription, 3)
            assert [delivery.body for delivery in again] == [b"1", b"2", b"3"]
            assert [delivery.identity for delivery in again[:2]] == [delivery.identity for delivery in came]

    @behaviour
    async def test_what_is_extended_does_not_come_twice(self) -> None:
        async with self._opened() as (broker, address), self._subscribed(broker, address) as subscription:
            await _published(broker, address, b"1")
            came = await _received(subscription, 1)
            await subscription.extend(came)
            assert await subscription.receive(10, LULL_SECONDS) == []
            await subscription.acknowledge(came)

    # ---- bounds

    @behaviour
    async def test_no_more_is_out_than_its_prefetch_and_no_more_comes_than_asked_for(self) -> None:
        async with self._opened() as (broker, address), self._subscribed(broker, address, prefetch=4) as subscription:
            await _published(broker, address, *(str(n).encode() for n in range(6)))
            first = await _received(subscription, 3, limit=3)
            assert len(await subscription.receive(3, PATIENCE_SECONDS)) == 1
            assert await subscription.receive(3, LULL_SECONDS) == []
            await subscription.acknowledge(first)
            assert [delivery.body for delivery in await _received(subscription, 2)] == [b"4", b"5"]

    @behaviour
    async def test_one_that_is_cancelled_while_it_waits_has_lost_nothing(self) -> None:
        async with self._opened() as (broker, address), self._subscribed(broker, address) as subscription:
            for round in range(5):
                waiting = asyncio.ensure_future(subscription.receive(10, PATIENCE_SECONDS))
                # Another moment each time, both of its wait and of the way of the message: it must hold in all of them.
                await asyncio.sleep(round * 0.02)
                publishing = asyncio.ensure_future(_published(broker, address, str(round).encode()))
                await asyncio.sleep(0.002 * round)  # as above
                waiting.cancel()
                came = await _came_of(waiting)
                await publishing
                came += await _received(subscription, 1) if not came else []
                assert [delivery.body for delivery in came] == [str(round).encode()]
                await subscription.acknowledge(came)

    # ---- groups

    @behaviour
    async def test_every_group_gets_everything(self) -> None:
        async with self._opened() as (broker, address):
            for group in ("one", "other"):
                async with self._subscribed(broker, address, group):
                    pass
            await _published(broker, address, b"1", b"2")
            for group in ("one", "other"):
                async with self._subscribed(broker, address, group) as subscription:
                    assert [delivery.body for delivery in await _received(subscription, 2)] == [b"1", b"2"]

    @behaviour
    async def test_of_one_key_one_consumer_of_a_group_at_a_time_gets_everything(self) -> None:
        async with self._opened() as (broker, address):
            subscribed = self._subscribed(broker, address), self._subscribed(broker, address)
            async with subscribed[0] as first, subscribed[1] as second:
                await _published(broker, address, b"1", b"2", b"3", b"4")
                holder, standby, came = await _holder_of_two(first, second)
                assert [delivery.body for delivery in came] == [b"1", b"2"]
                assert await standby.receive(2, LULL_SECONDS) == []
                await holder.acknowledge(came[:1])
                await holder.close()
                again = await _received(standby, 3)
                assert [delivery.body for delivery in again] == [b"2", b"3", b"4"]

    @behaviour
    async def test_a_consumer_that_is_gone_is_followed_by_another_that_begins_with_what_it_left(self) -> None:
        if not self.vanishes:
            raise SkipTest("it cannot vanish")
        async with self._opened(mortal=True) as (broker, address):
            lost = self.make_mortal_broker()
            await lost.open()
            await _published(broker, address, b"1", b"2", b"3")
            await _taken(lost, address, 2, acknowledged=1)
            await lost.close()
            await _published(broker, address, b"4")
            subscription, again = await _taken(broker, address, 3)
            assert [delivery.body for delivery in again] == [b"2", b"3", b"4"]
            await subscription.close()

    # ---- lag

    @behaviour
    async def test_the_lag_counts_what_is_not_acknowledged(self) -> None:
        if not self.counts_lag:
            raise SkipTest("it does not count its lag")
        async with self._opened() as (broker, address):
            async with self._subscribed(broker, address) as subscription:
                await _published(broker, address, b"1", b"2", b"3")
                await _until_lag(broker, address, 3)
                came = await _received(subscription, 2, limit=2)
                await subscription.acknowledge(came)
                await _until_lag(broker, address, 1)
            await _until_lag(broker, address, 1)


async def _published(broker: Broker, address: str, *bodies: bytes, headers: dict[str, str] | None = None) -> None:
    messages = [Outgoing(address, f"m-{uuid4().hex}", body, headers or {}, key="k") for body in bodies]
    assert await broker.publish(messages) == [None] * len(messages)


async def _received(subscription: Subscription, count: int, limit: int = PREFETCH) -> list[Delivery]:
    """Receive until there are so many."""
    came: list[Delivery] = []
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_SECONDS
    while len(came) < count and loop.time() < deadline:
        came += await subscription.receive(min(limit, count - len(came)), 1.0)
    assert len(came) == count
    return came


async def _taken(
    broker: Broker, address: str, count: int, acknowledged: int = 0
) -> tuple[Subscription, list[Delivery]]:
    """Subscribe, receive so many, and acknowledge some.

    One that seems dead, starved of CPU time, subscribes again, as a source does.
    """
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while True:
        subscription = await broker.subscribe(address, GROUP, PREFETCH)
        try:
            came = await _received(subscription, count, limit=count)
            await subscription.acknowledge(came[:acknowledged])
        except BrokerError:
            await subscription.close()
            if asyncio.get_running_loop().time() > deadline:
                raise
        else:
            return subscription, came


async def _holder_of_two(
    first: Subscription, second: Subscription
) -> tuple[Subscription, Subscription, list[Delivery]]:
    """Receive from both until one of them has two; return it, the other, which has nothing, and what came."""
    ones: list[Delivery] = []
    others: list[Delivery] = []
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while max(len(ones), len(others)) < 2 and asyncio.get_running_loop().time() < deadline:
        news = await asyncio.gather(
            first.receive(2 - len(ones), LULL_SECONDS), second.receive(2 - len(others), LULL_SECONDS)
        )
        ones, others = ones + news[0], others + news[1]
    assert not (ones and others)
    return (first, second, ones) if ones else (second, first, others)


async def _came_of(receiving: asyncio.Future[list[Delivery]]) -> list[Delivery]:
    try:
        return await receiving
    except asyncio.CancelledError:
        return []


async def _until_lag(broker: Broker, address: str, expected: int) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_SECONDS
    while (lag := await broker.lag(address, GROUP)) != expected and loop.time() < deadline:  # noqa: ASYNC110  it is asked
        await asyncio.sleep(0.01)
    assert lag == expected
