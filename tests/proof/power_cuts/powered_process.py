"""One life: from the power's coming back to its going away, in a process of its own."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, NoReturn

import apsw

from mainspring.stores.sqlite import place, writer
from tests.proof.crash.client import TRAVELLERS, Client
from tests.proof.crash.evidence import quiet
from tests.proof.crash.files import Place, read_lines
from tests.proof.crash.journey import JOURNEY
from tests.proof.crash.worker import app_of
from tests.proof.power_cuts.disk import Disk, FileSystem

CUT: Final = 9
FAILED: Final = 1
LIFE_SECONDS: Final = 180
LOOK_SECONDS: Final = 0.02
# In half of the lives the log is moved so often that cuts fall into it.
OFTEN_PAGES: Final = 40


class Wish:
    """What a life is to be: which one, when it ends, and how commits are synced if not as they should be."""

    def __init__(self, number: int, seed: str, cut_at: int, *, synchronous: str | None) -> None:
        self.number = number
        self.seed = seed
        self.cut_at = cut_at
        self.synchronous = synchronous


def live(place: Place, left: Path, wish: Wish) -> int:
    """Send and work until the power is cut; the disk is then in `left`. Return how the process ended."""
    return _in_a_process(place, lambda: _until_cut(place, left, wish))


def come_to_rest(place: Place, number: int) -> int:
    """Work without cuts until nothing is left to do. Return how the process ended."""
    return _in_a_process(place, lambda: _until_quiet(place, number))


def _in_a_process(place: Place, body: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Fork: nothing that a life knows outlives it. Whoever calls this has no threads and no open database."""
    child = os.fork()
    if child == 0:
        _run(place, body)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run(place: Place, body: Callable[[], Coroutine[Any, Any, None]]) -> NoReturn:
    code = FAILED
    try:
        signal.alarm(LIFE_SECONDS)
        log = os.open(place.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(log, sys.stdout.fileno())
        os.dup2(log, sys.stderr.fileno())
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
        asyncio.run(body())
        code = 0
    except BaseException:  # noqa: BLE001  the parent's own code must not go on here
        traceback.print_exc()
    finally:
        os._exit(code)


async def _until_cut(place: Place, left: Path, wish: Wish) -> None:
    chance = random.Random(wish.seed)  # noqa: S311  no secret

    def cut() -> NoReturn:
        for name, content in disk.after_a_cut(chance).items():
            (left / name).write_bytes(content)
        os._exit(CUT)

    names = (path.name for path in place.folder.iterdir())
    disk = Disk(place.folder, [name for name in names if name in DATABASE_FILES], wish.cut_at, cut)
    system = FileSystem(disk)
    if chance.random() < 0.5:
        _checkpoint_often()
    if wish.synchronous is not None:
        _sync_less(wish.synchronous)
    database = apsw.Connection(str(place.database))
    database.execute("CREATE TABLE IF NOT EXISTS payments (command text NOT NULL)")
    database.close()
    app = app_of(place, wish.number)
    await app.start()
    client = Client(app, place, chance)
    await client.repeat_unknown(read_lines(place.ledger))
    await asyncio.gather(*(client.travel(f"j{wish.number}-{n}") for n in range(TRAVELLERS)))
    system.unregister()


async def _until_quiet(place: Place, number: int) -> None:
    async with app_of(place, number):
        while not quiet(place, JOURNEY.come_to_rest):  # noqa: ASYNC110  it is the tables that tell
            await asyncio.sleep(LOOK_SECONDS)  # between two looks at the tables


DATABASE_FILES: Final = ("crash.db", "crash.db-wal", "crash.db-journal")
"""What is on the disk under test: the log's index is memory, and lost with it."""


def _checkpoint_often() -> None:
    writer.CHECKPOINT_PAGES = OFTEN_PAGES  # pyright: ignore[reportPrivateImportUsage, reportConstantRedefinition]  here only
    writer.IDLE_PAGES = OFTEN_PAGES  # pyright: ignore  as above


def _sync_less(synchronous: str) -> None:
    """Break the store, as the test must notice."""

    def tune(opened: apsw.Connection) -> None:
        place.tune(opened)
        opened.execute(f"PRAGMA synchronous = {synchronous}")

    writer.tune = tune  # pyright: ignore  as above
