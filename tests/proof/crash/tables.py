"""The tables of a run's store, read by a plain connection of its own: the store's own code has no hand in it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import apsw
import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from tests.proof.crash.files import Place

# The schema that the store uses when its URL names none.
SCHEMA: Final = "mainspring"
CONNECT_SECONDS: Final = 60.0

AWAY: Final = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)
"""What a server raises that is away for a moment."""


class Tables(Protocol):
    """One moment of the tables. Statements have their values as `?1`, `?2` and so on."""

    def rows(self, statement: str, *values: Any) -> list[Sequence[Any]]: ...


class _File:
    def __init__(self, database: Path) -> None:
        self.connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
        self.connection.set_busy_timeout(10_000)
        self.connection.execute("PRAGMA query_only = ON")

    def rows(self, statement: str, *values: Any) -> list[Sequence[Any]]:
        return list(self.connection.execute(statement, values))


class Database:
    """A connection to a server, for whoever does not want to wait in an event loop."""

    def __init__(self, url: str) -> None:
        library: Any = asyncpg
        self._runner = asyncio.Runner()
        settings = {"search_path": f"{SCHEMA}, public", "application_name": "observer"}
        try:
            connecting = library.connect(url, timeout=CONNECT_SECONDS, server_settings=settings)
            self._raw = self._runner.run(connecting)
        except BaseException:
            self._runner.close()
            raise

    def rows(self, statement: str, *values: Any) -> list[Sequence[Any]]:
        fetching = self._raw.fetch(re.sub(r"\?(\d)", r"$\1", statement), *values)
        return self._runner.run(fetching)

    def close(self) -> None:
        self._raw.terminate()
        self._runner.close()


def prepare(place: Place) -> None:
    """Make the table that a handler writes to. It has no key: what is written twice is there twice."""
    table = "CREATE TABLE payments (command text NOT NULL)"
    if place.url.startswith("sqlite:"):
        with apsw.Connection(str(place.database)) as connection:
            connection.execute(table)
        connection.close()
        return
    database = Database(place.url)
    try:
        database.rows(table.replace("payments", "public.payments"))
    finally:
        database.close()


@contextmanager
def tables(place: Place) -> Generator[Tables | None]:
    """Read one moment of a run's tables; None before there are any."""
    if not place.url.startswith("sqlite:"):
        database = Database(place.url)
        try:
            database.rows("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            there = "SELECT 1 FROM pg_tables WHERE schemaname = ?1 AND tablename = 'outbox'"
            yield database if database.rows(there, SCHEMA) else None
        finally:
            database.close()
    elif not place.database.exists():
        yield None
    else:
        file = _File(place.database)
        try:
            with file.connection:  # one transaction: one moment
                yield file if file.rows("SELECT 1 FROM sqlite_schema WHERE name = 'outbox'") else None
        finally:
            file.connection.close()
