"""The schema as the sum of its forward migrations, each run once, in one transaction."""

from __future__ import annotations

import time
from functools import cache
from typing import Final

import apsw

from mainspring.errors import NewerSchemaError, StoreError
from mainspring.stores.sql.migrations import Migration, shipped
from mainspring.stores.sqlite.place import Place
from mainspring.stores.sqlite.statements import execute, savepoint

WAL_RETRY_SECONDS: Final = 0.01

_LEDGER: Final = """
CREATE TABLE schema_migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_us INTEGER NOT NULL
) STRICT
"""


def migrations() -> list[Migration]:
    """Return all migrations that this release knows, in order.

    >>> [m.version for m in migrations()][:1]
    [1]
    """
    return shipped("mainspring.stores.sqlite")


@cache
def newest_known() -> int:
    """Return the newest version that this release knows.

    >>> newest_known() == len(migrations())
    True
    """
    return len(migrations())


def migrate(connection: apsw.Connection, place: Place, now_us: int) -> None:
    """Bring a database up to date. Safe when several processes do so at once: the first one does it.

    A database of a newer release is left as it is: its version is looked at before anything is changed.
    """
    known = migrations()
    refuse_newer(place, version_of(connection))
    _use_write_ahead_log(connection, place)
    execute(connection, "BEGIN IMMEDIATE")
    with savepoint(connection):  # a savepoint, so that a failing migration leaves nothing behind
        version = version_of(connection)
        refuse_newer(place, version)
        if version == 0:
            execute(connection, _LEDGER)
        for migration in known[version:]:
            execute(connection, migration.sql)
            execute(
                connection,
                "INSERT INTO schema_migrations (version, name, applied_us) VALUES (?, ?, ?)",
                (migration.version, migration.name, now_us),
            )
    execute(connection, "COMMIT")


def version_of(connection: apsw.Connection) -> int:
    """Return the schema's version; 0 if there is none."""
    # Asked of the database and not of the connection, whose own idea of the schema may be older than another's commit.
    if not execute(connection, "SELECT count(*) FROM sqlite_schema WHERE name = 'schema_migrations'").get:
        return 0
    return execute(connection, "SELECT coalesce(max(version), 0) FROM schema_migrations").get


def refuse_newer(place: Place, version: int) -> None:
    """Raise if a newer release has changed the database."""
    if version > (known := newest_known()):
        raise NewerSchemaError(str(place), version, known)


def _use_write_ahead_log(connection: apsw.Connection, place: Place) -> None:
    """Switch to the write-ahead log. SQLite does not wait here for another process that does the same: so we do."""
    tries = max(1, round(place.busy_seconds / WAL_RETRY_SECONDS))
    for left in range(tries, 0, -1):
        try:
            mode = execute(connection, "PRAGMA journal_mode = WAL").get
        except apsw.BusyError:
            if left == 1:
                raise
            time.sleep(WAL_RETRY_SECONDS)
            continue
        if mode == "wal":
            return
        raise StoreError(
            str(place),
            f"cannot use a write-ahead log (its journal mode is {mode})",
            "Use a local disk, not a network one.",
        )


def described(connection: apsw.Connection) -> str:
    """Return the schema that a database has, as text. `schema.sql` is that of a new one; a test holds it to that."""
    rows = execute(connection, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
    return "\n\n".join(sorted((f"{sql.strip()};" for (sql,) in rows), key=_by_table)) + "\n"


def _by_table(sql: str) -> tuple[str, bool, str]:
    """Sort tables by name, each with its indexes behind it."""
    words = sql.split()
    is_index = "INDEX" in words[:3]
    return words[words.index("ON") + 1] if is_index else words[2], is_index, sql
