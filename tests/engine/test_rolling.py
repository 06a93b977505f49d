"""Workers of two releases on one database: the older ones leave alone what only the newer ones know."""

import asyncio

import pytest

from mainspring import Mainspring
from tests.engine.releases import CHANGES, Change, begin, release
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

TRIPS = 6


async def all_ended(app: Mainspring, count: int = TRIPS) -> bool:
    return (await app.stats()).instances.get("completed", 0) == count


async def nothing_is_wrong(app: Mainspring) -> None:
    stats = await app.stats()
    assert "suspended" not in stats.instances, [row.error for row in await app.instances(status="suspended")]
    assert stats.dead_letters == 0, [(letter.reason, letter.error) for letter in await app.dead_letters()]


async def look_twice(app: Mainspring) -> None:
    """Let the claims of an app look at all there is, and give back what they do not want."""
    for _ in range(3):
        rounds = app.engine.claimer.rounds
        app.engine.due_at(0)
        await until(lambda rounds=rounds: app.engine.claimer.rounds > rounds and app.engine.claimer.idle)
        await until(lambda: app.engine.committer.idle)


@pytest.mark.parametrize("change", CHANGES)
def test_a_worker_of_the_release_before_leaves_alone_what_it_cannot_read(change: Change, make_app: MakeApp) -> None:
    async def main() -> None:
        held = asyncio.Event()

        async def hold(id: str) -> None:
            if id.startswith("held"):
                await held.wait()

        async with release(make_app(), change, hold) as new:
            await new.send_many([begin(change, f"{'held' if n % 2 else 'free'}-{n}") for n in range(TRIPS)])
            async with release(make_app(), None) as old:
                await until(lambda: all_ended(new, TRIPS // 2))
                await nothing_is_wrong(old)
                held.set()
                await until(lambda: all_ended(new))
            await nothing_is_wrong(new)

    run(main)


@pytest.mark.parametrize("change", CHANGES)
def test_what_the_newer_release_left_behind_waits_for_it(change: Change, make_app: MakeApp) -> None:
    async def main() -> None:
        async with release(make_app(), change) as new:
            await new.send_many([begin(change, f"t-{n}") for n in range(TRIPS)])
        async with release(make_app(), None) as old:
            await look_twice(old)
            await nothing_is_wrong(old)
        async with release(make_app(), change) as new:
            await until(lambda: all_ended(new))
            await nothing_is_wrong(new)

    run(main)
