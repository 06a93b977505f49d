"""What goes wrong with the server, in the words of `mainspring.errors`."""

from __future__ import annotations

import asyncio
from typing import Final

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from mainspring.errors import (
    DamagedRecordError,
    DamagedStoreError,
    MainspringError,
    StatementError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnreachableError,
)

LOCK_SECONDS: Final = 5.0
STATEMENT_SECONDS: Final = 30.0
IDLE_SECONDS: Final = 30.0
LET_WRITE: Final = (
    "Name the primary server in the URL, not a standby, and see that default_transaction_read_only is off for this "
    "user and database."
)


class Surprise(Exception):  # noqa: N818  nothing is wrong: it is never seen outside
    """Another process changed what this batch is about to change, since it was read. The batch is retried."""


# The same batch, retried from the start, finds what was in its way as a fact.
AGAIN: Final = (
    Surprise,
    asyncpg.UniqueViolationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
)

# The session is gone, or cannot be had. Nothing can be known of what it was about to commit without asking.
LOST: Final = (
    OSError,
    EOFError,
    TimeoutError,
    asyncio.IncompleteReadError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.DatabaseDroppedError,
)

# The session is well, and of no use: it may never write, while a new one may, here or on the server that took over.
USELESS: Final = (asyncpg.ReadOnlySQLTransactionError,)

# The caller gave something that cannot be stored; the database is well.
FAULTY: Final = (
    ValueError,  # before anything was sent to the server: of text that is none
    OverflowError,  # of a number that is too large
    asyncpg.DataError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.NotNullViolationError,
)


# Trouble of the database itself, whichever statement meets it.
_TROUBLE: Final = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.DiskFullError,
    asyncpg.OutOfMemoryError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.QueryCanceledError,
    asyncpg.DataCorruptedError,
    asyncpg.IndexCorruptedError,
)


def statement_failed(store: str, statement: str, cause: Exception, *, lost: bool) -> MainspringError:
    """Return what the failure of a statement means that is not ours; `lost` says that its session is gone.

    >>> statement_failed("postgresql://db/shop", "SELECT 1", asyncpg.InterfaceError("gone"), lost=True).store
    'postgresql://db/shop'
    """
    if isinstance(cause, _TROUBLE) or (lost and isinstance(cause, LOST)):
        return translated(store, cause)
    return StatementError(statement, cause, refused=isinstance(cause, asyncpg.IntegrityConstraintViolationError))


def translated(store: str, cause: BaseException) -> StoreError:
    """Return what a failure means for the user.

    >>> str(translated("postgresql://db/shop", ConnectionRefusedError("refused")))
    'postgresql://db/shop cannot be reached (refused). Look at the server and the network.'
    >>> str(translated("postgresql://db/shop", asyncpg.OutOfMemoryError()))
    'postgresql://db/shop has no memory left for a statement. Try again; give the server more memory.'
    """
    if isinstance(cause, StoreError):
        return cause
    error = _translated(store, cause)
    error.__cause__ = cause
    return error


def _translated(store: str, cause: BaseException) -> StoreError:
    match cause:
        case asyncpg.TooManyConnectionsError():
            return StoreUnreachableError(store, "it has no connection left")
        case asyncpg.LockNotAvailableError() | asyncpg.DeadlockDetectedError() | asyncpg.SerializationError():
            return StoreBusyError(store, LOCK_SECONDS)
        case asyncpg.UniqueViolationError(constraint_name="events_by_version"):
            return DamagedRecordError("instances", "the version of one is not that of its stream")
        case Surprise() | asyncpg.UniqueViolationError():
            return StoreBusyError(store, 0)
        case asyncpg.QueryCanceledError():
            fix = "Try again; look at what keeps the server busy."
            return StoreError(store, f"took more than {STATEMENT_SECONDS:g} s for a statement, or was cancelled", fix)
        case asyncpg.DiskFullError():
            return StoreFullError(store)
        case asyncpg.OutOfMemoryError():
            return StoreError(store, "has no memory left for a statement", "Try again; give the server more memory.")
        case asyncpg.ReadOnlySQLTransactionError():
            return StoreReadOnlyError(store, LET_WRITE)
        case asyncpg.UndefinedObjectError() if "configuration parameter" in str(cause):
            return StoreError(store, f"does not know a setting ({cause})", "Use PostgreSQL 14 or newer.")
        case asyncpg.InsufficientPrivilegeError():
            return StoreError(store, f"is not allowed to this user ({cause})", "Grant what is missing.")
        case asyncpg.InvalidCatalogNameError() | asyncpg.InvalidAuthorizationSpecificationError():
            return StoreError(
                store, f"refuses the connection ({cause})", "Check database, user and password in the URL."
            )
        case asyncpg.DataCorruptedError() | asyncpg.IndexCorruptedError():
            return DamagedStoreError(store, str(cause))
        case asyncpg.UndefinedTableError() | asyncpg.UndefinedColumnError():
            return DamagedStoreError(store, str(cause))
        case asyncpg.ClientConfigurationError():
            return StoreError(store, f"cannot be connected to as its URL says ({cause})", "Correct the URL.")
        case _ if isinstance(cause, LOST):
            return StoreUnreachableError(store, str(cause) or type(cause).__name__)
        case _:
            problem = f"cannot do what it was asked ({type(cause).__name__}: {cause})"
            return StoreError(store, problem, "Correct what the store was given.")
