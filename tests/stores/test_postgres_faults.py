"""What goes wrong around the PostgreSQL store is told in its own words, and it works again when the cause is gone."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from mainspring.errors import (
    DamagedRecordError,
    DamagedStoreError,
    FaultyUnitError,
    StoreBusyError,
    StoreClosedError,
    StoreError,
    StoreUnreachableError,
    UnknownOutcomeError,
)
from mainspring.port.records import Committed, Conflict, Retry, Snapshot, Unit
from mainspring.stores.postgres import PostgresStore
from mainspring.stores.postgres.address import Address
from mainspring.stores.postgres.session import SETTINGS
from mainspring.stores.postgres.statements import name_of
from mainspring.testing.store_contract.rig import (
    ALL_DESTINATIONS,
    ORDERS,
    accept,
    letter,
    order,
    send,
    settle,
    step,
    timer,
)
from tests.stores.postgres_support import inside, opened, other_session, somebody_waits, sql
from tests.support.postgres.proxy import Cable, Cut, serving
from tests.support.postgres.server import Server, Unavailable, own_schema, postgres_url
from tests.support.running import run

LEASE_US = 30_000_000


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server that a test may end and start again, and change as it likes."""
    try:
        server = Server(settings={"fsync": "off"})
        server.start()
    except Unavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
    yield server
    server.remove()


# ---- the connection breaks


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_claim_whose_answer_is_lost_is_nobodys_or_told(when: Cut, tmp_path: Path) -> None:
    async def body() -> None:
        cable = Cable(postgres_url(tmp_path))
        async with serving(cable, postgres_url(tmp_path)) as url, opened(tmp_path, url=url) as store:
            worker = await store.register_worker("first", LEASE_US)
            await store.commit(worker, [step("m-1", send())])
            cable.cut_once("COMMIT", when)
            try:
                claimed = (await store.claim(worker, ALL_DESTINATIONS, [ORDERS], 10)).outputs
            except StoreUnreachableError:
                claimed = []
            assert [claim.output for claim in claimed] == await store.holds(worker)
            assert len(claimed) == (when == "after")

    run(body)


def test_an_outcome_that_nobody_can_tell_is_said_to_be_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.stores.postgres.transaction.RESOLVE_SECONDS", 0.2)

    async def body() -> None:
        cable = Cable(postgres_url(tmp_path))
        async with serving(cable, postgres_url(tmp_path)) as url, opened(tmp_path, url=url) as store:

            def cut(statement: str) -> Cut | None:
                cable.broken = cable.broken or statement == "COMMIT"
                return "after" if cable.broken else None

            cable.cut_at = cut
            with pytest.raises(UnknownOutcomeError):
                await store.commit(0, [step("m-1")])

    run(body)


def test_connections_that_were_cut_are_made_again(tmp_path: Path) -> None:
    async def body() -> None:
        cable = Cable(postgres_url(tmp_path))
        async with serving(cable, postgres_url(tmp_path)) as url, opened(tmp_path, url=url) as store:
            for n in range(5):
                cable.cut_all()
                assert [type(one) for one in await store.commit(0, [step("m-1", on=f"o-{n}")])] == [Committed]
                cable.cut_all()
                assert len(await store.stream(order(f"o-{n}"), 0, 10)) == 2

    run(body)


def test_sessions_ended_by_an_operator_harm_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = Address(postgres_url(tmp_path)).schema
    monkeypatch.setitem(SETTINGS, "application_name", name)  # no other test's sessions are ended

    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            ended = 0

            async def terminate() -> None:
                nonlocal ended
                ends = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1"
                ended += await other.fetchval(ends, name)

            # In rounds: on a busy machine an operator would be quicker than any number of new attempts.
            for round in range(10):
                commits = asyncio.gather(*(store.commit(0, [step("m-1", on=f"o-{n}-{round}")]) for n in range(4)))
                await terminate()
                assert [type(one) for (one,) in await commits] == [Committed] * 4
            assert ended > 1
            assert len(await store.feed(0, 1_000)) == 80

    run(body)


def test_work_goes_on_after_a_restart_of_the_server(own_server: Server, tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path, url=own_schema(own_server.url, tmp_path)) as store:
            worker = await store.register_worker("first", 3_600_000_000)
            await store.commit(worker, [step("m-1", send(claimed=True))])
            await asyncio.to_thread(own_server.stop, kill=True)
            with pytest.raises(StoreUnreachableError):
                await store.stats()
            waiting = asyncio.create_task(store.commit(worker, [step("m-2", after=3)]))
            await asyncio.to_thread(own_server.start)
            (outcome,) = await waiting
            assert isinstance(outcome, Committed)
            assert await store.relieve() == 0
            assert await store.heartbeat(worker)
            assert len(await store.holds(worker)) == 1

    run(body)


def test_no_connection_left_is_told_and_passes(own_server: Server, tmp_path: Path) -> None:
    async def body() -> None:
        async with (
            opened(tmp_path, url=own_schema(own_server.url, tmp_path)) as store,
            other_session(tmp_path, own_server.url) as other,
        ):
            await other.execute("CREATE ROLE poor LOGIN CONNECTION LIMIT 0")
            poor = PostgresStore(own_schema(own_server.url.replace("postgres@", "poor@"), tmp_path))
            with pytest.raises(StoreUnreachableError, match="no connection left"):
                await poor.open()
            assert (await store.stats()).workers == 0

    run(body)


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    async def body() -> None:
        with pytest.raises(StoreUnreachableError, match=r"postgresql://127.0.0.1:1/shop\?schema=mainspring"):
            await PostgresStore("postgresql://ann:secret@127.0.0.1:1/shop").open()

    run(body)


def test_a_caller_that_stops_waiting_harms_nobody(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            for turns in range(12):
                impatient = asyncio.create_task(store.commit(0, [step("m-1", on=f"o-{turns}")]))
                await asyncio.sleep(0.0005 * turns)  # wherever it is by then: each turn a little further
                impatient.cancel()
                await asyncio.gather(impatient, return_exceptions=True)
                await store.commit(0, [step("m-1", on=f"o-{turns}")])
                assert len(await store.stream(order(f"o-{turns}"), 0, 10)) == 2

    run(body)


# ---- the server refuses


def test_a_lock_that_is_held_for_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            await store.commit(0, [step("m-1"), step("m-1", on="o-2")])
            async with inside(store).pool.session() as session:
                await session.run("SET lock_timeout = '50ms'")
            async with other.transaction():
                await other.execute(sql(tmp_path, "SELECT 1 FROM mainspring.instances WHERE id = 'o-1' FOR UPDATE"))
                with pytest.raises(StoreBusyError):
                    await store.commit(0, [step("m-2", after=2)])
                (outcome,) = await store.commit(0, [step("m-2", after=2, on="o-2")])
                assert isinstance(outcome, Committed)
            (outcome,) = await store.commit(0, [step("m-2", after=2)])
            assert isinstance(outcome, Committed)

    run(body)


def test_a_statement_that_takes_too_long_is_told(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            async with inside(store).pool.session() as session:
                await session.run("SET statement_timeout = '200ms'")
            async with other.transaction():
                await other.execute(sql(tmp_path, "LOCK TABLE mainspring.instances"))
                with pytest.raises(StoreError, match="for a statement"):
                    await store.commit(0, [step("m-1")])
            async with inside(store).pool.session() as session:
                await session.run("RESET statement_timeout")
            assert [type(one) for one in await store.commit(0, [step("m-1")])] == [Committed]

    run(body)


def test_a_timer_that_is_claimed_at_this_very_moment_is_cancelled_all_the_same(tmp_path: Path) -> None:
    """A claim moves the row to another place in its table: a cancellation that looks at the old one misses it."""

    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            await store.commit(0, [step("m-1", timer("remind"))])
            await other.execute("BEGIN")
            await other.execute(sql(tmp_path, "UPDATE mainspring.outbox SET owner = 7"))
            cancels = asyncio.create_task(store.commit(0, [step("m-2", after=3, cancels=("remind",))]))
            await somebody_waits(other)
            await other.execute("COMMIT")
            assert [type(one) for one in await cancels] == [Committed]
            assert await store.outputs(None, timers=True, limit=10) == []

    run(body)


def test_batches_that_wait_for_each_other_are_tried_again(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as gate, other_session(tmp_path) as other:
            first, second, third = ids = sorted(("o-1", "o-2", "o-3"), key=lambda one: name_of(ORDERS, one))
            await store.commit(0, [step("m-1", on=id) for id in ids])
            lock = sql(tmp_path, "SELECT 1 FROM mainspring.instances WHERE id = $1 FOR UPDATE")
            await other.execute("SET deadlock_timeout = '1h'")
            for holder, id in ((gate, second), (other, third)):
                await holder.execute("BEGIN")
                await holder.fetch(lock, id)
            async with inside(store).pool.session() as session:
                await session.run("SET deadlock_timeout = '20ms'")
                own = session.raw
            # The store locks the first and waits at the gate; the other waits for the first; then the store waits for
            # the third. A session that waits looks for a deadlock only once: so it has to be the last one to begin.
            batch = asyncio.create_task(store.commit(0, [step("m-2", after=2, on=id) for id in ids]))
            await somebody_waits(gate)
            waiting = asyncio.create_task(other.fetch(lock, first))
            await somebody_waits(gate, own)
            await gate.execute("COMMIT")
            await waiting
            await other.execute("COMMIT")
            assert [type(one) for one in await batch] == [Committed] * 3

    run(body)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("synchronous_commit = off", "synchronous_commit=off"),
        ("default_transaction_read_only = on", "cannot be written"),
    ],
)
def test_a_server_that_cannot_keep_a_promise_is_refused(
    setting: str, complaint: str, own_server: Server, tmp_path: Path
) -> None:
    async def body() -> None:
        async with other_session(tmp_path, own_server.url) as other:
            await other.execute("DROP ROLE IF EXISTS shop")
            await other.execute("CREATE ROLE shop LOGIN SUPERUSER")
            await other.execute(f"ALTER ROLE shop SET {setting}")
        url = own_schema(own_server.url.replace("postgres@", "shop@"), tmp_path)
        with pytest.raises(StoreError, match=complaint):
            await PostgresStore(url).open()

    run(body)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_with_another_encoding_is_refused(encoding: str, own_server: Server, tmp_path: Path) -> None:
    async def body() -> None:
        name = f"old_{encoding.lower()}"
        async with other_session(tmp_path, own_server.url) as other:
            await other.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
        with pytest.raises(StoreError, match=encoding):
            await PostgresStore(own_server.url.removesuffix("postgres") + name).open()

    run(body)


def test_tables_that_are_gone_are_told(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            await other.execute(sql(tmp_path, "DROP TABLE mainspring.outbox"))
            with pytest.raises(DamagedStoreError, match="outbox"):
                await store.commit(0, [step("m-1", send())])

    run(body)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            pass
        for call in (store.stats(), store.commit(0, [step("m-1")]), store.relieve()):
            with pytest.raises(StoreClosedError):
                await call

    run(body)


# ---- faulty units and damaged records

FAULTY = {
    "a gap": replace(step("m-1", on="bad"), events=step("m-1").events[1:]),
    "a zero byte": step("m\0-1", on="bad"),
    "no text": step("m-\ud800", on="bad"),
    "a large number": step("m-1", send(after_us=1 << 70), on="bad"),
    "a number over 63 bits": step("m-1", send(priority=1 << 63), on="bad"),
}


@pytest.mark.parametrize("unit", FAULTY.values(), ids=FAULTY.keys())
def test_a_faulty_unit_leaves_its_neighbours_alone(unit: Unit, tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            chained = step("m-2", on="bad", after=2)
            with pytest.raises(FaultyUnitError) as caught:
                await store.commit(0, [step("m-1"), unit, chained, step("m-2", after=2), step("m-1", on="o-2")])
            outcomes = caught.value.outcomes
            assert [type(one) for one in outcomes] == [Committed, StoreError, Conflict, Committed, Committed]
            assert [event.version for event in await store.stream(order(), 0, 10)] == [1, 2, 3]
            assert len(await store.stream(order("o-2"), 0, 10)) == 2
            told = [(ref.id, event.version) for _, ref, event in await store.feed(0, 10)]
            assert told == [("o-1", 1), ("o-1", 2), ("o-1", 3), ("o-2", 1), ("o-2", 2)]

    run(body)


def test_what_an_error_says_is_kept_even_with_a_zero_byte(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            boom = Unit(ORDERS, "o-1", dead_letters=(letter(error="boom\0"),))
            await store.commit(0, [step("m-1", status="suspended", error="boom\0"), boom])
            assert [one.error for one in await store.dead_letters(10)] == ["boom\ufffd"]

    run(body)


def test_what_the_last_attempt_says_is_kept_even_with_a_zero_byte(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            worker = await store.register_worker("first", LEASE_US)
            await store.commit(worker, [step("m-1", send(claimed=True))])
            [output] = await store.holds(worker)
            await store.commit(worker, [Unit("", "", retries=(Retry(output, 1, 0, "boom\0"),))])
            claims = await store.claim(worker, ALL_DESTINATIONS, [], 10)
            assert [(claim.attempts, claim.error) for claim in claims.outputs] == [(1, "boom\ufffd")]

    run(body)


def test_very_long_names_are_kept(tmp_path: Path) -> None:
    async def body() -> None:
        id, message = "\U0001f469" * 1_000, "\U0001f680" * 3_000
        async with opened(tmp_path) as store:
            outcomes = await store.commit(0, [step(message, on=id), accept(message + "2", on=id)])
            assert [type(one) for one in outcomes] == [Committed] * 2
            (loaded,) = await store.load([order(id)])
            assert loaded is not None
            assert loaded.row.id == id

    run(body)


def test_bodies_of_many_megabytes_are_kept_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.stores.postgres.changes.JSON_BYTES", 1_000)

    async def body() -> None:
        async with opened(tmp_path) as store:
            bodies = [b'"%d' % n + b"x" * 300 + b'"' for n in range(9)]
            await store.commit(0, [step("m-1", on=f"o-{n}", body=body) for n, body in enumerate(bodies)])
            told = [event for _, _, event in await store.feed(0, 100)]
            assert [event.body for event in told if event.body] == bodies
            assert [event.version for event in told] == [1, 2] * 9

    run(body)


def test_a_damaged_event_is_never_replayed(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            await store.commit(0, [step("m-1", send()), step("m-1", send(), on="o-2")])
            await other.execute(
                sql(tmp_path, "UPDATE mainspring.events SET body = '{}' WHERE version = 3 AND instance = 1")
            )
            for call in (store.load([order()]), store.stream(order(), 0, 10), store.feed(0, 10)):
                with pytest.raises(DamagedRecordError, match="instance 1, version 3"):
                    await call
            worker = await store.register_worker("first", LEASE_US)
            claims = await store.claim(worker, ALL_DESTINATIONS, [ORDERS], 10)
            assert [claim.instance for claim in claims.outputs] == ["o-2"]

    run(body)


def test_a_missing_event_is_told(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            await store.commit(0, [step("m-1", send())])
            await other.execute(sql(tmp_path, "DELETE FROM mainspring.events WHERE version = 2"))
            with pytest.raises(DamagedRecordError, match="version 2 is missing"):
                await store.load([order()])

    run(body)


def test_a_damaged_input_holds_up_its_own_instance_only(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            worker = await store.register_worker("first", LEASE_US)
            await store.commit(worker, [accept("w-1", "w-2"), accept("x-1", on="o-2")])
            await other.execute(sql(tmp_path, "UPDATE mainspring.inbox SET body = '[]' WHERE message_id = 'w-1'"))
            for _ in range(2):
                claims = await store.claim(worker, ALL_DESTINATIONS, [ORDERS], 10)
                assert [row.message_id for row in claims.inputs] in (["x-1"], [])
            # What waits behind it is in nobody's hands.
            assert [ref.id for ref, _ in await store.holds_inputs(worker)] == ["o-2"]

    run(body)


def test_a_damaged_snapshot_is_none_and_a_damaged_letter_is_told(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            await store.commit(0, [step("m-1", snapshot=Snapshot(2, "f", "S", 1, b"{}"), dead_letters=(letter(),))])
            await other.execute(sql(tmp_path, "UPDATE mainspring.snapshots SET body = '[]'"))
            await other.execute(sql(tmp_path, "UPDATE mainspring.dead_letters SET reason = 'no'"))
            (loaded,) = await store.load([order()])
            assert loaded is not None
            assert (loaded.snapshot, len(loaded.events)) == (None, 2)
            assert await store.dead_letters(10) == []  # left out, so that it does not hide the others
            with pytest.raises(DamagedRecordError):
                await store.dead_letters(10, 0, [1])

    run(body)


def test_a_lost_settlement_is_noticed_although_it_was_read_before(tmp_path: Path) -> None:
    """Another worker cancels an output between the facts and the writing: the batch is tried again and says so."""

    async def body() -> None:
        async with opened(tmp_path) as store, other_session(tmp_path) as other:
            worker = await store.register_worker("first", LEASE_US)
            unit = step("m-1", send(claimed=True), send(claimed=True))
            (begun,) = await store.commit(worker, [unit])
            assert isinstance(begun, Committed)
            first, second = await store.holds(worker)
            await other.execute("BEGIN")
            await other.execute(sql(tmp_path, "DELETE FROM mainspring.outbox WHERE version = $1"), first.version)
            late = asyncio.create_task(store.commit(worker, [settle(first), settle(second)]))
            await somebody_waits(other)
            await other.execute("COMMIT")
            assert [type(one) for one in await late] == [Conflict, Committed]

    run(body)
