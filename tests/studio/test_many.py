"""Many instances, long streams, and a server that goes away and comes back."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.studio.shop import PlaceOrder, Tick, fill, stocked
from tests.studio.support import Studio, needs_browser, needs_page, served

pytestmark = [needs_page, needs_browser]

INSTANCES = 10_000
EVENTS = 2_001
ROWS_IN_PAGE = 80
REPAINT_MS = 50
# Moves the slider, lets the page draw, and asks where things lie: that is what a person waits for.
SCRUB = """
async (versions) => {
  const slider = document.querySelector('input[type=range]');
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  const shown = () => document.querySelector('.scrubber output').textContent;
  const took = [];
  for (const version of versions) {
    const begun = performance.now();
    set.call(slider, String(version));
    slider.dispatchEvent(new Event('input', {bubbles: true}));
    while (!shown().startsWith(`${version} /`)) await new Promise((over) => setTimeout(over));
    document.querySelector('.pane').getBoundingClientRect();
    took.push(performance.now() - begun);
    const state = document.querySelector('[aria-label="The state"]').textContent;
    if (JSON.parse(state).ticks !== version - 1) throw new Error(`${version} shows ${state}`);
  }
  return took.sort((one, other) => one - other);
}
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Generator[Studio]:
    folder = tmp_path_factory.mktemp("many")
    fill(folder, [(Tick(f"m-{number:05}", number), None) for number in range(INSTANCES)])
    with served(folder) as found:
        yield found


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Generator[Studio]:
    folder = tmp_path_factory.mktemp("long")
    fill(folder, [(Tick("long", number), None) for number in range(EVENTS - 1)])
    with served(folder) as found:
        yield found


def test_ten_thousand_instances_are_scrolled_through_and_few_are_in_the_page(page: Page, many: Studio) -> None:
    page.goto(many.at("#/instances?prefix=m-"))
    page.get_by_text("m-00000").wait_for()
    for _ in range(200):
        if page.get_by_text("m-09999").count():
            break
        page.evaluate("document.querySelector('.rows-box').scrollTo(0, 1e9)")
        page.wait_for_timeout(50)

    expect(page.get_by_text("m-09999")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="10,000 instances")).to_be_visible()
    assert page.locator(".row").count() < ROWS_IN_PAGE
    page.evaluate("document.querySelector('.rows-box').scrollTo(0, 0)")
    expect(page.get_by_text("m-00000")).to_be_visible()


def test_scrubbing_through_a_long_stream_repaints_at_once_and_shows_the_right_state(page: Page, long: Studio) -> None:
    page.goto(long.at("#/instances/Meters/long?at=1000"))
    expect(page.get_by_label("The state", exact=True)).to_contain_text('"ticks": 999')
    expect(page.get_by_role("img", name="The states of Meters")).to_be_visible()

    took = page.evaluate(SCRUB, [*range(1001, 1031), *range(1030, 990, -1)])

    # The median: what a busy machine does to single frames is not the page's doing.
    assert took[len(took) // 2] < REPAINT_MS


def test_a_far_version_of_a_long_stream_is_reached_by_its_address(page: Page, long: Studio) -> None:
    page.goto(long.at(f"#/instances/Meters/long?at={EVENTS - 1}"))

    expect(page.get_by_label("The state", exact=True)).to_contain_text(f'"ticks": {EVENTS - 2}')
    expect(page.locator(".row.current")).to_contain_text("Received")
    assert page.locator(".row").count() < ROWS_IN_PAGE


def test_the_page_comes_back_with_its_server_and_shows_what_happened_meanwhile(page: Page, folder: Path) -> None:
    stocked(folder)
    first = Studio(folder).start()
    page.goto(first.at("#/instances/Meters/m-1"))
    live = page.locator(".title .live")
    expect(live).to_have_text("live")
    expect(page.locator("output")).to_have_text("61 / 61")
    first.stop()
    expect(live).to_have_text("away")
    fill(folder, [(Tick("m-1", 7), None), (PlaceOrder("o-99", 5), None)])

    second = Studio(folder, port=first.port).start()
    try:
        expect(live).to_have_text("live")
        expect(page.locator("output")).to_have_text("62 / 62")
    finally:
        second.stop()


def test_what_happens_is_seen_at_once(page: Page, folder: Path) -> None:
    stocked(folder)
    with served(folder) as studio:
        page.goto(studio.at("#/instances/Meters/m-1"))
        expect(page.locator(".title .live")).to_have_text("live")
        page.request.post(studio.at("api/messages/Tick"), data={"meter": "m-1", "value": 1})

        expect(page.locator("output")).to_have_text("62 / 62")
        expect(page.get_by_label("The state", exact=True)).to_contain_text('"ticks": 61')
