from __future__ import annotations

import asyncio

from examples.order_inventory.handlers import pack_order
from examples.order_inventory.inventory import (
    RESERVED_FOR,
    Inventory,
    Reservation,
    ReservationExpired,
    ReservationMissed,
    ReserveStock,
    Stock,
    StockDelivered,
    StockReserved,
    StockShort,
    TakeStock,
)
from examples.order_inventory.workflow import (
    PACKING_PATIENCE,
    REPLY_PATIENCE,
    AwaitingPacking,
    AwaitingStock,
    Confirmed,
    InventoryTimedOut,
    Order,
    OrderConfirmed,
    OrderDelayed,
    OrderPacked,
    OrderRejected,
    PackingOverdue,
    PackOrder,
    PlaceOrder,
    Rejected,
)
from mainspring import CancelSchedule, Complete, Publish, Replied, Reply, Schedule, Send, Sent
from mainspring.errors import CannotBeginError, InstanceEndedError, UnknownTransitionError
from mainspring.testing import Rehearsal, given

PLACED = PlaceOrder("o-1", "teapot", 2)
RESERVED = StockReserved("teapot", "o-1", 2)
PACKED = OrderPacked("o-1", "PARCEL-1")

DELIVERED = StockDelivered("teapot", 5)
RESERVE = ReserveStock("teapot", "o-1", 2)


def test_an_order_asks_for_its_stock_and_waits_half_a_minute() -> None:
    (
        given(Order())
        .when(PLACED)
        .then(Send(RESERVE), Schedule(InventoryTimedOut("o-1"), after=REPLY_PATIENCE))
        .then_state(AwaitingStock())
    )


def test_an_order_with_stock_takes_it_and_is_packed() -> None:
    (
        given(Order(), PLACED)
        .when(RESERVED)
        .then(
            CancelSchedule(InventoryTimedOut),
            Send(TakeStock("teapot", "o-1")),
            Send(PackOrder("o-1", "teapot", 2)),
            Schedule(PackingOverdue("o-1"), after=PACKING_PATIENCE),
        )
        .then_state(AwaitingPacking())
    )


def test_an_order_without_stock_is_rejected() -> None:
    (
        given(Order(), PLACED)
        .when(StockShort("teapot", "o-1", 1))
        .then(Publish(OrderRejected("o-1", "only 1 of teapot left")), Complete())
        .then_state(Rejected("only 1 of teapot left"))
    )


def test_an_order_without_a_reply_is_rejected() -> None:
    (
        given(Order(), PLACED)
        .when(InventoryTimedOut("o-1"))
        .then(Publish(OrderRejected("o-1", "the inventory did not reply")), Complete())
        .then_state(Rejected("the inventory did not reply"))
    )


def test_a_reply_that_comes_after_the_timeout_finds_the_order_ended() -> None:
    given(Order(), PLACED, InventoryTimedOut("o-1")).when(RESERVED).then_raises(InstanceEndedError)


def test_a_timer_that_comes_after_the_reply_is_ignored() -> None:
    given(Order(), PLACED, RESERVED).when(InventoryTimedOut("o-1")).then().then_state(AwaitingPacking())


def test_a_packed_order_is_confirmed() -> None:
    (
        given(Order(), PLACED, RESERVED)
        .when(PACKED)
        .then(Complete(OrderConfirmed("o-1", "PARCEL-1")))
        .then_state(Confirmed("PARCEL-1"))
    )


def test_packing_that_takes_long_is_announced_and_still_awaited() -> None:
    (
        given(Order(), PLACED, RESERVED)
        .when(PackingOverdue("o-1"))
        .then(Publish(OrderDelayed("o-1")))
        .then_state(AwaitingPacking())
    )


def test_an_order_is_not_packed_before_there_is_stock() -> None:
    given(Order(), PLACED).when(PACKED).then_raises(UnknownTransitionError, match="AwaitingStock")


def test_only_placing_an_order_begins_it() -> None:
    given(Order()).when(RESERVED).then_raises(CannotBeginError, match="PlaceOrder")


def test_what_the_packing_table_answers_confirms_the_order() -> None:
    packed = asyncio.run(pack_order(PackOrder("o-1", "teapot", 2)))
    given(Order(), PLACED, RESERVED).when(packed).then(Complete(OrderConfirmed("o-1", packed.parcel)))


def test_a_delivery_fills_the_stock() -> None:
    given(Inventory(), DELIVERED).when(DELIVERED).then().then_state(Stock(available=10))


def test_stock_is_reserved_for_an_hour() -> None:
    (
        given(Inventory(), DELIVERED)
        .when(RESERVE)
        .then(
            Reply(RESERVED),
            Schedule(ReservationExpired("teapot", "o-1"), after=RESERVED_FOR, key="o-1"),
        )
        .then_state(Stock(available=3, reservations=(Reservation("o-1", 2),)))
    )


def test_an_order_that_asks_twice_gets_the_same_reply_and_no_more_stock() -> None:
    (
        given(Inventory(), DELIVERED, RESERVE)
        .when(RESERVE)
        .then(Reply(RESERVED))
        .then_state(Stock(available=3, reservations=(Reservation("o-1", 2),)))
    )


def test_too_little_stock_is_told_and_kept() -> None:
    (
        given(Inventory(), DELIVERED)
        .when(ReserveStock("teapot", "o-1", 6))
        .then(Reply(StockShort("teapot", "o-1", 5)))
        .then_state(Stock(available=5))
    )


def test_nobody_can_reserve_less_than_one() -> None:
    (
        given(Inventory(), DELIVERED)
        .when(ReserveStock("teapot", "o-1", -1))
        .then(Reply(StockShort("teapot", "o-1", 5)))
        .then_state(Stock(available=5))
    )


def test_a_product_that_was_never_delivered_is_short() -> None:
    given(Inventory()).when(RESERVE).then(Reply(StockShort("teapot", "o-1", 0))).then_state(Stock())


def test_reserved_stock_is_taken() -> None:
    (
        given(Inventory(), DELIVERED, RESERVE)
        .when(TakeStock("teapot", "o-1"))
        .then(CancelSchedule("o-1"))
        .then_state(Stock(available=3))
    )


def test_a_reservation_that_nobody_takes_is_given_up() -> None:
    (
        given(Inventory(), DELIVERED, RESERVE)
        .when(ReservationExpired("teapot", "o-1"))
        .then()
        .then_state(Stock(available=5))
    )


def test_a_timer_that_comes_after_the_stock_was_taken_gives_nothing_back() -> None:
    (
        given(Inventory(), DELIVERED, RESERVE, TakeStock("teapot", "o-1"))
        .when(ReservationExpired("teapot", "o-1"))
        .then()
        .then_state(Stock(available=3))
    )


def test_taking_stock_whose_reservation_expired_is_reported() -> None:
    (
        given(Inventory(), DELIVERED, RESERVE, ReservationExpired("teapot", "o-1"))
        .when(TakeStock("teapot", "o-1"))
        .then(Publish(ReservationMissed("teapot", "o-1")))
        .then_state(Stock(available=5))
    )


def test_stock_cannot_be_taken_from_a_product_nobody_knows() -> None:
    given(Inventory()).when(TakeStock("teapot", "o-1")).then_raises(CannotBeginError, match="StockDelivered")


def test_order_and_inventory_understand_each_other() -> None:
    order, inventory = Rehearsal(Order()), Rehearsal(Inventory())
    inventory.take(DELIVERED)

    asked = [event.message for event in order.take(PLACED).events if isinstance(event, Sent)]
    assert asked == [RESERVE]
    replied = [event.message for event in inventory.take(RESERVE).events if isinstance(event, Replied)]
    assert replied == [RESERVED]
    asked = [event.message for event in order.take(RESERVED).events if isinstance(event, Sent)]
    assert TakeStock("teapot", "o-1") in asked
    inventory.take(TakeStock("teapot", "o-1"))

    assert order.state == AwaitingPacking()
    assert inventory.state == Stock(available=3)
