"""Redis: a turn is neither kept nor lost where what was said of it is not heard."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from mainspring.brokers.port import Outgoing
from mainspring.brokers.redis import RedisBroker
from tests.edges.brokers.servers import redis_url

# Half of it is how long a busy machine may let nobody run: whoever renews later has lost its turn.
TAKEOVER_SECONDS = 3.0


def test_a_renewal_that_does_not_hear_of_its_cancellation_ends_all_the_same() -> None:
    async def main() -> None:
        broker, address = RedisBroker(redis_url(), takeover_seconds=TAKEOVER_SECONDS), f"turn.{uuid4().hex}"
        first: Any = await broker.subscribe(address, "readers", 10)
        await first.receive(1, 0)
        renewing: Any = first._renewing  # noqa: SLF001  whose cancellation is lost
        renewing.cancel = lambda *_: False
        first.abandon()
        del renewing.cancel
        await asyncio.wait({renewing}, timeout=60)
        assert renewing.done()
        await broker.close()

    asyncio.run(main())


def test_one_that_has_the_turn_and_did_not_hear_of_it_reads_and_lets_it_go() -> None:
    async def main() -> None:
        broker, address = RedisBroker(redis_url()), f"turn.{uuid4().hex}"
        client = Redis.from_url(redis_url())
        await broker.publish([Outgoing(address, "m-1", b"1")])
        for reads in (True, False):
            own: Any = await broker.subscribe(address, "readers", 10)
            await client.set(own._turn, own._owner, px=600_000)  # noqa: SLF001  as if it had been cancelled meanwhile
            if reads:
                assert [delivery.body for delivery in await own.receive(1, 0)] == [b"1"]
            await own.close()
            assert await client.get(own._turn) is None  # noqa: SLF001  as above
        await client.aclose()
        await broker.close()

    asyncio.run(main())


def test_entries_whose_answer_was_lost_are_read_again() -> None:
    async def main() -> None:
        broker, address = RedisBroker(redis_url()), f"turn.{uuid4().hex}"
        own: Any = await broker.subscribe(address, "readers", 10)
        assert await own.receive(1, 0) == []
        await broker.publish([Outgoing(address, "m-1", b"1")])
        client = own._client  # noqa: SLF001  whose answer is lost
        own._client = Deaf(client)  # noqa: SLF001  as above
        with pytest.raises(TimeoutError):
            await own.receive(1, 0)
        own._client = client  # noqa: SLF001  as above
        assert [delivery.body for delivery in await own.receive(1, 0)] == [b"1"]
        await broker.close()

    asyncio.run(main())


class Deaf:
    """A client that does what it is told, and hears no answer."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def eval(self, *given: Any) -> Any:
        await self._client.eval(*given)
        raise TimeoutError
