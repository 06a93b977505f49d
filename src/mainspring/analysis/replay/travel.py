"""Time travel: a stream walked from its beginning, with the state before and after every event."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from mainspring.engine.recording.walk import Journey, Moment, Stopped, Turns, turns_of
from mainspring.engine.registry import WorkflowEntry
from mainspring.port.records import EventRow, Ref
from mainspring.port.store import Store

EVENTS_PER_PAGE: Final = 1_000


class RowJourney(Journey):
    """A journey that keeps the `rows` of the last moment."""

    rows: Sequence[EventRow] = ()

    def step(self, group: Sequence[EventRow], begins: bool) -> None:
        """Fold what was recorded."""
        self.rows = group
        super().step(group, begins)


async def travel(
    store: Store, entry: WorkflowEntry, ref: Ref, first: int = 1, last: int | None = None
) -> AsyncIterator[Moment | Stopped]:
    """Yield the moments of an instance's stream from a version to another, read page by page; whole ones in any case.

    Nothing is decided or carried out. Where an event cannot be read or folded, a Stopped says why, and ends it.
    """
    async for found in travel_rows(store, entry, ref, first, last):
        yield found if isinstance(found, Stopped) else found[0]


async def travel_rows(
    store: Store, entry: WorkflowEntry, ref: Ref, first: int = 1, last: int | None = None
) -> AsyncIterator[tuple[Moment, Sequence[EventRow]] | Stopped]:
    """Yield what `travel` does, each moment with its rows."""
    journey = RowJourney(entry, ref, await stream_turns(store, ref))
    async for moment in _moments(store, ref, journey):
        if last is not None and moment.position > last:
            return
        if moment.last >= first:
            yield moment, journey.rows
    if journey.stopped is not None:
        yield journey.stopped


async def _moments(store: Store, ref: Ref, journey: Journey) -> AsyncIterator[Moment]:
    async for page in _pages(store, ref):
        for row in page:
            if (moment := journey.take(row)) is not None:
                yield moment
        if journey.stopped is not None:
            return
    if (moment := journey.end()) is not None:
        yield moment


async def stream_turns(store: Store, ref: Ref) -> Turns:
    """Return where the stream of an instance turns; all of it is read, page by page."""
    turns = Turns()
    async for page in _pages(store, ref):
        turns = turns_of(page, turns)
    return turns


async def _pages(store: Store, ref: Ref) -> AsyncIterator[list[EventRow]]:
    version = 0
    while page := await store.stream(ref, version, EVENTS_PER_PAGE):
        yield page
        version = page[-1].version
