"""One life of the process under test: it opens the store, works, tells the script and stops; or dies on the way."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mainspring import Mainspring
from tests.proof.crash.files import Place
from tests.proof.crash.worker import clock_watched
from tests.proof.crash_points.client import PATIENCE_SECONDS, Client, look_at
from tests.proof.crash_points.handler_effects import HandlerEffects
from tests.proof.crash_points.plants import PLANTS
from tests.proof.crash_points.points import NEVER, Point, Points
from tests.proof.crash_points.scenarios import SCENARIOS

STUCK: Final = 3
"""How a process ends that waited in vain."""


@dataclass(frozen=True)
class Life:
    """What a process is to do. `last` is the crash point at which it dies, `number` tells its lives apart."""

    scenario: str
    folder: Path
    number: int
    last: Point = NEVER
    before: bool = False
    plant: str | None = None
    patience_seconds: float = PATIENCE_SECONDS


def note_of(place: Place) -> Path:
    """Return the file in which a process says which points it has passed."""
    return place.folder / "note"


def live(life: Life) -> None:
    """Live. Called in a process of its own, which was forked from one that has imported all this."""
    place = Place(life.folder)
    with place.log.open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s life %(levelname)s %(message)s")
    points = Points(life.last, note_of(place))
    if not life.before:
        points.install()
    if life.plant is not None:
        PLANTS[life.plant]()
    try:
        with clock_watched(place):
            asyncio.run(_live(life, place, points))
    except TimeoutError as error:
        logging.getLogger(__name__).warning("the script came to no end: %s", error)
        sys.exit(STUCK)
    points.write_down()


async def _live(life: Life, place: Place, points: Points) -> None:
    scenario = SCENARIOS[life.scenario]
    app = Mainspring(place.url)
    scenario.wire(app, HandlerEffects(place, points, life.number, before=life.before))
    script = scenario.before if life.before else scenario.script
    async with app:
        if script is not None:
            await script(Client(app, place, await look_at(place), life.patience_seconds))
