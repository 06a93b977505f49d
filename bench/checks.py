"""A figure counts only if the work was really done: what the rows say after a run."""

from __future__ import annotations

import asyncio

from bench.measure import Figures
from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.port.records import InstanceFilter, Ref

PAGE = 10_000
POLL_SECONDS = 0.005
RUNNING = InstanceFilter(status="running")
COMPLETED = InstanceFilter(status="completed")


class NotDoneError(Exception):
    """The store does not hold what the workload should have left there."""


async def until_completed(app: Mainspring, n: int, after_key: int = 0) -> None:
    """Return when the rows say that n instances with keys behind this one have completed.

    What has been found completed is not looked at again: asking costs little, however many there are.
    """
    store, after = internals_of(app).engine.store, after_key
    while True:
        while running := await store.instances(RUNNING, 1, after):
            after = running[0].key - 1
            await asyncio.sleep(POLL_SECONDS)  # the workers are other processes: rows are asked
        # None is running. But some may not have begun.
        if await _completed(app, after_key) >= n:
            return
        await asyncio.sleep(POLL_SECONDS)  # as above


async def _completed(app: Mainspring, after_key: int) -> int:
    if not after_key:
        return (await app.stats()).instances.get("completed", 0)
    count = 0
    while page := await internals_of(app).engine.store.instances(COMPLETED, PAGE, after_key):
        count, after_key = count + len(page), page[-1].key
    return count


async def all_completed(app: Mainspring, n: int, waiting: int = 0) -> None:
    """Check that n instances have completed, that so many wait for a timer and nothing else does, that none failed."""
    stats = await app.stats()
    timers = stats.timers - waiting
    left = {"inbox": stats.inbox, "outbox": stats.outbox, "timers": timers, "dead letters": stats.dead_letters}
    expected = {status: count for status, count in (("completed", n), ("running", waiting)) if count}
    if stats.instances != expected or any(left.values()):
        raise NotDoneError(f"{expected} were to be there; there are {stats.instances}, and left are {left}")


async def stream_lengths(app: Mainspring, refs: list[Ref], events: int) -> None:
    """Check that each of these streams has so many events."""
    for ref in refs:
        length = len(await internals_of(app).engine.store.stream(ref, 0, events + 1))
        if length != events:
            raise NotDoneError(f"{ref} has {length} events, not {events}")


async def times_of_events(app: Mainspring, event: str) -> list[int]:
    """Return the times of all events with this name, in the order of their commits."""
    times: list[int] = []
    after = 0
    while page := await internals_of(app).engine.store.feed(after, PAGE):
        times += [row.time_us for _, _, row in page if row.event == event]
        after = page[-1][0]
    return times


def batch_figures(app: Mainspring) -> Figures:
    """Return how the engine grouped its commits."""
    committer = internals_of(app).engine.committer
    per_batch = committer.committed / committer.batches if committer.batches else 0
    return {"batches": committer.batches, "units_per_batch": round(per_batch, 1)}
