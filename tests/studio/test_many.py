"""Many instances and long streams: few of them are in the page, and all of them are reached."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.studio.orders_meters_and_leave import Sent, Tick, fill
from tests.studio.serving import Studio, needs_browser, needs_page, served

pytestmark = [needs_page, needs_browser]

# So many that there are several pages of them; a soak takes more: --instances 10000.
INSTANCES = 1_300
WATCHED = 20
EVENTS = 1_201
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
def instances(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--instances", INSTANCES) or INSTANCES)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, instances: int) -> Generator[Studio]:
    folder = tmp_path_factory.mktemp("many")
    meters: list[Sent] = [(Tick(f"m-{number:05}", number), None) for number in range(instances)]
    watched: list[Sent] = [(Tick(f"w-{number:05}", number), None) for number in range(WATCHED)]
    # The long stream first: the meters are told apart by when they began.
    fill(folder, [*((Tick("long", number), None) for number in range(EVENTS - 1)), *watched, *meters])
    with served(folder) as found:
        yield found


def test_a_list_of_many_is_scrolled_to_its_end_and_few_are_in_the_page(
    page: Page, many: Studio, instances: int
) -> None:
    last = f"m-{instances - 1:05}"
    page.goto(many.at("#/instances?prefix=m-&order=oldest"))
    page.get_by_text("m-00000").wait_for()
    found = page.get_by_role("status").filter(has_text=f"{instances:,} instances")
    # Whoever is at the end of what is there is given the next page, until there is none.
    for rows in page_ends(instances):
        expect(page.get_by_role("table", name="Instances")).to_have_attribute("aria-rowcount", str(rows + 1))
        page.evaluate("document.querySelector('.rows-box').scrollTo(0, 1e9)")

    expect(page.get_by_text(last)).to_be_visible()
    expect(found).to_be_visible()
    assert page.locator(".row").count() < ROWS_IN_PAGE
    page.evaluate("document.querySelector('.rows-box').scrollTo(0, 0)")
    expect(page.get_by_text("m-00000")).to_be_visible()
    page.get_by_label("Order", exact=True).select_option("newest first")
    expect(page.locator(".row").nth(1)).to_contain_text(last)


def page_ends(instances: int) -> list[int]:
    """Return how many rows there are in a list after each of its pages: a short one at first.

    >>> page_ends(2_500)
    [200, 1200, 2200, 2500]
    """
    return [*range(200, instances, 1_000), instances]


def test_a_search_goes_on_by_itself_behind_looks_that_found_nothing(
    page: Page, many: Studio, instances: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.stores.sql.instances.SEARCHED", 500)
    looks: list[str] = []
    page.on("request", lambda request: looks.append(request.url) if "/api/instances?" in request.url else None)

    page.goto(many.at("#/instances?status=completed"))

    expect(page.get_by_text("No instance is like that.")).to_be_visible()
    assert len(looks) > instances // 500


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
    def slowly(route: Route) -> None:
        order: dict[str, Any] = json.loads(route.request.post_data or "{}")
        route.continue_(post_data=json.dumps({**order, "per_second": 0.01}))

    # However slow the browser is: it is under way for half an hour.
    page.route("**/api/bulk/suspend", slowly)
    page.goto(many.at("#/instances?prefix=w-"))
    page.get_by_role("button", name="Operate on all found …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Count first").click()
    dialog.get_by_role("button", name=f"Suspend {WATCHED} instances").click()
    expect(dialog).to_contain_text("Under way")
    dialog.get_by_role("button", name="Close").click()

    card = page.get_by_role("region", name="Under way")
    expect(card).to_contain_text("suspend")
    card.get_by_role("button", name="Stop it").click()
    expect(card).to_have_count(0)
    jobs = page.request.get(many.at("api/bulk")).json()
    assert [(job["status"], job["left"] > 0) for job in jobs if not job["dry_run"]] == [("stopped", True)]
