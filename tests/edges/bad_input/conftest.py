"""A running desk on each store, shared by the tests of a module: what is refused leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from mainspring import Mainspring
from mainspring.app.blocking import Blocking, EventLoopThread
from mainspring.app.internals import internals_of
from tests.edges.bad_input.misbehaving import Desk, Go, Note, desk
from tests.support.postgres.server import Unavailable, postgres_url
from tests.support.waiting import until

T = TypeVar("T")
STORES = ("memory", "sqlite", "postgres")
SECONDS = 120


class Office:
    """A desk that runs in a thread of its own, so that many tests can use it, async and blocking."""

    def __init__(self, app: Mainspring) -> None:
        self.app = app
        self.loop = EventLoopThread()
        self.blocking: Any = Blocking(app, self.loop)
        self._seen = 0

    def start(self) -> None:
        self.loop.start()
        self.run(self.app.start())
        self.run(self.app.send(Go("neighbour")))
        self.run(self.app.send(Note("nobody"), id="letter"))  # a dead letter
        self.settle()

    def stop(self) -> None:
        try:
            self.run(self.app.stop())
        finally:
            self.loop.stop()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await something; what hangs fails."""

        async def bounded() -> T:
            async with asyncio.timeout(SECONDS):
                return await work

        return self.loop.run(bounded())

    def until(self, condition: Callable[[], Coroutine[Any, Any, bool]]) -> None:
        """Wait until a condition holds."""
        self.run(until(condition))

    def settle(self) -> None:
        """Wait until all that was sent is carried out."""

        async def nothing_left() -> bool:
            return (await self.app.stats()).outbox == 0

        self.until(nothing_left)

    def kept(self) -> Any:
        """All that the store keeps, but for when workers were last seen."""

        async def read() -> Any:
            rows = await self.app.instances(limit=10_000)
            letters = [
                (letter.id, letter.body) for letter in await internals_of(self.app).engine.store.dead_letters(10_000)
            ]
            tasks = [task.id for task in await self.app.tasks.list(limit=10_000)]
            waiting = [await self.app.instance_at(f"{row.workflow}/{row.id}").waiting() for row in rows]
            return rows, letters, tasks, waiting

        return self.run(read())

    def neighbour_goes_on(self) -> None:
        """Fail unless the instance next door takes its input at once."""
        self._seen += 1
        receipt = self.run(self.app.send(Note("neighbour")))
        assert receipt.status == "stepped"
        assert self.run(self.app.instance(Desk, "neighbour").state()).notes == self._seen


def url_of(store: str, folder: Path) -> str:
    if store == "postgres":
        try:
            return postgres_url(folder)
        except Unavailable as reason:
            pytest.skip(str(reason))
    return {"memory": "memory://", "sqlite": f"sqlite:///{folder / 'desk.db'}"}[store]


@pytest.fixture(scope="module", params=STORES)
def office(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Office]:
    office = Office(desk(Mainspring(url_of(request.param, tmp_path_factory.mktemp("office")))))
    office.start()
    yield office
    office.stop()
