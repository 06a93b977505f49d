"""Where stores stand while they are tried: each opens an empty one for an example, and opens it again in between."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from mainspring.port.store import Store
from mainspring.stores.memory import MemoryStore
from mainspring.stores.postgres import PostgresStore
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.statements import quoted
from mainspring.stores.sqlite import SqliteStore
from mainspring.testing.clock import VirtualClock
from tests.support.postgres.server import postgres_url

T = TypeVar("T")
# Puts something before a store: nothing, or a bug.
Wrap: TypeAlias = Callable[[Any], Any]


class Bed(Protocol):
    """A place for stores of one kind."""

    durable: bool

    async def fresh(self, clock: VirtualClock) -> Store:
        """Return an open store that is empty."""
        ...

    async def again(self, clock: VirtualClock) -> Store:
        """Return an open store on what the last one has left."""
        ...

    async def leave(self) -> None:
        """Remove everything."""
        ...


class MemoryBed:
    durable = False

    async def fresh(self, clock: VirtualClock) -> Store:
        return await _opened(MemoryStore(clock))

    async def again(self, clock: VirtualClock) -> Store:
        raise NotImplementedError

    async def leave(self) -> None: ...


class SqliteBed:
    """A file of its own for each example."""

    durable = True

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="mainspring-model-"))
        self._made = 0

    async def fresh(self, clock: VirtualClock) -> Store:
        for file in self._folder.iterdir():
            file.unlink()
        self._made += 1
        return await self.again(clock)

    async def again(self, clock: VirtualClock) -> Store:
        return await _opened(SqliteStore(self._folder / f"{self._made}.db", clock))

    async def leave(self) -> None:
        shutil.rmtree(self._folder)


class PostgresBed:
    """One schema, emptied between examples: making one takes longer than an example."""

    durable = True

    def __init__(self) -> None:
        # For one directory it is always the same schema, and there need not be one.
        self._url = postgres_url(Path(f"model-{id(self)}"))
        self._empty: str | None = None

    async def fresh(self, clock: VirtualClock) -> Store:
        if self._empty is None:
            store = await self.again(clock)
            await store.close()
        await self._execute(await self._emptying())
        return await self.again(clock)

    async def again(self, clock: VirtualClock) -> Store:
        return await _opened(PostgresStore(self._url, clock))

    async def leave(self) -> None:
        await self._execute(f"DROP SCHEMA IF EXISTS {quoted(Address(self._url).schema)} CASCADE")

    async def _emptying(self) -> str:
        """Return what empties all tables but those that say what the schema is."""
        if self._empty is None:
            schema = Address(self._url).schema
            names = await self._execute("SELECT tablename FROM pg_tables WHERE schemaname = $1", schema)
            tables = [
                f"{quoted(schema)}.{quoted(row[0])}" for row in names if row[0] not in ("schema_migrations", "feed")
            ]
            self._empty = f"TRUNCATE {', '.join(sorted(tables))} CASCADE"
        return self._empty

    async def _execute(self, statement: str, *values: Any) -> list[Any]:
        library: Any = asyncpg
        connection = await library.connect(Address(self._url).dsn)
        try:
            return await connection.fetch(statement, *values)
        finally:
            await connection.close()


BEDS: dict[str, Callable[[], Bed]] = {"memory": MemoryBed, "sqlite": SqliteBed, "postgres": PostgresBed}


class Stand:
    """A store at work in a loop of its own, so that a machine of plain functions can ask it."""

    def __init__(self, bed: Bed, runner: asyncio.Runner, wrap: Wrap) -> None:
        self._bed = bed
        self._runner = runner
        self._wrap = wrap
        self.clock = VirtualClock()
        self.durable = bed.durable
        self._inner = self.ask(bed.fresh(self.clock))
        self.store: Any = wrap(self._inner)

    def ask(self, answer: Awaitable[T]) -> T:
        """Return what a verb answers."""

        async def wait() -> T:
            return await answer

        return self._runner.run(wait())

    def reopen(self) -> None:
        """Close the store, and open another one on what is there."""
        self.close()
        self._inner = self.ask(self._bed.again(self.clock))
        self.store = self._wrap(self._inner)

    def close(self) -> None:
        self.ask(self._inner.close())


async def _opened(store: Store) -> Store:
    await store.open()
    return store
