"""Calls of asyncpg: connecting, statements, closing. Faults are the server's own words, or a socket that is closed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from tests.proof.store_faults.calls import GIVEN_UP, Calls

LOST: Final = "connection lost"
ANSWER_LOST: Final = "connection lost, the answer too"
CODES: Final = {
    "cancelled": "57014",
    "serialization failure": "40001",
    "out of memory": "53200",
    "read only": "25006",
}
KINDS: Final = (LOST, ANSWER_LOST, *CODES, GIVEN_UP)
# Who is not connected yet has no transaction to be refused.
WHILE_CONNECTING: Final[dict[str, Exception]] = {
    LOST: ConnectionResetError("the test says so"),
    "cancelled": asyncpg.QueryCanceledError("canceling authentication due to timeout, the test says"),
    "out of memory": asyncpg.OutOfMemoryError("the test says so"),
}


def fits(kind: str, call: str) -> bool:
    """Tell whether a call can fail so."""
    if kind == GIVEN_UP:
        return True
    return kind in WHILE_CONNECTING if call.startswith("connect#") else kind == LOST or not call.startswith("close#")


def install(calls: Calls) -> None:
    """Have every call of the store's connections counted, and one fail."""
    library: Any = asyncpg
    connect, connection_class = library.connect, _connection_class(calls)

    async def counted(*values: Any, **named: Any) -> Any:
        if (kind := calls.reach("connect")) is not None:
            raise WHILE_CONNECTING[kind]
        return await connect(*values, connection_class=connection_class, **named)

    library.connect = counted


def _connection_class(calls: Calls) -> type[Any]:
    library: Any = asyncpg

    class Connection(library.Connection):
        async def execute(self, query: str, *values: Any, **named: Any) -> Any:
            return await _called(calls, self, query, lambda: super(Connection, self).execute(query, *values, **named))

        async def executemany(self, command: str, *values: Any, **named: Any) -> Any:
            many = super().executemany
            return await _called(calls, self, command, lambda: many(command, *values, **named))

        async def fetch(self, query: str, *values: Any, **named: Any) -> Any:
            return await _called(calls, self, query, lambda: super(Connection, self).fetch(query, *values, **named))

        async def fetchval(self, query: str, *values: Any, **named: Any) -> Any:
            return await _called(calls, self, query, lambda: super(Connection, self).fetchval(query, *values, **named))

        async def close(self, **named: Any) -> None:
            if calls.reach("close") is not None:
                _cut(self)
            await super().close(**named)

    return Connection


async def _called(calls: Calls, connection: Any, what: str, call: Callable[[], Awaitable[Any]]) -> Any:
    kind = calls.reach(what)
    if kind is None:
        return await call()
    if kind == LOST:
        _cut(connection)
    elif kind == ANSWER_LOST:
        await call()
        _cut(connection)
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation, the test says")
    else:
        # The server says it itself, and whatever transaction is open is aborted there.
        said = f"DO $$ BEGIN RAISE EXCEPTION 'the test says so: {kind}' USING ERRCODE = '{CODES[kind]}'; END $$"
        await asyncpg.Connection.execute(connection, said)  # pyright: ignore[reportUnknownMemberType]  it has no types
    return await call()


def _cut(connection: Any) -> None:
    """Close the socket, without a word to either side."""
    connection._transport.abort()  # noqa: SLF001  there is no other way to it
