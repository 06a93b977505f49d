"""A server with a shop on a file, and a browser that looks at it. What a page complains about fails its test."""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, ViewportSize, WebError, expect, sync_playwright

from tests.studio.orders_meters_and_leave import stocked
from tests.studio.serving import CHROMIUM, Studio, served

# A browser says of every answer that is no success that a resource could not be loaded. The page shows why.
EXPECTED = re.compile(r"Failed to load resource: (the server responded with a status of|net::ERR)")
# Of a busy machine; where a page is slow by itself, its own test says so.
PATIENCE_MS = 60_000
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage"]
BLANK = "about:blank"
VIEWPORT: ViewportSize = {"width": 1280, "height": 860}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--instances", type=int, help="how many instances the list of many has")


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """A browser for a module: as long as it is open, its own event loop runs here, and no other test may have one."""
    assert CHROMIUM is not None
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, timeout=PATIENCE_MS)
        yield found
        found.close()


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a shop with something of everything, to copy."""
    folder = tmp_path_factory.mktemp("stock")
    stocked(folder)
    return folder


@pytest.fixture(scope="session")
def studio(stock: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[Studio]:
    folder = tmp_path_factory.mktemp("studio")
    shutil.copytree(stock, folder, dirs_exist_ok=True)
    with served(folder) as found:
        yield found


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Generator[Page]:
    """One tab for a module: it keeps what it has loaded of the page."""
    context = browser.new_context(viewport=VIEWPORT, timezone_id="UTC")
    context.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(tab: Page) -> Generator[Page]:
    """The tab as it was in the beginning. Whatever the browser complains about fails the test."""
    complaints: list[str] = []

    def complain(line: ConsoleMessage) -> None:
        if line.type in {"error", "warning"} and not EXPECTED.match(line.text):
            complaints.append(line.text)

    def dismiss(dialog: Dialog) -> None:
        complaints.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def fail(error: WebError) -> None:
        complaints.append(str(error.error))

    tab.context.on("weberror", fail)
    tab.context.on("dialog", dismiss)
    tab.context.on("console", complain)
    yield tab
    if tab.url != BLANK:
        tab.evaluate("localStorage.clear(); sessionStorage.clear()")
    for another in tab.context.pages:
        if another is not tab:
            another.close()
    tab.unroute_all(behavior="ignoreErrors")
    tab.goto(BLANK)
    tab.set_viewport_size(VIEWPORT)
    tab.emulate_media(reduced_motion="null")
    tab.context.remove_listener("weberror", fail)
    tab.context.remove_listener("dialog", dismiss)
    tab.context.remove_listener("console", complain)
    assert complaints == []


@pytest.fixture
def folder(stock: Path, tmp_path: Path) -> Path:
    """A folder with a shop of its own, stocked."""
    shutil.copytree(stock, tmp_path, dirs_exist_ok=True)
    return tmp_path
