"""`python -m tests.proof.crash.rebuild FOLDER`: a last look at rest.

It reads the read model, fills it anew and reads it again, and reads once more what clients have read.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from mainspring import Mainspring
from tests.proof.crash.files import Lines, Place
from tests.proof.crash.saga_handlers import PROJECTION, add_errands
from tests.proof.crash.seen import last_look
from tests.proof.crash.worker import app_of, started
from tests.proof.histories.slates import add_slates

PAGE = 500


async def main(place: Place) -> None:
    app = app_of(place)
    add_errands(app, place)
    add_slates(app)
    lines = Lines(place.documents)
    await started(app, work=False)
    try:
        await app.projections(PROJECTION).caught_up()
        await _write(app, lines, "live")
        await app.projections(PROJECTION).rebuild()
        await app.projections(PROJECTION).caught_up()
        await _write(app, lines, "rebuilt")
        await last_look(app, place)
    finally:
        await app.stop()


async def _write(app: Mainspring, lines: Lines, generation: str) -> None:
    after = ""
    while page := await app.projections(PROJECTION).list(limit=PAGE, after=after):
        for key, document in page:
            after = key
            told = {"events": document.events, "in_order": document.in_order}
            lines.add(sync=False, generation=generation, ref=key, **told)


if __name__ == "__main__":
    asyncio.run(main(Place(Path(sys.argv[1]))))
