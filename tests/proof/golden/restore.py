"""Golden databases, brought back into a store."""

from __future__ import annotations

import asyncio
import atexit
import lzma
import os
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
import msgspec

from tests.support.postgres.server import VARIABLE, server_url

FOLDER: Final = Path(__file__).parent / "databases"
_NAMED: Final = re.compile(r"(sqlite|postgres)-(\d+)\.(?:db|sql)\.xz")


def kept() -> list[tuple[str, int]]:
    """Return the golden databases that there are: store and schema version."""
    found = [match.groups() for path in FOLDER.iterdir() if (match := _NAMED.fullmatch(path.name))]
    return sorted((store, int(version)) for store, version in found)


def expected(store: str, version: int) -> dict[str, Any]:
    """Return what was read by the commit that wrote it: `instances` and `effects`."""
    return msgspec.json.decode(lzma.decompress((FOLDER / f"{store}-{version}.json.xz").read_bytes()))


async def restored(store: str, version: int, folder: Path) -> str:
    """Bring a golden database back, where nobody else uses it, and return its URL."""
    if store == "sqlite":
        place = folder / "golden.db"
        place.write_bytes(lzma.decompress((FOLDER / f"sqlite-{version}.db.xz").read_bytes()))
        return f"sqlite:///{place}"
    dump = lzma.decompress((FOLDER / f"postgres-{version}.sql.xz").read_bytes()).decode()
    # A database of its own: its schema has the name under which it was written.
    server, name = server_url(), f"golden_{uuid4().hex}"
    await _execute(server, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    if os.environ.get(VARIABLE):  # else it goes with its server
        drop = f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"
        atexit.register(lambda: asyncio.run(_execute(server, drop)))
    url = urlsplit(server)._replace(path=f"/{name}").geturl()
    await _execute(url, dump)
    return url


async def _execute(url: str, script: str) -> None:
    library: Any = asyncpg
    connection = await library.connect(url)
    try:
        await connection.execute(script)
    finally:
        await connection.close()
