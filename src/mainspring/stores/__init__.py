"""The stores, and how a URL names one.

commit      what a commit means, once for all
memory      the port in dicts: read this first
sqlite      one file, one machine
postgres    a server, many machines
sql         what those two share
sealed      a store around another, which closes bodies; `wrapped` is what such a store is made of
hints       how a process is told of work that it has committed itself
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from mainspring.errors import PostingError, SettingError
from mainspring.port.clock import Clock
from mainspring.port.store import Store

if TYPE_CHECKING:
    from mainspring.stores.postgres.posting import Posting


def open_store(url: str, clock: Clock) -> Store:
    """Return the store that a URL names: `memory://`, `sqlite:///file.db`, or `postgresql://user@host/database`.

    >>> from mainspring.testing.clock import VirtualClock
    >>> type(open_store("memory://", VirtualClock())).__name__
    'MemoryStore'
    """
    try:
        parts = urlsplit(url)
        for host in parts.netloc.rpartition("@")[2].split(","):  # several are tried in turn
            urlsplit(f"//{host}").port  # noqa: B018  a port that is no number is found when it is asked for
        url.encode()
    except (ValueError, AttributeError, TypeError):
        # Not what Python says of it: that may quote a password.
        raise SettingError(
            "The store's URL",
            _without_password(url),
            "It cannot be read. Write sqlite:///orders.db or postgresql://user:password@host:5432/database, "
            "and in user and password %40 for @, %3A for :, %2F for /, %23 for #, %3F for ?, %5B for [.",
        ) from None
    match parts.scheme:
        case "memory":
            from mainspring.stores.memory import MemoryStore  # noqa: PLC0415  a store is imported when it is used

            return MemoryStore(clock)
        case "sqlite":
            from mainspring.stores.sqlite import SqliteStore  # noqa: PLC0415  a store is imported when it is used

            path = unquote(parts.path)[1:]
            # What is not understood would name another file than was meant.
            strange = not url.partition(":")[2].startswith("///") or parts.query or parts.fragment
            if strange or not path.strip("/") or "\0" in path:
                raise SettingError(
                    "The store's URL",
                    _without_password(url),
                    "Write sqlite:///orders.db, or sqlite:////var/lib/orders.db from the root; it has no options, and "
                    "in a name %3F stands for ?, %23 for #.",
                )
            return SqliteStore(path, clock)
        case "postgresql" | "postgres":
            return _postgres(url, clock)
        case _:
            raise SettingError(
                "The store's URL",
                _without_password(url),
                "Use memory://, sqlite:///orders.db or postgresql://user@host/database.",
            )


def posting_to(url: str) -> Posting:
    """Return how programs post to the database that a URL names, in transactions of their own.

    >>> posting_to("sqlite:///shop.db")
    Traceback (most recent call last):
    mainspring.errors.running.PostingError: No posting to sqlite:///shop.db. Use app.transaction(): ours is the \
only library that may write to the file.
    """
    if not isinstance(url, str) or not url.startswith(("postgresql:", "postgres:")):
        fix = (
            "Use app.transaction(): ours is the only library that may write to the file."
            if str(url).startswith("sqlite:")
            else "Use PostgreSQL, or SQLite with app.transaction()."
        )
        raise PostingError(f"No posting to {_without_password(url)}", fix)
    _needs_asyncpg()
    from mainspring.stores.postgres.posting import Posting  # noqa: PLC0415  a store is imported when it is used

    return Posting(url)


def _without_password(url: object) -> object:
    """Return a URL as errors and logs may show it."""
    return re.sub(r"(?<=://).*(?=@)|(?<=password=)[^&]*", "***", url, flags=re.DOTALL) if isinstance(url, str) else url


def _postgres(url: str, clock: Clock) -> Store:
    _needs_asyncpg()
    from mainspring.stores.postgres import PostgresStore  # noqa: PLC0415  a store is imported when it is used
    from mainspring.stores.postgres.clock import is_machines  # noqa: PLC0415  as above

    # Among many machines only one clock counts, the database's. A test's clock is another matter.
    return PostgresStore(url, None if is_machines(clock) else clock)


def _needs_asyncpg() -> None:
    try:
        import_module("mainspring.stores.postgres")
    except ModuleNotFoundError as missing:
        if missing.name != "asyncpg":
            raise
        raise SettingError(
            "The store's URL", "postgresql://", "It needs asyncpg: install mainspring[postgres]."
        ) from missing
