"""The store: each verb of the port, as statements and transactions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from mainspring.errors import MainspringError, NewerSchemaError, StoreClosedError
from mainspring.port.attempts import Attempt
from mainspring.port.attributes import AttributeRow
from mainspring.port.clock import Clock
from mainspring.port.findings import Examination
from mainspring.port.leaving import NOTHING, Leaves, Waiting
from mainspring.port.lending import Loan
from mainspring.port.outlines import Outline, OutlineSpot
from mainspring.port.projections import Advance, Behind, Checkpoint, Document
from mainspring.port.purging import Purgeable, PurgeCursor, Purged, PurgePage
from mainspring.port.records import (
    Claims,
    DeadLetter,
    EventRow,
    InputRow,
    InstanceFilter,
    InstanceRow,
    Loaded,
    Outcome,
    OutputClaim,
    OutputKey,
    Ref,
    Relayed,
    Remembered,
    Stats,
    Unit,
)
from mainspring.port.searching import AttributeName, Found
from mainspring.port.store import Tally, TaskSpot
from mainspring.port.suspects import Alone, Suspect
from mainspring.port.tasks import Hand, Refused, TaskFilter, TaskRow
from mainspring.port.workers import WorkerRow
from mainspring.stores.postgres import projections, purge, reads, searching, tasks, work, workers
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.clock import DatabaseClock
from mainspring.stores.postgres.commit import Committer
from mainspring.stores.postgres.examine import Examiner
from mainspring.stores.postgres.faults import FAULTY, LOST, translated
from mainspring.stores.postgres.hints import Hints
from mainspring.stores.postgres.lending import Lender, PostgresLoan
from mainspring.stores.postgres.presence import Presence
from mainspring.stores.postgres.relay import Relay
from mainspring.stores.postgres.schema import Schema, newest_known
from mainspring.stores.postgres.session import Pool, Row, Session, connect
from mainspring.stores.postgres.sql import statements
from mainspring.stores.postgres.transaction import Transaction, Transactions

T = TypeVar("T")


class Connected:
    """What an open store has, and a closed one has not."""

    def __init__(self, address: Address, clock: Clock, now_us: Callable[[], int | None]) -> None:
        self.statements = statements(address.schema)
        self.pool = Pool(address, self._check_feed)
        self.hints = Hints(clock)
        self.presence = None if address.pooled else Presence(address, self.statements, self.hints.give)
        self.transactions = Transactions(address, self.pool, self.statements)
        self.committer = Committer(address, self.transactions, now_us, self.tell)
        self.lender = Lender(address, self.transactions, self.committer)
        self.relay = Relay(self.transactions, self.committer, self.tell)

    async def _check_feed(self, session: Session) -> None:
        """Let positions go on behind those that are there: the tables may have been moved to this server meanwhile."""
        if await session.value(self.statements["feed_is_ahead"]):
            await session.rows(self.statements["move_feed"])

    def tell(self) -> None:
        """There is work that nobody holds: this process hears of it at once, others soon."""
        self.hints.give()
        if self.presence is not None:
            self.presence.tell()


class PostgresStore:
    """A store in a schema of a PostgreSQL database.

    `url` is `postgresql://user@host/database`, with `?schema=` (default `mainspring`), `?connections=` (at most so many
    for one process, besides one that is always open; default 5) and `?pooler=transaction` behind a pooler in that mode.
    Without a clock the database's own is used; tests give one.

    >>> str(PostgresStore("postgresql://db.example/shop?schema=orders"))
    'postgresql://db.example/shop?schema=orders'
    """

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
        # Last, so that nobody relieves a worker whose commits are still under way.
        if connected.presence is not None:
            await connected.presence.close()

    def now_us(self) -> int:
        return self._clock.now_us()

    # ---- workers

    async def register_worker(self, name: str, lease_us: int, knows: str = "") -> int:
        presence = self._open().presence
        now_us = self._given_us()
        return await self._transact(lambda t: workers.register(t, presence, name, lease_us, now_us, knows))

    async def heartbeat(self, worker: int, held: str = "") -> bool:
        life = "" if self._open().presence is None else await self._seen(worker)
        known = bool(await self._ask("extend_worker", worker, self._given_us(), held, life))
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

    async def workers(self) -> list[WorkerRow]:
        return await reads.workers(self._ask)

    async def holds(self, worker: int) -> list[OutputKey]:
        return await reads.holds(self._ask, worker)

    async def holds_inputs(self, worker: int) -> list[tuple[Ref, int]]:
        return await reads.holds_inputs(self._ask, worker)

    async def suspects(self, limit: int) -> list[Suspect]:
        return [Suspect(*row) for row in await self._ask("suspects", limit)]

    # ---- commit and work

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        committer = self._open().committer
        async with self._translated():
            return await committer.commit(worker, units)

    async def lend(self, worker: int, limit_seconds: float) -> Loan:
        connected = self._open()
        loan = PostgresLoan(connected.lender, worker, limit_seconds)
        async with self._translated():
            await loan.begin()
        return loan

    async def claim(
        self, worker: int, destinations: Sequence[str], workflows: Sequence[str], limit: int, leaves: Leaves = NOTHING
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

    async def claim_alone(self, worker: int, suspect: Suspect | None) -> Alone | None:
        return await self._transact(lambda t: work.claim_alone(t, worker, suspect))

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

    # ---- reading

    async def load(self, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
        return await reads.load(self._ask, refs, most)

    async def remembered(self, key: str) -> Remembered | None:
        return await reads.remembered(self._ask, key, self.now_us())

    async def instances(self, where: InstanceFilter, limit: int, after: int = 0) -> list[InstanceRow]:
        return await reads.instances(self._ask, where, limit, after)

    async def search(self, where: InstanceFilter, limit: int, after: int | None = None, newest: bool = False) -> Found:
        return await searching.search(self._ask, where, limit, after, newest)

    async def attributes(self, ref: Ref) -> list[AttributeRow]:
        return await reads.attributes(self._ask, ref)

    async def attribute_names(self) -> list[AttributeName]:
        return await searching.attribute_names(self._ask)

    async def stream(self, ref: Ref, after: int, limit: int) -> list[EventRow]:
        return await reads.stream(self._ask, ref, after, limit)

    async def feed(self, after: int, limit: int) -> list[tuple[int, Ref, EventRow]]:
        return await reads.feed(self._ask, after, limit)

    async def outlines(self, spots: Sequence[OutlineSpot], limit: int) -> list[Outline]:
        return await reads.outlines(self._ask, spots, limit)

    async def inbox(self, ref: Ref, limit: int) -> list[InputRow]:
        return await reads.inbox(self._ask, ref, limit)

    async def outputs(self, ref: Ref | None, timers: bool, limit: int) -> list[OutputClaim]:
        return await reads.outputs(self._ask, ref, timers, limit)

    async def attempts(self, ref: Ref, limit: int) -> list[Attempt]:
        return await reads.attempts(self._ask, ref, limit)

    async def waiting(self, before_us: int) -> list[Waiting]:
        return await reads.waiting(self._ask, before_us)

    async def timers(self, limit: int) -> list[OutputClaim]:
        return await searching.timers(self._ask, limit)

    async def dead_letters(self, limit: int, after: int = 0, ids: Sequence[int] | None = None) -> list[DeadLetter]:
        return await reads.dead_letters(self._ask, limit, after, ids)

    async def tasks(self, where: TaskFilter, limit: int, after: TaskSpot | None = None) -> list[TaskRow]:
        return await tasks.listed(self._ask, where, limit, after)

    async def task(self, ref: Ref, version: int) -> TaskRow | None:
        return await tasks.get(self._ask, ref, version)

    async def stats(self) -> Stats:
        return await reads.stats(self._ask, self.now_us())

    async def tally(self) -> Tally:
        return await reads.tally(self._ask)

    async def examine(self) -> Examination:
        return await Examiner(self._address).examine()

    # ---- purging

    async def purgeable(self, workflow: str, before_us: int, limit: int, after: PurgeCursor | None = None) -> PurgePage:
        return await purge.purgeable(self._ask, workflow, before_us, limit, after)

    async def purge(self, found: Sequence[Purgeable], events: int) -> Purged:
        now_us = self._given_us()
        return await self._transact(lambda t: purge.purge(t, found, events, now_us))

    # ---- projections

    async def checkpoints(self, projection: str | None = None) -> list[Checkpoint]:
        return await projections.checkpoints(self._ask, projection)

    async def advance(self, move: Advance) -> bool:
        now_us = self._given_us()
        return await self._transact(lambda t: projections.advance(t, move, now_us))

    async def documents(self, projection: str, keys: Sequence[str], generation: int | None = None) -> list[Document]:
        return await projections.documents(self._ask, projection, keys, generation)

    async def list_documents(self, projection: str, prefix: str, after: str, limit: int) -> list[Document]:
        return await projections.list_documents(self._ask, projection, prefix, after, limit)

    async def clear_documents(self, projection: str, generation: int, limit: int) -> int:
        return await self._transact(lambda t: projections.clear(t, projection, generation, limit))

    async def behind(self, position: int, limit: int) -> Behind:
        return await projections.behind(self._ask, position, limit)

    # ---- ways to the database

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
        """Return the life of the server that has a worker's lock; nothing where its session is on its way back."""
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
