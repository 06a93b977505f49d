"""The contract of a broker: few verbs, batch-shaped, outcomes as values.

An adapter is thin: it translates these verbs into its client library's, and decides nothing. What a message means, when
it is acknowledged and what becomes of one that cannot be read is the business of `source.py` and `sink.py`.
`memory.py` is the contract's explanation, `mainspring.testing.broker_contract` holds an adapter to it.

What every broker must keep:

1. *Nothing is lost.* A delivery that was not acknowledged comes again: after `give_back` at once, else when its
   consumer is gone or its time is up. However often it comes, no limit of attempts may let it vanish.
2. *Identity.* A delivery has the same `identity` each time, and no other message ever has it.
3. *Order.* Of the consumers in one group, one at a time gets the deliveries of an address, or each those of partitions
   of its own, with all messages of one key in one partition. A consumer that takes over, or that was given something
   back, gets what was not acknowledged before anything that came behind it.
4. *Bounds.* A subscription never has more deliveries out than its prefetch.
5. *Confirmation.* `publish` returns when the broker has each message as durably as it keeps any, or says why not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

PREFETCH: Final = 500
# How long `receive` waits for a first delivery before it returns without one.
WAIT_SECONDS: Final = 1.0


class Delivery(Struct, frozen=True, gc=False):
    """A message as a broker brought it.

    `identity` is the broker's own name for it: the same at every delivery, and never another's, such as
    `nats:ORDERS/17`. None where the broker has none, as an AMQP queue. `sender_id` is the id that its sender gave it in
    the broker's own way (an AMQP message id, a `Nats-Msg-Id`), if any. Names of headers are in lower case. `attempt`
    counts deliveries from 1, as far as the broker counts them. `token` is the adapter's own.
    """

    body: bytes
    headers: Mapping[str, str]
    identity: str | None
    sender_id: str | None = None
    attempt: int = 1
    token: Any = None


class Outgoing(Struct, frozen=True, gc=False):
    """A message to be published.

    `id` is the same at every attempt, and of this message alone among all that are published to its address: it is
    the broker's deduplication id, where it has any. Messages with the same `key` stay in their order, where the broker
    has partitions.
    """

    address: str
    id: str
    body: bytes
    headers: Mapping[str, str] = {}
    key: str | None = None


class Subscription(Protocol):
    """A place in a group of consumers. One task uses it at a time.

    Any verb may raise when the broker is in trouble. Its user then closes it and subscribes again, after a while.
    """

    async def receive(self, limit: int, wait_seconds: float) -> list[Delivery]:
        """Return the next deliveries in their order, `limit` at most, as soon as there is one; else none in the end.

        A consumer that is not the one whose turn it is, gets none. One that is cancelled while it waits has lost no
        delivery: whatever was on its way comes again.
        """
        ...

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        """Say that these were accepted durably: the broker may forget them. They are the oldest that are out."""
        ...

    async def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """Say that these were not accepted: they come again, in their order, before anything behind them."""
        ...

    async def extend(self, deliveries: Sequence[Delivery]) -> None:
        """Extend the broker's deadline for these. Called every few seconds while they cannot be accepted yet."""
        ...

    async def close(self) -> None:
        """Leave the group, and give back what is out. Never raises: what does not reach the broker, it finds out."""
        ...


class Broker(Protocol):
    """A connection to a broker. Its methods may be used by many tasks.

    >>> from mainspring.brokers.memory import MemoryBroker
    >>> broker: Broker = MemoryBroker()
    """

    async def open(self) -> None:
        """Get ready. It need not connect yet: a broker that is down must not keep a worker from starting."""
        ...

    async def close(self) -> None:
        """Disconnect, after all subscriptions were closed."""
        ...

    async def subscribe(self, address: str, group: str, prefetch: int) -> Subscription:
        """Join the group of consumers that share what comes to an address; connect first, if need be.

        A group that is new begins with the oldest message that the broker still has, unless the adapter was configured
        otherwise.
        """
        ...

    async def publish(self, messages: Sequence[Outgoing]) -> list[Exception | None]:
        """Publish messages, and return for each None once it is confirmed, or why it is not.

        A `DoNotRetryError` says that the same message could never be published, as one that is too large.
        """
        ...

    async def lag(self, address: str, group: str) -> int | None:
        """Return how many messages wait for the group: those not acknowledged. None where that is not known.

        It neither joins the group nor changes it.
        """
        ...
