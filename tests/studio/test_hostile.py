"""Whatever ids, messages, errors and names say, they are texts: none of them is run, and they are shown as they are."""

from __future__ import annotations

from collections.abc import Generator
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from mainspring.testing.samples import RequestLeave
from tests.studio.orders_meters_and_leave import PlaceOrder, Sent, fill
from tests.studio.serving import Studio, needs_browser, needs_page, served, settled

pytestmark = [needs_page, needs_browser]

CORPUS = [
    "<script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "<svg/onload=window.hit=1>",
    "\"'><iframe srcdoc='<script>parent.hit=1</script>'>",
    "javascript:window.hit=1//",
    "</title></style></textarea><script>window.hit=1</script>",
    "{{constructor.constructor('window.hit=1')()}}",
    "${window.hit=1}`+window.hit=1+`",
    "#/settings?x=<b>bold</b>&at=1",
    "a/b/../%2e%2e/%3Cscript%3E",
    "\N{RIGHT-TO-LEFT OVERRIDE}evil\N{ZERO WIDTH SPACE}",
    "__proto__",
]
ALL = " ".join(text for text in CORPUS if text.isprintable())
"""All of them in one id."""
PRINTABLE = [text for text in CORPUS if text.isprintable()]
# Whether something was run, which scripts there are, what is of somebody else's making, and links that do something.
HARM = """() => ({
  hit: window.hit ?? null,
  scripts: document.scripts.length,
  foreign: document.querySelectorAll('iframe, object, embed, img, base, [onerror], [onload], [srcdoc]').length,
  links: [...document.links].filter((one) => !/^https?:$/.test(one.protocol)).length,
})"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Generator[Studio]:
    folder = tmp_path_factory.mktemp("hostile")
    orders: list[Sent] = [(PlaceOrder(text, -1, text), "mallory <b>") for text in [*PRINTABLE, ALL]]
    leave: list[Sent] = [(RequestLeave(f"leave {text}"), text) for text in PRINTABLE]
    fill(folder, [*orders, *leave])
    with served(folder) as found:
        yield found


def assert_harmless(page: Page) -> None:
    assert page.evaluate(HARM) == {"hit": None, "scripts": 1, "foreign": 0, "links": 0}


def test_lists_show_hostile_texts_as_texts(page: Page, hostile: Studio) -> None:
    page.goto(hostile.at("#/instances?workflow=Orders"))
    for text in (CORPUS[0], CORPUS[1], CORPUS[5]):
        expect(page.get_by_role("link", name=f"Orders/{text}", exact=True)).to_be_visible()
    assert_harmless(page)
    page.goto(hostile.at("#/dead-letters"))
    expect(page.get_by_text(f"Orders/{CORPUS[0]}").first).to_be_visible()
    assert_harmless(page)
    page.goto(hostile.at("#/tasks"))
    expect(page.get_by_text(f"Leave for {CORPUS[0]}?").first).to_be_visible()
    assert_harmless(page)
    page.goto(hostile.at("#/"))
    expect(page.get_by_role("link", name=f"Orders/{CORPUS[0]}").first).to_be_visible()
    assert_harmless(page)


def test_instances_with_hostile_ids_are_shown(page: Page, hostile: Studio) -> None:
    page.goto(hostile.at(""))
    for text in PRINTABLE:
        page.evaluate("place => location.hash = place", f"#/instances/Orders/{quote(text, safe='')}?at=2")
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Orders/{text}")
        expect(page.get_by_role("region", name="State")).to_contain_text("AwaitingPayment")
        assert_harmless(page)


def test_every_tab_shows_hostile_texts_as_texts(page: Page, hostile: Studio) -> None:
    page.goto(hostile.at(""))
    for tab in ("history", "waiting", "links", "what-if", "log", "raw"):
        page.evaluate("place => location.hash = place", f"#/instances/Orders/{quote(ALL, safe='')}?tab={tab}")
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Orders/{ALL}")
        settled(page)
        assert_harmless(page)
    expect(page.get_by_role("region", name="The stream, as JSON lines")).to_contain_text("window.hit=1")


def test_a_hostile_address_leads_nowhere(page: Page, hostile: Studio) -> None:
    page.goto(hostile.at(""))
    for text in CORPUS:
        for place in (f"#/{text}", f"#/instances/{text}/{text}", f"#/instances?prefix={text}"):
            page.evaluate("place => location.hash = place", place)
            settled(page)
            assert_harmless(page)


def test_a_policy_forbids_whatever_would_get_through(page: Page, hostile: Studio) -> None:
    answer = page.goto(hostile.at(""))

    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
