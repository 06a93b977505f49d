"""Looks at a server, without changing anything on it, and says what is wrong.

Every question is asked in a read-only transaction with a time limit. One that is refused or takes too long is noted,
and the next one is asked; a server that does not answer ends the examination. The connections are plain ones, as a
pooler allows them, so that a connection that the store itself could not use can be examined too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from typing import Any, Final
from uuid import uuid4

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none

from mainspring.errors import StoreError
from mainspring.port.examination import Examination, Finding, note, problem
from mainspring.stores.postgres import symptoms
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.faults import LOST, translated
from mainspring.stores.postgres.schema import migrations
from mainspring.stores.postgres.session import Session, connect
from mainspring.stores.postgres.statements import statements, within
from mainspring.stores.postgres.workers import UNSIGNED
from mainspring.stores.sql.statements import read

STATEMENT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = STATEMENT_SECONDS + 5.0
NOTIFY_SECONDS: Final = 2.0
SESSIONS: Final = 3
ROUNDS: Final = 3

_QUESTIONS: Final = read("mainspring.stores.postgres", ("examination.sql",))


def _begin() -> str:
    limits = f"statement_timeout = '{STATEMENT_SECONDS:g}s'; SET LOCAL lock_timeout = '{STATEMENT_SECONDS:g}s'"
    return f"BEGIN TRANSACTION READ ONLY; SET LOCAL {limits}"


class Examiner:
    """Examines one server for one application. `time_ns` is this machine's time of day; tests set it."""

    def __init__(self, address: Address, time_ns: Callable[[], int] = time.time_ns) -> None:
        self._address = address
        self._time_ns = time_ns
        self._plain = copy(address)
        self._plain.pooled = True  # nothing is set in the session, and nothing prepared
        self._questions = {name: within(address.schema, text) for name, text in _QUESTIONS.items()}
        self._findings: list[Finding] = []
        self._facts: dict[str, str] = {}
        self._ready = False
        self._shared = False
        self._workers: list[Any] = []

    async def examine(self) -> Examination:
        """Ask everything, and return what is wrong."""
        try:
            async with self._session() as session:
                await self._ask_all(session)
        except (StoreError, asyncpg.PostgresError, *LOST) as error:
            lost = translated(str(self._address), error)
            self._found([problem(f"{lost.store} {lost.problem}", lost.fix)])
            self._ready = False
        return Examination(self._findings, self._facts, self._ready)

    async def _ask_all(self, session: Session) -> None:
        server = (await self._ask(session, "server"))[0]
        self._facts["PostgreSQL"] = server["full_version"]
        self._found(symptoms.of_server(server))
        self._ready = not self._findings
        if server["version"] < symptoms.OLDEST_SERVER:
            return
        self._found(symptoms.of_settings(server))
        await self._look("the way to the server", self._look_at_sessions, session)
        if not server["standby"]:
            await self._look("notifications", self._ring, session)
        await self._look("the clock", self._look_at_clock, session)
        await self._look("the tables", self._look_at_place, session)
        await self._look("transactions", self._look_at_transactions, session)
        await self._look("replication slots", self._look_at_slots, session)
        if self._ready:
            await self._look("the tables' sizes", self._look_at_tables, session)
            await self._look("workers", self._look_at_workers, session)
            await self._look("waiting messages", self._look_at_work, session)
        await self._look("connections", self._look_at_connections, session)

    # ---- the connection to the server

    async def _look_at_sessions(self, session: Session) -> None:
        """Find out whether connections have sessions of their own, or share some: the mark of a pooler."""
        seen: list[set[int]] = [set() for _ in range(SESSIONS)]
        async with AsyncExitStack() as stack:
            others = [await stack.enter_async_context(self._session()) for _ in range(SESSIONS - 1)]
            for _ in range(ROUNDS):
                for one, pids in zip((session, *others), seen, strict=True):
                    pids.add((await self._ask(one, "session"))[0][0])
        pids = [pid for pids in seen for pid in pids]
        self._shared = len(pids) > SESSIONS or len(set(pids)) < SESSIONS
        behind = session.pid not in seen[0]
        self._found(symptoms.of_sessions(self._address.pooled, self._shared, behind))
        if self._shared and not self._address.pooled:
            self._ready = False

    async def _ring(self, _session: Session) -> None:
        """Send oneself a notification, as workers notify each other of work."""
        if self._shared or self._address.pooled:
            return
        heard = asyncio.Event()
        channel = f"mainspring_doctor_{uuid4().hex}"
        async with self._session() as session:
            try:
                # Not only the waiting: a commit may wait too, for a standby.
                async with asyncio.timeout(NOTIFY_SECONDS):
                    await session.listen(channel, lambda _pid: heard.set())
                    await session.rows(self._questions["ring"], channel)
                    await heard.wait()
            except TimeoutError:
                what = f"A notification was not heard within {NOTIFY_SECONDS:g} s: workers find new work by looking"
                fix = "See what stands before the server, or keeps commits waiting; use pooler=transaction if it must."
                self._found([problem(what, fix)])

    async def _look_at_clock(self, session: Session) -> None:
        """Compare clocks: of several answers, the quickest says most."""
        measured: list[tuple[int, int]] = []
        for _ in range(ROUNDS):
            await session.run(_begin())  # not between the two looks at the clock
            begun_ns, sent_us = time.monotonic_ns(), self._time_ns() // 1_000
            server_us = (await session.rows(self._questions["time"]))[0][0]
            took_us = (time.monotonic_ns() - begun_ns) // 1_000
            await session.run("ROLLBACK")
            measured.append((took_us, server_us - sent_us - took_us // 2))
        took_us, skew_us = min(measured)
        self._facts["clock"] = f"{skew_us / 1e3:+.1f} ms, give or take {took_us / 2e3:.1f} ms"
        self._found(symptoms.of_clock(skew_us / 1e6, took_us / 2e6))

    # ---- the tables

    async def _look_at_place(self, session: Session) -> None:
        schema, known = self._address.schema, len(migrations())
        place = (await self._ask(session, "place", schema))[0]
        if not place["has_ledger"]:
            self._ready = False
            if place["may_create"]:
                self._found([note(f"There are no tables in the schema {schema} yet", "The first start makes them.")])
            else:
                what = f"There are no tables in the schema {schema}, and this user may not make them"
                fix = "Create the schema with this user as its owner: CREATE SCHEMA … AUTHORIZATION …"
                self._found([problem(what, fix)])
            return
        if not place["may_use"] or place["forbidden"]:
            self._ready = False
            what = f"This user may not read and write {', '.join(place['forbidden'][:3]) or 'anything'} in {schema}"
            self._found([problem(what, "Connect as the owner of the tables, or grant what is missing.")])
            return
        own = statements(schema)
        version = await self._value(session, own["schema_version"])
        self._facts["schema"] = f"{schema}, version {version}"
        if version > known:
            what = f"The tables have version {version}, and this release knows versions up to {known}"
            self._found([problem(what, "Upgrade mainspring here.")])
        elif version < known:
            what = f"The tables have version {version}, and this release brings version {known}"
            self._found([note(what, "The next start brings them up to date; workers of older releases stop then.")])
        elif await self._value(session, own["feed_is_ahead"]):
            what = "The tables come from another server, whose transactions had higher numbers"
            self._found([note(what, "The next start lets the feed go on behind what is there.")])
        else:
            return
        self._ready = False

    async def _look_at_tables(self, session: Session) -> None:
        tables = await self._ask(session, "tables", self._address.schema)
        self._found(symptoms.of_tables(tables, self._address.schema))

    async def _look_at_workers(self, session: Session) -> None:
        self._workers = await self._ask(session, "workers", self._address.lock_class & UNSIGNED)
        self._found(symptoms.of_workers(self._workers))

    async def _look_at_work(self, session: Session) -> None:
        self._found(symptoms.of_overdue(await self._ask(session, "overdue", symptoms.LATE_SECONDS)))

    # ---- the server

    async def _look_at_transactions(self, session: Session) -> None:
        shortest = min(symptoms.IDLE_SECONDS, symptoms.LONG_SECONDS)
        transactions = await self._ask(session, "transactions", shortest)
        prepared = await self._ask(session, "prepared_transactions", symptoms.LONG_SECONDS)
        hidden = (await self._ask(session, "hidden_sessions"))[0][0]
        self._found(symptoms.of_transactions(transactions, prepared, hidden))

    async def _look_at_slots(self, session: Session) -> None:
        self._found(symptoms.of_slots(await self._ask(session, "slots")))

    async def _look_at_connections(self, session: Session) -> None:
        limits = await self._ask(session, "connections")
        self._facts["connections"] = f"{limits[0]['used']} of {limits[0]['allowed']}"
        # Behind a pooler it is the pooler's connections that count, and it does not take more than it may.
        workers = 0 if self._shared or self._address.pooled else len(self._workers)
        self._found(symptoms.of_connections(limits, workers, self._address.connections + 1))

    # ---- asking

    async def _look(self, at: str, look: Callable[[Session], Awaitable[None]], session: Session) -> None:
        """Look at one thing. What cannot be seen is noted, and does not keep us from looking at the next."""
        try:
            await look(session)
        except StoreError as error:
            self._found([note(f"{at} could not be looked at: {error.problem}", error.fix)])
        except LOST:
            raise
        except asyncpg.PostgresError as error:
            self._found([note(f"{at} could not be looked at: {error}", "Grant what is missing, or look again later.")])

    async def _ask(self, session: Session, question: str, *values: Any) -> list[Any]:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await self._read(session, self._questions[question], *values)

    async def _value(self, session: Session, statement: str) -> Any:
        async with asyncio.timeout(ANSWER_SECONDS):
            return (await self._read(session, statement))[0][0]

    async def _read(self, session: Session, statement: str, *values: Any) -> list[Any]:
        await session.run(_begin())
        try:
            return await session.rows(statement, *values)
        finally:
            if not session.closed:
                await session.run("ROLLBACK")

    @asynccontextmanager
    async def _session(self) -> AsyncGenerator[Session]:
        """Connect as plainly as can be, and leave without waiting for anything."""
        session = await connect(self._plain)
        try:
            yield session
        finally:
            session.drop()
            await asyncio.sleep(0)  # what was dropped is closed in the next turn

    def _found(self, findings: Iterable[Finding]) -> None:
        self._findings += findings
