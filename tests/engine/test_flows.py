"""Flows in a running app, on each store."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from mainspring import Mainspring
from mainspring.core.events import Compensated, Sent
from mainspring.errors import InstanceFailedError, InstanceSuspendedError
from mainspring.flows import Flow, Undo, each, receive
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class Place:
    id: str
    cents: int = 5


@dataclass(frozen=True)
class Confirmed:
    id: str


@dataclass(frozen=True)
class Count:
    id: str


@dataclass(frozen=True)
class Counted:
    number: int


class CardDeclinedError(Exception):
    pass


Done = list[str]


def with_flow(app: Mainspring, done: Done, *, changed: bool = False, version: int = 1) -> Flow[Place, str]:
    @app.step(raises=CardDeclinedError)
    async def charge(id: str, cents: int) -> str:
        done.append(f"charge {cents}")
        if cents == 13:
            raise CardDeclinedError("no funds")
        return f"charge of {id}"

    @app.step
    def refund(id: str) -> None:
        done.append("refund")

    @app.step
    def pack(number: int) -> int:
        return number * number

    @app.flow(id="id")
    async def counter(count: Count) -> Counted:
        return Counted(3)

    @app.flow(id="id", version=version)
    async def order(place: Place) -> str:
        charged = await charge(place.id, place.cents + changed).undone_by(refund(place.id))
        await receive(Confirmed)
        if place.cents == 7:
            raise Undo("unlucky")
        parts = await each(pack(number) for number in range(3))
        counted = await counter(Count(f"{place.id}-count"))
        twice = await asyncio.gather(charge(place.id, 1), charge(place.id, 2))
        return f"{charged} {parts} {counted.number} {len(twice)}"

    return order


async def until_charged(app: Mainspring, order: Flow[Place, str]) -> None:
    async def is_charged() -> bool:
        return (await app.instance(order, "o-1").row()).position == 4

    await until(is_charged)


RESULT = "charge of o-1 [0, 1, 4] 3 2"


def test_a_flow_runs_to_its_end(make_app: MakeApp) -> None:
    async def main() -> None:
        app, done = make_app(), Done()
        order = with_flow(app, done)
        async with app:
            receipt = await app.workflow(order).send(Place("o-1"))
            await app.send(Confirmed("o-1"))
            assert await receipt.result() == RESULT
        assert sorted(done) == ["charge 1", "charge 2", "charge 5"]

    run(main)


def test_a_flow_is_undone(make_app: MakeApp) -> None:
    async def main() -> None:
        app, done = make_app(), Done()
        order = with_flow(app, done)
        async with app:
            receipt = await app.workflow(order).send(Place("o-1", 7))
            await app.send(Confirmed("o-1"))
            with pytest.raises(InstanceFailedError, match="unlucky"):
                await receipt.result()
            stream = await app.instance(order, "o-1").stream()
        assert done == ["charge 7", "refund"]
        assert [type(entry.event) for entry in stream].count(Compensated) == 1

    run(main)


def test_an_error_that_a_step_declares_is_not_tried_again(make_app: MakeApp) -> None:
    async def main() -> None:
        app, done = make_app(), Done()
        order = with_flow(app, done)
        async with app:
            receipt = await app.workflow(order).send(Place("o-1", 13))
            with pytest.raises(InstanceFailedError, match="CardDeclinedError: no funds"):
                await receipt.result()
        assert done == ["charge 13"]

    run(main)


def test_a_flow_goes_on_in_another_process_where_it_was(make_app: MakeApp) -> None:
    async def main() -> None:
        done = Done()
        first = make_app()
        order = with_flow(first, done)
        async with first:
            await first.workflow(order).send(Place("o-1"))
            await until_charged(first, order)
        second = make_app()
        order = with_flow(second, done)
        async with second:
            await second.send(Confirmed("o-1"))
            assert await second.instance(order, "o-1").result() == RESULT
        assert sorted(done) == ["charge 1", "charge 2", "charge 5"]

    run(main)


def test_changed_code_suspends_and_keeps_the_input_and_the_old_code_goes_on(make_app: MakeApp) -> None:
    async def main() -> None:
        done = Done()
        first = make_app()
        order = with_flow(first, done)
        async with first:
            await first.workflow(order).send(Place("o-1"))
            await until_charged(first, order)
        second = make_app()
        order = with_flow(second, done, changed=True)
        async with second:
            with pytest.raises(InstanceSuspendedError, match="no longer asked for"):
                await (await second.send(Confirmed("o-1"))).result()
            sent = [e for e in await second.instance(order, "o-1").stream() if isinstance(e.event, Sent)]
        assert len(sent) == 1
        third = make_app()
        order = with_flow(third, done)
        async with third:
            await third.instance(order, "o-1").resume()
            assert await third.instance(order, "o-1").result() == RESULT

    run(main)


def test_a_second_version_leaves_the_first_to_its_instances(make_app: MakeApp) -> None:
    async def main() -> None:
        done = Done()
        first = make_app()
        order = with_flow(first, done)
        async with first:
            await first.workflow(order).send(Place("o-1"))
            await until_charged(first, order)
        second = make_app()
        order = with_flow(second, done)

        @second.flow(id="id", version=2, name="order")
        async def order_2(place: Place) -> str:
            await receive(Confirmed)
            return "version 2"

        async with second:
            new = await second.send(Place("o-2"))
            await second.send(Confirmed("o-1"))
            await second.send(Confirmed("o-2"))
            assert await second.instance(order, "o-1").result() == RESULT
            assert await new.result() == "version 2"

    run(main)
