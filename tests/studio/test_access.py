"""Everybody can use it: by the keyboard alone, with a reader of the screen, in both themes, without motion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.studio.serving import Studio, named, needs_browser, needs_page, press_chord, settled

pytestmark = [needs_page, needs_browser]

AUDIT = (Path(__file__).parent / "audit.js").read_text()
NAMED = {
    *("button", "link", "textbox", "searchbox", "combobox", "checkbox", "slider", "spinbutton", "radio", "dialog"),
    *("region", "table", "figure", "image", "navigation", "main", "heading", "columnheader", "alertdialog"),
}
"""The roles that say nothing without a name."""
FEWEST_STEPS, MOST_STEPS = 20, 80
PHONE = 390
INSTANCE_TABS = ("history", "waiting", "links", "what-if", "log", "raw")
WORKFLOW_TABS = ("diagram", "bottlenecks", "ways", "findings", "what-if", "documentation")
PLACES = (
    "",
    "instances",
    "instances?attribute=nonsense",
    *(f"instances/Orders/o-5?at=5&tab={tab}" for tab in INSTANCE_TABS),
    "instances/Orders/refused-2",
    "instances/Moves/h-1?tab=links",
    "workflows",
    *(f"workflows/Orders?tab={tab}" for tab in WORKFLOW_TABS),
    "tasks",
    "dead-letters",
    "schedules?schedule=leap-day",
    "pauses",
    "workers",
    "settings",
    "nowhere",
)


def nameless(page: Page) -> list[str]:
    """Return what has no name in the tree that the browser gives to readers of the screen."""
    session = page.context.new_cdp_session(page)
    nodes: list[dict[str, Any]] = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    assert len(nodes) > 10
    shown = [node for node in nodes if not node.get("ignored")]
    return [
        f"{role} {node.get('properties')}"
        for node in shown
        if (role := node.get("role", {}).get("value")) in NAMED
        and not str(node.get("name", {}).get("value", "")).strip()
    ]


@pytest.mark.parametrize("width", [1280, PHONE])
def test_every_view_has_names_contrast_and_order_in_both_themes(page: Page, studio: Studio, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 860})
    page.goto(studio.at(""))
    wrong: list[str] = []
    for place in PLACES:
        page.evaluate("place => location.hash = `#/${place}`", place)
        settled(page)
        if width == PHONE:
            wide = page.evaluate("document.documentElement.scrollWidth")
            wrong += [f"{place}: {wide} pixels wide"] if wide > width else []
        else:
            wrong += [f"{place}: no name: {one}" for one in nameless(page)]
        # Colours do not depend on the width.
        for theme in ("light", "dark") if width > PHONE else ("light",):
            page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
            wrong += [f"{place}, {theme}: {one}" for one in page.evaluate(AUDIT)]

    assert not wrong, "\n".join(wrong)


def test_on_a_phone_a_diagram_is_not_shrunk_and_its_beginning_is_in_sight(page: Page, studio: Studio) -> None:
    page.set_viewport_size({"width": PHONE, "height": 860})
    page.goto(studio.at("#/workflows/Orders"))
    diagram = page.get_by_role("figure", name="The states of Orders")

    expect(diagram.locator(".box.begin")).to_be_in_viewport()
    drawn, own, room = diagram.evaluate("""(box) => {
      const svg = box.querySelector('svg');
      return [svg.getBoundingClientRect().width, svg.viewBox.baseVal.width, box.clientWidth];
    }""")
    assert round(drawn) == round(own) > room


def test_the_audit_finds_what_is_wrong(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/settings"))
    settled(page)
    page.evaluate("""() => {
      const main = document.querySelector('main');
      const add = (tag, more) => main.append(Object.assign(document.createElement(tag), more));
      add('p', {textContent: 'faint', style: 'color: #999'});
      add('h4', {textContent: 'deep'});
      add('button', {tabIndex: 3});
      add('input', {style: 'border: 1px solid #eee'});
    }""")

    found = page.evaluate(AUDIT)
    assert sorted(one.split(":")[0].split(" ")[0] for one in found) == ["a", "contrast", "contrast", "out"]
    assert len(nameless(page)) == 2


def test_a_task_is_answered_by_the_keyboard_alone(page: Page, studio: Studio) -> None:
    named(page, studio, "bea")
    page.keyboard.press("Escape")
    press_chord(page, "gt", "#/tasks")
    page.get_by_role("link", name="Leave for kim?").wait_for()
    for _ in range(20):
        if page.evaluate("document.activeElement.textContent") == "Leave for kim?":
            break
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="Leave for kim?").wait_for()
    page.get_by_label("granted").wait_for()
    tab_to(page, "granted")
    page.keyboard.type("yes")
    tab_to(page, "Leave")
    page.keyboard.press("Enter")

    expect(page.get_by_text("Answered with Leave by bea")).to_be_visible()


def test_a_dialog_keeps_the_focus_and_gives_it_back(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances/Meters/m-1"))
    page.get_by_role("button", name="Suspend …").focus()
    for leave in ("Escape", "Do nothing"):
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog", name="Suspend Meters/m-1?")).to_be_visible()
        assert page.evaluate("document.activeElement.closest('dialog') !== null")
        if leave == "Escape":
            page.keyboard.press(leave)
        else:
            tab_to(page, leave)
            page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_role("button", name="Suspend …")).to_be_focused()


def test_a_dialog_that_is_left_is_gone_when_it_does_not_show_any_more(page: Page, studio: Studio) -> None:
    """One that is closed and still there swallows the next key that asks for it."""
    page.goto(studio.at("#/instances/Meters/m-1"))
    page.get_by_role("button", name="Suspend …").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.evaluate("""() => {
      window.lingered = false;
      const dialog = document.querySelector('dialog');
      const look = () => { window.lingered ||= dialog.isConnected && !dialog.open; };
      new MutationObserver(look).observe(dialog, { attributes: true, attributeFilter: ['open'] });
    }""")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    assert page.evaluate("window.lingered") is False


def test_the_focus_is_seen_wherever_it_goes(page: Page, studio: Studio) -> None:
    page.goto(studio.at("#/instances/Orders/o-5"))
    settled(page)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the content")).to_be_focused()
    steps = 0
    while steps < MOST_STEPS:
        page.keyboard.press("Tab")
        outline, here = page.evaluate("""() => {
          const element = document.activeElement, style = getComputedStyle(element);
          const box = element.getBoundingClientRect();
          const seen = box.bottom > 0 && box.top < innerHeight && parseFloat(style.outlineWidth) >= 2;
          return [seen && style.outlineStyle !== 'none', element.outerHTML.slice(0, 80)];
        }""")
        if here.startswith("<body"):
            break
        assert outline, here
        steps += 1
    assert FEWEST_STEPS < steps < MOST_STEPS


def test_nothing_moves_for_who_wants_no_motion(page: Page, studio: Studio) -> None:
    moving = """() => {
      document.querySelector('main').append(Object.assign(document.createElement('p'), {className: 'loading'}));
      return [...document.querySelectorAll('*')].filter((one) => {
        const style = getComputedStyle(one);
        return style.animationName !== 'none' || parseFloat(style.transitionDuration) > 0;
      }).length;
    }"""
    page.goto(studio.at("#/settings"))
    settled(page)
    assert page.evaluate(moving) > 0
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(moving) == 0


def tab_to(page: Page, name: str) -> None:
    """Press Tab until something of that name has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        label = "e => (e.getAttribute('aria-label') ?? e.labels?.[0]?.textContent ?? e.textContent).trim()"
        if page.evaluate(f"({label})(document.activeElement)").startswith(name):
            return
    raise AssertionError(f"the key Tab does not lead to {name}")
