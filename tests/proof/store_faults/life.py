"""One life of the process under test: one call of its store fails, and it goes on."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mainspring import Mainspring
from mainspring.engine import engine
from mainspring.errors import StoreError
from tests.proof.crash.files import Place
from tests.proof.crash.worker import clock_watched
from tests.proof.crash_points.client import look_at
from tests.proof.crash_points.doomed_process import STUCK, Life, note_of
from tests.proof.crash_points.handler_effects import HandlerEffects
from tests.proof.crash_points.points import NEVER, Points
from tests.proof.crash_points.scenarios import SCENARIOS
from tests.proof.store_faults import postgres_calls, sqlite_calls, sqlite_files
from tests.proof.store_faults.calls import Calls, Fault
from tests.proof.store_faults.client import PersistentClient
from tests.proof.store_faults.plants import PLANTS

STARTS: Final = 3
# A life is short: heartbeats and looks for the dead fall into it all the same, and a pause does not fill it.
HEARTBEAT_SECONDS: Final = 0.05
PAUSE_SECONDS: Final = 0.02


@dataclass(frozen=True)
class Level:
    """Where calls are counted: which faults there are, which of them a call can meet, and how to count.

    `stands_for` names the kind that is tried for one that nothing tells apart from it, at a call.
    """

    kinds: tuple[str, ...]
    fits: Callable[[str, str], bool]
    install: Callable[[Calls], None]
    stands_for: Callable[[str, str], str] = lambda kind, _: kind


LEVELS: Final = {
    "sqlite": Level(sqlite_calls.KINDS, sqlite_calls.fits, sqlite_calls.install, sqlite_calls.stands_for),
    "sqlite-files": Level(sqlite_files.KINDS, sqlite_files.fits, sqlite_files.install),
    "postgres": Level(postgres_calls.KINDS, postgres_calls.fits, postgres_calls.install),
}

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FaultyLife(Life):
    """What a process is to do. Without a fault its calls are counted only."""

    level: str = ""
    fault: Fault | None = None


def live(life: FaultyLife) -> None:
    """Live. Called in a process of its own, which was forked from one that has imported all this."""
    place = Place(life.folder)
    with place.log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s life %(levelname)s %(message)s")
    calls = Calls(life.fault, note_of(place))
    if not life.before:
        _hurry()
        LEVELS[life.level].install(calls)
    if life.plant is not None:
        PLANTS[life.plant]()
    try:
        with clock_watched(place):
            asyncio.run(_live(life, place, calls))
    except TimeoutError as error:
        log.warning("the script came to no end: %s", error)
        sys.exit(STUCK)
    finally:
        calls.write_down()


def _hurry() -> None:
    engine.HEARTBEAT_SECONDS = engine.RELIEVE_SECONDS = HEARTBEAT_SECONDS
    for name, module in sys.modules.items():
        if name.startswith("mainspring.engine.") and hasattr(module, "PAUSE_AFTER_STORE_ERROR_SECONDS"):
            vars(module)["PAUSE_AFTER_STORE_ERROR_SECONDS"] = PAUSE_SECONDS


async def _live(life: FaultyLife, place: Place, calls: Calls) -> None:
    scenario = SCENARIOS[life.scenario]
    app = Mainspring(place.url)
    points = Points(NEVER, note_of(place))
    scenario.wire(app, HandlerEffects(place, points, life.number, before=life.before))
    script = scenario.before if life.before else scenario.script
    await _started(app)
    try:
        if script is not None:
            await script(PersistentClient(app, place, await look_at(place), life.patience_seconds, calls))
    finally:
        calls.give_up = lambda: False  # the client ends here, and its look at the file with it
        try:
            await asyncio.wait_for(app.stop(), life.patience_seconds)
        except StoreError as error:
            log.warning("stopped with %s", error)  # what it held is given back by who comes next


async def _started(app: Mainspring) -> None:
    """Start, as a supervisor does: again where it fails."""
    for left in reversed(range(STARTS)):
        try:
            await app.start()
        except StoreError as error:
            log.warning("does not start: %s", error)
            if not left:
                raise
        else:
            return
