"""The patterns of the how-to pages, run durably on every store with the very code that the pages show."""

import sys
from collections.abc import Callable, Generator
from datetime import timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from mainspring import Mainspring, Received
from mainspring.errors import InstanceFailedError
from mainspring.testing import simulate
from mainspring.testing.clock import VirtualClock
from tests.project.test_docs import FENCE, ROOT
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

Page: TypeAlias = Callable[[str], Any]


@pytest.fixture
def page(tmp_path: Path) -> Generator[Page]:
    """Return the code of a how-to page as a module."""
    loaded: list[str] = []

    def load(name: str) -> Any:
        module_name = f"page_{name.replace('-', '_')}"
        path = tmp_path / f"{module_name}.py"
        blocks = FENCE.finditer((ROOT / "docs/how-to" / f"{name}.md").read_text())
        path.write_text("\n".join(block[1] for block in blocks))
        spec = spec_from_file_location(module_name, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[module_name] = module_from_spec(spec)
        loaded.append(module_name)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in loaded:
        del sys.modules[name]


async def status_of(app: Mainspring, identity: str) -> str:
    return (await app.instance_at(identity).row()).status


def test_a_confirmation_finds_its_transfer_and_a_second_one_does_no_harm(make_app: MakeApp, page: Page) -> None:
    shown = page("confirm-by-event")

    async def main() -> None:
        async with shown.wire(make_app()) as app:
            await app.send(shown.Transfer("t-1", 5))
        async with shown.wire(make_app()) as app:
            for _ in range(2):
                await app.publish(shown.TransferConfirmed("t-1"), id="webhook-7")
            await app.instance_at("MoneyTransfer/t-1").result()
            assert await app.dead_letters() == []
            await app.publish(shown.TransferConfirmed("unheard-of"))
            assert [letter.instance for letter in await app.dead_letters()] == ["MoneyTransfer/unheard-of"]

    run(main)


def test_a_timeout_ends_what_is_not_paid_and_only_that(make_app: MakeApp, page: Page) -> None:
    shown, clock = page("time-out"), VirtualClock()

    async def main() -> None:
        async with shown.wire(make_app(clock)) as app:
            paid = await app.send(shown.Reserve("4A"))
            await app.send(shown.Reserve("4B"))
            clock.advance(timedelta(minutes=14).total_seconds())
            await app.send(shown.Paid("4A"))
            assert await paid.result() == shown.Paid("4A")
        async with shown.wire(make_app(clock)) as app:
            assert await status_of(app, "Reservation/4B") == "running"
            clock.advance(timedelta(minutes=1).total_seconds())

            async def failed() -> bool:
                return await status_of(app, "Reservation/4B") == "failed"

            await until(failed)
            with pytest.raises(InstanceFailedError, match="not paid in time"):
                await app.instance_at("Reservation/4B").result()
            assert await status_of(app, "Reservation/4A") == "completed"
            assert await app.timers() == []

    run(main)


def test_an_unanswered_ticket_goes_from_the_clerk_to_the_manager(page: Page) -> None:
    shown = page("escalate")

    async def main() -> None:
        async with simulate(shown.wire(Mainspring("memory://"))) as world:
            world.stub(shown.Notify, lambda _: None)
            receipt = await world.send(shown.OpenTicket("t-1"))
            await world.advance(days=8)
            assert [call.message.whom for call in world.calls(shown.Notify)] == ["clerk", "clerk, again", "manager"]
            await world.send(shown.Answer("t-1"))
            await world.advance(days=30)
            assert len(world.calls(shown.Notify)) == 3
            assert (await receipt.row()).status == "completed"

    run(main)


def test_an_escalation_survives_a_restart(make_app: MakeApp, page: Page) -> None:
    shown, clock = page("escalate"), VirtualClock()

    async def main() -> None:
        async with shown.wire(make_app(clock)) as app:
            await app.send(shown.OpenTicket("t-1"))
        clock.advance(timedelta(days=2).total_seconds())
        async with shown.wire(make_app(clock)) as app:

            async def reminded() -> bool:
                return await app.instance_at("Ticket/t-1").state() == shown.Waiting(1)

            await until(reminded)

    run(main)


def test_a_quote_is_enriched_by_its_sender_a_handler_and_another_workflow(make_app: MakeApp, page: Page) -> None:
    shown = page("enrich")

    async def main() -> None:
        async with shown.wire(make_app()) as app:
            receipt = await app.send(shown.Quote("q-1", "ann", "DE"))
            assert await receipt.result() == shown.Discount(14)
            taken = [e.event.message for e in await receipt.stream() if isinstance(e.event, Received)]
            assert [type(message).__name__ for message in taken] == ["Quote", "RateFound", "Discount"]

    run(main)


def test_what_goes_out_is_translated_and_has_data_added_on_its_way(make_app: MakeApp, page: Page) -> None:
    shown = page("enrich")

    async def main() -> None:
        heard: list[Any] = []
        app = shown.wire_notices(make_app())

        async def partner(notice: Any) -> None:
            heard.append(notice)

        partner.__annotations__["notice"] = shown.ShipmentNotice
        app.subscribe(partner)
        async with app:
            await app.publish(shown.OrderShipped("o-1"))
            await until(lambda: bool(heard))
            await app.instance_at("Notices/o-1").result()
            assert heard == [shown.ShipmentNotice("SHIP-o-1", "https://track.example/o-1")]

    run(main)


def test_reactors_and_a_router_hear_of_an_event_once_each(make_app: MakeApp, page: Page) -> None:
    shown = page("react")

    async def main() -> None:
        heard: list[str] = []
        app = shown.wire(make_app())

        async def audit(event: Any) -> None:
            heard.append(event.order_id)
            if len(heard) == 1:
                raise ConnectionError("not now")

        audit.__annotations__["event"] = shown.OrderPaid
        app.subscribe(audit)
        async with app:
            for _ in range(2):
                await app.publish(shown.OrderPaid("o-1", 20_000), id="payment-7")
            await app.instance_at("AfterPayment/o-1").result()
            await until(lambda: len(heard) >= 2)
            published = [e.event for e in await app.instance_at("AfterPayment/o-1").stream()]
            assert [type(event).__name__ for event in published].count("Sent") == 1
            assert [type(event).__name__ for event in published].count("Published") == 1
            assert heard == ["o-1", "o-1"]
            assert await app.dead_letters() == []

    run(main)
