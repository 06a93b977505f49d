"""A saga whose compensations were erased is not ended as if there had been none."""

from pathlib import Path

import pytest

from mainspring import Mainspring
from mainspring.errors import ErasedError
from mainspring.sealing import Encrypted, FileKeys
from tests.engine.coordination.trips import LATE, PlanTrip, Trip, World, trip_app
from tests.support.running import run
from tests.support.waiting import until


def test_what_nobody_can_undo_any_more_is_not_cancelled_but_terminated(tmp_path: Path) -> None:
    keys = FileKeys(tmp_path / "keys")
    # The hotel does not answer, and is asked again in a minute.
    world = World(plans={("book", "hotel"): ["broken"] * 9}, retry=LATE)

    def app() -> Mainspring:
        seal = Encrypted(keys, subject=lambda about, _: about.instance)
        return trip_app(lambda: Mainspring(f"sqlite:///{tmp_path / 'trips.db'}", seal=seal), world)

    async def main() -> None:
        async with app() as first:
            await first.send(PlanTrip("t-1", ("flight", "hotel")))
            await until(lambda: world.calls["book hotel"] == 1)
        keys.destroy("t-1")
        async with app() as second:
            trip = second.instance(Trip, "t-1")
            with pytest.raises(ErasedError):
                await trip.cancel("the customer called")
            await trip.terminate("erased")
            assert (await trip.row()).status == "terminated"
            assert world.booked == {"flight"}

    run(main)
