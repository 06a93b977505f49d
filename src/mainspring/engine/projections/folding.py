"""Folding: one piece of the feed into one generation of a projection, with its checkpoint, in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct

from mainspring.core.feed import FeedEntry
from mainspring.engine.projections.projection import TABLE, Projection
from mainspring.engine.recording.error_text import error_text
from mainspring.engine.recording.event_rows import is_unkept, message_id_of
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.registry import Registry, is_internal
from mainspring.engine.this_worker import ThisWorker
from mainspring.engine.watching.code_watch import Code
from mainspring.errors import ErasedError, LendingError, NewerTypeError
from mainspring.port.loans import Loan
from mainspring.port.projections import Advance, Checkpoint, Document
from mainspring.port.records import Committed, EventRow, Ref, Unit
from mainspring.port.store import Store

EVENTS_PER_PIECE: Final = 500
# On SQLite nothing else is written while a projection writes to its own tables, and folds share steps' event loop.
SECONDS_PER_PIECE: Final = 0.1

Page: TypeAlias = list[tuple[int, Ref, EventRow]]
T = TypeVar("T")


class Folded(Struct, frozen=True):
    """What came of it: whether the checkpoint moved, or what went wrong, and where the checkpoint stands then.

    `more` says that there is more to fold at once, `newer` that what went wrong is that only newer code can read it.

    >>> Folded(moved=True, position=7).error is None
    True
    """

    moved: bool
    position: int
    error: str | None = None
    more: bool = False
    newer: bool = False


class _Failed(Exception):  # noqa: N818  it never leaves this module
    """An event could not be folded; those before it could, up to `position`."""

    def __init__(self, ref: Ref, row: EventRow, position: int, place: int, cause: Exception) -> None:
        self.place = place
        self.newer = isinstance(cause, NewerTypeError)
        type = "" if row.type is None else f" {row.type}"
        self.text = f"{ref} position {row.version} ({row.event}{type}) at {position} of the feed: {error_text(cause)}"


class Folding:
    """Folds for one projection."""

    def __init__(self, projection: Projection, store: Store, registry: Registry, worker: ThisWorker) -> None:
        self._projection = projection
        self._store = store
        self._registry = registry
        self._worker = worker
        self._code = Code(f"the projection {projection.name}")

    async def fold(self, checkpoint: Checkpoint, live: Checkpoint) -> Folded:
        """Fold what is next, as far as it can be folded. Where that is nothing at all, say why."""
        if checkpoint.position < 0 and self._projection.options.create is not None:
            return await self._prepare(checkpoint)
        page = await self._store.feed(max(checkpoint.position, 0), EVENTS_PER_PIECE)
        reaches = page[-1][0] if page else checkpoint.position
        if len(page) < EVENTS_PER_PIECE:
            # What the live one has seen and this page has not is gone, by a purge: there is nothing to wait for.
            reaches = max(reaches, live.position, 0)
        if reaches == checkpoint.position:
            return Folded(False, checkpoint.position)
        return await self._piece(checkpoint, page, reaches)

    async def _piece(self, checkpoint: Checkpoint, page: Page, reaches: int) -> Folded:
        fold = self._fold_kept if self._projection.kept else self._fold_own
        try:
            reached = await fold(checkpoint, page, reaches)
        except _Failed as failed:
            if failed.place > 0:
                # Up to the event that failed, so that the checkpoint stands right before it.
                before = page[: failed.place]
                return await self._piece(checkpoint, before, before[-1][0])
            return Folded(False, checkpoint.position, failed.text, newer=failed.newer)
        except LendingError as error:
            return Folded(False, checkpoint.position, f"its transaction failed: {error_text(error)}")
        if reached is None:
            return Folded(False, checkpoint.position)
        return Folded(True, reached, more=reached != reaches or len(page) == EVENTS_PER_PIECE)

    # ---- documents that mainspring keeps

    async def _fold_kept(self, checkpoint: Checkpoint, page: Page, reaches: int) -> int | None:
        """Return the position that was reached, or None if another process moved the checkpoint."""
        projection, generation = self._projection, checkpoint.generation
        keyed = [
            (entry, None if entry is None else self._of(page, place, projection.key_of, entry))
            for place, entry in self._read(page)
        ]
        keys = sorted({key for _, key in keyed if key is not None})
        stored = await self._store.documents(projection.name, keys, generation) if keys else []
        bodies = {document.key: document for document in stored}
        documents: dict[str, Any] = {}
        changed: dict[str, Document] = {}
        deadline = _now() + SECONDS_PER_PIECE
        for place, (entry, key) in enumerate(keyed):
            if place and _now() > deadline:
                reaches = page[place - 1][0]
                break
            if entry is None or key is None:
                continue
            if key not in documents and key in bodies:
                documents[key] = self._of(page, place, projection.read, bodies[key])
            documents[key], changed[key] = self._of(page, place, self._folded, documents.get(key), key, entry)
        move = Advance(
            projection.name,
            generation,
            checkpoint.position,
            reaches,
            documents=tuple(changed[k] for k in sorted(changed)),
        )
        return reaches if await self._store.advance(move) else None

    def _of(self, page: Page, place: int, function: Callable[..., T], *args: Any) -> T:
        """Call what is the author's, or name the event at which it failed."""
        try:
            return self._registry.watch.call(self._code, function, *args)
        except Exception as error:
            raise _failed(page, place, error) from error

    def _folded(self, document: Any, key: str, entry: FeedEntry) -> tuple[Any, Document]:
        document = self._projection.folded(document, entry)
        return document, self._projection.written(key, document)

    # ---- tables of its own

    async def _fold_own(self, checkpoint: Checkpoint, page: Page, reaches: int) -> int | None:
        entries = [(place, entry) for place, entry in self._read(page) if entry is not None]
        move = Advance(self._projection.name, checkpoint.generation, checkpoint.position, reaches)
        if not entries:
            return reaches if await self._store.advance(move) else None
        loan = await self._store.lend(self._worker.key, self._projection.limit_seconds)
        try:
            # First of all: a second worker waits here, and has not run the function in vain.
            if not await loan.advance(move):
                return None
            reached = await self._write(loan, page, entries, checkpoint.generation, reaches)
            if reached != reaches:
                await loan.advance(Advance(move.name, move.generation, reaches, reached))
            return reached if isinstance(await loan.commit(Unit("", "")), Committed) else None
        finally:
            await loan.roll_back()

    async def _write(
        self, loan: Loan, page: Page, entries: list[tuple[int, FeedEntry]], generation: int, reaches: int
    ) -> int:
        """Call the function with entries for a while. Return the position that was reached."""
        deadline = _now() + min(SECONDS_PER_PIECE, self._projection.limit_seconds / 2)
        for number, (place, entry) in enumerate(entries):
            if number and _now() > deadline:
                return page[place - 1][0]
            try:
                async with asyncio.timeout(self._projection.limit_seconds):
                    await self._projection.write(entry, loan.connection, generation)
                loan.connection.check()  # an error that the function has swallowed
            except Exception as error:
                raise _failed(page, place, error) from error
        return reaches

    async def _prepare(self, checkpoint: Checkpoint) -> Folded:
        """Create the table of a generation, and for the live one the view by which it is read."""
        create = (self._projection.options.create or "").replace(TABLE, self._projection.table(checkpoint.generation))
        statements = [create, *(self._view(checkpoint.generation) if checkpoint.status == "live" else ())]
        move = Advance(self._projection.name, checkpoint.generation, checkpoint.position, 0)
        try:
            return Folded(await self._transact(move, statements), 0)
        except Exception as error:  # noqa: BLE001  a wrong statement is the author's, and shown
            return Folded(False, checkpoint.position, f"its table cannot be created: {error_text(error)}")

    # ---- generations

    async def swap(self, move: Advance) -> bool:
        """Let a generation take the live one's place."""
        if self._projection.options.create is None:
            return await self._store.advance(move)
        return await self._transact(move, self._view(move.generation))

    async def reset(self, building: Checkpoint, live: Checkpoint) -> bool:
        """Let the author empty the tables, and fill them from the beginning of the feed."""
        reset = self._projection.options.reset
        move = Advance(
            self._projection.name,
            building.generation,
            expected=building.position,
            position=0,
            status="live",
            retires=(live.generation,),
        )
        loan = await self._store.lend(self._worker.key, self._projection.limit_seconds)
        try:
            if not await loan.advance(move):
                return False
            if reset is not None:
                async with asyncio.timeout(self._projection.limit_seconds):
                    await reset(loan.connection)
            return isinstance(await loan.commit(Unit("", "")), Committed)
        finally:
            await loan.roll_back()

    async def drop(self, generation: int) -> None:
        """Remove the table of a generation that is no longer read."""
        loan = await self._store.lend(self._worker.key, self._projection.limit_seconds)
        try:
            await loan.connection.execute(f"DROP TABLE IF EXISTS {self._projection.table(generation)}")
            await loan.commit(Unit("", ""))
        finally:
            await loan.roll_back()

    def _view(self, generation: int) -> list[str]:
        name = self._projection.name
        return [
            f"DROP VIEW IF EXISTS {name}",
            f"CREATE VIEW {name} AS SELECT * FROM {self._projection.table(generation)}",  # noqa: S608  checked names
        ]

    async def _transact(self, move: Advance, statements: list[str]) -> bool:
        loan = await self._store.lend(self._worker.key, self._projection.limit_seconds)
        try:
            if not await loan.advance(move):
                return False
            for statement in statements:
                await loan.connection.execute(statement)
            return isinstance(await loan.commit(Unit("", "")), Committed)
        finally:
            await loan.roll_back()

    # ---- reading

    def _read(self, page: Page) -> list[tuple[int, FeedEntry | None]]:
        """Return the entries of a page by their places; None for one that the projection does not want."""
        entries: list[tuple[int, FeedEntry | None]] = []
        for place, (position, ref, row) in enumerate(page):
            try:
                entries.append((place, self._entry(position, ref, row)))
            except ErasedError:
                entries.append((place, None))  # its key was destroyed: it can no longer be read
            except Exception as error:
                raise _failed(page, place, error) from error
        return entries

    def _entry(self, position: int, ref: Ref, row: EventRow) -> FeedEntry | None:
        workflows = self._projection.workflows
        entry = self._registry.workflows.get(ref.workflow)
        if entry is None or (is_internal(ref.workflow) if workflows is None else ref.workflow not in workflows):
            return None
        if entry.definition.history == "state" or is_unkept(row):
            return None  # a step may trim it before it is read: a rebuild would come to something else
        event = entry.recorder.event(row)
        return FeedEntry(
            position, ref.workflow, ref.id, row.version, event, moment(row.time_us), message_id_of(ref, row), row.actor
        )


def _failed(page: Page, place: int, cause: Exception) -> _Failed:
    position, ref, row = page[place]
    return _Failed(ref, row, position, place, cause)


def _now() -> float:
    return asyncio.get_running_loop().time()
