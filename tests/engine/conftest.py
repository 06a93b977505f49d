"""One factory of apps for each store; all apps of one test share its data."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

import pytest

from mainspring import Mainspring
from mainspring.engine.runtime import Runtime, SystemClock
from mainspring.port.clock import Clock
from mainspring.stores.memory import MemoryStore
from tests.postgres.server import Unavailable, postgres_url


class MakeApp(Protocol):
    def __call__(self, clock: Clock | None = None) -> Mainspring: ...


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def make_app(request: pytest.FixtureRequest, tmp_path: Path) -> MakeApp:
    stores: list[MemoryStore] = []
    url = f"sqlite:///{tmp_path / 'test.db'}"
    if request.param == "postgres":
        try:
            url = postgres_url(tmp_path)
        except Unavailable as reason:
            pytest.skip(str(reason))

    def make(clock: Clock | None = None) -> Mainspring:
        runtime = Runtime(clock)
        if request.param != "memory":
            return Mainspring(url, runtime=runtime)
        if not stores:
            stores.append(MemoryStore(clock or SystemClock()))
        return Mainspring("memory://", runtime=runtime, store=stores[0])

    return make


def run(main: Callable[[], Coroutine[Any, Any, None]], seconds: float = 20) -> None:
    """Run a test's body; a test that hangs fails."""

    async def bounded() -> None:
        async with asyncio.timeout(seconds):
            await main()

    asyncio.run(bounded())


async def until(condition: Callable[[], bool | Coroutine[Any, Any, bool]], turns: int = 5_000) -> None:
    """Let the loop turn until a condition holds."""
    for _ in range(turns):
        found = condition()
        if (await found) if asyncio.iscoroutine(found) else found:
            return
        await asyncio.sleep(0.001)
    raise AssertionError("the condition did not come to hold")
