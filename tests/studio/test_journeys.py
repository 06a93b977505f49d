"""What people do in the studio, done in a real browser."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from mainspring import Envelope, RefuseAnswer
from mainspring.testing.samples import Leave, LeaveRequests
from tests.studio.orders_meters_and_leave import Meters
from tests.studio.serving import (
    Studio,
    named,
    needs_browser,
    needs_page,
    press_chord,
    send,
    served,
    settled,
    until_told,
)

pytestmark = [needs_page, needs_browser]


@pytest.fixture
def own(folder: Path) -> Generator[Studio]:
    """A server for one test alone: what that takes away, others look for."""
    with served(folder) as found:
        yield found


def test_the_overview_shows_what_runs_and_leads_to_it(page: Page, studio: Studio) -> None:
    page.goto(studio.at(""))

    expect(page.get_by_role("link", name=re.compile("^suspended [1-9]"))).to_be_visible()
    page.get_by_role("link", name=re.compile("^suspended")).click()

    expect(page.get_by_role("link", name="Orders/refused-1")).to_be_visible()
    assert "status=suspended" in page.url


def test_instances_are_searched_and_the_address_keeps_the_search(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances"))
    expect(page.get_by_role("status").filter(has_text="in all")).to_be_visible()
    settled(page)  # a key before the page listens is nobody's
    page.keyboard.press("/")
    expect(page.get_by_label("Id begins with")).to_be_focused()
    page.keyboard.type("o-1")

    expect(page.get_by_role("status").filter(has_text="11 instances")).to_be_visible()
    page.get_by_role("combobox", name="Workflow").select_option("Meters")
    expect(page.get_by_text("No instance is like that.")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Id begins with")).to_have_value("o-1")
    expect(page.get_by_role("combobox", name="Workflow")).to_have_value("Meters")


def test_instances_are_searched_by_the_version_of_their_workflow(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances?workflow=Meters&workflow_version=1"))
    expect(page.get_by_role("link", name="Meters/m-1", exact=True)).to_be_visible()
    page.get_by_label("Workflow version").fill("2")

    expect(page.get_by_text("No instance is like that.")).to_be_visible()


def test_a_scrub_takes_state_change_diagram_and_decision_along(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances/Orders/o-5?at=2"))
    state = page.get_by_role("region", name="State")

    expect(state).to_contain_text("AwaitingPayment")
    expect(page.get_by_role("region", name="Decision")).to_contain_text(
        "case PlaceOrder(order_id, amount, note), New()"
    )
    expect(page.locator(".box.at")).to_contain_text("AwaitingPayment")
    page.get_by_role("slider", name="Position").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("output")).to_have_text("5 / 6")
    expect(state).to_contain_text("Paid")
    expect(state).to_contain_text("AwaitingPayment → Paid")
    expect(page.locator(".box.at")).to_contain_text("Paid")
    expect(page.get_by_role("region", name="Decision").locator(".branches code").first).to_have_text(
        "case CardCharged(), AwaitingPayment(amount) if amount < 1_000"
    )
    page.wait_for_url(re.compile("at=5"))


# Changes a field, and once more in the very moment in which the address follows.
GOES_ON = """([selector, first, second]) => {
  const field = document.querySelector(selector);
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  const put = (value) => { set.call(field, value); field.dispatchEvent(new Event('input', {bubbles: true})); };
  const replace = history.replaceState;
  history.replaceState = (...where) => {
    history.replaceState = replace;
    replace.apply(history, where);
    queueMicrotask(() => put(second));
  };
  put(first);
}"""


def test_a_scrub_that_goes_on_while_the_address_follows_is_not_taken_back(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances/Meters/m-1?at=10"))
    expect(page.get_by_label("The state", exact=True)).to_contain_text('"ticks": 9')
    page.evaluate(GOES_ON, ["input[type=range]", "20", "30"])

    page.wait_for_url(re.compile("at=30"))
    expect(page.locator("output")).to_have_text("30 / 61")
    expect(page.get_by_label("The state", exact=True)).to_contain_text('"ticks": 29')


def test_what_is_typed_while_the_address_follows_is_not_lost(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances"))
    expect(page.get_by_role("status").filter(has_text="in all")).to_be_visible()
    settled(page)
    page.evaluate(GOES_ON, ["[data-search]", "o-1", "o-17"])

    page.wait_for_url(re.compile("prefix=o-17"))
    expect(page.get_by_label("Id begins with")).to_have_value("o-17")
    expect(page.get_by_role("status").filter(has_text=re.compile("^1 instance"))).to_be_visible()


def test_what_would_have_been_is_told_beside_what_was(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances/Orders/o-3?tab=what-if&at=2"))
    page.get_by_label("Message").fill('{"order_id": "o-3", "amount": 5000, "note": "please"}')
    page.get_by_role("button", name="Tell the other story").click()

    expect(page.get_by_text("it would have gone otherwise")).to_be_visible()
    expect(page.get_by_role("region", name="As it would have gone")).to_contain_text("amount 5000")
    expect(page.get_by_role("list", name="What differs")).to_contain_text("5000")
    # The timer is set in both stories.
    expect(page.get_by_role("region", name="As it would have gone").locator(".differs")).to_have_text(
        [re.compile("^2 InitiatedBy"), re.compile("^3 Sent")]
    )


def test_attributes_are_shown_and_lead_to_those_with_the_same(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances/Orders/o-16"))
    page.get_by_role("link", name="very, very big").click()

    expect(page.get_by_label("Attributes")).to_have_value("size='very, very big'")
    expect(page.get_by_role("status").filter(has_text="6 instances")).to_be_visible()
    page.get_by_label("Attributes").fill("size='very, very big', amount>=1900")
    expect(page.get_by_role("status").filter(has_text="2 instances")).to_be_visible()


def test_linked_instances_are_drawn_and_followed_further(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances/Carriers/box%20of%20h-1?tab=links"))
    graph = page.get_by_role("figure", name="Instances linked with Carriers/box of h-1")

    expect(graph).to_contain_text("Moves/h-1")
    expect(graph).not_to_contain_text("CarryBox")
    page.get_by_role("button", name="Look further").click()
    expect(graph).to_contain_text("CarryBox")
    graph.get_by_role("link", name="Moves/h-1").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Moves/h-1")


def test_a_step_can_be_copied_as_a_test(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances/Orders/o-3?tab=raw&at=2"))

    expect(page.get_by_role("region", name="Position 2 as a test")).to_contain_text(".when(PlaceOrder(")
    expect(page.get_by_role("region", name="The stream, as JSON lines")).to_contain_text('"event":"InitiatedBy"')


def test_what_an_instance_waits_for_is_shown(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances/Orders/o-20?tab=waiting"))

    expect(page.get_by_role("region", name="Timers")).to_contain_text("PaymentTimedOut")
    expect(page.get_by_role("region", name="Commands")).to_contain_text("No command waits to be carried out.")


def test_an_operation_is_asked_about_and_recorded_with_who_did_it(page: Page, studio: Studio) -> None:
    named(page, studio, "olga")
    send(page, studio, "PlaceOrder", {"order_id": "held-1", "amount": 1_200}, makes="Orders/held-1", version=5)
    page.goto(studio.at("#/instances/Orders/held-1"))
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
    named(page, studio, "mia")
    page.goto(studio.at("#/tasks"))
    page.get_by_role("link", name="Leave for mia?").click()
    page.get_by_label("granted").select_option("yes")
    page.get_by_role("button", name="Leave", exact=True).click()

    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_text("mia may not answer it")).to_be_visible()
    where = page.url
    named(page, studio, "bob")
    page.goto(where)
    page.get_by_label("granted").select_option("yes")
    page.get_by_role("button", name="Leave", exact=True).click()
    expect(page.get_by_text("Answered with Leave by bob")).to_be_visible()


def test_an_answer_that_the_workflow_refuses_is_told_in_the_form_and_may_be_given_otherwise(
    page: Page, own: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = LeaveRequests.decide

    def guarded(self: LeaveRequests, envelope: Envelope[Any], state: Any) -> Any:
        refuses = isinstance(envelope.message, Leave) and not envelope.message.granted
        return [RefuseAnswer("ask why first")] if refuses else decide(self, envelope, state)

    monkeypatch.setattr(LeaveRequests, "decide", guarded)
    named(page, own, "bob")
    page.goto(own.at("#/tasks"))
    page.get_by_role("link", name="Leave for mia?").click()
    page.get_by_label("granted").select_option("no")
    page.get_by_role("button", name="Leave", exact=True).click()

    expect(page.get_by_role("alert")).to_contain_text("ask why first")
    expect(page.get_by_text("may not answer it")).to_have_count(0)  # it is no question of who
    page.get_by_label("granted").select_option("yes")
    page.get_by_role("button", name="Leave", exact=True).click()
    expect(page.get_by_text("Answered with Leave by bob")).to_be_visible()


def test_the_next_task_of_a_role_is_taken_and_given_back(page: Page, studio: Studio) -> None:
    named(page, studio, "pia")
    page.goto(studio.at("#/tasks"))
    page.get_by_role("button", name="Take the next of manager").click()

    expect(page.get_by_role("heading", level=1)).to_contain_text("Leave for")
    expect(page.get_by_role("definition").filter(has_text="pia")).to_be_visible()
    page.get_by_role("button", name="Give it back").click()
    expect(page.get_by_role("definition").filter(has_text="nobody")).to_be_visible()


def test_an_instance_that_could_not_begin_says_so_and_leads_to_its_input(
    page: Page, own: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("the meter is broken")

    monkeypatch.setattr(Meters, "decide", refuse)
    assert page.request.post(own.at("api/messages/Tick"), data={"meter": "m-9", "value": 1}).ok
    until_told(page, own.at("api/instances/Meters/m-9"), lambda told: told.get("status") == "suspended")
    page.goto(own.at("#/instances/Meters/m-9"))

    expect(page.get_by_role("alert")).to_contain_text("ValueError: the meter is broken")
    expect(page.get_by_text("There is no event yet")).to_be_visible()
    settled(page)
    page.get_by_role("link", name="What waits for it").click()
    expect(page.get_by_role("main")).to_contain_text("Tick")


def test_dead_letters_are_grouped_corrected_and_carried_out(page: Page, own: Studio) -> None:
    page.goto(own.at("#/dead-letters"))
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
    page.get_by_role("button", name="Discard 2").click()
    with page.expect_response("**/dead-letter-operations/discard") as many:
        page.get_by_role("dialog").get_by_role("button", name="Discard 2 for good").click()
    assert many.value.json()["done"] == 2
    expect(page.get_by_text("No dead letters: nothing waits for somebody to mend it here.")).to_be_visible()


def test_a_retry_that_is_refused_can_be_forced(page: Page, own: Studio) -> None:
    assert page.request.post(own.at("api/operations/terminate/Orders/refused-1")).ok
    page.goto(own.at("#/dead-letters"))
    page.locator("summary").filter(has_text="Orders/refused-1").click()
    page.get_by_role("button", name="Retry …", exact=True).first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("checkbox")).to_have_count(0)
    dialog.get_by_role("button", name="Retry 1").click()

    expect(dialog.get_by_role("alert")).to_contain_text("1 letter stayed. The first: ")
    dialog.get_by_role("checkbox", name="Carry out also what its instance has gone on without").check()
    with page.expect_response("**/dead-letter-operations/retry") as forced:
        dialog.get_by_role("button", name="Retry 1").click()
    assert (forced.value.json()["done"], forced.value.json()["refusals"]) == (1, 0)
    expect(dialog).to_have_count(0)


def test_dead_letters_of_one_kind_can_be_opened_whatever_their_ids_look_like(page: Page, own: Studio) -> None:
    for meter in ("ann", "bob"):
        tick = {"meter": meter, "value": 1}
        send(page, own, "Tick", tick, makes=f"Meters/{meter}", version=2)
        assert page.request.post(own.at(f"api/operations/terminate/Meters/{meter}")).ok
        assert page.request.post(own.at("api/messages/Tick"), data=tick).ok
    page.goto(own.at("#/dead-letters"))

    expect(page.get_by_role("status").filter(has_text="5 dead letters, 2 kinds")).to_be_visible()
    for meter in ("ann", "bob"):
        expect(page.locator("summary").filter(has_text=f"Meters/{meter}")).to_have_count(1)


def test_a_workflow_is_drawn_checked_and_documented(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/workflows/Orders"))
    diagram = page.get_by_role("figure", name="The states of Orders")
    expect(diagram).to_contain_text("AwaitingPayment")
    expect(diagram).to_contain_text("CardCharged ×")
    page.get_by_role("link", name="Bottlenecks").click()
    expect(page.get_by_role("region", name="Where the time goes")).to_contain_text("AwaitingPayment")
    page.get_by_role("link", name="Ways").click()
    expect(page.get_by_text("PlaceOrder → AwaitingPayment").first).to_be_visible()
    page.get_by_role("link", name="Findings").click()
    expect(page.get_by_role("main")).to_contain_text(re.compile("MS\\d+|Nothing is wrong"))
    page.get_by_role("navigation", name="About this workflow").get_by_role("link", name="What if").click()
    page.get_by_role("button", name="Ask today's code").click()
    expect(page.get_by_role("status")).to_contain_text("no difference was found: compared were the decisions of")
    page.get_by_role("link", name="Documentation").click()
    expect(page.get_by_role("region", name="States")).to_contain_text("The card is being charged.")


def test_keys_go_from_place_to_place_and_from_row_to_row(page: Page, studio: Studio) -> None:
    page.goto(studio.at(""))
    page.get_by_role("heading", name="Overview").wait_for()
    press_chord(page, "gi", "#/instances")
    page.get_by_role("table", name="Instances").get_by_role("link").first.wait_for()
    for key in "jjk":
        page.keyboard.press(key)
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_contain_text("/")
    press_chord(page, "gd", "#/dead-letters")
    expect(page.get_by_role("heading", level=1)).to_have_text("Dead letters")


def test_who_goes_on_before_the_page_listens_gets_there(page: Page, studio: Studio) -> None:
    view = page.context.new_page()
    # As soon as the first view is drawn; what listens to the address begins a frame later, much later when it is busy.
    view.add_init_script("""
      const late = requestAnimationFrame;
      window.requestAnimationFrame = (call) => late(() => late(() => late(call)));
      new MutationObserver((_, watch) => {
        if (!document.querySelector('h1')) return;
        watch.disconnect();
        location.hash = '#/settings';
      }).observe(document, {subtree: true, childList: true});
    """)
    view.goto(studio.at("#/workers"))

    expect(view.get_by_role("heading", level=1)).to_have_text("Settings")


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


def test_a_handler_is_paused_seen_at_once_and_goes_on(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/pauses"))
    going = page.get_by_role("list", name="Going on")
    what = (going.get_by_role("listitem").first.locator("span").text_content() or "").strip()
    going.get_by_role("button", name=f"Pause {what}").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Reason").fill("the bank moves")
    dialog.get_by_role("button", name="Pause").click()

    row = page.get_by_role("table", name="Paused").get_by_role("row", name=what)
    expect(row).to_contain_text("the bank moves")
    page.goto(studio.at("#/"))
    expect(page.get_by_role("status", name="Paused")).to_contain_text("the bank moves")
    page.goto(studio.at("#/pauses"))
    row.get_by_role("button", name=f"Resume {what}").click()
    expect(page.get_by_text("Nothing is paused.")).to_be_visible()


def test_a_schedule_is_looked_at_stopped_and_goes_on(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/schedules"))
    card = page.get_by_role("region", name="leap-day")
    card.get_by_text("The next times").click()

    expect(card.get_by_role("listitem").first).to_contain_text(re.compile(r"\d{4}-02-29 0?3:00"))
    card.get_by_role("button", name="Pause").click()
    expect(card).to_contain_text("paused")
    card.get_by_role("button", name="Resume").click()
    expect(card).to_contain_text("active")
    card.get_by_role("button", name="Remove …").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(card).to_contain_text("removed")
    card.get_by_role("button", name="Resume").click()
    expect(card).to_contain_text("active")
