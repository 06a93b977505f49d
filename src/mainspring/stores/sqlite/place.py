"""The place of a database: its file, how it is opened, and whether it still stands there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import apsw

from mainspring.errors import StoreError, StoreMovedError, StoreReadOnlyError
from mainspring.stores.sqlite.faults import LET_WRITE, translated
from mainspring.stores.sqlite.statements import execute

# Older versions can lose committed transactions when a checkpoint meets a restarting write-ahead log.
OLDEST_SQLITE: Final = (3, 51, 3)
STATEMENTS_CACHED: Final = 256
CACHE_KIB: Final = 32_768
# After this many pages the write-ahead log is moved into the database, so that it stays near 16 MiB. See Writer.
CHECKPOINT_PAGES: Final = 4_000
LOG_BYTES: Final = 64 * 1_024 * 1_024


class Place:
    """Where the database is, and how to reach it.

    >>> Place("/var/lib/orders.db", busy_seconds=5.0).path.name
    'orders.db'
    """

    def __init__(self, path: str | Path, *, busy_seconds: float, vfs: str | None = None) -> None:
        text = str(path)
        if not text or text == ":memory:" or text.startswith("file:"):
            raise StoreError(
                repr(text),
                "is no path of a file",
                "Give a file's path; use the memory store for what may be forgotten.",
            )
        self.path = Path(path).absolute()  # the process may change its directory later
        self.busy_seconds = busy_seconds
        self.vfs = vfs
        self.footing: Footing | None = None
        """Where the writer stands, while it does."""

    def __str__(self) -> str:
        return str(self.path)

    def connect(self, *, writes: bool) -> apsw.Connection:
        """Return a new connection, for the calling thread only.

        Readers open the file for writing too, because they may have to recover the log that a killed process left, but
        are held to reading by `query_only`.
        """
        self._check()
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if writes else 0)
        connection = apsw.Connection(
            str(self.path), flags=flags, vfs=self.vfs, statementcachesize=STATEMENTS_CACHED if writes else 64
        )
        connection.set_busy_timeout(round(self.busy_seconds * 1_000))
        if not writes:
            # It may be another file by now, and this the log of the one that was there: never combine them.
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            execute(connection, "PRAGMA query_only = ON")
        elif connection.readonly("main"):
            connection.close()
            raise StoreReadOnlyError(str(self), LET_WRITE)
        return connection

    def stay(self) -> None:
        """Raise a StoreMovedError if the writer's files do not stand at their place any more."""
        if self.footing is not None and (moved := self.footing.lost()) is not None:
            raise moved

    def _check(self) -> None:
        if tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) < OLDEST_SQLITE:
            raise StoreError(
                str(self),
                f"needs SQLite {'.'.join(map(str, OLDEST_SQLITE))} or newer; apsw brings {apsw.sqlite_lib_version()}",
                "Upgrade the apsw package.",
            )
        if not self.path.parent.is_dir():
            raise StoreError(
                str(self), f"cannot be created: there is no directory {self.path.parent}", "Create the directory first."
            )
        if self.path.is_dir():
            raise StoreError(str(self), "is a directory", "Give the path of a file.")

    def error(self, cause: Exception) -> StoreError:
        """Return what a failure of SQLite means for the user."""
        return translated(str(self), cause, self.busy_seconds)


class Footing:
    """The files that a connection has opened, and whether they still stand at their place.

    What is committed to a file without a name is on the disk, and lost when the last process closes it. Log and index
    are there as long as a connection is, so they are noted when the first question has been answered.
    """

    def __init__(self, place: Place, connection: apsw.Connection) -> None:
        self._place = place
        log = connection.filename_wal  # beside the file that a link leads to
        self._opened = [(file, _identity(file)) for file in (str(place), log, f"{log.removesuffix('-wal')}-shm")]
        # A VFS may keep its files elsewhere.
        self._watches = self._opened[0][1] is not None

    def lost(self) -> StoreMovedError | None:
        """Return what to say if one of the files was deleted, moved or replaced since."""
        if not self._watches:
            return None
        for number, (file, opened) in enumerate(self._opened):
            try:
                found = _identity(file)
            except OSError:
                continue  # without permission to look there is no answer, and what is committed is committed
            if opened is None:
                self._opened[number] = file, found
            elif found != opened:
                return StoreMovedError(str(self._place), Path(file).name, replaced=number == 0 and found is not None)
        return None


def _identity(file: str) -> tuple[int, int] | None:
    """Return what distinguishes a file from another of its name; None if there is none."""
    try:
        found = os.stat(file)  # noqa: PTH116  it is asked at every commit
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def tune(connection: apsw.Connection) -> None:
    """Make a writing connection durable: each commit is on the disk when it returns."""
    execute(
        connection,
        f"""
        PRAGMA synchronous = FULL;
        PRAGMA cache_size = -{CACHE_KIB};
        PRAGMA journal_size_limit = {LOG_BYTES};
        PRAGMA temp_store = MEMORY;
        """,
    )
    # The writer does it itself between two transactions: never inside a COMMIT that a caller waits for.
    connection.wal_autocheckpoint(0)
