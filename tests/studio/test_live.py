"""What happens is seen at once; and a server that was away is asked for what happened meanwhile."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, Route, expect

from tests.studio.orders_meters_and_leave import PlaceOrder, Tick, fill
from tests.studio.serving import Studio, needs_browser, needs_page, send, served, settled, until_told
from tests.support.ports import free_port

pytestmark = [needs_page, needs_browser]

# Nothing is asked for by the clock then: only a stream that is open again can be the reason for a question.
NO_CLOCK = "window.setInterval = () => 0"
# Who is away is looked for after pauses that grow to ten seconds; the silence after which it is away is longer.
SOON = (
    "; { const real = setTimeout; window.setTimeout = (call, ms) => real(call, ms > 200 && ms <= 10_000 ? 200 : ms); }"
)
# The five seconds after which nobody looks at a tab any more pass at once.
HURRY = "{ const real = setTimeout; window.setTimeout = (call, ms) => real(call, ms === 5000 ? 0 : ms); }"
LOOK = """(looked) => {
  Object.defineProperty(document, 'hidden', {value: !looked, configurable: true});
  document.dispatchEvent(new Event('visibilitychange'));
}"""


def test_what_happens_is_seen_at_once(page: Page, studio: Studio) -> None:
    send(page, studio, "Tick", {"meter": "m-live", "value": 1}, makes="Meters/m-live", version=2)
    page.goto(studio.at("#/instances/Meters/m-live"))
    expect(page.locator(".title .live")).to_have_text("live")
    expect(page.locator("output")).to_have_text("2 / 2")
    send(page, studio, "Tick", {"meter": "m-live", "value": 1}, makes="Meters/m-live", version=3)

    expect(page.locator("output")).to_have_text("3 / 3")
    expect(page.get_by_label("The state", exact=True)).to_contain_text('"ticks": 2')


def test_every_view_that_listens_asks_again_when_its_server_is_back(page: Page, folder: Path) -> None:
    places = {
        "#/": lambda view: view.get_by_role("row", name="Orders 25"),
        "#/instances?prefix=o-99": lambda view: view.get_by_role("link", name="Orders/o-99"),
        "#/instances/Meters/m-1": lambda view: view.locator("output", has_text="62 / 62"),
        "#/dead-letters": lambda view: view.locator("summary", has_text="Orders/refused-99"),
    }
    first = Studio(folder, port=free_port()).start()
    views: list[Page] = []
    for place in places:
        view = page.context.new_page()
        view.add_init_script(NO_CLOCK + SOON)
        view.goto(first.at(place))
        settled(view)
        views.append(view)
    expect(views[2].locator("output")).to_have_text("61 / 61")
    for view, sought in zip(views, places.values(), strict=True):
        expect(sought(view)).to_have_count(0)
    first.stop()
    expect(views[2].locator(".title .live")).to_have_text("away: trying again")
    fill(folder, [(Tick("m-1", 7), None), (PlaceOrder("o-99", 5), None), (PlaceOrder("refused-99", -5), None)])

    second = Studio(folder, port=first.port).start()
    try:
        for view, sought in zip(views, places.values(), strict=True):
            expect(sought(view)).to_be_visible()
        expect(views[2].locator(".title .live")).to_have_text("live")
    finally:
        second.stop()


def test_a_tab_that_nobody_looks_at_gives_its_connection_back(page: Page, studio: Studio) -> None:
    send(page, studio, "Tick", {"meter": "m-hidden", "value": 1}, makes="Meters/m-hidden", version=2)
    view = page.context.new_page()
    view.add_init_script(HURRY)
    view.goto(studio.at("#/instances/Meters/m-hidden"))
    live = view.locator(".title .live")
    expect(live).to_have_text("live")
    view.evaluate(LOOK, False)

    expect(live).to_have_text("away: trying again")
    send(page, studio, "Tick", {"meter": "m-hidden", "value": 1}, makes="Meters/m-hidden", version=3)
    expect(view.locator("output")).to_have_text("2 / 2")
    with view.expect_response("**/api/live**"):
        view.evaluate(LOOK, True)
    expect(live).to_have_text("live")
    expect(view.locator("output")).to_have_text("3 / 3")


def test_a_list_says_that_it_has_changed_and_moves_only_when_asked(page: Page, folder: Path) -> None:
    held: list[Route] = []
    telling = False

    def hold(route: Route) -> None:
        if telling:
            route.continue_()
        else:
            held.append(route)

    page.route("**/api/live", hold)
    # A server of its own: the figures of one that others use may change once more.
    with served(folder) as own:
        page.goto(own.at("#/instances?workflow=Orders&prefix=new-"))
        expect(page.get_by_text("No instance is like that.")).to_be_visible()
        expect(page.get_by_role("status").filter(has_text="in all")).to_be_visible()
        before = page.request.get(own.at("api/stats")).json()["instances"]
        send(page, own, "PlaceOrder", {"order_id": "new-1", "amount": 5_000}, makes="Orders/new-1", version=5)
        until_told(page, own.at("api/stats"), lambda told: told["instances"] != before)
        again = page.get_by_role("button", name="Changed: look again")
        # It happened when the list was there, and nobody has been told of anything yet.
        telling = True
        for route in held:
            route.continue_()

        expect(again).to_be_visible()
        expect(page.get_by_role("link", name="Orders/new-1")).to_have_count(0)
        again.click()
        expect(page.get_by_role("link", name="Orders/new-1")).to_be_visible()
        expect(page.get_by_role("button", name="Look again", exact=True)).to_be_visible()
