"""Many streams, page by page: those of all instances that are found, or of a sample."""

from __future__ import annotations

from heapq import heappush, heappushpop
from zlib import crc32

from mainspring.analysis.mining.found import Mined
from mainspring.analysis.mining.miner import Miner
from mainspring.analysis.mining.walk import Walk
from mainspring.analysis.rows import INSTANCES_PER_PAGE, outline_pages, pages_of
from mainspring.app.search import found
from mainspring.port.records import InstanceFilter, InstanceRow
from mainspring.port.store import Store


async def mine(store: Store, where: InstanceFilter, miner: Miner, sample: int | None = None) -> Mined:
    """Read the streams of the instances that are found, page by page, and return what they did.

    With `sample`, of so many at most: those whose ids have the lowest checksums, which is as good as by lot, and the
    same ones every time.
    """
    chosen = None if sample is None else await _sampled(store, where, sample)
    pages = outline_pages(store, where) if chosen is None else pages_of(store, chosen)
    walk: Walk | None = None
    of = 0
    instances: dict[int, InstanceRow] = {}
    async for page in pages:
        if page.instances:
            instances = {row.key: row for row in page.instances}
        resets = page.resets
        for outline in page.rows:
            if outline[0] != of or walk is None:
                if walk is not None:
                    walk.end()
                of = outline[0]
                walk = Walk(miner, instances[of])
            walk.take(outline, resets.get((of, outline[1])) if resets else None)
        miner.settle()
    if walk is not None:
        walk.end()
    return miner.mined()


async def _sampled(store: Store, where: InstanceFilter, most: int) -> list[InstanceRow]:
    """Return the instances of a sample, in the order of their keys."""
    kept: list[tuple[int, int, InstanceRow]] = []
    after = 0
    while rows := await found(store, where, INSTANCES_PER_PAGE, after):
        after = rows[-1].key
        for row in rows:
            # The heap gives away its smallest, and the lowest checksums are to stay.
            entry = (-crc32(row.id.encode()), -row.key, row)
            if len(kept) < most:
                heappush(kept, entry)
            else:
                heappushpop(kept, entry)
    return sorted((row for _, _, row in kept), key=lambda row: row.key)
