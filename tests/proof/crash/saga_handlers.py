"""What carries errands out, and the read model of all that has a history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from mainspring import Context, FeedEntry, Mainspring, Retry
from tests.proof.crash.files import Place, read_lines
from tests.proof.crash.journey import Journey
from tests.proof.crash.saga_workflows import (
    WORKFLOWS,
    Book,
    Booked,
    Carried,
    Carry,
    Delivery,
    Errand,
    Mend,
    Mended,
    Print,
    Stamp,
    Stamped,
    Unbook,
)
from tests.proof.crash.worker import WobblyError, World

MEND_RETRY = Retry(max_attempts=2, first=timedelta(milliseconds=20))
PROJECTION = "told"


@dataclass(frozen=True)
class Told:
    """How many events of an instance a projection was told, and whether in their order."""

    events: int = 0
    in_order: bool = True


def add_errands(app: Mainspring, place: Place) -> None:
    """Let an app do errands too."""
    app.add(*WORKFLOWS.values())
    world = World(place.effects)

    @app.handler
    async def book(command: Book, context: Context) -> Booked:
        world.make(context, f"book {command.errand} {command.thing}")
        return Booked(command.errand, command.thing)

    @app.handler
    async def unbook(command: Unbook, context: Context) -> None:
        world.make(context, f"unbook {command.errand} {command.thing}")

    @app.handler
    async def stamp(command: Stamp, context: Context) -> Stamped:
        world.make(context, f"stamp {command.errand} {command.number}")
        return Stamped(command.number)

    @app.handler
    async def carry(command: Carry, context: Context) -> Carried:
        world.make(context, f"carry {command.errand}")
        return Carried(command.errand)

    @app.handler(retry=MEND_RETRY, breaker=None)
    async def mend(command: Mend, context: Context) -> Mended:
        if not any(line.get("looked_into") == context.idempotency_key for line in read_lines(place.people)):
            raise WobblyError
        world.make(context, f"mend {command.errand}")
        return Mended(command.errand)

    @app.handler
    async def print_turn(command: Print, context: Context) -> None:
        world.make(context, f"print {command.meter} {command.number}")

    @app.projections.add(name=PROJECTION, workflows=[Journey, Errand, Delivery], key=_ref)
    def told(document: Told | None, entry: FeedEntry) -> Told:
        known = document or Told()
        return Told(known.events + 1, known.in_order and entry.stream_position == known.events + 1)


def _ref(entry: FeedEntry) -> str:
    return f"{entry.workflow}/{entry.instance}"
