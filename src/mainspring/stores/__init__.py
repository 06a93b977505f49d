"""The stores, and how a URL names one."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from mainspring.errors import SettingError
from mainspring.port.clock import Clock
from mainspring.port.store import Store


def open_store(url: str, clock: Clock) -> Store:
    """Return the store that a URL names: `memory://`, `sqlite:///file.db`, or `postgresql://user@host/database`.

    >>> from mainspring.testing.clock import VirtualClock
    >>> type(open_store("memory://", VirtualClock())).__name__
    'MemoryStore'
    """
    parts = urlsplit(url)
    match parts.scheme:
        case "memory":
            from mainspring.stores.memory import MemoryStore  # noqa: PLC0415  a store is imported when it is used

            return MemoryStore(clock)
        case "sqlite":
            from mainspring.stores.sqlite import SqliteStore  # noqa: PLC0415  a store is imported when it is used

            path = unquote(parts.path)[1:]
            if parts.netloc or not path:
                raise SettingError(
                    "The store's URL", url, "Write sqlite:///orders.db, or sqlite:////var/lib/orders.db from the root."
                )
            return SqliteStore(path, clock)
        case "postgresql" | "postgres":
            return _postgres(url, clock)
        case _:
            raise SettingError(
                "The store's URL", url, "Use memory://, sqlite:///orders.db or postgresql://user@host/database."
            )


def _postgres(url: str, clock: Clock) -> Store:
    try:
        from mainspring.stores.postgres import PostgresStore  # noqa: PLC0415  a store is imported when it is used
        from mainspring.stores.postgres.clock import is_machines  # noqa: PLC0415  as above
    except ModuleNotFoundError as missing:
        if missing.name != "asyncpg":
            raise
        raise SettingError(
            "The store's URL", "postgresql://", "It needs asyncpg: install mainspring[postgres]."
        ) from missing
    # Among many machines only one clock counts, the database's. A test's clock is another matter.
    return PostgresStore(url, None if is_machines(clock) else clock)
