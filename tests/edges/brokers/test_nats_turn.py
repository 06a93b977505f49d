"""NATS: a turn is not let go of because an answer was lost on its way."""

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import nats
import pytest

from mainspring.brokers.nats_turn import Turn
from tests.edges.brokers.servers import nats_url
from tests.support.waiting import until

SECONDS = 0.8


class Deaf:
    """A bucket that does what it is told, and whose next answers do not arrive."""

    def __init__(self, bucket: Any) -> None:
        self._bucket = bucket
        self.lost: list[str] = []
        self.heard: list[str] = []

    def __getattr__(self, name: str) -> Any:
        async def call(*given: Any, **named: Any) -> Any:
            answer = await getattr(self._bucket, name)(*given, **named)
            if name in self.lost:
                self.lost.remove(name)
                raise TimeoutError
            self.heard.append(name)
            return answer

        return call


class Seen:
    """A bucket with one entry that somebody else holds."""

    def __init__(self) -> None:
        self.revision = 1

    async def get(self, _: str) -> Any:
        return SimpleNamespace(value=b"held somebody", revision=self.revision)


def test_a_turn_is_not_taken_from_somebody_who_renews_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("mainspring.brokers.nats_turn._now", lambda: now)

    async def main() -> list[bool]:
        nonlocal now
        bucket: Any = Seen()
        turn, taken = Turn(bucket, "orders", "me", SECONDS), list[bool]()
        for _ in range(5):
            taken.append(await turn.take())
            now += 0.6 * SECONDS
            bucket.revision += 1
        return taken

    assert asyncio.run(main()) == [False] * 5


def test_a_renewal_goes_on_though_neither_it_nor_the_question_after_it_was_answered() -> None:
    async def main() -> None:
        client = await nats.connect(nats_url())
        name = f"turns-{uuid4().hex}"
        bucket: Any = Deaf(await client.jetstream().create_key_value(bucket=name))
        turn = Turn(bucket, "orders", "me", SECONDS)
        assert await turn.take()
        bucket.lost, bucket.heard = ["update", "get"], []
        renewing: Any = turn._renewing  # noqa: SLF001  that it ended is the failure
        await until(lambda: renewing.done() or ("get" in bucket.heard and turn.held))
        assert not renewing.done()
        assert bucket.lost == []
        await turn.release(doubt=False)
        await client.jetstream().delete_key_value(name)
        await client.close()

    asyncio.run(main())
