"""Purging: ended instances go, by hand or in the background, a small batch in each transaction."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from mainspring.app.archive import Archive
from mainspring.app.given import optional_text
from mainspring.engine.operations.pauses import PAUSES
from mainspring.engine.registry import Registry
from mainspring.engine.runtime import Runtime
from mainspring.engine.schedules.recurring import RECURRING
from mainspring.errors import SettingError
from mainspring.logs import logger
from mainspring.port.purges import Purgeable
from mainspring.port.records import Ref
from mainspring.port.store import Store
from mainspring.sealing.seals import Seal
from mainspring.views import PurgeReport

if TYPE_CHECKING:
    from mainspring.app.internals import Internals

INSTANCES_PER_BATCH: Final = 100
EVENTS_PER_BATCH: Final = 2_000
EVENTS_PER_READ: Final = 1_000
ROUND_SECONDS: Final = 60.0
SHORTEST_PAUSE_SECONDS: Final = 0.05
# How much later than its own time an event may be committed: longer than a commit waits for anything.
MARGIN_US: Final = 60_000_000
FAR_US: Final = 1 << 62
# In the background at most one part in five of the time is spent on purging.
PAUSES_PER_BATCH: Final = 4

log = logger("mainspring.purging")


Progress: TypeAlias = Callable[[PurgeReport], None]


class Purger:
    """Purges the ended instances of workflows, as far as the app's projections have seen them."""

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        projections: Collection[str],
        progress: Progress | None = None,
        *,
        gently: bool = False,
    ) -> None:
        self._store = store
        self._runtime = runtime
        self._projections = projections
        self._progress = progress
        self._gently = gently
        self.report = PurgeReport()

    async def count(self, workflow: str, before_us: int) -> None:
        """Report what a purge would do, and do nothing."""
        async for found in self._pages(workflow, before_us):
            fresh = {one.key: one.version for one in found if one.purged_us is None}
            self._went(len(fresh), sum(fresh.values()))

    async def purge(self, workflow: str, before_us: int, archive: Archive | None = None) -> None:
        """Purge what ended before a time, batch by batch: archived first, then removed."""
        async for found in self._pages(workflow, before_us):
            batch = found if archive is None else await self._archived(found, archive)
            while batch:
                began_us = self._store.now_us()
                purged = await self._store.purge(batch, EVENTS_PER_BATCH)
                self._went(purged.tombstones, purged.events)
                batch = [one for one in batch if one.key in purged.left]
                await self._pause(self._store.now_us() - began_us)

    async def _pages(self, workflow: str, before_us: int) -> AsyncIterator[list[Purgeable]]:
        unseen_us, projection = await self._unseen()
        if unseen_us < before_us:
            log.warning("%s is not purged further: the projection %s is behind", workflow, projection)
            before_us = unseen_us
        if before_us <= 0:
            return
        page = await self._store.purgeable(workflow, before_us, INSTANCES_PER_BATCH)
        while True:
            if page.found:
                yield page.found
            if page.after is None:
                return
            page = await self._store.purgeable(workflow, before_us, INSTANCES_PER_BATCH, page.after)

    async def _unseen(self) -> tuple[int, str]:
        """Return the time up to which all projections have seen what ended, and which has seen the least.

        Whatever has ended by then stands in front of the first event that is unseen. An event's time is a little older
        than its place in the feed, hence the margin.
        """
        if not self._projections:
            return FAR_US, ""
        places = dict.fromkeys(self._projections, 0)
        for one in await self._store.checkpoints():
            if one.name in places and one.status == "live":
                places[one.name] = max(one.position, 0)
        projection = min(places, key=places.__getitem__)
        since_us = (await self._store.behind(places[projection], 1)).since_us
        return (FAR_US if since_us is None else since_us - MARGIN_US), projection

    async def _archived(self, found: list[Purgeable], archive: Archive) -> list[Purgeable]:
        """Return those that are in the archive, whole and durable. One that was a tombstone before is in it already."""
        kept: dict[int, bool] = {}
        for one in found:
            if one.key not in kept:  # one that began anew has ended more than once
                kept[one.key] = one.purged_us is not None or await self._archive(one, archive)
        await self._runtime.in_thread(archive.sync)
        return [one for one in found if kept[one.key]]

    async def _archive(self, one: Purgeable, archive: Archive) -> bool:
        ref, version = Ref(one.workflow, one.id), 0
        while rows := await self._store.stream(ref, version, EVENTS_PER_READ):
            await self._runtime.in_thread(lambda rows=rows: archive.add(ref, rows))
            version = rows[-1].version
            self._went(archived=len(rows))
        # If not, another process has moved or purged it meanwhile: it is left for another time.
        return version == one.version

    def _went(self, instances: int = 0, events: int = 0, archived: int = 0) -> None:
        so_far = self.report
        self.report = PurgeReport(so_far.instances + instances, so_far.events + events, so_far.archived + archived)
        if self._progress is not None:
            self._progress(self.report)

    async def _pause(self, took_us: int) -> None:
        if self._gently:
            seconds = max(SHORTEST_PAUSE_SECONDS, PAUSES_PER_BATCH * took_us / 1e6)
            await self._runtime.clock.sleep(seconds)


@asynccontextmanager
async def opened(path: str | Path | None, runtime: Runtime, seal: Seal | None) -> AsyncGenerator[Archive | None]:
    """Return the archive at a path, and close it whatever happens."""
    archive = None if path is None else Archive(path, seal)
    try:
        yield archive
    finally:
        if archive is not None:
            await runtime.in_thread(archive.close)


async def purge(
    internals: Internals,
    older_than: timedelta,
    workflow: str | None,
    *,
    dry_run: bool,
    archive: str | Path | None,
    progress: Progress | None,
) -> PurgeReport:
    """Remove the streams of instances that ended so long ago; of all an app's workflows, or of one."""
    engine = internals.engine
    workflow = optional_text("workflow", workflow)
    before_us = before(engine.store, checked_age("older_than", older_than))
    purger = Purger(engine.store, engine.runtime, internals.registry.projections, progress)
    async with opened(archive, engine.runtime, internals.seal) as file:
        for name in purged_workflows(internals.registry) if workflow is None else (workflow,):
            if dry_run:
                await purger.count(name, before_us)
            else:
                await purger.purge(name, before_us, file)
    return purger.report


def purged_workflows(registry: Registry) -> list[str]:
    """Return the workflows whose ended instances may go. A schedule's stays: its tombstone could not be declared again.

    And so do the pauses of the fleet.

    >>> purged_workflows(Registry())
    []
    """
    return sorted(name for name in registry.workflows if not name.startswith((RECURRING, PAUSES)))


def retentions(registry: Registry, retention: timedelta | None) -> dict[str, timedelta]:
    """Return how long each workflow's ended instances are kept; nothing where the app does not purge."""
    if retention is None:
        return {}
    return {name: registry.workflows[name].definition.retention or retention for name in purged_workflows(registry)}


async def purge_forever(store: Store, runtime: Runtime, registry: Registry, kept: Mapping[str, timedelta]) -> None:
    """Purge periodically, at a low rate, what was kept long enough.

    Every worker does so, each at moments of its own. Two at once take different instances, or one of them finds none.
    """
    while True:
        await runtime.clock.sleep(ROUND_SECONDS * (0.5 + runtime.random()))
        for workflow, retention in kept.items():
            purger = Purger(store, runtime, registry.projections, gently=True)
            try:
                await purger.purge(workflow, before(store, retention))
            except Exception as error:  # noqa: BLE001  whatever it is, it is tried again in the next round
                log.warning("purging %s failed, will be tried again: %s", workflow, error)
            if purger.report.instances:
                log.info("purged %d instances of %s", purger.report.instances, workflow)


def before(store: Store, age: timedelta) -> int:
    """Return the time that lies so far behind, by the store's clock."""
    return store.now_us() - age // timedelta(microseconds=1)


def checked_age(name: str, age: object, *, least: timedelta = timedelta(0)) -> timedelta:
    """Return an age as it was given, if it is one.

    >>> checked_age("older_than", timedelta(days=30)).days
    30
    """
    if not isinstance(age, timedelta) or age < least:
        raise SettingError(name, age, "Use a timedelta, as in timedelta(days=30).")
    return age
