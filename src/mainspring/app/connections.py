"""Connections of others: how each library runs a statement in the transaction that its user has begun.

None of these libraries is imported before its user has: a connection is known by where its class comes from.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Any, Final, Protocol, TypeAlias

from mainspring.errors import PostingError
from mainspring.port.records import InputRow

KNOWN: Final = ("asyncpg", "psycopg", "sqlalchemy", "django")
# Libraries for SQLite, where posting is not possible.
ELSEWHERE: Final = ("sqlite3", "_sqlite3", "aiosqlite", "apsw")
IDLE: Final = 0
"""psycopg's word for a connection that has no transaction."""
NO_TABLE: Final = ("42P01", "3F000")
NO_RIGHT: Final = "42501"
CAUSES_LOOKED_AT: Final = 10


class Posting(Protocol):
    """The statement to be run: what `mainspring.stores.postgres.posting` knows."""

    @property
    def schema(self) -> str: ...
    @property
    def database(self) -> str | None: ...
    def text(self, style: Any, /) -> str: ...
    def values(self, row: InputRow, /) -> tuple[Any, ...]: ...


Blocking: TypeAlias = Callable[[Any, Posting, InputRow], int]
Waiting: TypeAlias = Callable[[Any, Posting, InputRow], Awaitable[int]]


async def post(connection: Any, posting: Posting, rows: Sequence[InputRow]) -> None:
    """Write messages through an async connection, in its transaction."""
    library = library_of(connection)
    run = WAITING.get(library) if is_async(library, connection) else None
    if run is None:
        raise PostingError(
            f"A {type(connection).__name__} of {library} does not wait with await",
            "Use app.post.blocking(message, connection).",
        )
    async with _explained_later(posting):
        for row in rows:
            _check_written(await run(connection, posting, row), posting)


def post_blocking(connection: Any, posting: Posting, rows: Sequence[InputRow]) -> None:
    """Write messages through a connection without `await`, in its transaction."""
    library = library_of(connection)
    run = None if is_async(library, connection) else BLOCKING.get(library)
    if run is None:
        raise PostingError(
            f"A {type(connection).__name__} of {library} waits with await", "Use await app.post(message, connection)."
        )
    with _explained(posting):
        for row in rows:
            _check_written(run(connection, posting, row), posting)


def library_of(connection: object) -> str:
    """Return the name of the library that a connection comes from, if messages can be posted through it."""
    homes = [cls.__module__.partition(".")[0] for cls in type(connection).__mro__]
    for home in homes:
        if home in ELSEWHERE:
            raise PostingError(
                "Messages cannot be posted to SQLite",
                "Use app.transaction(), and keep other libraries out of the app's file.",
            )
        if home in KNOWN and (home == "django" or hasattr(connection, "execute")):
            return home
    raise PostingError(
        f"{type(connection).__module__}.{type(connection).__qualname__} is no connection that is known here",
        "Give what you write your rows with: a connection of asyncpg, psycopg, SQLAlchemy (or a session) or Django.",
    )


def is_async(library: str, connection: Any) -> bool:
    """Return True if a connection is awaited."""
    return library == "asyncpg" or (library != "django" and inspect.iscoroutinefunction(connection.execute))


# ---- asyncpg


async def _asyncpg(connection: Any, posting: Posting, row: InputRow) -> int:
    if not hasattr(connection, "is_in_transaction"):
        raise PostingError("A pool has no transaction", "Post through a connection that you acquired from it.")
    if not connection.is_in_transaction():
        raise _no_transaction("async with connection.transaction()")
    status: str = await connection.execute(posting.text("$"), *posting.values(row))
    return int(status.rpartition(" ")[2])


# ---- psycopg


def _psycopg(cursor: Any, posting: Posting, row: InputRow) -> int:
    connection = _in_psycopg(cursor)
    with _answered(connection):
        done = connection.execute(posting.text("%"), posting.values(row))
    return done.rowcount


async def _async_psycopg(cursor: Any, posting: Posting, row: InputRow) -> int:
    connection = _in_psycopg(cursor)
    async with _answered(connection):
        done = await connection.execute(posting.text("%"), posting.values(row))
    return done.rowcount


def _answered(connection: Any) -> Any:
    """Return what waits for the server's answer, in a pipeline too: the end of an inner one is where that comes."""
    return connection.pipeline() if connection.info.pipeline_status else nullcontext()


def _in_psycopg(cursor: Any) -> Any:
    """Return a cursor's connection: what the cursor has fetched stays as it is."""
    connection = getattr(cursor, "connection", cursor)
    if connection.autocommit and connection.info.transaction_status == IDLE:
        raise _no_transaction("with connection.transaction()")
    return connection


# ---- SQLAlchemy


def _sqlalchemy(session: Any, posting: Posting, row: InputRow) -> int:
    _check_sqlalchemy(session if hasattr(session, "dialect") else session.connection())
    return session.execute(*_textual(posting, row)).rowcount


async def _async_sqlalchemy(session: Any, posting: Posting, row: InputRow) -> int:
    connection = session if hasattr(session, "sync_connection") else await session.connection()
    _check_sqlalchemy(connection.sync_connection)
    return (await session.execute(*_textual(posting, row))).rowcount


def _check_sqlalchemy(connection: Any) -> None:
    if connection.dialect.name != "postgresql":
        raise _not_postgresql(connection.dialect.name)
    if getattr(connection.connection.dbapi_connection, "autocommit", False):
        raise _no_transaction("leave isolation_level=AUTOCOMMIT out")


def _textual(posting: Posting, row: InputRow) -> tuple[Any, dict[str, Any]]:
    import sqlalchemy  # noqa: PLC0415  a caller with such a connection has it

    library: Any = sqlalchemy
    return library.text(posting.text(":")), {f"v{n}": value for n, value in enumerate(posting.values(row), 1)}


# ---- Django


def _django(connection: Any, posting: Posting, row: InputRow) -> int:
    if getattr(connection, "vendor", None) != "postgresql":
        raise _not_postgresql(getattr(connection, "vendor", "no database"))
    if not connection.in_atomic_block and connection.get_autocommit():
        raise _no_transaction("with transaction.atomic()")
    with connection.cursor() as cursor:
        cursor.execute(posting.text("%"), posting.values(row))
        return cursor.rowcount


BLOCKING: Final[dict[str, Blocking]] = {"psycopg": _psycopg, "sqlalchemy": _sqlalchemy, "django": _django}
WAITING: Final[dict[str, Waiting]] = {"asyncpg": _asyncpg, "psycopg": _async_psycopg, "sqlalchemy": _async_sqlalchemy}


# ---- what goes wrong


def _no_transaction(how: str) -> PostingError:
    return PostingError(
        "This connection has no transaction, so the message would be sent whatever becomes of your rows",
        f"Begin one first ({how}), or use app.send.",
    )


def _not_postgresql(found: str) -> PostingError:
    return PostingError(
        f"This connection leads to {found}, and messages are posted to PostgreSQL only",
        "Use app.transaction(), or app.send when your own transaction has committed.",
    )


def _check_written(count: int, posting: Posting) -> None:
    if count != 1:
        raise PostingError(
            f"This connection leads to another database than the app's, which is {posting.database!r}",
            "Post through a connection to that one: two databases have no transaction in common.",
        )


@contextmanager
def _explained(posting: Posting) -> Generator[None]:
    """Say of an error of the database what it means here; others are the caller's to read."""
    try:
        yield
    except PostingError:
        raise
    except Exception as error:
        if (meaning := _meaning(error, posting)) is None:
            raise
        raise meaning from error


@asynccontextmanager
async def _explained_later(posting: Posting) -> AsyncGenerator[None]:
    with _explained(posting):
        yield


def _meaning(error: BaseException, posting: Posting) -> PostingError | None:
    state = _sqlstate(error)
    if state in NO_TABLE:
        return PostingError(
            f"The database of this connection has no table {posting.schema}.posted",
            "Use the app's own database, and start a worker once, which makes the tables.",
        )
    if state == NO_RIGHT:
        return PostingError(
            f"The user of this connection may not insert into {posting.schema}.posted",
            f"GRANT USAGE ON SCHEMA {posting.schema} and GRANT INSERT ON {posting.schema}.posted to that user.",
        )
    return None


def _sqlstate(error: BaseException | None) -> str | None:
    """Return PostgreSQL's code of an error, however often a library has wrapped it."""
    for _ in range(CAUSES_LOOKED_AT):
        if error is None:
            break
        state = getattr(error, "sqlstate", None)
        if isinstance(state, str):
            return state
        error = getattr(error, "orig", None) or error.__cause__
    return None
