"""A viewer in a process that has none of the authors' classes, and so knows no text of theirs as an error's."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Never

from msgspec.structs import replace

from mainspring import Complete, Decisions, Event, Mainspring, Workflow
from mainspring.app.internals import internals_of
from mainspring.port.records import Unit
from tests.support.rows import letters_of
from tests.support.running import run

ROOT = Path(__file__).parents[3]
CARD = "4111-2222"
VIEWER = """
import asyncio, json, sys
from mainspring import Mainspring
from mainspring.errors.kinds import kind_in
from mainspring.web.api import api
from tests.edges.web.support import asked

async def main() -> None:
    assert kind_in("CardDeclined: no") == "", "this process knows the class"
    app = Mainspring(sys.argv[1])
    await app.start(work=False)
    async with asked(api(app, start=False, redact=["card"])) as client:
        paths = ("/api/dead-letters", "/api/dead-letters/1", "/api/dead-letter-kinds", "/api/instances/Turning/t-1")
        print(json.dumps({path: (await client.get(path)).json() for path in paths}))
    await app.stop()

asyncio.run(main())
"""


class CardDeclined(Exception):  # noqa: N818  an author's own name
    pass


@dataclass(frozen=True)
class Turn:
    id: str
    card: str


@dataclass(frozen=True)
class Idle:
    pass


class Turning(Workflow[Turn, Idle, Never]):
    """Begins anew after its end, the second time badly."""

    again = "anew"
    begins = Turn
    initial_state = Idle()

    def route(self, message: Turn) -> str | None:
        return message.id

    def evolve(self, state: Idle, event: Event[Turn, Never]) -> Idle | None:
        return None

    def decide(self, message: Turn, state: Idle) -> Decisions[Turn, Never] | None:
        if message.card:
            raise CardDeclined(message.card)
        return [Complete()]


def test_a_viewer_without_the_authors_classes_sees_no_text_of_theirs(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'turning.db'}"

    async def main() -> None:
        app = Mainspring(url)
        app.add(Turning())
        async with app:
            await (await app.send(Turn("t-1", ""))).result()
            assert (await app.send(Turn("t-1", CARD))).status == "dead letter"
            (letter,) = await letters_of(app)
            assert (letter.reason, letter.error) == ("Turning/t-1 could not begin anew", f"CardDeclined: {CARD}")
            # As it was written by older releases.
            old = replace(letter, id=0, message_id="old", reason=f"{letter.reason}: {letter.error}", error=None)
            await internals_of(app).engine.store.commit(0, [Unit("", "", dead_letters=(old,))])

    run(main)
    viewer = subprocess.run(  # noqa: S603  our own
        [sys.executable, "-c", VIEWER, url], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert viewer.returncode == 0, viewer.stderr
    assert CARD not in viewer.stdout
    told = json.loads(viewer.stdout)
    letters = [(each["reason"], each["error"]) for each in told["/api/dead-letters"]["items"]]
    assert letters == [("Turning/t-1 could not begin anew", "[redacted]"), ("Turning/t-1 could not begin anew", None)]
    assert len(told["/api/dead-letter-kinds"]["kinds"]) == 2
