"""What SQLite asks of the system: opening, reading, writing, syncing, cutting and removing files, and their locks.

SQLite itself decides here what a failure means for the transaction, the cache and the log.
"""

from __future__ import annotations

from typing import Any, Final

import apsw

from mainspring.stores.sqlite import place
from tests.proof.store_faults.calls import Calls

ERROR: Final = "I/O error of a file"
FULL: Final = "full disk, half written"
LOCKED: Final = "lock not to be had"
KINDS: Final = (ERROR, FULL, LOCKED)
NAME: Final = "faulty-files"

_installed: list[apsw.VFS] = []  # SQLite only borrows it


def fits(kind: str, call: str) -> bool:
    """Tell whether a call can fail so."""
    return kind == ERROR or call.startswith("write#" if kind == FULL else "lock#")


def install(calls: Calls) -> None:
    """Have the store's connections on a file system whose every call is counted, and one fail."""
    _installed.append(_file_system(calls))
    connect = place.Place.connect

    def counted(self: place.Place, *, writes: bool) -> apsw.Connection:
        self.vfs = NAME
        return connect(self, writes=writes)

    place.Place.connect = counted


def _reach(calls: Calls, what: str) -> str | None:
    if (kind := calls.reach(what)) == ERROR:
        raise apsw.IOError(f"the test says so: {what}")
    return kind


def _file_system(calls: Calls) -> apsw.VFS:
    class File(apsw.VFSFile):
        def __init__(self, name: Any, flags: list[int]) -> None:
            super().__init__("", name, flags)

        def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802  SQLite's name, as those below
            _reach(calls, "read")
            return super().xRead(amount, offset)

        def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
            if _reach(calls, "write") == FULL:
                super().xWrite(bytes(data)[: len(data) // 2], offset)
                raise apsw.FullError("the test says so")
            super().xWrite(data, offset)

        def xSync(self, flags: int) -> None:  # noqa: N802
            _reach(calls, "sync")
            super().xSync(flags)

        def xTruncate(self, size: int) -> None:  # noqa: N802
            _reach(calls, "truncate")
            super().xTruncate(size)

        def xFileSize(self) -> int:  # noqa: N802
            _reach(calls, "size")
            return super().xFileSize()

        def xLock(self, level: int) -> None:  # noqa: N802
            if _reach(calls, "lock") == LOCKED:
                raise apsw.BusyError("the test says so")
            super().xLock(level)

    class Files(apsw.VFS):
        def __init__(self) -> None:
            super().__init__(NAME, "")

        def xOpen(self, name: Any, flags: list[int]) -> File:  # noqa: N802
            if calls.reach("open a file") is not None:
                raise apsw.CantOpenError("the test says so")
            return File(name, flags)

        def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802
            _reach(calls, "remove a file")
            super().xDelete(name, sync)

    return Files()
