"""The brokers of this package keep the contract; RabbitMQ's and Kafka's tests stand beside theirs."""

from mainspring.brokers.memory import MemoryBroker
from mainspring.brokers.nats import NatsBroker
from mainspring.brokers.port import Broker
from mainspring.brokers.redis import RedisBroker
from mainspring.testing.broker_contract import BrokerContract
from tests.edges.brokers.servers import nats_url, redis_url

STREAMS = {"CONTRACT": ["contract.>"]}
# Half of it is how long a busy machine may let nobody run: whoever renews later has lost its turn.
TAKEOVER_SECONDS = 60.0
# The end of a consumer is waited for so long; one that only seems dead subscribes again.
MORTAL_SECONDS = 1.5


class TestMemoryBroker(BrokerContract):
    vanishes = False  # it lives as long as the process that it is in

    def make_broker(self) -> Broker:
        return MemoryBroker()


class TestNatsBroker(BrokerContract):
    def make_broker(self) -> Broker:
        return NatsBroker(nats_url(), streams=STREAMS, takeover_seconds=TAKEOVER_SECONDS)

    def make_mortal_broker(self) -> Broker:
        return NatsBroker(nats_url(), streams=STREAMS, takeover_seconds=MORTAL_SECONDS)


class TestRedisBroker(BrokerContract):
    def make_broker(self) -> Broker:
        return RedisBroker(redis_url(), takeover_seconds=TAKEOVER_SECONDS)

    def make_mortal_broker(self) -> Broker:
        return RedisBroker(redis_url(), takeover_seconds=MORTAL_SECONDS)
