"""What goes wrong with the file, in the words of `mainspring.errors`."""

from __future__ import annotations

import errno
from typing import Final

import apsw

from mainspring.errors import (
    DamagedRecordError,
    DamagedStoreError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)

LET_WRITE: Final = "Let this user write the file and its directory, and mount the disk for writing."

# The database is in trouble, not the caller: trying the same again one by one would only meet the same trouble.
TROUBLE: Final = (
    apsw.BusyError,
    apsw.LockedError,
    apsw.FullError,
    apsw.ReadOnlyError,
    apsw.IOError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.NoMemError,
    apsw.InterruptError,
    apsw.NoLFSError,
)


def translated(store: str, cause: Exception, busy_seconds: float) -> StoreError:
    """Return what a failure of SQLite means for the user.

    >>> str(translated("/x/orders.db", apsw.FullError("database or disk is full"), 5.0))
    '/x/orders.db has no room left. Free some space on its disk and try again; nothing was lost.'
    """
    error = _translated(store, cause, busy_seconds)
    if error is not cause:
        error.__cause__ = cause
    return error


def _translated(store: str, cause: Exception, busy_seconds: float) -> StoreError:
    match cause:
        case StoreError():
            return cause
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusyError(store, busy_seconds)
        case apsw.FullError():
            return StoreFullError(store)
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreReadOnlyError(store, LET_WRITE)
        case apsw.CorruptError() | apsw.NotADBError() | UnicodeDecodeError():  # a text that was not written so
            return DamagedStoreError(store, str(cause))
        case apsw.ConstraintError() if "events.version" in str(cause):
            return DamagedRecordError("instances", "the version of one is not that of its stream")
        case apsw.CantOpenError():
            fix = "Let this user read and write the file and its directory."
            return StoreError(store, f"cannot be opened ({cause})", fix)
        case OSError():  # of a worker's lock file, beside the database
            return _of_system(store, cause)
        case apsw.IOError():
            return StoreError(store, f"failed to read or write ({cause})", "Look at the disk and its system's log.")
        case _:
            problem = f"cannot do what it was asked ({type(cause).__name__}: {cause})"
            return StoreError(store, problem, "Correct what the store was given.")


def _of_system(store: str, cause: OSError) -> StoreError:
    match cause.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return StoreFullError(store)
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return StoreReadOnlyError(store, LET_WRITE)
        case _:
            problem = f"failed beside the database ({cause})"
            return StoreError(store, problem, "Look at the disk and its system's log.")
