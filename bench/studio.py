"""The studio in a browser: how soon its pages can be used beside many instances, and how it follows a scrub."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Sequence
from typing import Any, Final

from bench import http_parts
from bench.checks import NotDoneError
from bench.http_parts import LONG, Served, fill_all, serving
from bench.measure import Figures, Meter, median, percentiles
from bench.settings import Settings
from bench.workflows import order_id

USABLE_S_TARGET = 1.0
SCRUB_MS_TARGET = 50.0
SAMPLES = 9
MOVES = 300
JUMPS = 20
PATIENCE_MS = 60_000

# An instance can be used when its state, the case that made it and the diagram with its place in it are there.
INSTANCE: Final = ("[aria-label='The state']", ".branches li", ".box.at")
# Each page with what is on it when it can be used. `{id}` changes with every sample, `{middle}` is in the long stream.
PAGES: Final[dict[str, tuple[str, Sequence[str]]]] = {
    "overview": ("", (".figure-value",)),
    "instances": ("instances", (".row [data-row]",)),
    "an instance": ("instances/Sleeper/{id}", INSTANCE),
    "long: its end": (f"instances/{LONG}", INSTANCE),
    "long: its middle": (f"instances/{LONG}?at={{middle}}", INSTANCE),
}
JUDGED: Final = ("an instance", "long: its end", "long: its middle")

# Moves the slider and returns, for each move, the milliseconds until a frame with the right state was painted.
SCRUB: Final = """
async (versions) => {
  const slider = document.querySelector('input[type=range]');
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  const state = () => document.querySelector("[aria-label='The state']")?.textContent ?? '{}';
  const painted = () => new Promise((over) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port2.onmessage = over;
    port1.postMessage(null);
  }));
  const took = [];
  for (const version of versions) {
    const begun = performance.now();
    set.call(slider, String(version));
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    while (JSON.parse(state()).times !== version - 1) {
      await painted();
      if (performance.now() - begun > 30000) throw new Error(`version ${version} is not shown: ${state()}`);
    }
    took.push(performance.now() - begun);
  }
  return took;
}
"""


def run(settings: Settings) -> Figures:
    """Open the studio's pages in a browser beside n instances, and move through a long stream."""
    if settings.store != "sqlite":
        raise SystemExit("studio measures SQLite: leave --store out.")
    from mainspring.web import static  # noqa: PLC0415  no other measurement is to have it in memory

    chromium = browser()
    if not (static.PAGE / static.INDEX).is_file():
        raise SystemExit("The studio's page is not built: run `make studio`.")
    asyncio.run(fill_all(settings))
    with serving(settings) as served:
        return _looked(served, settings.n, chromium)


def browser() -> str:
    """Return which browser there is."""
    found = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
    if found is None:
        raise SystemExit("There is no Chromium: run `make browser`.")
    return found


def _looked(served: Served, n: int, chromium: str) -> Figures:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  nobody else needs a browser

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        with Meter(served.pid) as meter:
            figures: Figures = {}
            for name in PAGES:
                took = [_opened(opened, served, name, n, sample)[0] for sample in range(SAMPLES)]
                figures |= {f"{name} s": round(median(took), 3), f"{name} worst s": round(max(took), 3)}
            _, page = _opened(opened, served, "long: its middle", n, 0)
            figures |= _scrubbed(page)
        opened.close()
    return {
        "usable_s": max(figures[f"{name} s"] for name in JUDGED),
        "usable_s_target": USABLE_S_TARGET,
        "scrub_ms_target": SCRUB_MS_TARGET,
        **figures,
        "seconds": meter.figures()["seconds"],
    }


def _opened(opened: Any, served: Served, name: str, n: int, sample: int) -> tuple[float, Any]:
    """Return how long a browser that has nothing of it yet needs until a page can be used, and the page."""
    place, wanted = PAGES[name]
    path = place.format(id=order_id(sample * 7_919 % n), middle=http_parts.LONG_STREAM // 2)
    for context in opened.contexts:
        context.close()
    page = opened.new_context(viewport={"width": 1280, "height": 860}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    begun = time.perf_counter()
    page.goto(f"http://{served.host}:{served.port}/#/{path}", wait_until="commit")
    for selector in wanted:
        page.locator(selector).first.wait_for()
    return time.perf_counter() - begun, page


def _scrubbed(page: Any) -> Figures:
    """Return how quickly the page follows: step by step, and over what it has not asked for yet."""
    first = http_parts.LONG_STREAM // 2
    last = min(first + MOVES, http_parts.LONG_STREAM)
    steps = page.evaluate(SCRUB, [*range(first + 1, last), *range(last, first, -1)])
    jumps = page.evaluate(SCRUB, [2 + number * 7_919 % (http_parts.LONG_STREAM - 2) for number in range(JUMPS)])
    if not steps:
        raise NotDoneError("nothing was moved through")
    found = {"scrub": percentiles([ms / 1_000 for ms in steps]), "jump": percentiles([ms / 1_000 for ms in jumps])}
    return {f"{name}_{figure}": value for name, figures in found.items() for figure, value in figures.items()}


def section(figures: Figures) -> str:
    """Return a result as a section for a report."""
    head = f"## The studio in a browser, {figures['n']:,} instances"
    names = {
        "overview": "overview",
        "instances": "instances",
        "an instance": "an instance",
        "long: its end": f"one of {http_parts.LONG_STREAM:,} events, at its end",
        "long: its middle": "the same, in its middle",
    }
    table = ["| page | can be used after, s | worst, s |", "|---|---|---|"]
    table += [
        f"| {title} | {figures[f'{name} s']:.2f} | {figures[f'{name} worst s']:.2f} |" for name, title in names.items()
    ]
    end = (
        "From the address to what one looks for: counts, rows, or the state with its decision and diagram; at most "
        f"{USABLE_S_TARGET:g} s wanted for an instance. {SAMPLES} times each, by a Chromium with nothing of it yet, "
        "on the machine of the server. Moving through the long stream event by event, the state is painted after "
        f"{figures['scrub_p50_ms']:.0f} ms (p50) and {figures['scrub_p99_ms']:.0f} ms (p99), at most "
        f"{SCRUB_MS_TARGET:g} wanted; a jump to where nothing was asked for yet takes {figures['jump_p50_ms']:.0f} ms "
        f"and {figures['jump_p99_ms']:.0f} ms."
    )
    return "\n".join([head, "", *table, "", end])
