"""Who is alive: a row with a lease, and beside the database a file that a living process keeps locked.

The operating system unlocks the file when its process is gone, however it ended: the next worker that looks relieves it
at once. Where there is no `flock` (or the file was removed) the lease alone decides.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from mainspring.logs import logger
from mainspring.stores.commit.rows import output_checksum
from mainspring.stores.sql.dialect import packed
from mainspring.stores.sqlite.statements import change, rows, scalar
from mainspring.stores.sqlite.transaction import Transaction

try:
    import fcntl
except ImportError:  # a platform without it
    fcntl = None

NOTED_US: Final = 10_000_000
"""A clock that is so little behind was not set back: it was read before others had committed."""

_log = logger(__name__)


class WorkerLocks:
    """The lock files of a database's workers; this process holds those of its own."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._held: dict[int, int] = {}

    def path(self, worker: int) -> Path:
        """Return where a worker's lock file is."""
        return self._database.with_name(f"{self._database.name}-worker-{worker}")

    def hold(self, worker: int) -> None:
        """Lock the file of a worker of this process until `drop`, or until the process ends."""
        if fcntl is None:
            return
        descriptor = os.open(self.path(worker), os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._held[worker] = descriptor

    def drop(self, worker: int) -> None:
        """Remove the file and the lock. The file first: found unlocked, it would mean a dead worker."""
        self.path(worker).unlink(missing_ok=True)
        self.unlock(worker)

    def unlock(self, worker: int) -> None:
        """Release the lock only; the file shows others that this worker is gone."""
        if (descriptor := self._held.pop(worker, None)) is not None:
            os.close(descriptor)

    def unlock_all(self) -> None:
        """Release all locks of this process."""
        for worker in list(self._held):
            self.unlock(worker)

    def seize(self, worker: int) -> bool:
        """Take the lock of a worker whose process is gone. False: it is alive, or that cannot be known."""
        if fcntl is None or worker in self._held:
            return False
        try:
            descriptor = os.open(self.path(worker), os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._held[worker] = descriptor
        return True


class Workers:
    """What the port says about workers, in transactions."""

    def __init__(self, locks: WorkerLocks) -> None:
        self._locks = locks
        self._knows_the_time = False

    def register(self, transaction: Transaction, name: str, lease_us: int, knows: str) -> int:
        """Return a new key. Its file is locked before the row can be seen: neither is visible without the other."""
        key: int = scalar(transaction.connection, "insert_worker", name, lease_us, transaction.now_us + lease_us, knows)
        transaction.when_rolled_back.append(lambda: self._locks.drop(key))
        self._locks.hold(key)
        return key

    def extend(self, transaction: Transaction, worker: int, standing: str) -> bool:
        """Extend a lease, if the worker is still registered."""
        return scalar(transaction.connection, "extend_worker", worker, transaction.now_us, standing) is not None

    def release(self, transaction: Transaction, workers: list[int]) -> None:
        """Release what workers hold and forget them."""
        for query in ("free_outputs", "free_inputs", "delete_workers"):
            change(transaction.connection, query, packed(workers))
        transaction.news = True
        # Not before the commit: until then they are the owners, and a failed commit must leave the files in place.
        transaction.when_committed += [self._dropper(worker) for worker in workers]

    def relieve(self, transaction: Transaction) -> int:
        """Release all workers that are gone or have lost their lease. Return how many."""
        leases = rows(transaction.connection, "worker_leases")
        seized = [key for key, _ in leases if self._locks.seize(key)]
        transaction.when_rolled_back += [self._unlocker(key) for key in seized]
        gone = [key for key, ends_us in leases if key in seized or ends_us <= transaction.now_us]
        if gone:
            change(transaction.connection, "lose_outputs", packed(gone))
            change(transaction.connection, "lose_inputs", packed(gone))
            self.release(transaction, gone)
        # Not each time: it looks at all that waits.
        if gone or not self._knows_the_time:
            _bring_forward(transaction)
            transaction.when_committed.append(self._know_the_time)
        return len(gone)

    def _know_the_time(self) -> None:
        self._knows_the_time = True

    def _dropper(self, worker: int) -> Any:
        return lambda: self._locks.drop(worker)

    def _unlocker(self, worker: int) -> Any:
        return lambda: self._locks.unlock(worker)


def _bring_forward(transaction: Transaction) -> None:
    """Let what was due before the clock was set back be due now, in the same order: it does not wait for that hour."""
    connection, now_us = transaction.connection, transaction.now_us
    found = rows(connection, "commands_from_later", now_us + NOTED_US)
    set_back_us = max((decided_us for *_, decided_us in found), default=now_us) - now_us
    for instance, version, kind, destination, due_us, priority, key, attempts, checksum, _ in found:
        born, rest = (instance, version, kind, destination), (priority, key, attempts)
        # A damaged one stays as it is, and is reported where it is read.
        if checksum in (None, output_checksum(*born, due_us, *rest)):
            due = due_us - set_back_us
            change(connection, "move_output", instance, version, due, output_checksum(*born, due, *rest))
    if found:
        transaction.news = True
        seconds = set_back_us / 1_000_000
        _log.warning(
            "the clock was set back by %.0f s; %d commands that waited go on by the new time", seconds, len(found)
        )
