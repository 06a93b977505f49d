"""The lines at which a flow waits, in the studio: the source with the line marked, calls, variables, the scrubber."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.edges import flow_shop
from tests.studio.serving import Studio, needs_browser, needs_page, send, served, settled
from tests.studio.test_access import AUDIT, nameless

pytestmark = [needs_page, needs_browser]

WAITING = {
    5: "53        await receive(Confirmed)",
    8: "45    parcels = await asyncio.gather(ship(order.order_id, 1), ship(order.order_id, 2))",
}
OVERFLOWS = "document.scrollingElement.scrollWidth > innerWidth"


@pytest.fixture
def flows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Studio]:
    monkeypatch.chdir(tmp_path)
    with served(tmp_path, app=flow_shop.app) as found:
        yield found


def order(page: Page, studio: Studio) -> None:
    """Let an order come to where it waits for its confirmation."""
    message = {"order_id": "o-1", "card": "4111-2222"}
    send(page, studio, "PlaceOrder", message, makes="fulfil/o-1", version=5)


def card(page: Page) -> Locator:
    return page.get_by_role("region", name="Where it waits")


def test_the_waiting_line_is_marked_with_its_calls_and_variables(page: Page, flows: Studio) -> None:
    order(page, flows)
    page.goto(flows.at("#/instances/fulfil/o-1"))
    shown = card(page)

    expect(shown).to_contain_text("fulfil waits for a message Confirmed, until ")
    expect(shown.locator(".source .at")).to_have_text("53        await receive(Confirmed)")
    expect(shown.get_by_label("The variables of confirmed")).to_contain_text("'CHARGE OF 4111-2222'")
    shown.get_by_role("button", name="called in fulfil").click()
    expect(shown.locator(".source .at")).to_have_text("44    await confirmed(charged)")
    expect(shown.get_by_label("The variables of fulfil")).to_contain_text("card='4111-2222'")


def test_the_scrubber_moves_through_the_source(page: Page, flows: Studio) -> None:
    order(page, flows)
    send(page, flows, "Confirmed", {"order_id": "o-1"}, makes="fulfil/o-1", version=12)
    page.goto(flows.at("#/instances/fulfil/o-1?at=3"))
    marked = card(page).locator(".source .at")

    expect(marked).to_contain_text("charged = await charge(")
    page.get_by_role("slider", name="Position").focus()
    page.keyboard.press("ArrowRight")
    expect(marked).to_contain_text("await receive(Confirmed)")
    page.keyboard.press("End")
    expect(marked).to_contain_text("await ask(")


def test_each_task_of_a_gather_can_be_looked_at(page: Page, flows: Studio) -> None:
    order(page, flows)
    send(page, flows, "Confirmed", {"order_id": "o-1"}, makes="fulfil/o-1", version=12)
    page.goto(flows.at("#/instances/fulfil/o-1?at=8"))
    tasks = card(page).get_by_label("Tasks of the code").get_by_role("button")

    expect(tasks).to_have_count(3)
    expect(card(page)).to_contain_text("fulfil waits for the end of ")
    tasks.nth(2).click()
    expect(card(page)).to_contain_text("waits for the step ship, asked for at position 9")


def test_the_overview_says_at_which_line_stuck_flows_wait(page: Page, flows: Studio) -> None:
    order(page, flows)
    assert page.request.post(flows.at("api/operations/suspend/fulfil/o-1"), data={"reason": "to see"}).ok
    page.goto(flows.at(""))
    stuck = page.get_by_role("region", name="Seem stuck")

    expect(stuck).to_contain_text("1 flow waits at tests/edges/flow_shop.py:53 in confirmed")


def test_where_fields_are_redacted_variables_have_their_types_alone(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with served(tmp_path, app=flow_shop.app, redact=["card"]) as studio:
        order(page, studio)
        page.goto(studio.at("#/instances/fulfil/o-1?at=3"))

        expect(card(page).get_by_label("The variables of fulfil")).to_have_text("order PlaceOrder")
        expect(card(page)).to_contain_text("variables have their types alone")
        assert "4111" not in card(page).inner_text()


def test_on_a_narrow_screen_the_source_scrolls_and_the_page_does_not(page: Page, flows: Studio) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    order(page, flows)
    page.goto(flows.at("#/instances/fulfil/o-1?at=3"))

    expect(card(page).locator(".source .at")).to_be_visible()
    assert not page.evaluate(OVERFLOWS)


def test_a_workflow_that_is_no_flow_has_no_such_card(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances/Orders/o-5?at=2"))
    expect(page.get_by_role("region", name="Decision").locator(".branches code").first).to_be_visible()
    settled(page)

    expect(card(page)).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_card_has_names_contrast_and_order(page: Page, flows: Studio, theme: str) -> None:
    order(page, flows)
    send(page, flows, "Confirmed", {"order_id": "o-1"}, makes="fulfil/o-1", version=12)
    page.goto(flows.at("#/instances/fulfil/o-1"))
    page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
    for position in (5, 8):
        page.evaluate("at => location.hash = `#/instances/fulfil/o-1?at=${at}`", position)
        expect(card(page).locator(".source .at")).to_have_text(WAITING[position])
        settled(page)

        assert nameless(page) == []
        assert page.evaluate(AUDIT) == []
