from __future__ import annotations

import asyncio

import pytest

from examples.order_processing import handlers
from examples.order_processing.workflow import (
    PAYMENT_PATIENCE,
    SHIPPING_PATIENCE,
    Abandoned,
    AwaitingPayment,
    AwaitingShipment,
    AwaitingValidation,
    CardCharged,
    CardDeclined,
    ChargeCard,
    Fulfilled,
    OrderDelayed,
    OrderFailed,
    OrderFulfilled,
    OrderInvalidated,
    OrderProcessing,
    OrderShipped,
    OrderValidated,
    PaymentTimedOut,
    PlaceOrder,
    ReturningPayment,
    ReturnPayment,
    ShipOrder,
    ShippingOverdue,
    ShippingRefused,
    ValidateOrder,
)
from mainspring import CancelSchedule, Compensate, Complete, Fail, Mainspring, Publish, Schedule, Send
from mainspring.errors import CannotBeginError, InstanceEndedError, InstanceFailedError, UnknownTransitionError
from mainspring.testing import given, simulate

PLACED = PlaceOrder("o-1", "teapot", 2, "card-ann")
VALIDATED = OrderValidated("o-1", 4_800)
CHARGED = CardCharged("o-1")
SHIPPED = OrderShipped("o-1", "PARCEL-1")
TOO_LATE = "the bank did not answer in time"


@pytest.fixture(autouse=True)
def the_bank_has_taken_nothing() -> None:
    handlers.CHARGES_CENTS.clear()
    handlers.RETURNED.clear()


def test_a_placed_order_is_validated_first() -> None:
    (
        given(OrderProcessing())
        .when(PLACED)
        .then(Send(ValidateOrder("o-1", "teapot", 2)))
        .then_state(AwaitingValidation(PLACED))
    )


def test_a_valid_order_is_charged_and_the_bank_has_five_minutes() -> None:
    (
        given(OrderProcessing(), PLACED)
        .when(VALIDATED)
        .then(
            Send(ChargeCard("o-1", "card-ann", 4_800), compensate=ReturnPayment("o-1")),
            Schedule(PaymentTimedOut("o-1"), after=PAYMENT_PATIENCE),
        )
        .then_state(AwaitingPayment(PLACED))
    )


def test_an_invalid_order_fails_before_anything_is_charged() -> None:
    (
        given(OrderProcessing(), PLACED)
        .when(OrderInvalidated("o-1", "sold out"))
        .then(Publish(OrderFailed("o-1", "sold out")), Fail("sold out"))
        .then_state(Abandoned("sold out"))
    )


def test_a_paid_order_is_shipped() -> None:
    (
        given(OrderProcessing(), PLACED, VALIDATED)
        .when(CHARGED)
        .then(
            CancelSchedule(PaymentTimedOut),
            Send(ShipOrder("o-1", "teapot", 2)),
            Schedule(ShippingOverdue("o-1"), after=SHIPPING_PATIENCE),
        )
        .then_state(AwaitingShipment(PLACED))
    )


def test_a_declined_card_fails_the_order() -> None:
    (
        given(OrderProcessing(), PLACED, VALIDATED)
        .when(CardDeclined("o-1", "limit"))
        .then(Publish(OrderFailed("o-1", "limit")), Fail("limit"))
        .then_state(Abandoned("limit"))
    )


def test_a_shipped_order_is_fulfilled() -> None:
    (
        given(OrderProcessing(), PLACED, VALIDATED, CHARGED)
        .when(SHIPPED)
        .then(Complete(OrderFulfilled("o-1", "PARCEL-1")))
        .then_state(Fulfilled("PARCEL-1"))
    )


def test_a_shipment_that_takes_long_is_announced_and_still_awaited() -> None:
    (
        given(OrderProcessing(), PLACED, VALIDATED, CHARGED)
        .when(ShippingOverdue("o-1"))
        .then(Publish(OrderDelayed("o-1")))
        .then_state(AwaitingShipment(PLACED))
    )


def test_a_refused_shipment_gives_the_money_back() -> None:
    (
        given(OrderProcessing(), PLACED, VALIDATED, CHARGED)
        .when(ShippingRefused("o-1", "too big"))
        .then(Publish(OrderFailed("o-1", "too big")), Compensate("too big"))
        .then_undone(ReturnPayment("o-1"))
        .then_state(ReturningPayment("too big"))
    )


def test_a_silent_bank_is_asked_to_give_back_whatever_it_took() -> None:
    (
        given(OrderProcessing(), PLACED, VALIDATED)
        .when(PaymentTimedOut("o-1"))
        .then(Publish(OrderFailed("o-1", TOO_LATE)), Compensate(TOO_LATE))
        .then_undone(ReturnPayment("o-1"))
        .then_state(ReturningPayment(TOO_LATE))
    )


def test_a_payment_timer_that_comes_after_the_payment_is_ignored() -> None:
    (
        given(OrderProcessing(), PLACED, VALIDATED, CHARGED)
        .when(PaymentTimedOut("o-1"))
        .then()
        .then_state(AwaitingShipment(PLACED))
    )


def test_an_order_is_not_shipped_before_it_is_paid() -> None:
    given(OrderProcessing(), PLACED, VALIDATED).when(SHIPPED).then_raises(UnknownTransitionError, match="OrderShipped")


def test_only_placing_an_order_begins_it() -> None:
    given(OrderProcessing()).when(CHARGED).then_raises(CannotBeginError, match="PlaceOrder")


def test_nothing_is_decided_after_the_order_was_fulfilled() -> None:
    given(OrderProcessing(), PLACED, VALIDATED, CHARGED, SHIPPED).when(SHIPPED).then_raises(InstanceEndedError)


def test_what_the_handlers_answer_fulfils_an_order() -> None:
    validated = asyncio.run(handlers.validate_order(ValidateOrder("o-1", "teapot", 2)))
    charged = asyncio.run(handlers.charge_card(ChargeCard("o-1", "card-ann", 4_800)))
    shipped = asyncio.run(handlers.ship_order(ShipOrder("o-1", "teapot", 2)))

    assert (validated, charged) == (VALIDATED, CHARGED)
    assert isinstance(shipped, OrderShipped)
    (
        given(OrderProcessing(), PLACED, validated, charged)
        .when(shipped)
        .then(Complete(OrderFulfilled("o-1", shipped.tracking_number)))
    )


def test_what_the_handlers_refuse_fails_an_order() -> None:
    unknown = asyncio.run(handlers.validate_order(ValidateOrder("o-1", "unicorn", 1)))
    empty = asyncio.run(handlers.validate_order(ValidateOrder("o-1", "teapot", 0)))
    declined = asyncio.run(handlers.charge_card(ChargeCard("o-1", "card-bob", 4_800)))
    refused = asyncio.run(handlers.ship_order(ShipOrder("o-1", "grand piano", 1)))

    given(OrderProcessing(), PLACED).when(unknown).then_state(Abandoned("there is no unicorn in the catalogue"))
    given(OrderProcessing(), PLACED).when(empty).then_state(Abandoned("an order needs at least one piece"))
    given(OrderProcessing(), PLACED, VALIDATED).when(declined).then_state(Abandoned("the card's limit is too low"))
    given(OrderProcessing(), PLACED, VALIDATED, CHARGED).when(refused).then_state(
        ReturningPayment("a grand piano does not fit into a parcel")
    )


def durable() -> Mainspring:
    app = Mainspring("memory://")
    app.add(OrderProcessing())
    for handler in (handlers.validate_order, handlers.charge_card, handlers.return_payment, handlers.ship_order):
        app.handler(handler)
    return app


def test_in_the_real_engine_a_refused_order_is_abandoned_when_its_money_is_back() -> None:
    async def main() -> None:
        async with asyncio.timeout(20), simulate(durable()) as world:
            await world.send(PlaceOrder("o-1", "grand piano", 1, "card-ann"))
            order = world.instance(OrderProcessing, "o-1")
            with pytest.raises(InstanceFailedError, match="does not fit into a parcel"):
                await order.result()
            assert await order.state() == Abandoned("a grand piano does not fit into a parcel")
            assert not handlers.CHARGES_CENTS
            assert "o-1" in handlers.RETURNED
            assert world.timers() == []

    asyncio.run(main())


def test_in_the_real_engine_a_silent_bank_is_asked_no_more_once_the_order_is_abandoned() -> None:
    async def main() -> None:
        async with asyncio.timeout(20), simulate(durable()) as world:
            world.stub(ChargeCard, OSError("the bank is silent"))
            await world.send(PLACED)
            await world.advance(PAYMENT_PATIENCE)
            assert await world.instance(OrderProcessing, "o-1").state() == Abandoned(TOO_LATE)
            assert "o-1" in handlers.RETURNED
            calls = len(world.calls(ChargeCard))
            await world.advance(days=1)
            assert len(world.calls(ChargeCard)) == calls

    asyncio.run(main())


def test_a_charge_that_comes_after_its_return_takes_no_money() -> None:
    asyncio.run(handlers.charge_card(ChargeCard("o-1", "card-ann", 4_800)))
    asyncio.run(handlers.return_payment(ReturnPayment("o-1")))
    again = asyncio.run(handlers.charge_card(ChargeCard("o-1", "card-ann", 4_800)))

    assert again == CardDeclined("o-1", "the order was given up")
    assert "o-1" not in handlers.CHARGES_CENTS
