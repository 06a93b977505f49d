"""How much a run has left in its store."""

from __future__ import annotations

from bench import servers
from bench.measure import disk_bytes
from bench.settings import Settings


async def stored_bytes(settings: Settings) -> int:
    """Return the bytes of a run's file, or of its tables and indexes on a server."""
    if settings.store == "postgres":
        return await servers.stored_bytes(settings)
    return disk_bytes(settings.path)
