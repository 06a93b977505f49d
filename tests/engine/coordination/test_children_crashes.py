"""Children and fan-outs when a worker dies right after a commit, whichever commit it is."""

import pytest

from mainspring import Mainspring
from tests.engine.coordination.dying import dies_after
from tests.engine.coordination.family import Leg, PlanTrip, Sum, Summed, Trip, adding, travel
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


def _children(app: Mainspring) -> Mainspring:
    return adding(travel(app))


@pytest.mark.parametrize("commits", [1, 2, 3])
def test_every_outcome_comes_once_whenever_the_worker_dies(make_app: MakeApp, commits: int) -> None:
    async def main() -> None:
        await dies_after(
            commits, _children(make_app()), lambda app: app.send(PlanTrip("t-1", ("book", "silent", "fail")), id="m")
        )
        async with _children(make_app()) as app:
            await app.instance(Trip, "t-1").result()
            state = await app.instance(Trip, "t-1").state()
            assert (state.booked, state.silent, state.failed) == (
                ("t-1.0",),
                ("Leg/t-1.1",),
                (("Leg/t-1.2", "failed"),),
            )
            await until(lambda: _at_rest(app))
            results = [entry for entry in await app.instance(Trip, "t-1").stream() if entry.kind == "result"]
            assert len(results) == 3

    run(main)


@pytest.mark.parametrize("commits", [2, 4, 6])
def test_a_fan_out_is_joined_once_whenever_the_worker_dies(make_app: MakeApp, commits: int) -> None:
    async def main() -> None:
        await dies_after(
            commits, _children(make_app()), lambda app: app.send(Sum("s-1", (1, -2, 3), squares=True), id="m")
        )
        async with _children(make_app()) as app:
            receipt = app.instance_at("Adder/s-1")
            assert await receipt.result() == Summed(10, (1,), "squares")
            await until(lambda: _at_rest(app))
            assert sum(entry.kind == "result" for entry in await receipt.stream()) == 1

    run(main)


@pytest.mark.parametrize("commits", [1, 2])
def test_a_cancelled_parents_children_are_cancelled_whenever_the_worker_dies(make_app: MakeApp, commits: int) -> None:
    async def main() -> None:
        async with _children(make_app()) as app:
            await app.send(PlanTrip("t-1", ("wait", "deep")))
            await until(lambda: _has(app, "t-1.1.deep", "running"))
            await until(lambda: _at_rest(app))
        await dies_after(commits, _children(make_app()), lambda app: app.instance(Trip, "t-1").cancel("ill"))
        async with _children(make_app()) as app:
            for leg in ("t-1.0", "t-1.1", "t-1.1.deep"):
                await until(lambda leg=leg: _has(app, leg, "cancelled"))
            await until(lambda: _at_rest(app))

    run(main)


async def _has(app: Mainspring, leg: str, status: str) -> bool:
    return any(row.id == leg and row.status == status for row in await app.instances(workflow=Leg.__name__))


async def _at_rest(app: Mainspring) -> bool:
    stats = await app.stats()
    return stats.outbox == stats.inbox == stats.dead_letters == 0
