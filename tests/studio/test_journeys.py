"""What people do in the studio, done in a real browser."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.studio.support import Studio, needs_browser, needs_page

pytestmark = [needs_page, needs_browser]


def test_the_overview_shows_what_runs_and_leads_to_it(page: Page, studio: Studio) -> None:
    page.goto(studio.at(""))

    expect(page.get_by_role("link", name=re.compile("^suspended [1-9]"))).to_be_visible()
    page.get_by_role("link", name=re.compile("^suspended")).click()

    expect(page.get_by_role("link", name="Orders/refused-1")).to_be_visible()
    assert "status=suspended" in page.url


def test_instances_are_searched_and_the_address_keeps_the_search(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances"))
    page.keyboard.press("/")
    page.keyboard.type("o-1")

    expect(page.get_by_role("status").filter(has_text="11 instances")).to_be_visible()
    page.get_by_label("Workflow").select_option("Meters")
    expect(page.get_by_text("No instance is like that.")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Id begins with")).to_have_value("o-1")
    expect(page.get_by_label("Workflow")).to_have_value("Meters")


def test_a_scrub_takes_state_change_diagram_and_decision_along(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances/Orders/o-5?at=2"))
    state = page.get_by_role("region", name="State")

    expect(state).to_contain_text("AwaitingPayment")
    expect(page.get_by_role("region", name="Decision")).to_contain_text(
        "case PlaceOrder(order_id, amount, note), New()"
    )
    expect(page.locator(".box.at")).to_contain_text("AwaitingPayment")
    page.get_by_role("slider", name="Version").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("output")).to_have_text("5 / 6")
    expect(state).to_contain_text("Paid")
    expect(state).to_contain_text("AwaitingPayment → Paid")
    expect(page.locator(".box.at")).to_contain_text("Paid")
    expect(page.get_by_role("region", name="Decision")).to_contain_text("amount < 1_000")
    page.wait_for_url(re.compile("at=5"))


def test_what_would_have_been_is_told_beside_what_was(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances/Orders/o-3?tab=what-if&at=2"))
    page.get_by_label("Message").fill('{"order_id": "o-3", "amount": 5000, "note": "please"}')
    page.get_by_role("button", name="Tell the other story").click()

    expect(page.get_by_text("it would have gone otherwise")).to_be_visible()
    expect(page.get_by_role("region", name="As it would have gone")).to_contain_text('"amount":5000')
    expect(page.get_by_role("list", name="What differs")).to_contain_text("5000")


def test_a_step_can_be_copied_as_a_test(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances/Orders/o-3?tab=raw&at=2"))

    expect(page.get_by_role("region", name="Version 2 as a test")).to_contain_text(".when(PlaceOrder(")
    expect(page.get_by_role("region", name="The stream, as JSON lines")).to_contain_text('"event":"InitiatedBy"')


def test_what_an_instance_waits_for_is_shown(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances/Orders/o-20?tab=waiting"))

    expect(page.get_by_role("region", name="Timers")).to_contain_text("PaymentTimedOut")
    expect(page.get_by_role("region", name="Commands")).to_contain_text("Everything that was decided is carried out.")


def test_an_operation_is_asked_about_and_recorded_with_who_did_it(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/settings"))
    page.get_by_label("Name").fill("olga")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The server lets you in.")).to_be_visible()
    page.goto(studio.at("#/instances/Orders/o-20"))
    page.get_by_role("button", name="Suspend …").click()
    page.get_by_label("Reason").fill("stocktaking")
    page.get_by_role("dialog").get_by_role("button", name="Suspend").click()

    expect(page.get_by_role("button", name="Resume …")).to_be_visible()
    event = page.get_by_role("region", name="Suspended")
    expect(event).to_contain_text("olga")
    expect(event).to_contain_text("stocktaking")


def test_many_are_counted_before_they_are_operated_on(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances?workflow=Orders&status=running&prefix=o-1"))
    page.get_by_role("button", name="Operate on all found …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Operation").select_option("cancel")
    dialog.get_by_role("button", name="Count first").click()

    expect(dialog).to_contain_text("Nothing was done yet.")
    dialog.get_by_role("button", name=re.compile(r"Cancel \d+ instances?")).click()
    expect(dialog).to_contain_text(re.compile(r"done: [1-9]\d* done, 0 left"))
    dialog.get_by_role("button", name="Done").click()
    expect(page.get_by_text("No instance is like that.")).to_be_visible()


def test_a_task_is_answered_by_its_form_and_its_maker_is_told_why_not(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/settings"))
    page.get_by_label("Name").fill("ann")
    page.get_by_role("button", name="Save").click()
    page.goto(studio.at("#/tasks"))
    page.get_by_role("link", name="Leave for ann?").first.click()
    page.get_by_label("granted").select_option("yes")
    page.get_by_role("button", name="Leave", exact=True).click()

    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_text("ann may not answer it")).to_be_visible()
    where = page.url
    page.goto(studio.at("#/settings"))
    page.get_by_label("Name").fill("bob")
    page.get_by_role("button", name="Save").click()
    page.goto(where)
    page.get_by_label("granted").select_option("yes")
    page.get_by_role("button", name="Leave", exact=True).click()
    expect(page.get_by_text("Answered with Leave by bob")).to_be_visible()


def test_dead_letters_are_grouped_corrected_and_carried_out(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/dead-letters"))
    expect(page.get_by_role("status").filter(has_text="3 dead letters, 1 kind")).to_be_visible()
    page.locator("summary").filter(has_text="Orders/refused-1").click()
    page.get_by_role("button", name="Edit and retry …").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Message").fill('{"order_id": "refused-1", "amount": 12, "note": "paid by bill"}')
    dialog.get_by_role("button", name="Retry").click()

    expect(page.get_by_role("status").filter(has_text="2 dead letters")).to_be_visible()
    page.get_by_role("button", name="Retry 2", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("Retry 2 dead letters?")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_workflow_is_drawn_checked_and_documented(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/workflows/Orders"))
    diagram = page.get_by_role("img", name="The states of Orders")
    expect(diagram).to_contain_text("AwaitingPayment")
    expect(diagram).to_contain_text("CardCharged ×")
    page.get_by_role("link", name="Bottlenecks").click()
    expect(page.get_by_role("region", name="Where the time goes")).to_contain_text("AwaitingPayment")
    page.get_by_role("link", name="Ways").click()
    expect(page.get_by_text("PlaceOrder → AwaitingPayment").first).to_be_visible()
    page.get_by_role("link", name="Findings").click()
    expect(page.get_by_role("main")).to_contain_text(re.compile("MS\\d+|Nothing is wrong"))
    page.get_by_role("link", name="Documentation").click()
    expect(page.get_by_role("region", name="States")).to_contain_text("The card is being charged.")


def test_keys_go_from_place_to_place_and_from_row_to_row(page: Page, studio: Studio) -> None:
    page.goto(studio.at(""))
    page.get_by_role("heading", name="Overview").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.get_by_role("link", name="Orders/o-1", exact=True).wait_for()
    for key in "jjk":
        page.keyboard.press(key)
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_contain_text("/")
    page.keyboard.press("g")
    page.keyboard.press("d")
    expect(page.get_by_role("heading", name="Dead letters")).to_be_visible()


def test_a_problem_is_shown_as_the_server_tells_it(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances/Orders/nobody"))

    expect(page.get_by_role("alert")).to_contain_text("no such instance")
    expect(page.get_by_role("alert")).to_contain_text("Check the id")


def test_the_theme_can_be_chosen_and_is_kept(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/settings"))
    page.get_by_role("combobox", name="Theme").select_option("dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()

    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    page.get_by_role("combobox", name="Theme").select_option("light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


def test_a_phone_shows_it_without_scrolling_sideways(page: Page, studio: Studio) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    for place in ("", "instances", "instances/Orders/o-5", "workflows/Orders", "tasks", "dead-letters"):
        page.goto(studio.at(f"#/{place}"))
        page.get_by_role("heading", level=1).wait_for()
        expect(page.locator(".loading")).to_have_count(0)

        assert page.evaluate("document.documentElement.scrollWidth") <= 390, place
