"""Kafka's adapter keeps the contract of brokers: on the mock cluster, and on a real one where one is named."""

import os
from collections.abc import Callable
from functools import wraps
from inspect import getmembers, isfunction
from typing import Any

import pytest

pytest.register_assert_rewrite("mainspring.testing.broker_contract")

from aiokafka.admin import (  # noqa: E402  # pyright: ignore[reportMissingTypeStubs]  it has none
    AIOKafkaAdminClient,
    NewTopic,
)

from mainspring.brokers.kafka import KafkaBroker  # noqa: E402  after the asserts are rewritten
from mainspring.brokers.port import Broker  # noqa: E402
from mainspring.testing.broker_contract import BrokerContract  # noqa: E402
from tests.edges.brokers.kafka_mock import KafkaMock, leader_last  # noqa: E402
from tests.support.stalls import again_if_stalled  # noqa: E402

VARIABLE = "MAINSPRING_TEST_KAFKA"
SESSION_SECONDS = 2.0
# The mock lets who asks for news wait to the end of the first, also when there are some. A member hears of another by a
# heartbeat, and the mock drops one that has not joined again one second before its session would be over.
QUICK = {"fetch_max_wait_ms": 20, "heartbeat_interval_ms": 50}


class TestKafkaMock(BrokerContract):
    deduplicates = False  # its consumers do, by the message's id
    mock: KafkaMock

    def make_broker(self) -> Broker:
        return KafkaBroker(f"kafka://{self.mock.servers}", session_seconds=SESSION_SECONDS, consumer=QUICK)

    async def prepare(self, broker: Broker, address: str) -> None:
        self.mock.create(address)


def _with_a_mock_of_its_own(test: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a test that has a mock for itself, and begins anew where this process slept away its session.

    All tests have the same group, and the mock lets those wait who join one that others have just left: until a second
    before the session would be over. So it is a short one.
    """

    @wraps(test)
    def run(suite: Any) -> None:
        suite.mock = KafkaMock()
        try:
            with leader_last():
                test(suite)
        finally:
            suite.mock.close()

    return again_if_stalled(run, SESSION_SECONDS / 2)


for _name, _test in getmembers(BrokerContract, isfunction):
    if _name.startswith("test_"):
        setattr(TestKafkaMock, _name, _with_a_mock_of_its_own(_test))


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"no real Kafka: {VARIABLE} names none, as host:port")
class TestRealKafka(BrokerContract):
    deduplicates = False

    def make_broker(self) -> Broker:
        return KafkaBroker(f"kafka://{os.environ[VARIABLE]}")

    async def prepare(self, broker: Broker, address: str) -> None:
        client: Any = AIOKafkaAdminClient(bootstrap_servers=os.environ[VARIABLE])
        await client.start()
        try:
            await client.create_topics([NewTopic(address, num_partitions=1, replication_factor=1)])
        finally:
            await client.close()
