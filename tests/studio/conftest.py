"""A server with a shop on a file, and a browser that looks at it. What a page complains about fails its test."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, expect, sync_playwright

from tests.studio.shop import stocked
from tests.studio.support import CHROMIUM, Studio, served

# A browser says of every answer that is no success that a resource could not be loaded. The page shows why.
EXPECTED = re.compile(r"Failed to load resource: (the server responded with a status of|net::ERR)")
# Of a busy machine; where a page is slow by itself, its own test says so.
PATIENCE_MS = 30_000


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    """A browser for a module: as long as it is open, its own event loop runs here, and no other test may have one."""
    assert CHROMIUM is not None
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Generator[Studio]:
    folder = tmp_path_factory.mktemp("studio")
    stocked(folder)
    with served(folder) as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Generator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    context.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    found = context.new_page()
    complaints: list[str] = []

    def complain(line: ConsoleMessage) -> None:
        if line.type in {"error", "warning"} and not EXPECTED.match(line.text):
            complaints.append(line.text)

    def dismiss(dialog: Dialog) -> None:
        complaints.append(f"dialog {dialog.message}")
        dialog.dismiss()

    found.on("pageerror", lambda error: complaints.append(str(error)))
    found.on("dialog", dismiss)
    found.on("console", complain)
    yield found
    context.close()
    assert complaints == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a shop of its own."""
    return tmp_path
