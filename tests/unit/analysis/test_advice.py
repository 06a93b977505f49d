"""What is worth a look is told of what is planted, with its figure and its place; of an app that is well, nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from urllib.parse import parse_qs

from msgspec.structs import replace

from mainspring import Mainspring
from mainspring.analysis.diagram.mining import machine_of
from mainspring.analysis.figures.advice import ADVICE_SHOWN, LEAST, LEAST_INPUTS, OF_ONE_KIND, advice_of
from mainspring.analysis.figures.figures import Advice, Figures, figures_of
from mainspring.app.internals import internals_of
from mainspring.port.records import InstanceFilter
from mainspring.testing import simulate
from mainspring.testing.simulation.world import World
from tests.unit.analysis.planted import order, shop, spoil

MANY = LEAST_INPUTS
FEW = LEAST + 5
HOUR = timedelta(hours=1)

Play = Callable[[World], Awaitable[None]]


def counted(app: Mainspring, play: Play) -> Figures:
    async def main() -> Figures:
        async with simulate(app) as world:
            await play(world)
            return await figures_of(internals_of(app).engine.store, InstanceFilter())

    return asyncio.run(main())


def told(app: Mainspring, play: Play) -> tuple[Advice, ...]:
    figures, entries = counted(app, play), internals_of(app).registry.workflows
    return advice_of(figures, lambda name: machine_of(entries[name]))


def orders(count: int, **more: timedelta) -> Play:
    async def play(world: World) -> None:
        await order(world, count, **more)
        await spoil(world)

    return play


def test_an_app_that_is_well_is_told_nothing() -> None:
    assert told(shop(), orders(MANY)) == ()


def test_a_handler_that_fails_often_is_told_with_how_often() -> None:
    (found,) = told(shop(seldom=range(5)), orders(FEW))
    assert (found.kind, found.workflow, found.subject) == ("failures", "Orders", "ChargeCard")
    assert found.figure == "18.5 %"
    assert found.text.startswith("5 of 27 answers to ChargeCard are failures.")
    assert found.text.endswith("`mainspring log` of one of its instances tells each attempt and its error.")
    assert (found.link, found.command) == ("#/workflows/Orders?tab=bottlenecks", "mainspring ls --workflow Orders")


def test_failures_that_suspend_a_workflow_that_does_not_listen_are_told_like_others() -> None:
    (found,) = told(shop(seldom=range(5), listens=False), orders(FEW))
    assert (found.kind, found.subject, found.figure) == ("failures", "ChargeCard", "18.5 %")


def test_a_handler_that_is_tried_again_and_again_is_told_with_how_often() -> None:
    (found,) = told(shop(often=range(10)), orders(FEW))
    assert (found.kind, found.subject, found.figure) == ("retries", "ChargeCard", "37.0 %")
    assert "10 of 27 calls" in found.text


def test_the_state_in_which_most_time_is_spent_is_told_with_its_share_and_stays() -> None:
    (found,) = told(shop(), orders(FEW, pickup=10 * HOUR))
    assert (found.kind, found.subject) == ("time in a state", "AwaitingPickup")
    assert found.text.endswith("of all time is spent in AwaitingPickup, on average 10 h a stay.")
    link, _, query = found.link.partition("?")
    assert (link, parse_qs(query)) == ("#/instances", {"workflow": ["Orders"], "state": ["AwaitingPickup"]})
    assert found.command == "mainspring ls --workflow Orders --state AwaitingPickup"


def test_a_command_that_waits_longer_than_its_handler_works_is_told() -> None:
    (found,) = told(shop(per_second=1), orders(FEW))
    assert (found.kind, found.subject) == ("waiting for a worker", "ChargeCard")
    assert "the rest is waiting for a worker" in found.text


def test_a_timer_that_never_fires_is_told_as_a_fact() -> None:
    async def play(world: World) -> None:
        await order(world, FEW)

    (found,) = told(shop(), play)
    assert (found.kind, found.subject, found.figure) == ("timer never fires", "PaymentTimedOut", f"0 of {FEW}")
    assert "Often that is as it should be." in found.text


def test_a_branch_that_is_never_taken_is_told_where_many_others_were() -> None:
    async def play(world: World) -> None:
        await order(world, MANY)

    timer, branch = told(shop(), play)
    assert timer.kind == "timer never fires"
    assert (branch.kind, branch.subject) == ("branch never taken", "AwaitingPayment: Cancel")
    assert branch.text.startswith(f"{MANY} inputs came in AwaitingPayment, and Cancel was never among them.")
    assert branch.link == "#/workflows/Orders"
    assert branch.command == "mainspring diagram Orders --from both"


def test_of_too_few_nothing_is_told() -> None:
    async def play(world: World) -> None:
        await order(world, LEAST - 1, pickup=10 * HOUR)

    assert told(shop(per_second=1, seldom=range(5), often=range(5, 15)), play) == ()


def test_code_is_not_read_where_too_little_has_happened() -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    assert advice_of(counted(shop(), orders(FEW)), refuse) == ()


def test_a_workflow_whose_code_is_gone_has_no_branches() -> None:
    async def play(world: World) -> None:
        await order(world, MANY)

    kinds = [each.kind for each in advice_of(counted(shop(), play), lambda _: None)]
    assert kinds == ["timer never fires"]


def test_there_are_at_most_five_the_worst_first_and_few_of_a_kind() -> None:
    async def play(world: World) -> None:
        await order(world, FEW, pickup=10 * HOUR)

    figures = counted(shop(per_second=1, seldom=range(3), often=range(3, 12)), play)
    (own,) = figures.workflows
    several = tuple(replace(own, workflow=f"Orders{n}") for n in range(3))
    found = advice_of(replace(figures, workflows=several))
    assert len(found) == ADVICE_SHOWN
    assert [each.kind for each in found] == [
        *["failures"] * OF_ONE_KIND,
        *["time in a state"] * OF_ONE_KIND,
        "waiting for a worker",
    ]
