"""The database that is damaged: workflows under way, with inputs, outputs, timers and dead letters left."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import apsw

from tests.proof.crash.client import TRAVELLERS, Client
from tests.proof.crash.files import Place
from tests.proof.crash.tables import prepare
from tests.proof.crash.worker import app_of
from tests.support.paths import ROOT

MAKE_SECONDS: Final = 60
INSTANCES: Final = 40
LOOK_SECONDS: Final = 0.01
DATABASE: Final = "crash.db"
LOG: Final = "crash.db-wal"


def make(folder: Path, seed: int) -> tuple[Path, Path]:
    """Return two forms of one database: as a killed process left it, with its log, and with the log moved into it."""
    killed, moved = folder / "killed", folder / "moved"
    killed.mkdir()
    subprocess.run(  # noqa: S603  our own interpreter and our own module
        [sys.executable, "-m", "tests.proof.sqlite_damage.subject", str(killed), str(seed)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=MAKE_SECONDS,
    )
    moved.mkdir()
    for name in (DATABASE, LOG):
        shutil.copy(killed / name, moved / name)
    connection = apsw.Connection(str(moved / DATABASE))
    connection.execute("SELECT count(*) FROM sqlite_schema")  # there is no log for SQLite before the first question
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.close()
    return killed, moved


async def _work(place: Place, seed: int) -> None:
    """Work until there are some instances, and leave in the middle of it."""
    prepare(place)
    app = app_of(place)
    await app.start()
    client = Client(app, place, random.Random(seed))  # noqa: S311  no secret
    travels = [asyncio.create_task(client.travel(f"t{n}")) for n in range(TRAVELLERS)]
    while len(await app.instances(limit=INSTANCES)) < INSTANCES or not await app.dead_letters():
        await asyncio.sleep(LOOK_SECONDS)  # between two looks at the store
        assert not any(travel.done() for travel in travels)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(_work(Place(Path(sys.argv[1])), int(sys.argv[2])))
