"""The statements of the `.sql` files, loaded once, and how one insert becomes an insert of many rows."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import apsw

from mainspring.stores.sql.dialogue import Dialogue, run
from mainspring.stores.sql.statements import read

T = TypeVar("T")

# apsw keeps a statement prepared only if its text is no longer than this; a longer one would be parsed at every batch.
CACHEABLE_BYTES: Final = 16_384
ROWS_AT_ONCE: Final = 256

FILES: Final = ("queries.sql", "search.sql", "tasks.sql", "damage.sql")

QUERIES: Final = read("mainspring.stores.sqlite", FILES)


def execute(connection: Any, statement: str, values: Sequence[Any] = ()) -> Any:
    """Execute a statement and return the cursor. Here only, because apsw's stubs need a newer Python than we do."""
    return connection.execute(statement, values)


def change(connection: apsw.Connection, query: str, *values: Any) -> None:
    """Execute a named statement that returns nothing."""
    execute(connection, QUERIES[query], values)


def rows(connection: apsw.Connection, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return all rows of a named query."""
    return execute(connection, QUERIES[query], values).fetchall()


def scalar(connection: apsw.Connection, query: str, *values: Any) -> Any:
    """Return the one value of a named query, or None where it has no row."""
    return execute(connection, QUERIES[query], values).get


@contextmanager
def savepoint(connection: apsw.Connection) -> Generator[None]:
    """Undo what was done inside if it fails; a read transaction where none is open."""
    with connection:
        yield


class Ladder:
    """An insert of one row, prepared for 256, 128, … 1 rows: any number takes few statements, all of them cached.

    One statement with many rows instead of `executemany`: each step of a statement gives up the interpreter lock, and
    beside a busy event loop it takes a while to get it back.

    >>> ladder = Ladder("INSERT INTO t (a, b) VALUES (?, ?);")
    >>> ladder.columns, ladder.sizes[-1]
    (2, 1)
    """

    def __init__(self, insert: str) -> None:
        head, values, row = insert.rstrip("; \n").rpartition("VALUES ")
        self.columns = row.count("?")
        compact = f"({','.join('?' * self.columns)})"
        fitting = (CACHEABLE_BYTES - len(head + values) - 1) // (len(compact) + 1)
        self.sizes = [size for size in _halves(ROWS_AT_ONCE) if size <= fitting]
        self._statements = [(size * self.columns, head + values + ",".join([compact] * size)) for size in self.sizes]
        self._fitting = dict(self._statements)

    def insert(self, connection: apsw.Connection, values: list[Any]) -> None:
        """Insert rows that stand one behind the other in one flat list."""
        begin, end = 0, len(values)
        fitting = self._fitting.get(end)
        if fitting is not None:  # as for a single step, whose rows of each kind are few
            execute(connection, fitting, values)
            return
        for width, statement in self._statements:
            while end - begin >= width:
                execute(connection, statement, values[begin : begin + width])
                begin += width


def _halves(size: int) -> Iterator[int]:
    while size:
        yield size
        size //= 2


_INSERTS: Final = {name: Ladder(QUERIES[name]) for name in ("replace_documents", "insert_tasks")}


def run_on(connection: apsw.Connection, dialogue: Dialogue[T]) -> T:
    """Run a dialogue on a connection, in the thread that has it."""
    return run(dialogue, partial(_ask, connection))


def _ask(connection: apsw.Connection, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return all rows of a statement of a dialogue. One that inserts takes the values of any number of rows."""
    if insert := _INSERTS.get(query):
        insert.insert(connection, list(values))
        return []
    return rows(connection, query, *values)
