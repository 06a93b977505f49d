"""NATS: streams that could not be declared when it was connected are declared later."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from mainspring.brokers.nats import NatsBroker
from mainspring.brokers.port import Outgoing
from tests.edges.brokers.servers import nats_url


def test_a_cluster_that_has_no_leader_yet_is_asked_again_for_the_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        name = f"LATE{uuid4().hex}"
        broker = NatsBroker(nats_url(), streams={name: [f"{name}.>"]})
        declare = broker._declare  # noqa: SLF001  where the fault is

        async def no_leader(_: Any) -> None:
            monkeypatch.setattr(broker, "_declare", declare)
            raise TimeoutError

        monkeypatch.setattr(broker, "_declare", no_leader)
        with pytest.raises(TimeoutError):
            await broker.publish([Outgoing(f"{name}.orders", "m-1", b"{}")])
        assert await broker.publish([Outgoing(f"{name}.orders", "m-1", b"{}")]) == [None]
        await broker.close()

    asyncio.run(main())
