"""Calls of SQLite: opening, statements and their rows, savepoints, checkpoints, closing."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

import apsw

from mainspring.stores.sqlite import place
from tests.proof.store_faults.calls import GIVEN_UP, Calls

ERRORS: Final[dict[str, type[apsw.Error]]] = {
    "I/O error": apsw.IOError,
    "no memory": apsw.NoMemError,
    "busy": apsw.BusyError,
    "full": apsw.FullError,
    "interrupted": apsw.InterruptError,
}
UNDONE: Final = ", undone"
INSIDE: Final = "inside: "
"""Before the name of a call that is made inside a transaction."""
BUSY_IS_AWAITED: Final = ("PRAGMA journal_mode = WAL", "wal_checkpoint")
"""The calls at which the store does something else when it is told of a lock."""
# SQLite may roll a transaction back by itself when one of these happens inside it, or leave it open.
KINDS: Final = (*ERRORS, *(f"{kind}{UNDONE}" for kind in ERRORS), GIVEN_UP)


def fits(kind: str, call: str) -> bool:
    """Tell whether a call can fail so: only what is open can be undone."""
    return not kind.endswith(UNDONE) or call.startswith(INSIDE)


def stands_for(kind: str, call: str) -> str:
    """Return the kind that is tried in place of another, because no code of ours can tell the two apart at that call.

    `test_kinds_that_stand_for_each_other_are_named_by_the_same_modules` shows it by what the store's code names.
    """
    error, undone = kind.removesuffix(UNDONE), kind[len(kind.removesuffix(UNDONE)) :]
    if error == "no memory" or (error == "interrupted" and not call.startswith(INSIDE)):
        return f"I/O error{undone}"
    if error == "busy" and not call.removeprefix(INSIDE).startswith(BUSY_IS_AWAITED):
        return f"full{undone}"
    return kind


def install(calls: Calls) -> None:
    """Have every call of the store's connections counted, and one fail."""
    faulty = _connection_class(calls)

    class Library:
        """apsw, with another class of connections."""

        def __getattr__(self, name: str) -> Any:
            return faulty if name == "Connection" else getattr(apsw, name)

    module: Any = place
    module.apsw = Library()


def _connection_class(calls: Calls) -> type[apsw.Connection]:
    class Cursor(apsw.Cursor):
        def execute(self, statements: str, *values: Any, **named: Any) -> Any:
            _reach(calls, self.connection, statements)
            return super().execute(statements, *values, **named)

        def fetchall(self) -> Any:
            self._reach_rows()
            return super().fetchall()

        def __next__(self) -> Any:
            self._reach_rows()
            return super().__next__()

        @property
        def get(self) -> Any:
            self._reach_rows()
            return super().get

        def _reach_rows(self) -> None:
            # A statement that failed is over: none is left in the middle of its rows.
            _reach(calls, self.connection, "fetch", lambda: self.close(True))

    class Connection(apsw.Connection):
        def __init__(self, *values: Any, **named: Any) -> None:
            if (kind := calls.reach("open")) is not None:
                raise _error(kind)
            super().__init__(*values, **named)
            self.cursor_factory = Cursor

        def __enter__(self) -> Any:
            _reach(calls, self, "SAVEPOINT")
            return super().__enter__()

        def __exit__(
            self, cls: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> bool | None:
            try:
                _reach(calls, self, "RELEASE" if cls is None else "ROLLBACK TO")
            except apsw.Error as fault:
                super().__exit__(type(fault), fault, fault.__traceback__)
                raise
            return super().__exit__(cls, error, trace)

        def wal_checkpoint(self, *values: Any, **named: Any) -> tuple[int, int]:
            _reach(calls, self, "wal_checkpoint")
            return super().wal_checkpoint(*values, **named)

        def close(self, *values: Any) -> None:
            # What is left open is closed with the process; whoever asks again finds it closed.
            _reach(calls, self, "close", lambda: super(Connection, self).close(*values))
            super().close(*values)

    return Connection


def _reach(calls: Calls, connection: apsw.Connection, what: str, ended: Callable[[], None] = lambda: None) -> None:
    """Be at a call. One that fails has `ended` first."""
    if (kind := calls.reach(f"{INSIDE if connection.in_transaction else ''}{what}")) is None:
        return
    ended()
    if kind.endswith(UNDONE):
        apsw.Cursor(connection).execute("ROLLBACK")
    raise _error(kind)


def _error(kind: str) -> apsw.Error:
    return ERRORS[kind.removesuffix(UNDONE)](f"the test says so: {kind}")
