"""A transaction, and what follows its end beside the database."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from mainspring.logs import logger
from mainspring.stores.sqlite.statements import execute

_log = logger(__name__)


class Transaction:
    """An open transaction, for the job that runs in it."""

    def __init__(self, connection: apsw.Connection, now_us: int) -> None:
        self.connection = connection
        self.now_us = now_us
        self.news = False
        # Files beside the database follow its commits: one of the two lists is called when the transaction has ended.
        self.when_committed: list[Callable[[], None]] = []
        self.when_rolled_back: list[Callable[[], None]] = []

    def committed(self) -> None:
        """Do what follows the commit."""
        _call(self.when_committed)

    def roll_back(self) -> None:
        """Undo what was written, and do what follows that."""
        try:
            if self.connection.in_transaction:  # after some failures SQLite has rolled back by itself
                execute(self.connection, "ROLLBACK")
        except apsw.Error as error:
            _log.warning("rolling back failed, SQLite will do it at the next use: %s", error)
        _call(self.when_rolled_back)


def _call(callbacks: list[Callable[[], None]]) -> None:
    """Do what follows the end of a transaction. It concerns lock files only, and the outcome stands already."""
    for callback in callbacks:
        try:
            callback()
        except OSError as error:
            _log.warning("a worker's lock file could not be removed: %s", error)
