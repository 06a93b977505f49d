"""How tests run something, and wait until an app is quiet, without ever waiting for a time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mainspring import Mainspring

T = TypeVar("T")

SECONDS = 30


def done(body: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, within bounds."""

    async def bounded() -> T:
        async with asyncio.timeout(SECONDS):
            return await body()

    return asyncio.run(bounded())


async def quiet(app: Mainspring) -> None:
    """Return when nothing waits for its turn or for a handler. Timers may, and what another process is to do."""
    while True:
        outputs = await app.engine.store.outputs(None, timers=False, limit=1_000)
        owed = [claim for claim in outputs if claim.type not in app.registry.external]
        if not owed and not (await app.stats()).inbox:
            return
        await asyncio.sleep(0)
