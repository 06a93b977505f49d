"""RabbitMQ's adapter keeps the contract of brokers: at queues, and at an exchange."""

import asyncio
from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("mainspring.testing.broker_contract")

from mainspring.brokers.port import Broker  # noqa: E402  after the asserts are rewritten
from mainspring.brokers.rabbitmq import RabbitBroker, queue_of  # noqa: E402
from mainspring.testing.broker_contract import GROUP, PREFETCH, BrokerContract  # noqa: E402
from tests.edges.brokers.rabbit import channel, rabbit_url  # noqa: E402
from tests.edges.brokers.renamed import RenamedBroker  # noqa: E402

EXCHANGE = "amq.topic"
GROUPS = (GROUP, "one", "other")


class _RabbitContract(BrokerContract):
    deduplicates = False  # its consumers do, by the message's id

    @pytest.fixture(autouse=True)
    def _no_queue_is_left(self) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
        self.queues: set[str] = set()
        yield

        async def delete() -> None:
            async with channel() as opened:
                for queue in self.queues:
                    await opened.queue_delete(queue)

        asyncio.run(delete())


class TestRabbitQueue(_RabbitContract):
    def make_broker(self) -> Broker:
        return RabbitBroker(rabbit_url())

    async def prepare(self, broker: Broker, address: str) -> None:
        self.queues.add(address)

    @pytest.mark.skip("a queue is what its consumers share: another group has another queue, at an exchange")
    def test_every_group_gets_everything(self) -> None: ...


class TestRabbitExchange(_RabbitContract):
    def make_broker(self) -> Broker:
        return RenamedBroker(RabbitBroker(rabbit_url()), lambda address: f"{EXCHANGE}/{address}")

    async def prepare(self, broker: Broker, address: str) -> None:
        # An exchange keeps nothing for a group whose queue is not there yet.
        await (await broker.subscribe(address, GROUP, PREFETCH)).close()
        self.queues |= {queue_of(f"{EXCHANGE}/{address}", group) for group in GROUPS}
