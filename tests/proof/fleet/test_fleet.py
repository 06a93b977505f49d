"""Rolling a fleet of real processes on PostgreSQL, forwards and back, under load."""

import asyncio
from pathlib import Path

import pytest

from tests.engine.releases import CHANGES
from tests.proof.fleet.process import Release
from tests.proof.fleet.rolling import Fleet, rolled
from tests.support.postgres.server import postgres_url
from tests.support.soaking import some_of

# Many processes come and go: on a busy machine that takes longer than most tests may.
SECONDS = 300.0


def roll(
    change: Release, folder: Path, workers: int, trips: int, seconds: float = SECONDS, *, mistaken: bool = False
) -> list[str]:
    async def main() -> list[str]:
        async with Fleet(postgres_url(folder), change, folder, mistaken=mistaken).open() as fleet:
            return await rolled(fleet, workers, trips)

    return asyncio.run(asyncio.wait_for(main(), seconds))


# A fleet of each change takes its time, and `tests/engine/test_rolling.py` has them all in one process.
@pytest.mark.parametrize("change", some_of((*CHANGES, "history"), ("workflow version", "message version")))
def test_a_fleet_is_rolled_to_the_next_release_and_back_under_load(change: Release, tmp_path: Path) -> None:
    assert roll(change, tmp_path, workers=2, trips=2) == []


@pytest.mark.soak
@pytest.mark.parametrize("change", [*CHANGES, "history"])
def test_a_larger_fleet_is_rolled_for_longer(change: Release, tmp_path: Path) -> None:
    assert roll(change, tmp_path, workers=4, trips=30, seconds=1_800) == []


def test_workers_that_bury_what_only_the_next_release_knows_are_found(tmp_path: Path) -> None:
    found = roll("workflow version", tmp_path, workers=2, trips=2, mistaken=True)
    assert set(found) == {"dead letter: it runs under version 2 of its definition"}
