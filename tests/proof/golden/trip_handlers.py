"""The part of the app that sells trips: for commits that know them."""

from __future__ import annotations

from mainspring import Context, Mainspring
from tests.proof.golden.golden_app import Hands
from tests.proof.golden.trips import Approve, Book, FreeSeat, Refuse, SeatTaken, TakeSeat, Trip

TRIPS = {"booked": 3, "refused": 3, "asked": 3}
"""How many trips of each kind a workload leaves: done, undone, and with a clerk who has not answered."""


def add_trips(app: Mainspring, hands: Hands) -> None:
    app.add(Trip())

    @app.handler(breaker=None)
    async def take(command: TakeSeat, context: Context) -> SeatTaken:
        await hands.carry_out(command.path, context)
        return SeatTaken(command.trip)

    @app.handler(breaker=None)
    async def free(command: FreeSeat, context: Context) -> None:
        # Of these, `held` is held when it is undone.
        await hands.carry_out(command.path.removeprefix("undo-"), context)


async def book(app: Mainspring, trip: str, path: str = "plain") -> None:
    await app.send(Book(trip, path), id=f"{trip}-book")


async def answer(app: Mainspring, trip: str, *, yes: bool) -> None:
    """Answer as a clerk does."""
    (task,) = [task for task in await app.tasks.list(role="clerk") if task.instance == trip]
    message = Approve(trip) if yes else Refuse(trip)
    await app.tasks.complete(task.id, message, actor="ann", roles=("clerk",))
