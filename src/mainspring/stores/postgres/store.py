"""The store: each verb of the port, as statements and transactions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from mainspring.errors import DamagedRecordError, MainspringError, NewerSchemaError, StoreClosedError
from mainspring.port.clock import Clock
from mainspring.port.examination import Examination
from mainspring.port.loans import Loan
from mainspring.port.records import NO_LEAVES, Claims, Leaves, Outcome, Ref, Relayed, Unit
from mainspring.port.tasks import Hand, Refused, TaskRow
from mainspring.stores.hints import Hints
from mainspring.stores.postgres import tasks, work, workers
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.clock import DatabaseClock
from mainspring.stores.postgres.commit import Batches
from mainspring.stores.postgres.dialect import DIALECT
from mainspring.stores.postgres.examination import Examiner
from mainspring.stores.postgres.faults import FAULTY, LOST, translated
from mainspring.stores.postgres.loans import Lender, PostgresLoan
from mainspring.stores.postgres.presence import Presence
from mainspring.stores.postgres.relay import Relay
from mainspring.stores.postgres.schema import Schema, newest_known
from mainspring.stores.postgres.session import Pool, Row, Session, connect
from mainspring.stores.postgres.statements import statements
from mainspring.stores.postgres.transaction import Transaction, Transactions
from mainspring.stores.sql.dialogue import Dialogue, run_async
from mainspring.stores.sql.store import SqlStore

T = TypeVar("T")


class Connected:
    """What an open store has, and a closed one has not."""

    def __init__(self, address: Address, clock: Clock, now_us: Callable[[], int | None]) -> None:
        self.statements = statements(address.schema)
        self.pool = Pool(address, self._check_feed)
        self.hints = Hints(clock)
        self.presence = None if address.pooled else Presence(address, self.statements, self.hints.give)
        self.transactions = Transactions(address, self.pool, self.statements)
        self.batches = Batches(address, self.transactions, now_us, self.tell)
        self.lender = Lender(address, self.transactions, self.batches)
        self.relay = Relay(self.transactions, self.batches, self.tell)

    async def _check_feed(self, session: Session) -> None:
        """Let positions continue behind those that are there: the tables may have been moved to this server."""
        if await session.value(self.statements["feed_is_ahead"]):
            await session.rows(self.statements["move_feed"])

    def tell(self) -> None:
        """There is unclaimed work: this process is notified at once, others soon."""
        self.hints.give()
        if self.presence is not None:
            self.presence.tell()


class PostgresStore(SqlStore):
    """A store in a schema of a PostgreSQL database.

    `url` is `postgresql://user@host/database`, with `?schema=` (default `mainspring`), `?connections=` (at most so many
    for one process, besides one that is always open; default 5) and `?pooler=transaction` behind a pooler in that mode.
    Without a clock the database's own is used; tests give one.

    >>> str(PostgresStore("postgresql://db.example/shop?schema=orders"))
    'postgresql://db.example/shop?schema=orders'
    """

    dialect = DIALECT

    def __init__(
        self,
        url: str,
        clock: Clock | None = None,
        *,
        machine: DatabaseClock | None = None,
    ) -> None:
        self._address = Address(url)
        self._given = clock
        self._database = machine or DatabaseClock()
        self._clock = clock or self._database
        self._connected: Connected | None = None
        self.now_us = self._clock.now_us

    def __str__(self) -> str:
        return str(self._address)

    @property
    def judged_by_given_clock(self) -> bool:
        """Whether leases and due times are judged by a clock that was given, and not by the database's."""
        return self._given is not None

    @property
    def lends(self) -> bool:
        return True

    async def open(self) -> None:
        if self._connected is not None:
            return
        connected = Connected(self._address, self._clock, self._given_us)
        async with self._translated():
            session = await connect(self._address)
            try:
                schema = Schema(session, self._address, connected.statements)
                await schema.check_server()
                await schema.migrate()
            except BaseException:
                await session.close()
                raise
            if connected.presence is None:
                await session.close()
            else:
                await connected.presence.open(session)
        self._connected = connected
        await self._look()

    async def close(self) -> None:
        connected, self._connected = self._connected, None
        if connected is None:
            return
        await connected.pool.close()
        # Last, so that no process relieves a worker whose commits are still in flight.
        if connected.presence is not None:
            await connected.presence.close()

    # ---- workers

    async def register_worker(self, name: str, lease_us: int, knows: str = "") -> int:
        presence = self._open().presence
        now_us = self._given_us()
        return await self._transact(lambda t: workers.register(t, presence, name, lease_us, now_us, knows))

    async def heartbeat(self, worker: int, standing: str = "") -> bool:
        life = "" if self._open().presence is None else await self._seen(worker)
        known = bool(await self._ask("extend_worker", worker, self._given_us(), standing, life))
        await self._look()
        return known

    async def release_worker(self, worker: int) -> None:
        await self._released(lambda t: workers.release(t, [worker]))
        if presence := self._open().presence:
            await presence.drop(worker)

    async def relieve(self) -> int:
        presence = self._open().presence
        own = sorted(presence.workers) if presence else []
        now_us = self._given_us()
        return len(await self._released(lambda t: workers.relieve(t, own, now_us)))

    # ---- commit and work

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        batches = self._open().batches
        async with self._translated():
            return await batches.commit(worker, units)

    async def lend(self, worker: int, limit_seconds: float) -> Loan:
        connected = self._open()
        loan = PostgresLoan(connected.lender, worker, limit_seconds)
        async with self._translated():
            await loan.begin()
        return loan

    async def claim(
        self, worker: int, destinations: Sequence[str], workflows: Sequence[str], limit: int, leaves: Leaves = NO_LEAVES
    ) -> Claims:
        # Mostly there is nothing, and looking costs no transaction.
        ((next_due_us, inputs, database_us, known, posted, _),) = await self._ask(
            "next_due", destinations, workflows, worker
        )
        given_us = self._given_us()
        now_us: int = database_us if given_us is None else given_us
        if not known:
            return Claims([], [], None)
        if not inputs and (next_due_us is None or next_due_us > now_us):
            return Claims([], [], next_due_us, posted)
        claims = await self._transact(lambda t: work.claim(t, worker, destinations, workflows, limit, now_us, leaves))
        if presence := self._open().presence:
            presence.came(in_vain=not claims.outputs and not claims.inputs)
        return claims

    async def relay(self, limit: int) -> Relayed:
        relay = self._open().relay
        async with self._translated():
            return await relay.relay(limit)

    async def restore_output(self, dead_letter: int, expected_version: int | None = None) -> bool:
        now_us = self._given_us()
        restored = await self._transact(lambda t: work.restore_output(t, dead_letter, expected_version, now_us))
        if restored:
            self._open().tell()
        return restored

    async def hand(self, ref: Ref, version: int, hand: Hand) -> TaskRow | Refused:
        now_us = self.now_us()
        return await self._transact(lambda t: tasks.hand(t, ref, version, hand, now_us))

    async def pick(self, role: str, actor: str, limit: int) -> list[TaskRow]:
        now_us = self.now_us()
        return await self._transact(lambda t: tasks.pick(t, role, actor, limit, now_us))

    async def wait_for_work(self, timeout_seconds: float) -> None:
        await self._open().hints.wait(timeout_seconds)

    async def examine(self) -> Examination:
        return await Examiner(self._address).examine()

    # ---- ways to the database

    async def in_read(self, begin: Callable[[], Dialogue[T]], *, at_one_moment: bool) -> T:
        if at_one_moment:
            try:
                return await run_async(begin(), self._ask)
            except DamagedRecordError:
                pass  # an instance may have been purged between two statements: then it is a tombstone now
        return await run_async(begin(), self._ask)

    async def in_transaction(self, begin: Callable[[int | None], Dialogue[T]]) -> T:
        now_us = self._given_us()
        return await self._transact(lambda t: run_async(begin(now_us), t.rows))

    async def _ask(self, query: str, *values: Any) -> list[Row]:
        """Return all rows of a statement that may be repeated: a connection that was cut meanwhile does not matter."""
        connected = self._open()
        async with self._translated():
            for _ in range(connected.pool.size):
                try:
                    async with connected.pool.session() as session:
                        return await session.rows(connected.statements[query], *values)
                except LOST as error:
                    # What took too long once would keep its caller waiting as long again.
                    if isinstance(error, (TimeoutError, *FAULTY)):
                        raise
            async with connected.pool.session() as session:
                return await session.rows(connected.statements[query], *values)

    async def _transact(self, body: Callable[[Transaction], Awaitable[T]]) -> T:
        connected = self._open()
        async with self._translated(), connected.transactions.transaction() as transaction:
            return await body(transaction)

    async def _released(self, body: Callable[[Transaction], Awaitable[list[int]]]) -> list[int]:
        gone = await self._transact(body)
        if gone:
            self._open().tell()
        return gone

    async def _seen(self, worker: int) -> str:
        """Return the life of the server that has a worker's lock; nothing where its session is reconnecting."""
        rows = await self._ask("life", self._address.lock_class & workers.UNSIGNED, worker)
        return rows[0][0] if rows else ""

    async def _look(self) -> None:
        """Learn the database's time, and whether a newer release has changed its tables."""
        sent_us = self._database.monotonic_us()
        ((database_us, newest),) = await self._ask("newest")
        self._database.measured(database_us, sent_us, self._database.monotonic_us())
        if newest > (known := newest_known()):
            raise NewerSchemaError(str(self), newest, known)

    @asynccontextmanager
    async def _translated(self) -> AsyncGenerator[None]:
        try:
            yield
        except MainspringError:
            raise
        except Exception as cause:
            raise translated(str(self), cause) from cause

    def _given_us(self) -> int | None:
        return None if self._given is None else self._given.now_us()

    def _open(self) -> Connected:
        if self._connected is None:
            raise StoreClosedError(str(self))
        return self._connected
