"""Planted mistakes at the edges: versions side by side, purging, and brokers."""

# ruff: noqa: SLF001  a mistake is planted in the inside of things
from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from mainspring.brokers.port import Delivery, Outgoing, Subscription
from mainspring.brokers.sink import Sink
from mainspring.brokers.source import BrokerSource
from mainspring.engine.registry import WorkflowEntry
from mainspring.stores.memory import MemoryStore
from tests.proof.simulation.planting import Plants

EDGE_PLANTS: Final = Plants()
plant = EDGE_PLANTS.plant


@plant("an instance is stepped by the newest version that its process knows, whichever it runs under")
def stepped_by_any_version(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(WorkflowEntry, "at", lambda self, _version: self.newest)


@plant("an instance is purged although something of it is still owed")
def purged_although_owed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryStore, "_is_done", lambda _self, _ref: True)


@plant("a broker is told that a message was accepted before it is")
def acknowledged_before_it_is_kept(patch: pytest.MonkeyPatch) -> None:
    async def hasty(self: BrokerSource, subscription: Subscription, deliveries: list[Delivery]) -> None:
        await subscription.acknowledge(deliveries)
        await self._accepted(deliveries)

    patch.setattr(BrokerSource, "_take", hasty)


@plant("a message that a broker delivers again is taken for another one")
def redelivery_taken_anew(patch: pytest.MonkeyPatch) -> None:
    incoming = BrokerSource._incoming

    def anew(self: BrokerSource, delivery: Delivery) -> Any:
        envelope, id = incoming(self, delivery)
        return envelope, f"{id}/{delivery.attempt}"

    patch.setattr(BrokerSource, "_incoming", anew)


@plant("what is published is settled before the broker has confirmed it")
def settled_before_it_is_confirmed(patch: pytest.MonkeyPatch) -> None:
    publish = Sink.publish
    under_way: set[asyncio.Task[None]] = set()

    async def hasty(self: Sink, message: Outgoing) -> None:
        task = asyncio.ensure_future(publish(self, message))
        under_way.add(task)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    patch.setattr(Sink, "publish", hasty)
