"""W6: many timers due at the same moment."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

from bench import apps
from bench.checks import NotDoneError, all_completed, batch_figures, times_of_events, until_completed
from bench.measure import Figures, Meter, rss_mb
from bench.settings import Settings
from bench.workflows import Sleep, order
from mainspring import Mainspring

STARTS_PER_S = 1_500
SHORTEST_SLEEP_SECONDS = 1.0


def run(settings: Settings) -> Figures:
    """Put n instances to sleep until one moment; from that moment to the last completion."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> Figures:
    n = settings.n
    app = apps.sleepers(settings.url)
    async with app:
        due_us = time.time_ns() // 1_000 + int((SHORTEST_SLEEP_SECONDS + n / STARTS_PER_S) * 1e6)
        await _put_to_sleep(app, settings, due_us)
        asleep_mb = rss_mb("VmRSS")
        await asyncio.sleep(due_us / 1e6 - time.time())  # what is measured begins when they are due
        with Meter(settings.server_pid) as meter:
            await until_completed(app, n)
            late = time.time() - due_us / 1e6
        await all_completed(app, n)
        fired = await times_of_events(app, "Received")
        early = sum(time_us < due_us for time_us in fired)
        if len(fired) != n or early:
            raise NotDoneError(f"of {n} timers {len(fired)} fired, {early} of them early")
        return {
            "late_s": round(late, 4),
            "first_fired_ms": round((min(fired) - due_us) / 1e3, 3),
            "early": early,
            **meter.figures(n),
            **batch_figures(app),
            "asleep_rss_mb": asleep_mb,
            "rss_mb": rss_mb(),
        }


async def _put_to_sleep(app: Mainspring, settings: Settings, due_us: int) -> None:
    until = datetime.fromtimestamp(due_us / 1e6, UTC)
    for begin in range(0, settings.n, settings.chunk):
        numbers = range(begin, min(settings.n, begin + settings.chunk))
        await app.send_many([Sleep(order(number), until) for number in numbers])
    if time.time_ns() // 1_000 >= due_us:
        raise NotDoneError("the timers were due before all were set: this machine is too busy for the figure")
