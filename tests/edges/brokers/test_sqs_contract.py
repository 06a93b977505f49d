"""SQS's adapter keeps the contract of brokers: at moto's server, and in AWS where a region is named."""

import asyncio
import os

import pytest

pytest.register_assert_rewrite("mainspring.testing.broker_contract")

from mainspring.brokers.port import Broker  # noqa: E402  after the asserts are rewritten
from mainspring.brokers.sqs import SqsBroker  # noqa: E402
from mainspring.testing.broker_contract import BrokerContract  # noqa: E402
from tests.edges.brokers.queues import VARIABLE, client, create, queue_of, sqs_broker  # noqa: E402
from tests.edges.brokers.renamed import RenamedBroker  # noqa: E402

# The end of a consumer is waited for so long; one that only seems dead subscribes again.
MORTAL_SECONDS = 2


class _SqsContract(BrokerContract):
    @pytest.mark.skip("a queue is what its consumers share: another group has another queue")
    def test_every_group_gets_everything(self) -> None: ...

    @pytest.mark.skip("SQS gives out nothing of a key while something of it is out: see test_sqs.py")
    def test_no_more_is_out_than_its_prefetch_and_no_more_comes_than_asked_for(self) -> None: ...


class TestSqsAtMoto(_SqsContract):
    def make_broker(self) -> Broker:
        return RenamedBroker(sqs_broker(), queue_of)

    def make_mortal_broker(self) -> Broker:
        return RenamedBroker(sqs_broker(takeover_seconds=MORTAL_SECONDS), queue_of)

    async def prepare(self, broker: Broker, address: str) -> None:
        await create(queue_of(address))


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"no real SQS: {VARIABLE} names no region of AWS")
class TestSqsInAws(_SqsContract):
    counts_lag = False  # it counts about right, after a minute

    @pytest.fixture(autouse=True)
    def _no_queue_is_left(self):  # noqa: ANN202  # pyright: ignore[reportUnusedFunction]
        self.urls: list[str] = []
        yield
        for url in self.urls:
            client(os.environ[VARIABLE]).delete_queue(QueueUrl=url)

    def make_broker(self) -> Broker:
        return RenamedBroker(SqsBroker(f"sqs://{os.environ[VARIABLE]}", poll_seconds=1), queue_of)

    def make_mortal_broker(self) -> Broker:
        own = SqsBroker(f"sqs://{os.environ[VARIABLE]}", poll_seconds=1, takeover_seconds=MORTAL_SECONDS)
        return RenamedBroker(own, queue_of)

    async def prepare(self, broker: Broker, address: str) -> None:
        self.urls.append(await create(queue_of(address), os.environ[VARIABLE]))
        await asyncio.sleep(1)  # AWS says that a queue may be used a second after it was made
