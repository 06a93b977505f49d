"""Where the page is, which browser there is, and a server in a thread. A test that is skipped says what is missing."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from mainspring import Mainspring
from mainspring.web import studio
from mainspring.web.server import Server, bound
from tests.studio.orders_meters_and_leave import shop
from tests.support.paths import ROOT

SOURCES: Final = ROOT / "studio"
PAGE: Final = ROOT / "src" / "mainspring" / "web" / "page"
CHROMIUM: Final = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
PATIENCE_SECONDS: Final = 60.0
LOOK_MS: Final = 20

needs_page = pytest.mark.skipif(not (PAGE / "index.html").is_file(), reason="the page is not built: make studio")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: make browser")


class Studio:
    """A server in a thread of its own: real sockets, a real file."""

    def __init__(self, folder: Path, port: int = 0, app: Mainspring | None = None, **settings: Any) -> None:
        self.folder = folder
        self._socket = bound("127.0.0.1", port)
        self.port: int = self._socket.getsockname()[1]
        self._server = Server(studio(app or shop(folder), work=True, **settings))
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> Studio:
        self._thread.start()
        assert self._ready.wait(PATIENCE_SECONDS)
        assert self._server.started
        return self

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._server.stop)
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        async def serve() -> None:
            ready = asyncio.Event()
            serving = asyncio.create_task(self._server.run_on(self._socket, ready))
            waiting = asyncio.create_task(ready.wait())
            await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            self._ready.set()
            await serving

        with asyncio.Runner(loop_factory=lambda: self._loop) as runner, self._socket:
            runner.run(serve())

    def at(self, where: str) -> str:
        """Return the address of a place in the page."""
        return f"http://127.0.0.1:{self.port}/{where}"


@contextmanager
def served(folder: Path, **settings: Any) -> Generator[Studio]:
    found = Studio(folder, **settings).start()
    try:
        yield found
    finally:
        found.stop()


def settled(page: Page) -> None:
    """Wait until a view has loaded what it shows."""
    page.get_by_role("main").wait_for()
    # A frame for the view to begin with its questions.
    page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))")
    expect(page.locator(".loading")).to_have_count(0)


def press_chord(page: Page, keys: str, place: str) -> None:
    """Press two keys that lead to a place; again, where a busy machine lets too much time pass between them.

    A key is pressed when the page has heard it, and the address changes with the second one: it says at once whether
    both were taken. So nothing is pressed once more that was only slow, and would lead away later.
    """
    ends = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends:
        for key in keys:
            page.keyboard.press(key)
        if page.evaluate("location.hash") == place:
            return
    raise AssertionError(f"{keys} does not lead to {place}")


def until_told(page: Page, address: str, holds: Callable[[Any], bool]) -> Any:
    """Ask the server until its answer is as it should be, and return that."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while not holds(told := page.request.get(address).json()):
        assert time.monotonic() < ends, f"{address} still tells {told}"
        page.wait_for_timeout(LOOK_MS)  # no page shows it yet, so there is nothing else to wait for
    return told


def send(page: Page, studio: Studio, type: str, message: dict[str, Any], *, makes: str, version: int) -> None:
    """Send a message, and wait until its instance has that version: when it is taken, it is durable and no more."""
    assert page.request.post(studio.at(f"api/messages/{type}"), data=message).ok
    until_told(page, studio.at(f"api/instances/{makes}"), lambda told: told.get("position") == version)


def named(page: Page, studio: Studio, name: str) -> None:
    """Say in the settings who one is."""
    page.goto(studio.at("#/settings"))
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The server lets you in.")).to_be_visible()
