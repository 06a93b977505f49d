"""What is worth a look stands above a workflow's figures, and its link leads to where it is shown."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from mainspring.analysis.figures.advice import LEAST
from tests.studio.orders_meters_and_leave import PlaceOrder, fill
from tests.studio.serving import needs_browser, needs_page, served

pytestmark = [needs_page, needs_browser]


def test_a_timer_that_never_fired_is_told_and_its_link_leads_to_the_drawn_workflow(page: Page, folder: Path) -> None:
    fill(folder, [(PlaceOrder(f"small-{number}", 1), None) for number in range(LEAST)])
    with served(folder) as own:
        page.goto(own.at("#/workflows/Orders?tab=bottlenecks"))
        told = page.get_by_role("region", name="Worth a look")
        expect(told).to_contain_text("PaymentTimedOut was set")
        expect(told).to_contain_text("and never fired")
        expect(page.get_by_role("table", name="Timers")).to_contain_text("PaymentTimedOut")

        told.get_by_role("link", name="PaymentTimedOut: timer never fires").click()

        expect(page.get_by_role("figure", name="The states of Orders")).to_contain_text("AwaitingPayment")
        assert page.evaluate("location.hash") == "#/workflows/Orders"


def test_a_workflow_with_too_few_instances_is_told_nothing(page: Page, folder: Path) -> None:
    with served(folder) as own:
        page.goto(own.at("#/workflows/LeaveRequests?tab=bottlenecks"))
        expect(page.get_by_role("region", name="Where the time goes")).to_be_visible()
        expect(page.get_by_role("region", name="Worth a look")).to_have_count(0)
