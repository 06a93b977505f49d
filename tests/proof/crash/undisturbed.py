"""A run without kills in which every kind of evidence comes about, whatever the scheduler does: what to plant in."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

from mainspring import Mainspring
from tests.proof.crash import rebuild
from tests.proof.crash.client import Client
from tests.proof.crash.evidence import quiet, sample
from tests.proof.crash.files import Lines, Place
from tests.proof.crash.journey import Deposit, Note, Start
from tests.proof.crash.loop import COME_TO_REST
from tests.proof.crash.operators import Operators
from tests.proof.crash.saga_handlers import add_errands
from tests.proof.crash.saga_workflows import ROLE, Approve, Errand, Refuse, RunErrand, Turn
from tests.proof.crash.tables import prepare
from tests.proof.crash.worker import app_of
from tests.proof.histories.calls import Witness
from tests.proof.histories.slates import ROLE as SCRIBE
from tests.proof.histories.slates import (
    Chalk,
    Copy,
    Drop,
    Nay,
    Scrawl,
    Tally,
    Vote,
    Wipe,
    Yea,
    add_slates,
)
from tests.support.waiting import PATIENCE_SECONDS, until

WORKER: Final = 1
JOURNEY: Final = "j-1"
ACCOUNT: Final = "account-0"
APPROVED: Final = "e-1"
REFUSED: Final = "e-2"
SLATE: Final = "s-1"


async def run_undisturbed(place: Place) -> None:
    """Let one client tell its script to one worker, and write all down that a kill loop writes down."""
    prepare(place)
    async with _started(place, 0, work=False) as app:
        client = Client(app, place, random.Random(1), "1")  # noqa: S311  no secret
        await _begin(client)
        # Nobody works yet: the deposits wait in their inbox, and all that was decided is owed.
        Lines(place.samples).add(sync=False, **(sample(place, 1) or {}))
        async with _started(place, WORKER, work=True):
            await _go_on(app, client, Operators(app, place, client, random.Random(1), "1"))  # noqa: S311  as above
            await write_slate(app, Witness(app, place.history("1"), "1"))
            await until(lambda: quiet(place, COME_TO_REST))
            await rebuild.main(place)


@asynccontextmanager
async def _started(place: Place, generation: int, *, work: bool) -> AsyncGenerator[Mainspring]:
    app = app_of(place, generation)
    add_errands(app, place)
    add_slates(app)
    await app.start(work=work)
    try:
        yield app
    finally:
        await app.stop()


async def _begin(client: Client) -> None:
    """Send what makes one of each: a journey with a command that never works, two notes, two deposits, two errands."""
    journey, account = f"Journey/{JOURNEY}", f"Account/{ACCOUNT}"
    await client.ask(f"{JOURNEY}-start", journey, Start(JOURNEY, ACCOUNT, despairs=True))
    for n in range(2):
        await client.ask(f"{JOURNEY}-note-{n}", journey, Note(JOURNEY, n))
        await client.witness.state(journey)
        await client.ask(f"{JOURNEY}-deposit-{n}", account, Deposit(ACCOUNT, 1))
    # Once more as it was, and once as something else.
    await client.ask(f"{JOURNEY}-start", journey, Start(JOURNEY, ACCOUNT, despairs=True))
    await client.ask(f"{JOURNEY}-start", journey, Start(JOURNEY, "another", despairs=False))
    await client.ask(f"{APPROVED}-run", f"Errand/{APPROVED}", RunErrand(APPROVED, stubborn=True))
    await client.ask(f"{REFUSED}-run", f"Errand/{REFUSED}", RunErrand(REFUSED, stubborn=False))


async def _go_on(app: Mainspring, client: Client, operators: Operators) -> None:
    """Answer each task twice at once, retry the dead letter of a command that waits for that, and come too late."""
    for errand, answer in ((APPROVED, Approve(APPROVED)), (REFUSED, Refuse(REFUSED))):
        task = await until(lambda: _task_of(app, errand))  # noqa: B023  it is awaited here
        await asyncio.gather(*(operators.complete(task, answer, n) for n in range(2)))
    await client.ask("turn", "Meter/meter-0", Turn("meter-0", 7))
    await operators.peek("meter-0", "peek")
    await until(lambda: _mended(app, operators))
    await client.witness.result(f"Journey/{JOURNEY}", timeout=timedelta(seconds=PATIENCE_SECONDS))
    await client.ask(f"{JOURNEY}-late", f"Journey/{JOURNEY}", Note(JOURNEY, 2))


async def write_slate(app: Mainspring, witness: Witness, id: str = SLATE) -> None:
    """Do each thing that can be done to a slate, once, and read behind each."""
    slate, scrap = f"Slate/{id}", f"Scrap/{id}"
    for message in (Chalk(id, "a"), Drop(id, "b"), Copy(id, "c"), Vote(id, "d")):
        await witness.state(slate)
        await witness.send(slate, message, message.mark)
    task = await until(lambda: _task_of(app, id, SCRIBE))
    answers = (Yea(id, "d", "ann"), Nay(id, "d", "bob"))
    await asyncio.gather(*(witness.answer(slate, task, "d", answer, [SCRIBE]) for answer in answers))
    await witness.request(slate, Tally(id, "e"), "e", timeout=timedelta(seconds=PATIENCE_SECONDS))
    await witness.send(slate, Chalk(id, "a"), "a")
    await witness.send(slate, Chalk(id, "instead"), "a")
    for message in (Scrawl(id, "f"), Scrawl(id, "g")):
        await witness.send(scrap, message, message.mark)
        await witness.state(scrap)
    # Only then is it certain that nothing is late.
    await until(lambda: _traced(app, slate))
    await witness.state(slate)
    await witness.send(slate, Wipe(id, "h"), "h")
    await witness.result(slate)
    await witness.send(slate, Chalk(id, "i"), "i")
    await witness.request(slate, Tally(id, "j"), "j", timeout=timedelta(seconds=PATIENCE_SECONDS))


async def _traced(app: Mainspring, slate: str) -> bool:
    marks: tuple[str, ...] = (await app.instance_at(slate).state()).marks
    return {"Traced c", "Drop b"} <= set(marks)


async def _task_of(app: Mainspring, instance: str, role: str = ROLE) -> str | None:
    return next((task.id for task in await app.tasks.list(role=role) if task.instance == instance), None)


async def _mended(app: Mainspring, operators: Operators) -> bool:
    await operators.mend()
    return (await app.instance(Errand, APPROVED).row()).status == "completed"
