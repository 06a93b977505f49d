"""How tests wait until an app is quiet, without ever waiting for a time."""

import asyncio

from mainspring import Mainspring
from mainspring.app.internals import internals_of


async def quiet(app: Mainspring) -> None:
    """Return when nothing waits for its turn or for a handler. Timers may, and what another process is to do."""
    while True:
        outputs = await internals_of(app).engine.store.outputs(None, timers=False, limit=1_000)
        owed = [claim for claim in outputs if claim.type not in internals_of(app).registry.external]
        if not owed and not (await app.stats()).inbox:
            return
        await asyncio.sleep(0)  # a turn for the app; rows send no signal
