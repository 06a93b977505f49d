"""Where the server asks who somebody is: one question, then what was meant, and as much as the role permits."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from mainspring.web import Access, Token
from tests.studio.serving import Studio, needs_browser, needs_page, served, settled
from tests.studio.test_access import AUDIT

pytestmark = [needs_page, needs_browser]

SECRETS = {"vera": "a-secret-of-vera-the-viewer", "otto": "a-secret-of-otto-the-operator"}


@pytest.fixture
def guarded(folder: Path) -> Generator[Studio]:
    tokens = [
        Token.of(SECRETS["vera"], name="vera", role="viewer"),
        Token.of(SECRETS["otto"], name="otto", role="operator"),
    ]
    with served(folder, access=Access(tokens=tokens)) as found:
        yield found


def go_in(page: Page, secret: str) -> None:
    page.locator("input[type=password]").fill(secret)
    page.get_by_role("button", name="Go in").click()


def test_whoever_is_not_known_is_asked_once_and_then_where_they_wanted_to_be(page: Page, guarded: Studio) -> None:
    page.goto(guarded.at("#/instances?prefix=o-12"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Who are you?")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert page.evaluate(AUDIT) == []
    go_in(page, "a-secret-that-nobody-has")
    expect(page.get_by_role("alert")).to_contain_text("not known")
    go_in(page, SECRETS["vera"])

    expect(page.get_by_role("link", name="Orders/o-12")).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name="Orders/o-12")).to_be_visible()


def test_a_viewer_is_told_what_is_not_permitted_and_an_operators_name_is_recorded(page: Page, guarded: Studio) -> None:
    for who in ("vera", "otto"):
        page.goto(guarded.at("#/settings"))
        page.locator("input[type=password]").fill(SECRETS[who])
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("The server lets you in.")).to_be_visible()
        page.goto(guarded.at("#/instances/Meters/m-1"))
        settled(page)
        page.get_by_role("button", name="Suspend …").click()
        page.get_by_role("dialog").get_by_role("button", name="Suspend").click()
        if who == "vera":
            expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("403")
            page.get_by_role("button", name="Do nothing").click()

    expect(page.get_by_role("region", name="Suspended")).to_contain_text("otto")
