"""A figure counts only if the work was really done: what the rows say after a run."""

from __future__ import annotations

import asyncio

from bench.measure import Figures
from mainspring import Mainspring
from mainspring.port.records import Ref

PAGE = 10_000
POLL_SECONDS = 0.005


class NotDoneError(Exception):
    """The store does not hold what the workload should have left there."""


async def until_completed(app: Mainspring, n: int) -> None:
    """Return when the rows say that n instances have completed."""
    while (await app.stats()).instances.get("completed", 0) < n:  # noqa: ASYNC110  nobody signals this: rows are asked
        await asyncio.sleep(POLL_SECONDS)


async def all_completed(app: Mainspring, n: int) -> None:
    """Check that there are n instances, all completed, and that nothing waits and nothing failed."""
    stats = await app.stats()
    left = {"inbox": stats.inbox, "outbox": stats.outbox, "timers": stats.timers, "dead letters": stats.dead_letters}
    if stats.instances != {"completed": n} or any(left.values()):
        raise NotDoneError(f"{n} were to complete; there are {stats.instances}, and left are {left}")


async def stream_lengths(app: Mainspring, refs: list[Ref], events: int) -> None:
    """Check that each of these streams has so many events."""
    for ref in refs:
        length = len(await app.engine.store.stream(ref, 0, events + 1))
        if length != events:
            raise NotDoneError(f"{ref} has {length} events, not {events}")


async def times_of_events(app: Mainspring, event: str) -> list[int]:
    """Return the times of all events with this name, in the order of their commits."""
    times: list[int] = []
    after = 0
    while page := await app.engine.store.feed(after, PAGE):
        times += [row.time_us for _, _, row in page if row.event == event]
        after = page[-1][0]
    return times


def batch_figures(app: Mainspring) -> Figures:
    """Return how the engine grouped its commits."""
    committer = app.engine.committer
    per_batch = committer.committed / committer.batches if committer.batches else 0
    return {"batches": committer.batches, "units_per_batch": round(per_batch, 1)}
