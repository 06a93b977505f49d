"""The end of the demo: the studio over what it left behind, at a terminal; else only a look whether it answers."""

from __future__ import annotations

import asyncio
import json
import signal
import urllib.request
from pathlib import Path
from typing import Any, Final

from examples.demo.app import app_of
from examples.demo.page import BOLD, Page
from mainspring.web.server import Server, address_of, bound
from mainspring.web.studio import studio

ANSWER_SECONDS: Final = 60.0


async def show(folder: Path, page: Page, *, stay: bool) -> int:
    """Serve the studio on loopback: until it is stopped, or until it has answered once. Return the exit code."""
    app = app_of(folder)
    stop, ready = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = Server(studio(app, start=False))
    with bound("127.0.0.1", None if stay else 0) as listening:
        address = address_of(listening)
        async with app:
            serving = asyncio.create_task(server.run_on(listening, ready))
            await ready.wait()
            try:
                if stay:
                    page.write()
                    page.say(f"The studio shows all of it: {address}  (Ctrl-C ends it)", BOLD)
                    await stop.wait()
                    return 0
                return await _answers(address, page)
            finally:
                server.stop()
                await serving


async def _answers(address: str, page: Page) -> int:
    """Look whether the page and the API answer."""
    seen = await asyncio.to_thread(_get, address)
    stats = json.loads(await asyncio.to_thread(_get, f"{address}api/stats"))
    instances: dict[str, int] = stats["instances"]
    built = seen.lstrip().lower().startswith("<!doctype html>")
    told = "its page answers" if built else "its API answers; its page is not built here"
    page.say(f"the studio knows {sum(instances.values()):,} instances, and {told}")
    return 0 if instances else 1


def _get(address: str) -> str:
    answer: Any
    with urllib.request.urlopen(address, timeout=ANSWER_SECONDS) as answer:  # noqa: S310  our own, on loopback
        text: str = answer.read().decode()
        return text
