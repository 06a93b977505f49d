"""Bugs to plant: what the harness must find, so that its silence means something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import apsw
import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from mainspring.stores.postgres.session import Session
from mainspring.stores.sqlite.transaction import Transaction
from mainspring.stores.sqlite.writer import Writer


def commit_swallowed() -> None:
    """Acknowledge a commit although COMMIT has failed."""
    commit_of_file, commit_of_server = Writer._commit, Session.commit  # noqa: SLF001  the place of the mistake

    def swallowing(self: Writer, connection: Any) -> None:
        try:
            commit_of_file(self, connection)
        except apsw.Error:
            if connection.in_transaction:
                apsw.Cursor(connection).execute("ROLLBACK")

    async def swallowing_too(self: Session) -> None:
        try:
            await commit_of_server(self)
        except asyncpg.PostgresError:
            self.drop()

    Writer._commit = swallowing  # noqa: SLF001  as above
    Session.commit = swallowing_too


def not_rolled_back() -> None:
    """Leave the transaction of a job that failed as it is."""

    def leave(self: Transaction) -> None: ...

    Transaction.roll_back = leave


PLANTS: Final[dict[str, Callable[[], None]]] = {plant.__name__: plant for plant in (commit_swallowed, not_rolled_back)}
