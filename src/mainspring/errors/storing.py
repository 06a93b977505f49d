"""What a store can be in trouble with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mainspring.errors.base import MainspringError, shown


class StoreError(MainspringError):
    """The database could not do what it was asked, and nothing was changed.

    `store` says which, `problem` what is wrong, `fix` what to do.

    >>> str(StoreError("orders.db", "cannot be opened", "Create the directory first."))
    'orders.db cannot be opened. Create the directory first.'
    """

    def __init__(self, store: str, problem: str, fix: str) -> None:
        self.store = store
        self.problem = problem
        self.fix = fix
        super().__init__(f"{store} {problem}. {fix}")


class StoreClosedError(StoreError):
    """The store is not open (any more)."""

    def __init__(self, store: str) -> None:
        super().__init__(store, "is not open", "Call `await store.open()` first, and nothing after `close()`.")


class StoreBusyError(StoreError):
    """Another process held the database's lock for longer than the store waits."""

    def __init__(self, store: str, waited_seconds: float) -> None:
        self.waited_seconds = waited_seconds
        super().__init__(
            store,
            f"was locked by another process for more than {waited_seconds:g} s",
            "Try again; end or shorten the transaction that holds the lock.",
        )


class StoreUnreachableError(StoreError):
    """The database's server does not answer, or has no connection for us."""

    def __init__(self, store: str, why: str) -> None:
        self.why = why
        super().__init__(store, f"cannot be reached ({why})", "Look at the server and the network.")


class UnknownOutcomeError(StoreError):
    """The answer to a commit was lost, and the database could not be asked since. It did all of it or nothing."""

    def __init__(self, store: str) -> None:
        super().__init__(
            store,
            "lost the answer to a commit, and cannot be asked what became of it",
            "Send it again with the same id: it counts once.",
        )


class StoreFullError(StoreError):
    """The disk, or a limit set on the database, is full."""

    def __init__(self, store: str) -> None:
        super().__init__(store, "has no room left", "Free some space on its disk and try again; nothing was lost.")


class StoreReadOnlyError(StoreError):
    """The database may not be written. What to do about it, its store knows."""

    def __init__(self, store: str, fix: str) -> None:
        super().__init__(store, "cannot be written", fix)


class NewerSchemaError(StoreError):
    """A newer release of mainspring has changed the database. Nothing was touched."""

    def __init__(self, store: str, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            store,
            f"has schema version {found}; this release knows versions up to {known}",
            "Upgrade mainspring here, or use a database of this release.",
        )


class StoreMovedError(StoreError):
    """The file that was opened is not at its place: it was deleted, moved or replaced. Nothing more is written.

    What was being written at that moment stands in the file that was there, if that is kept anywhere. Sent again under
    its id, it is taken once.
    """

    def __init__(self, store: str, file: str, *, replaced: bool = False) -> None:
        self.file = file
        fix = "Bring it back together with the files beside it (-wal, -shm), or restore a backup, and start again."
        if replaced:
            fix = "If that was meant, stop all who use it, remove the old -wal and -shm files, and start again."
        super().__init__(
            store, f"is not what was opened: {file} was {'replaced' if replaced else 'deleted or moved'}", fix
        )


class DamagedStoreError(StoreError):
    """The file is not a database, or its structure is broken."""

    def __init__(self, store: str, found: str) -> None:
        self.found = found
        super().__init__(
            store, f"is damaged or no database of mainspring ({found})", "Check the path, or restore a backup."
        )


class DamagedRecordError(StoreError):
    """A stored record is not what was written: its checksum does not fit, or it is missing. It is never replayed."""

    def __init__(self, table: str, record: str) -> None:
        self.table = table
        self.record = record
        super().__init__(
            table, f"holds a damaged record ({record})", "Restore it from a backup; do not edit it by hand."
        )


class FaultyUnitError(StoreError):
    """Units of a commit that cannot be stored. The others of the same commit are as `outcomes` says.

    `outcomes` has one entry for each unit, in order: its outcome, or the error that made it faulty.
    """

    def __init__(self, store: str, outcomes: Sequence[Any]) -> None:
        self.outcomes = outcomes
        faults = [(index, outcome) for index, outcome in enumerate(outcomes) if isinstance(outcome, Exception)]
        index, first = faults[0]
        super().__init__(
            store,
            f"cannot store {len(faults)} of {len(outcomes)} units: unit {index}: {shown(first, 300)}",
            "This is a mistake in the caller; the other units are not affected, see `outcomes`.",
        )
