"""`python -m tests.proof.golden.workload URL EFFECTS`: leave a database with everything in it, and be killed.

It runs with the sources of the commit whose database is wanted, so it calls only what every commit has.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Final

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from tests.proof.golden.golden_app import Hands, knows_trips, shop
from tests.proof.golden.orders import Note, Order, Place
from tests.support.waiting import until

LONGEST: Final = timedelta(minutes=2)
NOTES: Final = 45
ORDERS: Final = {
    "plain": ("plain", 4),
    "long": ("held", 1),
    "held": ("held", 2),
    "timer": ("timer", 2),
    "failing": ("failing", 2),
    "faulty": ("held", 2),
    "cancelled": ("timer", 1),
}
"""What kinds of orders there are, on which path each goes, and how many there are."""
SEATS_HELD: Final = 2


def names(kind: str) -> list[str]:
    """Return the ids of the orders of a kind."""
    return [f"{kind}-{n}" for n in range(1, ORDERS[kind][1] + 1)]


async def place_orders(app: Mainspring) -> None:
    """Send what orders are made of."""
    for kind, (path, _) in ORDERS.items():
        for order in names(kind):
            await app.send(Place(order, path), id=f"{order}-place", actor="ann")
    for order in names("plain"):
        await app.instance(Order, order).result(LONGEST)
    for order in names("long"):
        await app.send_many([Note(order, n) for n in range(NOTES)], ids=[f"{order}-{n}" for n in range(NOTES)])
    for order in names("faulty"):
        # The first one stops the instance, the second one waits behind it.
        for number in (-1, 1):
            await app.send(Note(order, number), id=f"{order}-note-{number}")
    for order in names("cancelled"):
        await app.instance(Order, order).cancel("by its customer", actor="ann")


async def sell_trips(app: Mainspring) -> None:
    """Send what trips are made of: some done, some undone, some in each stage between."""
    from tests.proof.golden import trip_handlers  # noqa: PLC0415  where a commit does not know trips, it cannot be imported

    for trip, path in (("booked", "plain"), ("refused", "plain"), ("asked", "plain"), ("seat", "held")):
        await trip_handlers.book(app, trip, path)
    await trip_handlers.book(app, "undoing", "undo-held")

    async def taken() -> bool:
        return not any(
            [await app.instance(trip_handlers.Trip, trip).outputs() for trip in ("booked", "refused", "undoing")]
        )

    await until(taken)
    for trip in ("refused", "undoing"):
        await trip_handlers.answer(app, trip, yes=False)
    await trip_handlers.answer(app, "booked", yes=True)
    await app.instance(trip_handlers.Trip, "booked").result(LONGEST)


async def main(url: str, effects: Path) -> None:
    Order.broken = True
    hands = Hands(effects, troubled=True)
    app = shop(url, hands)
    await app.start(name="golden")
    await place_orders(app)
    held = sum(count for path, count in ORDERS.values() if path == "held")
    if knows_trips():
        await sell_trips(app)
        held += SEATS_HELD

    async def settled() -> bool:
        """Tell whether nothing is left to do but what is held."""
        letters = len(await app.dead_letters())
        owed = await internals_of(app).engine.store.outputs(None, timers=False, limit=1_000)
        return hands.held == len(owed) == held and letters == ORDERS["failing"][1]

    await until(settled)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    logging.disable()  # what fails is meant to
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
