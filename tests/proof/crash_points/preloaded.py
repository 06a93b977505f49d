"""What the process has done that all others are forked from: importing it makes all that a start needs of the code.

A life of the process under test takes a few hundredths of a second; without this, most of them would go into reading
the same sources again.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from mainspring import Mainspring
from tests.proof.crash.files import Place
from tests.proof.crash_points.handler_effects import HandlerEffects
from tests.proof.crash_points.points import NEVER, Points
from tests.proof.crash_points.scenarios import SCENARIOS


def warm() -> None:
    """Start each scenario's app once, in memory. No thread is left, so that forking is safe."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        effects = HandlerEffects(place, Points(NEVER, place.folder / "note"), 0, before=False)
        for scenario in SCENARIOS.values():
            if scenario.workload.paying:
                continue  # there is no transaction in memory
            app = Mainspring("memory://")
            scenario.wire(app, effects)
            asyncio.run(_started(app))


async def _started(app: Mainspring) -> None:
    async with app:
        pass


warm()
