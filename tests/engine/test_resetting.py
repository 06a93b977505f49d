"""Going back to an earlier version, as a new branch of history (F11)."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from mainspring import (
    CancelSchedule,
    Complete,
    Decisions,
    Event,
    Mainspring,
    Received,
    Schedule,
    Send,
    Workflow,
)
from mainspring.errors import OperationError
from mainspring.testing.clock import VirtualClock
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class Order:
    id: str


@dataclass(frozen=True)
class Price:
    id: str


@dataclass(frozen=True)
class Priced:
    id: str
    amount: int


@dataclass(frozen=True)
class Paid:
    id: str


@dataclass(frozen=True)
class TooLate:
    id: str


@dataclass(frozen=True)
class Open:
    amount: int = 0
    paid: bool = False
    late: bool = False


class Sale(Workflow[Order | Priced | Paid | TooLate, Open, Price]):
    begins = Order
    initial_state = Open()
    snapshot_every = 3

    def route(self, message: Order | Priced | Paid | TooLate) -> str | None:
        return message.id

    def decide(
        self, message: Order | Priced | Paid | TooLate, state: Open
    ) -> Decisions[Order | Priced | Paid | TooLate, Price] | None:
        match message:
            case Order(id):
                return [Send(Price(id)), Schedule(TooLate(id), after=timedelta(hours=1))]
            case Priced():
                return []
            case Paid():
                return [CancelSchedule(TooLate)]
            case TooLate():
                return [Complete()]

    def evolve(self, state: Open, event: Event[Order | Priced | Paid | TooLate, Price]) -> Open | None:
        match event:
            case Received(Priced(_, amount)):
                return Open(amount, state.paid)
            case Received(Paid()):
                return Open(state.amount, paid=True)
            case Received(TooLate()):
                return Open(state.amount, state.paid, late=True)


class Prices:
    """A price list that changes, and a handler that looks into it."""

    def __init__(self, *amounts: int) -> None:
        self.amounts = list(amounts)
        self.keys: list[str] = []

    def on(self, app: Mainspring) -> Mainspring:
        app.add(Sale())

        @app.handler
        async def price(command: Price) -> Priced:
            return Priced(command.id, self.amounts.pop(0))

        return app


async def amount_is(app: Mainspring, amount: int) -> bool:
    return (await app.instance(Sale, "s-1").state()).amount == amount


def test_what_was_answered_only_behind_it_is_asked_again_and_the_old_branch_stays_readable(make_app: MakeApp) -> None:
    async def main() -> None:
        async with Prices(666, 10).on(make_app()) as app:
            await app.send(Order("s-1"))
            await until(lambda: amount_is(app, 666))
            sale = app.instance(Sale, "s-1")
            before = await sale.stream()
            assert [type(entry.event).__name__ for entry in before] == [
                "Began",
                "InitiatedBy",
                "Sent",
                "Scheduled",
                "Received",
            ]
            await sale.reset(4, "the price was wrong", actor="ann")
            await until(lambda: amount_is(app, 10))
            after = await sale.stream()
            assert after[:5] == before
            assert [type(entry.event).__name__ for entry in after[5:]] == ["Reset", "Scheduled", "Received"]
            assert after[5].actor == "ann"
            assert (await sale.log())[2].about == "to 4: the price was wrong"
        async with Prices().on(make_app()) as app:
            assert await amount_is(app, 10)
            assert (await app.send(Paid("s-1"))).status == "stepped"
            assert (await app.instance(Sale, "s-1").state()).paid

    run(main)


@pytest.mark.parametrize("year", [2026, 2900])
def test_a_timer_is_one_timer_however_often_it_is_set_anew(make_app: MakeApp, year: int) -> None:
    async def main() -> None:
        clock = VirtualClock(datetime(year, 1, 1, tzinfo=UTC))
        clock.advance(0.000_001)  # so far away, seconds as a float do not tell microseconds apart any more
        async with Prices(10).on(make_app(clock)) as app:
            await app.send(Order("s-1"))
            await until(lambda: amount_is(app, 10))
            (timer,) = await app.timers()
            sale = app.instance(Sale, "s-1")
            for _ in range(3):
                await app.send(Paid("s-1"))
                paid = [entry.position for entry in await sale.stream() if entry.event == Received(Paid("s-1"))]
                await sale.reset(paid[-1] - 1)
                assert [again.due for again in await app.timers()] == [timer.due]

    run(main)


def test_timers_are_set_anew_for_when_they_were_to_fire(make_app: MakeApp) -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with Prices(10).on(make_app(clock)) as app:
            await app.send(Order("s-1"))
            await until(lambda: amount_is(app, 10))
            (timer,) = await app.timers()
            await app.send(Paid("s-1"))
            assert await app.timers() == []
            clock.advance(60)
            sale = app.instance(Sale, "s-1")
            await sale.reset(5)
            (again,) = await app.timers()
            assert again.due == timer.due
            assert not (await sale.state()).paid
            clock.advance(3_600)
            await until(lambda: _ended(app))
            assert (await sale.state()).late

    async def _ended(app: Mainspring) -> bool:
        clock.advance(1)
        return (await app.instance(Sale, "s-1").row()).status == "completed"

    run(main)


def test_an_ended_instance_can_go_back_before_its_end(make_app: MakeApp) -> None:
    async def main() -> None:
        async with Prices(10).on(make_app()) as app:
            await app.send(Order("s-1"))
            await until(lambda: amount_is(app, 10))
            await app.send(TooLate("s-1"))
            sale = app.instance(Sale, "s-1")
            assert (await sale.row()).status == "completed"
            await sale.reset(5)
            assert (await sale.row()).status == "running"
            assert (await app.send(Paid("s-1"))).status == "stepped"

    run(main)


def test_a_reset_of_a_reset_counts_from_what_is_left(make_app: MakeApp) -> None:
    async def main() -> None:
        async with Prices(1, 2, 3).on(make_app()) as app:
            await app.send(Order("s-1"))
            await until(lambda: amount_is(app, 1))
            sale = app.instance(Sale, "s-1")
            await sale.reset(4)
            await until(lambda: amount_is(app, 2))
            await sale.reset(4)
            await until(lambda: amount_is(app, 3))
            with pytest.raises(OperationError, match="cannot be reset to position 5"):
                await sale.reset(5)

    run(main)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 99])
def test_only_the_end_of_a_step_can_be_gone_back_to(make_app: MakeApp, version: int) -> None:
    async def main() -> None:
        async with Prices(10).on(make_app()) as app:
            await app.send(Order("s-1"))
            await until(lambda: amount_is(app, 10))
            with pytest.raises(OperationError, match=r"Choose one at which a step had ended.*: 4\."):
                await app.instance(Sale, "s-1").reset(version)

    run(main)
