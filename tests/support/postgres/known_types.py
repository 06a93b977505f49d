"""What the driver asks on every connection about the types of arrays: asked once in a test run.

The answer takes a fifth of a server's time for a short test, and a type of PostgreSQL's own is the same on each
connection. Where statements are not kept, as behind a pooler, it is asked as ever: there the driver has to prepare
anew what the question came between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, Final

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

FIRST_OF_USERS: Final = 16_384
"""Smaller oids are those of PostgreSQL's own types."""
USED: Final = "SELECT NULL::bigint[], NULL::bytea[]"
"""What stores use, asked for at once: so that no test is the first, and sees other statements than the next."""

_library: Any = asyncpg
_asked: Any = _library.Connection._introspect_types  # noqa: SLF001  the driver has no setting for it
_known: dict[int, list[Any]] = {}


async def _introspect_types(connection: Any, oids: Collection[int], timeout: float | None) -> tuple[list[Any], Any]:
    kept = connection._stmt_cache_enabled  # noqa: SLF001
    if not kept or any(oid >= FIRST_OF_USERS for oid in oids):
        return await _asked(connection, oids, timeout)
    for oid in oids:
        if oid not in _known:
            _known[oid], _ = await _asked(connection, [oid], timeout)
    # The name of a statement of its own: none came between.
    return [row for oid in oids for row in _known[oid]], SimpleNamespace(name="known")


async def _ask(url: str) -> None:
    connection = await _library.connect(url)
    await connection.fetch(USED)
    await connection.close()


def remember_types(url: str) -> None:
    """Ask a server about what stores use; from then on no connection of this process asks about what is known."""
    _library.Connection._introspect_types = _introspect_types  # noqa: SLF001
    # The caller may stand in an event loop.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _ask(url)).result()
