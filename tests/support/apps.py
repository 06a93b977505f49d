"""One way to make an app in a test: on each store in turn, all apps of one test with the same data."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.engine import DRAIN_SECONDS
from mainspring.engine.runtime import Runtime, SystemClock
from mainspring.port.clock import Clock
from mainspring.stores.memory import MemoryStore
from mainspring.testing.clock import VirtualClock
from tests.support.postgres.schemas import clean_schema


class MakeApp(Protocol):
    def __call__(self, clock: Clock | None = None) -> Mainspring: ...


class TimeGoesOn(Mainspring):
    """An app that stops while time goes on: what a worker that leaped over its lease holds is tried once more."""

    async def stop(self, drain: timedelta = timedelta(seconds=DRAIN_SECONDS)) -> None:
        ticking = asyncio.create_task(self._tick())
        try:
            await super().stop(drain)
        finally:
            ticking.cancel()

    async def _tick(self) -> None:
        clock = internals_of(self).runtime.clock
        assert isinstance(clock, VirtualClock)
        # Not at once: most stops are quick, and what a test says of its clock holds.
        await asyncio.sleep(2)
        while True:
            clock.advance(1)
            await asyncio.sleep(0.05)  # the loop turns between two seconds of the clock, as it does between real ones


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def make_app(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[MakeApp]:
    """Return what makes apps on one store; a `conftest.py` that imports it gives it to its folder."""
    with clean_schema() if request.param == "postgres" else nullcontext(f"sqlite:///{tmp_path / 'test.db'}") as url:
        yield _making(request.param, url)


def _making(kind: str, url: str) -> MakeApp:
    stores: list[MemoryStore] = []

    def make(clock: Clock | None = None) -> Mainspring:
        runtime = Runtime(clock)
        app = TimeGoesOn if isinstance(clock, VirtualClock) else Mainspring
        if kind != "memory":
            return app(url, runtime=runtime)
        if not stores:
            stores.append(MemoryStore(clock or SystemClock()))
        return app("memory://", runtime=runtime, store=stores[0])

    return make
