"""What workers hold back, in words: destinations whose commands wait though they are due, and why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from mainspring.core.story import duration
from mainspring.engine.pending import moment
from mainspring.engine.standing import OpenBreaker, read
from mainspring.port.records import OutputClaim, WorkerRow
from mainspring.port.store import Store

FIX = "Look at what it calls. They go on by themselves when a call goes well."


async def held_back(store: Store) -> dict[str, str]:
    """Return why commands wait that are due, by their destinations: what the workers that live have told."""
    now_us = store.now_us()
    return told_by([row for row in await store.workers() if row.ends_us > now_us], now_us)


async def held_among(store: Store, outputs: Sequence[OutputClaim]) -> list[str]:
    """Return why some of these outputs wait, if workers hold them back."""
    held = await held_back(store) if outputs else {}
    return [held[type] for type in sorted({claim.type for claim in outputs}) if type in held]


def told_by(workers: Sequence[WorkerRow], now_us: int) -> dict[str, str]:
    """Return what these workers tell of the destinations that they hold back."""
    found: dict[str, list[OpenBreaker]] = {}
    for row in workers:
        for breaker in read(row.held).breakers:
            found.setdefault(breaker.destination, []).append(breaker)
    return {destination: _breaker(each, len(workers), now_us) for destination, each in sorted(found.items())}


def _breaker(found: Sequence[OpenBreaker], workers: int, now_us: int) -> str:
    """Return what is told of a destination's breaker, which each worker has for itself.

    >>> found = [OpenBreaker("Charge", 0, 5, "TimeoutError", 60_000_000, 41)]
    >>> for part in _breaker(found, 1, 40_000_000).split("; ", 1):
    ...     print(part)
    Charge is held back by an open breaker since 00:00 UTC (TimeoutError, 5 in a row)
    41 commands wait; the next probe in 20 s
    """
    worst = max(found, key=lambda breaker: breaker.failures)
    where = f" in {len(found)} of {workers} workers" if workers > 1 else ""
    since = _since(min(breaker.since_us for breaker in found), now_us)
    waiting = sum(breaker.waiting for breaker in found)
    wait_us = min(breaker.probe_us for breaker in found) - now_us
    probe = f"in {duration(timedelta(seconds=wait_us // 1_000_000))}" if wait_us >= 1_000_000 else "now"
    why = f"{worst.error}, {worst.failures:,} in a row"
    return (
        f"{worst.destination} is held back by an open breaker{where} since {since} ({why}); "
        f"{waiting:,} {'command waits' if waiting == 1 else 'commands wait'}; the next probe {probe}"
    )


def _since(time_us: int, now_us: int) -> str:
    """Return a moment as short as it can be understood."""
    day = "%Y-%m-%d " if moment(time_us).date() != moment(now_us).date() else ""
    return f"{moment(time_us):{day}%H:%M} UTC"
