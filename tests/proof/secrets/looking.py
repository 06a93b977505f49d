"""Looks for marked secrets in files and in the rows of a database, byte by byte."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path
from typing import Any, Final

import apsw
import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from tests.support.postgres.server import VARIABLE, shared_server

MARK: Final = re.compile(rb"zQx[A-Za-z]+7Kv")


def in_bytes(data: bytes) -> set[str]:
    """Return the secrets that are in some bytes."""
    return {found.decode() for found in MARK.findall(data)}


def in_files(folder: Path) -> dict[str, set[str]]:
    """Return the secrets that are in the files below a folder, by file; those that are packed are unpacked first."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*")):
        try:
            data = path.read_bytes() if path.is_file() else b""
        except FileNotFoundError:
            continue  # a server removes what it does not need any more
        marks = in_bytes(gzip.decompress(data) if path.suffix == ".gz" else data)
        if marks:
            found[str(path.relative_to(folder))] = marks
    return found


def in_tables(file: Path) -> dict[str, set[str]]:
    """Return the secrets that are in the columns of a SQLite file, by column, as in `events.body`."""
    connection, found = apsw.Connection(str(file), apsw.SQLITE_OPEN_READONLY), dict[str, set[str]]()
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    for (table,) in tables:
        names = [column[1] for column in connection.pragma("table_info", table)]
        rows = connection.execute(f'SELECT * FROM "{table}"').fetchall()  # noqa: S608  its own name
        found |= _in_columns(str(table), [dict(zip(names, row, strict=True)) for row in rows])
    connection.close()
    return found


def columns_of_file(file: Path) -> set[str]:
    """Return the columns of a SQLite file, as in `events.body`."""
    connection = apsw.Connection(str(file), apsw.SQLITE_OPEN_READONLY)
    rows = connection.execute(
        "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c "
        "WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%'"
    ).fetchall()
    connection.close()
    return {f"{table}.{name}" for table, name in rows}


async def columns_of_server(url: str) -> set[str]:
    """Return the columns of a schema, as in `events.body`."""
    address, _, schema = url.partition("schema=")
    library: Any = asyncpg
    connection = await library.connect(address.rstrip("?&"))
    try:
        rows = await connection.fetch(
            "SELECT c.table_name, c.column_name FROM information_schema.columns AS c WHERE c.table_schema = $1", schema
        )
        return {f"{table}.{name}" for table, name in rows}
    finally:
        await connection.close()


def _in_columns(table: str, rows: list[dict[str, Any]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items():
            if marks := in_bytes(value if isinstance(value, bytes) else str(value).encode()):
                found.setdefault(f"{table}.{name}", set()).update(marks)
    return found


async def in_server(url: str, *, files: bool = True) -> dict[str, set[str]]:
    """Return the secrets that are in the columns of a schema, and in the files of the server where it is ours."""
    address, _, schema = url.partition("schema=")
    library: Any = asyncpg
    connection = await library.connect(address.rstrip("?&"))
    try:
        found: dict[str, set[str]] = {}
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", schema)
        assert len(tables) > 10, f"there is no database in {schema}"
        for (table,) in tables:
            rows = await connection.fetch(f'SELECT * FROM "{schema}"."{table}"')  # noqa: S608  its own name
            found |= _in_columns(table, [dict(row) for row in rows])
        if files and not os.environ.get(VARIABLE):
            await connection.execute("CHECKPOINT")
            found |= in_files(shared_server().folder)
        return found
    finally:
        await connection.close()
