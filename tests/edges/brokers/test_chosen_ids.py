"""Whatever id a broker's message has, it takes no other message's place."""

import asyncio
from typing import Any

from mainspring import Mainspring
from mainspring.brokers import Brokers
from mainspring.brokers.memory import MemoryBroker
from mainspring.brokers.port import Outgoing
from tests.edges.brokers.orders_and_payments import drained
from tests.engine.test_chosen_ids import Mark, Move, bank


class Naming(MemoryBroker):
    """Has a name of its own for what it brings, and an unlucky one."""

    async def subscribe(self, address: str, group: str, prefetch: int = 500) -> Any:
        subscription: Any = await super().subscribe(address, group, prefetch)
        receive = subscription.receive

        async def named(*given: Any, **named: Any) -> Any:
            return [_named(delivery) for delivery in await receive(*given, **named)]

        subscription.receive = named
        return subscription


def _named(delivery: Any) -> Any:
    return type(delivery)(delivery.body, delivery.headers, "Transfer/t9/3", None, delivery.attempt, delivery.token)


def test_a_broker_may_call_a_message_by_the_id_of_a_command_that_is_about_to_be_sent() -> None:
    async def main() -> None:
        broker, app = Naming(), bank(Mainspring("memory://"))
        brokers = Brokers(app, "bank")
        brokers.add("main", broker)
        brokers.endpoint("marks", "main", "marks")
        brokers.receive("marks", bare_type=Mark)
        async with app:
            await broker.publish([Outgoing("marks", "x", b'{"account":"a"}')])
            await drained(broker, "marks", "bank")
            assert (await app.instance_at("Account/a").stream())[1].message_id == "Transfer/t9/3"
            await (await app.send(Move("t9", "a"))).result()

    asyncio.run(main())
