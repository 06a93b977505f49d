"""Read models: how they are declared, read, watched and rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Final, TypeVar, overload

from msgspec.structs import replace

from mainspring.app.given import checked_limit, checked_seconds, checked_text
from mainspring.app.internals import Internals
from mainspring.core.feed import FeedEntry
from mainspring.core.workflow import Workflow
from mainspring.engine.fleet.standing import read
from mainspring.engine.projections.projection import KEY_CHARACTERS, TRANSACTION, Projection, ProjectionOptions, Reset
from mainspring.errors import NoSuchNameError, OperationError, WaitTimeoutError
from mainspring.port.projections import Advance, Checkpoint
from mainspring.views import Lag, ProjectionStatus

PAGE: Final = 100
COUNTED_EVENTS: Final = 100_000
WAIT: Final = timedelta(seconds=30)
LOOK_SECONDS: Final = 0.02
CONFLICTS: Final = 20

F = TypeVar("F", bound=Callable[..., Any])


class Projections:
    """The projections of an app: declared with `@app.projections.add(…)`, read with `app.projections("orders")`.

    >>> import asyncio
    >>> from mainspring import FeedEntry, Mainspring, Received
    >>> from mainspring.testing.samples import Count, Counted, Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> @app.projections.add(key=lambda entry: entry.instance)
    ... def counts(document: Counted | None, entry: FeedEntry) -> Counted | None:
    ...     return Counted((document or Counted()).times + isinstance(entry.event, Received))
    >>> async def main() -> None:
    ...     async with app:
    ...         await app.send(Count("c-1"))
    ...         await app.projections("counts").caught_up()
    ...         print(await app.projections("counts").get("c-1"))
    >>> asyncio.run(main())
    Counted(times=1)
    """

    def __init__(self, internals: Internals) -> None:
        self._internals = internals

    @overload
    def add(self, function: F, /) -> F: ...
    @overload
    def add(
        self,
        *,
        name: str | None = None,
        workflows: Iterable[type[Workflow[Any, Any, Any]] | str] | None = None,
        version: int = 1,
        key: Callable[[FeedEntry], str | None] | None = None,
        create: str | None = None,
        reset: Reset | None = None,
        transaction: timedelta = TRANSACTION,
    ) -> Callable[[F], F]: ...
    def add(self, function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:  # pyright: ignore[reportInconsistentOverload]  the options are checked when they are used
        """Register a function that folds the feed.

        With `key` it is pure, takes a document and an entry, and mainspring keeps the documents that it returns.
        Without one it is async, takes an entry and a Connection, and writes to tables of its own; with `create` to one
        that mainspring creates for each generation, whose name it takes as well.
        """

        def register(function: F) -> F:
            self._internals.registry.add_projection(Projection(function, ProjectionOptions(**options)))
            return function

        return register if function is None else register(function)

    def __call__(self, name: str) -> ProjectionHandle:
        """Return a handle on a projection."""
        return ProjectionHandle(self._internals, name)

    async def list(self) -> list[ProjectionStatus]:
        """Return the status of all projections: those of this app, and others in the store."""
        found = await self._internals.engine.store.checkpoints()
        names = sorted({*self._internals.registry.projections, *(checkpoint.name for checkpoint in found)})
        return [await self(name).status() for name in names]


class ProjectionHandle:
    """One projection: its documents, its lag, and how to rebuild it."""

    def __init__(self, internals: Internals, name: str) -> None:
        self._internals = internals
        self.name = name
        """The projection's name."""

    async def get(self, key: str) -> Any:
        """Return the document under a key, or None."""
        projection = self._kept()
        if len(checked_text("key", key)) > KEY_CHARACTERS:
            return None
        found = await self._internals.engine.store.documents(self.name, [key])
        return projection.read(found[0]) if found else None

    async def list(self, *, prefix: str = "", limit: int = PAGE, after: str = "") -> list[tuple[str, Any]]:
        """Return keys and documents in the order of their keys; `after` is the key of the last one seen."""
        projection = self._kept()
        prefix, after = checked_text("prefix", prefix), checked_text("after", after)
        checked_limit(limit)
        read: list[tuple[str, Any]] = []
        # Those whose keys were destroyed are left out; a page is short only where there is no more.
        while len(read) < limit:
            found = await self._internals.engine.store.list_documents(self.name, prefix, after, limit - len(read))
            if not found:
                break
            after = found[-1].key
            read += [(each.key, document) for each in found if (document := projection.read(each)) is not None]
        return read

    async def status(self) -> ProjectionStatus:
        """Return its lag, the error that stopped it, if any, and why workers leave it to newer ones."""
        status, store = await self._status(), self._internals.engine.store
        now_us = store.now_us()
        left = (read(row.standing).projections.get(self.name) for row in await store.workers() if row.ends_us > now_us)
        return replace(status, left=next((why for why in left if why is not None), None))

    async def _status(self) -> ProjectionStatus:
        found = await self._internals.engine.store.checkpoints(self.name)
        declared = self.name in self._internals.registry.projections
        if not found and not declared:
            raise NoSuchNameError(f"The projection {self.name}", "does not exist", "List them to see which there are.")
        live = next((c for c in found if c.status == "live"), None)
        building = next((c for c in reversed(found) if c.status == "building"), None)
        return ProjectionStatus(self.name, declared, await self._lag(live), await self._lag(building))

    async def caught_up(self, timeout: timedelta = WAIT) -> None:
        """Wait until it has no lag, in this code's version, and no rebuild runs."""
        engine, clock, version = self._internals.engine, self._internals.engine.runtime.clock, self._declared().version
        seconds = checked_seconds(timeout)
        deadline_us = engine.store.now_us() + int(seconds * 1e6)
        while True:
            status = await self._status()
            if (live := status.live) and live.events == 0 and live.version >= version and status.building is None:
                return
            if engine.store.now_us() >= deadline_us:
                raise WaitTimeoutError(f"the projection {self.name}", seconds, _told(await self.status()))
            await clock.sleep(LOOK_SECONDS)

    async def rebuild(self) -> int:
        """Rebuild it in a new generation, from the beginning of the feed, and return that generation's number.

        A worker does it, beside the live one, which is kept until the new one has caught up and takes its place.
        """
        projection, store = self._declared(), self._internals.engine.store
        if not projection.rebuildable:
            raise OperationError(
                f"The projection {self.name}",
                "writes to tables that only you know",
                "Give it `create`, so that each generation has a table of its own, or `reset`, to empty yours.",
            )
        for _ in range(CONFLICTS):
            found = await store.checkpoints(self.name)
            begun = _next_generation(self.name, projection.version, found)
            if await store.advance(begun):
                self._internals.engine.projector.wake()
                return begun.generation
        raise OperationError(f"The projection {self.name}", "is being rebuilt elsewhere", "Look at its status.")

    async def _lag(self, checkpoint: Checkpoint | None) -> Lag | None:
        if checkpoint is None:
            return None
        store = self._internals.engine.store
        behind = await store.behind(max(checkpoint.position, 0), COUNTED_EVENTS)
        seconds = 0.0 if behind.since_us is None else max(0, store.now_us() - behind.since_us) / 1e6
        return Lag(
            checkpoint.generation, checkpoint.version, checkpoint.position, behind.events, seconds, checkpoint.error
        )

    def _declared(self) -> Projection:
        projection = self._internals.registry.projections.get(self.name)
        if projection is None:
            raise NoSuchNameError(f"The projection {self.name}", "is not declared here", "Use @app.projections.add.")
        return projection

    def _kept(self) -> Projection:
        projection = self._declared()
        if not projection.kept:
            raise OperationError(
                f"The projection {self.name}", "writes to tables of its own", "Read them with SQL, or give it a `key`."
            )
        return projection


def _next_generation(name: str, version: int, found: list[Checkpoint]) -> Advance:
    """Return the beginning of a generation beside the live one, in the place of one that is being built."""
    status = "building" if any(c.status == "live" for c in found) else "live"
    retires = tuple(c.generation for c in found if c.status == "building")
    generation = 1 + max((c.generation for c in found), default=0)
    return Advance(name, generation, None, -1, version, status, retires=retires)


def _told(status: ProjectionStatus) -> str:
    if status.live is None:
        return "no worker runs it"
    error = status.live.error or (status.building.error if status.building else None)
    return error or status.left or f"it is {status.live.events} events behind"
