"""Connections to the server: how one is made, typed, and kept for the next use."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from mainspring.errors import StoreClosedError, StoreUnreachableError
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.faults import (
    FAULTY,
    IDLE_SECONDS,
    LOCK_SECONDS,
    LOST,
    STATEMENT_SECONDS,
    USELESS,
    translated,
)

CONNECT_SECONDS: Final = 5.0
"""How long each host has to accept a connection."""
# This host is not the one, or not there: another may be.
NO_SERVER: Final = (
    OSError,  # a timeout too
    asyncpg.CannotConnectNowError,
    asyncpg.ConnectionDoesNotExistError,
    asyncpg.exceptions.TargetServerAttributeNotMatched,
)
FIRST_PAUSE_SECONDS: Final = 0.05
LONGEST_PAUSE_SECONDS: Final = 2.0
# Others may have none: a server has only so many connections.
IDLE_BEFORE_CLOSED_SECONDS: Final = 10.0
STATEMENTS_CACHED: Final = 200
RECEIVED_AT_ONCE_BYTES: Final = 16 * 1_024
"""asyncio takes a block of 256 KiB for whatever comes, gives back what is left, and keeps the begin while it is read.
What is made meanwhile lies in the rest, so that the next block needs new memory: the heap grew by 1 MB a minute."""
# The server itself ends a statement before: without an answer by then, the connection is lost.
ANSWER_SECONDS: Final = STATEMENT_SECONDS + 10
FOREVER_SECONDS: Final = 86_400.0
COMMIT: Final = "SET LOCAL statement_timeout = 0;COMMIT"

# Every statement here is made for an index; but statistics of a queue are mostly those of another moment, and a plan
# made for an empty table would scan a full one. So plans are made once, without looking at the values, and row by row.
SETTINGS: Final = {
    "application_name": "mainspring",
    "lock_timeout": f"{LOCK_SECONDS:g}s",
    "statement_timeout": f"{STATEMENT_SECONDS:g}s",
    "idle_in_transaction_session_timeout": f"{IDLE_SECONDS:g}s",
    # The connection that says that its workers live is mostly idle.
    "idle_session_timeout": "0",
    "default_transaction_isolation": "read committed",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    "jit": "off",
    # A machine that lost its power does not close its connections.
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}

# Another after every crash, also of one process of the server alone. A role that may not see it gets NULL. Asked on
# each new connection: of the function, for its view takes twice as long to plan, with the names of databases and users.
LIFE: Final = """
SELECT pg_postmaster_start_time()::text || ' ' || backend_start::text
FROM pg_stat_get_activity(NULL) WHERE backend_type = 'checkpointer'
"""

Row: TypeAlias = Sequence[Any]


class Session:
    """One connection. The only place that knows asyncpg's, whose types are partly unknown."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        # In which life of the server it was opened, as far as that can be seen.
        self.life: str | None = None
        # Since when it is idle.
        self.idle_since = 0.0
        # What an answer may take, where that is not what the connection itself says.
        self.answer_seconds: float | None = None

    async def rows(self, statement: str, *values: Any) -> list[Row]:
        """Return all rows of a statement: one round trip, once it is prepared."""
        return await self.raw.fetch(statement, *values, timeout=self.answer_seconds)

    async def value(self, statement: str, *values: Any) -> Any:
        """Return the first value of a statement's first row, or None."""
        return await self.raw.fetchval(statement, *values, timeout=self.answer_seconds)

    async def run_many(self, statement: str, values: Sequence[Row]) -> None:
        """Run a statement for each row of values, in a few round trips."""
        await self.raw.executemany(statement, values)

    async def run(self, script: str) -> None:
        """Execute statements without values: one round trip for all of them."""
        await self.raw.execute(script, timeout=self.answer_seconds)

    async def commit(self) -> None:
        """Commit. A wait for a synchronous standby is never cut short: that would commit without the standby.

        So the server sets no limit to it, and a late answer is not cancelled, as any other would be: the connection is
        dropped, and the server is asked what became of the transaction.
        """
        committing = asyncio.ensure_future(self.raw.execute(COMMIT, timeout=FOREVER_SECONDS))
        try:
            done, _ = await asyncio.wait((committing,), timeout=ANSWER_SECONDS)
        except BaseException:
            await self._abandon(committing)
            raise
        if not done:
            await self._abandon(committing)
            raise TimeoutError
        committing.result()

    async def _abandon(self, committing: asyncio.Future[Any]) -> None:
        self.drop()
        await asyncio.wait((committing,))
        committing.exception()  # as expected: its connection is gone

    @property
    def closed(self) -> bool:
        return self.raw.is_closed()

    @property
    def busy(self) -> bool:
        """Whether a transaction is open."""
        return self.raw.is_in_transaction()

    def drop(self) -> None:
        """Close at once, without the protocol's goodbye; the server rolls back what was open."""
        self.raw.terminate()

    async def close(self) -> None:
        """Close by the protocol."""
        try:
            await self.raw.close(timeout=CONNECT_SECONDS)
        except LOST:
            self.drop()

    async def listen(self, channel: str, heard: Callable[[int], None]) -> None:
        """Call `heard` with the process number of the notifier."""

        def on_notification(_raw: Any, pid: int, _channel: str, _payload: object) -> None:
            heard(pid)

        await self.raw.add_listener(channel, on_notification)

    def when_lost(self, call: Callable[[], None]) -> None:
        """Call something when the connection ends, on whichever side."""

        def on_end(_raw: Any) -> None:
            call()

        self.raw.add_termination_listener(on_end)

    @property
    def pid(self) -> int:
        return self.raw.get_server_pid()


async def connect(address: Address) -> Session:
    """Return a new connection, or raise a StoreError.

    Of several hosts each has its own time: one that accepts and never answers must not cost the others theirs.
    """
    library: Any = asyncpg
    settings: dict[str, Any] = {"statement_cache_size": STATEMENTS_CACHED, "server_settings": SETTINGS}
    if address.pooled:
        # There the pooler shares sessions: nothing may be set in one, and nothing prepared.
        settings = {"statement_cache_size": 0, "server_settings": {"application_name": "mainspring"}}
    failures: dict[str, Exception] = {}
    for host, dsn in address.dsns.items():
        try:
            # Statements that are used for hours are not prepared anew every five minutes.
            raw = await library.connect(
                dsn,
                timeout=CONNECT_SECONDS,
                command_timeout=ANSWER_SECONDS,
                max_cached_statement_lifetime=0,
                max_cacheable_statement_size=0,
                **settings,
            )
        except NO_SERVER as cause:
            failures[host] = cause
        except Exception as cause:
            raise translated(str(address), cause) from cause
        else:
            address.prefer(host)
            _receive_in_small_blocks(raw)
            return Session(raw)
    if len(failures) == 1:
        (cause,) = failures.values()
        raise translated(str(address), cause) from cause
    said = "; ".join(
        f"{host}: {str(cause) or f'no answer within {CONNECT_SECONDS:g} s'}" for host, cause in failures.items()
    )
    raise StoreUnreachableError(str(address), said)


def _receive_in_small_blocks(raw: Any) -> None:
    transport: Any = raw._transport  # noqa: SLF001  asyncpg does not give it away
    # With TLS it is the protocol below that asks for blocks. In other event loops neither is asyncio's own.
    each: tuple[Any, ...] = (transport, getattr(transport, "_ssl_protocol", None))
    for reads in each:
        if hasattr(reads, "max_size"):
            reads.max_size = RECEIVED_AT_ONCE_BYTES


class Pool:
    """A few connections, shared. One that failed is not used again, and a server that is away is not hammered.

    `prepare` is awaited with each new one: the server behind the address may have become another.
    """

    def __init__(self, address: Address, prepare: Callable[[Session], Awaitable[None]]) -> None:
        self._address = address
        self._prepare = prepare
        self.size = address.connections
        self._free: list[Session] = []
        self._places = asyncio.Semaphore(self.size)
        self._pause_seconds = 0.0
        self._not_before = 0.0
        self._closed = False

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[Session]:
        """Lend a connection. One that was left in an unknown state, or inside a transaction, is not lent again."""
        async with self._places:
            session = await self._take()
            try:
                yield session
            except Exception as error:
                if isinstance(error, USELESS) or (isinstance(error, LOST) and not isinstance(error, FAULTY)):
                    session.drop()
                raise
            except BaseException:
                session.drop()  # cancelled in the middle of something
                raise
            finally:
                await self._give_back(session)

    async def _give_back(self, session: Session) -> None:
        if session.closed:
            return
        if session.busy:
            session.drop()
        elif self._closed:
            await session.close()
        else:
            session.idle_since = time.monotonic()
            self._free.append(session)
            await self._close_one_idle()

    async def _close_one_idle(self) -> None:
        """Give a connection back to the server that was wanted in a busy moment and has been idle since."""
        if self._free[0].idle_since < time.monotonic() - IDLE_BEFORE_CLOSED_SECONDS:
            await self._free.pop(0).close()

    async def _take(self) -> Session:
        while self._free:
            # The one used last, so that those which are not needed become idle.
            if not (session := self._free.pop()).closed:
                return session
        if self._closed:
            raise StoreClosedError(str(self._address))
        await asyncio.sleep(max(0.0, self._not_before - time.monotonic()))
        try:
            session = await self._connect()
        except BaseException:
            self._pause_seconds = min(LONGEST_PAUSE_SECONDS, max(FIRST_PAUSE_SECONDS, 2 * self._pause_seconds))
            jitter = random.uniform(0.5, 1.0)  # noqa: S311  so that many workers do not come back at one moment
            self._not_before = time.monotonic() + jitter * self._pause_seconds
            raise
        self._pause_seconds = self._not_before = 0.0
        return session

    async def _connect(self) -> Session:
        session = await connect(self._address)
        try:
            await self._prepare(session)
            if not self._address.pooled:  # what is behind a pooler may change while this connection stays
                session.life = await session.value(LIFE)
        except BaseException:
            session.drop()
            raise
        return session

    async def close(self) -> None:
        """Close all connections; those in use when they come back."""
        self._closed = True
        free, self._free = self._free, []
        for session in free:
            await session.close()
