"""Orders whose trouble is planted: what is slow, fails or never happens is said by each test."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from mainspring import (
    CancelSchedule,
    Complete,
    Context,
    Decisions,
    DoNotRetryError,
    Event,
    Fail,
    InitiatedBy,
    Mainspring,
    RateLimit,
    Received,
    Retry,
    Schedule,
    Send,
    SendFailed,
    Workflow,
)
from mainspring.testing.simulation.world import World


@dataclass(frozen=True)
class PlaceOrder:
    order_id: str


@dataclass(frozen=True)
class CardCharged:
    order_id: str


@dataclass(frozen=True)
class PickedUp:
    order_id: str


@dataclass(frozen=True)
class Cancel:
    order_id: str


@dataclass(frozen=True)
class PaymentTimedOut:
    order_id: str


@dataclass(frozen=True)
class ChargeCard:
    order_id: str


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class AwaitingPayment:
    pass


@dataclass(frozen=True)
class AwaitingPickup:
    pass


Input = PlaceOrder | CardCharged | PickedUp | Cancel | PaymentTimedOut | SendFailed
State = New | AwaitingPayment | AwaitingPickup


class Orders(Workflow[Input, State, ChargeCard]):
    """Charges a card, and waits until the goods are picked up."""

    begins = PlaceOrder
    initial_state = New()

    def route(self, message: Input, /) -> str | None:
        return None if isinstance(message, SendFailed) else message.order_id

    def decide(self, message: Input, state: State, /) -> Decisions[Any, ChargeCard] | None:
        match message, state:
            case PlaceOrder(order), New():
                return [Send(ChargeCard(order)), Schedule(PaymentTimedOut(order), after=timedelta(minutes=1))]
            case CardCharged(), AwaitingPayment():
                return [CancelSchedule("PaymentTimedOut")]
            case Cancel() | SendFailed() | PaymentTimedOut(), AwaitingPayment():
                return [Fail("no goods")]
            case PickedUp(), AwaitingPickup():
                return [Complete()]

    def evolve(self, state: State, event: Event[Any, ChargeCard], /) -> State | None:
        match event:
            case InitiatedBy(PlaceOrder()):
                return AwaitingPayment()
            case Received(CardCharged()):
                return AwaitingPickup()


class DeafOrders(Workflow[PlaceOrder | CardCharged | PickedUp | Cancel | PaymentTimedOut, State, ChargeCard]):
    """The same, which does not take failures."""

    name = "Orders"
    begins = PlaceOrder
    initial_state = New()

    route, decide, evolve = Orders.route, Orders.decide, Orders.evolve  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]


def shop(
    *, per_second: float = 1_000, seldom: Iterable[int] = (), often: Iterable[int] = (), listens: bool = True
) -> Mainspring:
    """Return the app. A card is refused where the number is among `seldom`, and needs two attempts if among `often`."""
    app = Mainspring("memory://")
    app.add(Orders() if listens else DeafOrders())
    refused, twice = {f"o-{n}" for n in seldom}, {f"o-{n}" for n in often}

    retry = Retry(first=timedelta(milliseconds=1), max_attempts=3)

    @app.handler(retry=retry, rate=RateLimit(per_second=per_second), timeout=timedelta(hours=1))
    async def charge(command: ChargeCard, context: Context) -> CardCharged:
        if command.order_id in refused:
            raise DoNotRetryError("the card is no good")
        if command.order_id in twice and context.attempt == 1:
            raise ConnectionError("the bank is busy")
        return CardCharged(command.order_id)

    return app


async def order(world: World, count: int, *, pickup: timedelta = timedelta(seconds=1)) -> None:
    """Place so many orders, and let what was paid be picked up after a while."""
    numbered = [f"o-{n}" for n in range(count)]
    for each in numbered:
        await world.put(PlaceOrder(each))
    await world.advance(seconds=40)
    await world.advance(pickup)
    for each in numbered:
        if (await world.app.instance_at(f"Orders/{each}").row()).status == "running":
            await world.send(PickedUp(each))
    await world.settle()


async def spoil(world: World) -> None:
    """Let one order be cancelled, and one run out of time: so that nothing has never happened."""
    world.stub(ChargeCard, CardCharged("late"), takes=timedelta(minutes=2))
    await world.send(PlaceOrder("cancelled"))
    await world.send(Cancel("cancelled"))
    await world.send(PlaceOrder("late"))
    await world.advance(minutes=5)
