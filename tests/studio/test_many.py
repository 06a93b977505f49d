"""Many instances and long streams: few of them are in the page, and all of them are reached."""

from __future__ import annotations

import time
from collections.abc import Generator

import pytest
from playwright.sync_api import Page, Request, expect

from tests.studio.shop import PATIENCE_SECONDS, Sent, Tick, fill
from tests.studio.support import Studio, needs_browser, needs_page, served

pytestmark = [needs_page, needs_browser]

INSTANCES = 10_000
EVENTS = 2_001
ROWS_IN_PAGE = 80
# What a move of the slider may change in the page: the state, the event, the diagram and a few rows.
NODES_CHANGED = 150
# Moves the slider, lets the page draw, and counts what has changed.
SCRUB = """
async (versions) => {
  const slider = document.querySelector('input[type=range]');
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  const shown = () => document.querySelector('.scrubber output').textContent;
  let changed = 0;
  const count = (records) => { changed += records.length; };
  const watch = new MutationObserver(count);
  watch.observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true});
  const found = [];
  for (const version of versions) {
    const begun = performance.now();
    changed = 0;
    set.call(slider, String(version));
    slider.dispatchEvent(new Event('input', {bubbles: true}));
    while (!shown().startsWith(`${version} /`)) await new Promise((over) => setTimeout(over));
    document.querySelector('.pane').getBoundingClientRect();
    count(watch.takeRecords());
    found.push({changed, took: performance.now() - begun});
    const state = document.querySelector('[aria-label="The state"]').textContent;
    if (JSON.parse(state).ticks !== version - 1) throw new Error(`${version} shows ${state}`);
  }
  return found;
}
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Generator[Studio]:
    folder = tmp_path_factory.mktemp("many")
    instances: list[Sent] = [(Tick(f"m-{number:05}", number), None) for number in range(INSTANCES)]
    fill(folder, [*instances, *((Tick("long", number), None) for number in range(EVENTS - 1))])
    with served(folder) as found:
        yield found


def test_ten_thousand_instances_are_scrolled_through_and_few_are_in_the_page(page: Page, many: Studio) -> None:
    page.goto(many.at("#/instances?prefix=m-&order=oldest"))
    page.get_by_text("m-00000").wait_for()
    ends = time.monotonic() + PATIENCE_SECONDS
    while not page.get_by_text("m-09999").count() and time.monotonic() < ends:
        page.evaluate("document.querySelector('.rows-box').scrollTo(0, 1e9)")
        page.wait_for_timeout(50)

    expect(page.get_by_text("m-09999")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="10,000 instances")).to_be_visible()
    assert page.locator(".row").count() < ROWS_IN_PAGE
    page.evaluate("document.querySelector('.rows-box').scrollTo(0, 0)")
    expect(page.get_by_text("m-00000")).to_be_visible()
    page.get_by_label("Order", exact=True).select_option("newest first")
    expect(page.locator(".row").nth(1)).to_contain_text("m-09999")


def test_a_search_goes_on_by_itself_behind_looks_that_found_nothing(
    page: Page, many: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.stores.sqlite.searching.SEARCHED", 1_000)
    looks: list[str] = []
    page.on("request", lambda request: looks.append(request.url) if "/api/instances?" in request.url else None)

    page.goto(many.at("#/instances?status=completed"))

    expect(page.get_by_text("No instance is like that.")).to_be_visible()
    assert len(looks) > INSTANCES // 1_000


def test_who_goes_back_to_a_list_finds_the_place_and_the_row(page: Page, many: Studio) -> None:
    page.goto(many.at("#/instances?prefix=m-&order=oldest"))
    page.get_by_text("m-00000").wait_for()
    page.evaluate("document.querySelector('.rows-box').scrollTo(0, 150 * 40)")
    page.get_by_role("link", name="Meters/m-00155").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Meters/m-00155")
    page.go_back()

    expect(page.get_by_role("link", name="Meters/m-00155")).to_be_focused()
    expect(page.get_by_role("link", name="Meters/m-00155")).to_be_in_viewport()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="Meters/m-00156")).to_be_focused()


def test_scrubbing_through_a_long_stream_changes_little_and_shows_the_right_state(page: Page, many: Studio) -> None:
    page.goto(many.at("#/instances/Meters/long?at=1000"))
    expect(page.get_by_role("region", name="Decision")).to_contain_text("Meters.evolve")
    expect(page.get_by_role("figure", name="The states of Meters")).to_be_visible()
    asked: list[str] = []

    def ask(request: Request) -> None:
        asked.append(request.url)

    page.on("request", ask)
    moves = page.evaluate(SCRUB, [*range(1001, 1031), *range(1030, 990, -1)])
    page.remove_listener("request", ask)

    # How long a move takes is measured on a quiet machine; here, that it needs little of the page and of the server.
    assert max(move["changed"] for move in moves) < NODES_CHANGED
    assert len([url for url in asked if "/moments/" in url or "/states/" in url]) <= 1
    assert page.locator(".row").count() < ROWS_IN_PAGE


def test_a_far_version_of_a_long_stream_is_reached_by_its_address(page: Page, many: Studio) -> None:
    page.goto(many.at(f"#/instances/Meters/long?at={EVENTS - 1}"))

    expect(page.get_by_label("The state", exact=True)).to_contain_text(f'"ticks": {EVENTS - 2}')
    expect(page.locator(".row.current")).to_contain_text("Received")
    assert page.locator(".row").count() < ROWS_IN_PAGE


def test_an_operation_on_many_is_watched_stopped_and_found_again(page: Page, many: Studio) -> None:
    page.goto(many.at("#/instances?prefix=m-0"))
    page.get_by_role("button", name="Operate on all found …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Count first").click()
    dialog.get_by_role("button", name="Suspend 10,000 instances").click()
    expect(dialog).to_contain_text("Under way")
    dialog.get_by_role("button", name="Close").click()

    card = page.get_by_role("region", name="Under way")
    expect(card).to_contain_text("suspend")
    card.get_by_role("button", name="Stop it").click()
    expect(card).to_have_count(0)
    jobs = page.request.get(many.at("api/bulk")).json()
    assert [(job["status"], job["left"] > 0) for job in jobs if not job["dry_run"]] == [("stopped", True)]
