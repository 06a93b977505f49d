"""The routing table: from Python and from a file, checked before the first message."""

import asyncio
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.brokers import Brokers
from mainspring.brokers.memory import MemoryBroker
from mainspring.errors import MainspringError, SettingError, WiringError
from mainspring.testing import simulate
from tests.edges.brokers.orders_and_payments import ChargeCard, OrderPaid, Orders, PlaceOrder, drained, message, orders
from tests.support.paths import ROOT
from tests.support.waiting import until

TABLE = """
[brokers.main]
url = "memory://"

[endpoints.orders]
broker = "main"
address = "orders.in"

[endpoints.payments]
broker = "main"
address = "payments.in"

[endpoints.events]
broker = "main"
address = "orders.out"

[receives.orders]
types = ["PlaceOrder"]
group = "shop-eu"
prefetch = 50

[sends]
ChargeCard = "payments"

[publishes]
OrderPaid = ["events"]
"""


def shop() -> tuple[Mainspring, Brokers]:
    app = Mainspring("memory://")
    app.add(Orders())
    return app, Brokers(app, "shop")


def test_a_file_says_which_type_goes_to_which_endpoint_at_which_broker(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "brokers.toml"
        path.write_text(TABLE)
        app, brokers = shop()
        brokers.configure(path)
        broker = brokers.broker("main")
        assert isinstance(broker, MemoryBroker)
        async with app:
            await broker.publish([message("orders.in", "1", PlaceOrder("o-1", 1))])
            await until(lambda: broker.log("payments.in"))
            await drained(broker, "orders.in", "shop-eu")
            assert internals_of(app).services.sources["orders"].figures.group == "shop-eu"

    asyncio.run(main())


def test_the_table_on_the_page_fits_its_app() -> None:
    page = (ROOT / "docs/how-to/brokers.md").read_text()
    (table,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    app, brokers = shop()

    brokers.configure(tomllib.loads(table))
    brokers.prepare()

    assert set(internals_of(app).services.sources) == {"orders", "paid"}
    assert brokers.source("orders") is internals_of(app).services.sources["orders"]
    with pytest.raises(WiringError, match=r"Nothing is received from nowhere\. There are: orders, paid\."):
        brokers.source("nowhere")


MAIN = {"main": {"url": "memory://"}}
ORDERS = {"orders": {"broker": "main", "address": "orders.in"}}


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"endpoints": ORDERS}, "at the broker main, which was not added"),
        ({"brokers": MAIN, "sends": {"ChargeCard": "payments"}}, "There is no endpoint payments for ChargeCard"),
        ({"brokers": MAIN, "endpoints": ORDERS, "sends": {"ChargeCrad": "orders"}}, "knows ChargeCrad"),
        (
            {"brokers": MAIN, "endpoints": ORDERS, "receives": {"orders": {"types": ["PlaceOrdre"]}}},
            "PlaceOrdre is received from orders, and nothing here takes it",
        ),
        (
            {"brokers": MAIN, "endpoints": {"orders": {**ORDERS["orders"], "replies": "back"}}},
            "There is no endpoint back for the replies of orders",
        ),
        (
            {"brokers": MAIN, "endpoints": ORDERS, "publishes": {"OrderPaid": "orders"}, "receives": {"orders": {}}},
            "OrderPaid is published to orders and received from orders, which are the same place",
        ),
        (
            {
                "brokers": MAIN,
                "endpoints": {**ORDERS, "all": {"broker": "main", "address": "orders.>"}},
                "publishes": {"OrderPaid": "orders"},
                "receives": {"all": {}},
            },
            "OrderPaid is published to orders and received from all, which are the same place",
        ),
        ({"brokers": {"main": {}}}, "The broker main has no url"),
        ({"brokers": {"main": {"url": "smtp://x"}}}, "The broker's URL is 'smtp'"),
        ({"brokers": {"main": {"url": "//ann:secret@host"}}}, "The broker's URL is 'without a scheme'"),
        ({"brokers": {"main": {"url": "memory://", "size": 1}}}, "An option of MemoryBroker is"),
        ({"endpoint": ORDERS}, "unknown field `endpoint`"),
        ({"endpoints": {"orders": {"broker": "main"}}}, "missing required field `address`"),
        ({"endpoints": {"a b": ORDERS["orders"]}}, "The endpoint's name is 'a b'"),
        (
            {"brokers": MAIN, "endpoints": ORDERS, "receives": {"orders": {"prefetch": 0}}},
            "The prefetch of orders is 0",
        ),
    ],
)
def test_what_does_not_fit_together_is_told_before_the_first_message(table: dict[str, Any], problem: str) -> None:
    app, brokers = shop()
    app.external(ChargeCard)

    def start() -> None:
        brokers.configure(table)
        asyncio.run(app.start())

    with pytest.raises(MainspringError) as caught:
        start()
    assert problem in str(caught.value)
    assert isinstance(caught.value, SettingError | WiringError)


def test_a_type_that_is_handled_here_cannot_be_sent_out_too() -> None:
    app, brokers = shop()

    @app.handler
    async def charge(command: ChargeCard) -> None: ...

    brokers.configure({"brokers": MAIN, "endpoints": ORDERS, "sends": {"ChargeCard": "orders"}})
    with pytest.raises(WiringError, match=r"Two handlers take ChargeCard: .*charge and to orders"):
        asyncio.run(app.start())


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    _, brokers = shop()
    (tmp_path / "broken.toml").write_text("[brokers")
    for name in ("broken.toml", "missing.toml"):
        with pytest.raises(SettingError, match="It cannot be read"):
            brokers.configure(tmp_path / name)


def test_nothing_can_be_declared_once_the_app_has_started() -> None:
    async def main() -> None:
        app, brokers = orders("memory://", MemoryBroker())
        async with app:
            with pytest.raises(WiringError, match="before it starts"):
                brokers.publish(OrderPaid, to="events")

    asyncio.run(main())


def test_in_a_simulation_nothing_comes_in_and_what_goes_out_is_stubbed() -> None:
    async def main() -> None:
        broker = MemoryBroker()
        app, _ = orders("memory://", broker)
        await broker.publish([message("orders.in", "1", PlaceOrder("o-2", 1))])
        charged: list[str] = []

        def charge(command: ChargeCard) -> None:
            charged.append(command.order_id)

        async with simulate(app, stubs={ChargeCard: charge}) as world:
            await world.send(PlaceOrder("o-1", 1))
            await world.settle()
        assert charged == ["o-1"]
        assert await broker.lag("orders.in", "shop") == 1

    asyncio.run(main())
