"""What goes wrong around the SQLite store is told in its own words, and it works again when the cause is gone."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from mainspring.errors import (
    DamagedRecordError,
    DamagedStoreError,
    FaultyUnitError,
    NewerSchemaError,
    StoreBusyError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)
from mainspring.port.records import Committed, Conflict, EventRow, InstanceFilter, OutputKey, Ref, Snapshot, Unit
from mainspring.stores.sqlite import SqliteStore
from mainspring.stores.sqlite.lost_commits import refuse_lost_commits
from mainspring.stores.sqlite.place import Place
from mainspring.stores.sqlite.schema import migrations
from mainspring.stores.sqlite.statements import execute
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract.rig import accept, order, send, step
from tests.stores.sqlite_faulty_disk import Disk, faulty_disk
from tests.stores.sqlite_support import NAME, PATIENCE_SECONDS, Holder, elsewhere, opened

Body = Callable[[SqliteStore], Awaitable[Any]]


def on_store(folder: Path, body: Body, **settings: Any) -> Any:
    """Run something on an open store, in a loop of its own."""

    async def run() -> Any:
        async with opened(folder, **settings) as store:
            return await body(store)

    return asyncio.run(run())


async def works(store: SqliteStore, on: str) -> None:
    """Make sure that a store takes a step."""
    assert [type(outcome) for outcome in await store.commit(0, [step("m-1", on=on)])] == [Committed]


# ---- the database as a whole


class Indexing(apsw.Connection):
    """A connection that meets another process which writes the index of the log, so many times."""

    times = 2

    def wal_checkpoint(self, dbname: str | None = None, mode: int = apsw.SQLITE_CHECKPOINT_PASSIVE) -> tuple[int, int]:
        self.times -= 1
        if self.times >= 0:
            raise apsw.BusyError("database is locked")  # at once: no busy handler is asked
        return super().wal_checkpoint(dbname, mode)


def test_who_opens_while_another_writes_the_index_of_the_log_waits_for_it(tmp_path: Path) -> None:
    on_store(tmp_path, lambda store: works(store, "o-1"))
    path = tmp_path / NAME
    connection = Indexing(str(path))
    execute(connection, "UPDATE workers SET name = name").fetchall()  # so that there is a log
    refuse_lost_commits(connection, Place(path, busy_seconds=PATIENCE_SECONDS))
    assert connection.times < 0
    connection.times = 1_000_000
    with pytest.raises(apsw.BusyError):
        refuse_lost_commits(connection, Place(path, busy_seconds=0.0))
    connection.close()


@pytest.mark.parametrize("path", ["", ":memory:", "file:orders.db?mode=memory"])
def test_a_database_that_would_be_forgotten_is_refused(path: str) -> None:
    with pytest.raises(StoreError, match="is no path of a file"):
        SqliteStore(path, VirtualClock())


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"there is no directory {tmp_path}/absent"):
        on_store(tmp_path / "absent", lambda store: works(store, "o-1"))


def test_a_directory_is_no_database(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(StoreError, match="is a directory"):
        on_store(tmp_path, lambda store: works(store, "o-1"))


def test_a_file_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("my thesis\n" * 1_000)
    with pytest.raises(DamagedStoreError, match="no database"):
        on_store(tmp_path, lambda store: works(store, "o-1"))
    assert (tmp_path / NAME).read_text() == "my thesis\n" * 1_000


def test_an_old_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.50.4")
    with pytest.raises(StoreError, match=r"needs SQLite 3\.51\.3 or newer; apsw brings 3\.50\.4"):
        on_store(tmp_path, lambda store: works(store, "o-1"))
    assert not (tmp_path / NAME).exists()


def test_the_schema_of_a_newer_release_is_refused_and_not_touched(tmp_path: Path) -> None:
    on_store(tmp_path, lambda store: works(store, "o-1"))
    elsewhere(tmp_path, "connection.execute(\"INSERT INTO schema_migrations VALUES (99, 'future', 0)\")")
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(NewerSchemaError) as raised:
        on_store(tmp_path, lambda store: works(store, "o-2"))
    assert (raised.value.found, raised.value.known) == (99, len(migrations()))
    assert (tmp_path / NAME).read_bytes() == before


def test_a_read_only_file_is_refused(tmp_path: Path) -> None:
    on_store(tmp_path, lambda store: works(store, "o-1"))
    with faulty_disk() as disk:
        disk.read_only = True
        with pytest.raises(StoreReadOnlyError, match="Let this user write the file"):
            on_store(tmp_path, lambda store: works(store, "o-2"), vfs=disk.name)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_directory_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="Let this user"):
            on_store(tmp_path, lambda store: works(store, "o-1"))
    finally:
        tmp_path.chmod(0o700)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    async def body() -> None:
        store = SqliteStore(tmp_path / NAME, VirtualClock())
        with pytest.raises(StoreClosedError):
            await store.commit(0, [])
        await store.open()
        await store.close()
        with pytest.raises(StoreClosedError):
            await store.load([order()])
        await store.close()

    asyncio.run(body())


def test_a_closed_store_can_be_opened_again(tmp_path: Path) -> None:
    async def body() -> None:
        store = SqliteStore(tmp_path / NAME, VirtualClock())
        for on in ("o-1", "o-2"):
            await store.open()
            await store.open()
            await works(store, on)
            await store.close()

    asyncio.run(body())


def test_a_store_closes_although_its_connections_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Sticky(apsw.Connection):
        def close(self, *values: Any) -> None:
            super().close(*values)
            raise apsw.IOError("the test says so")

    class Library:
        def __getattr__(self, name: str) -> Any:
            return Sticky if name == "Connection" else getattr(apsw, name)

    async def body() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path) as store:
            await works(store, "o-1")
            assert len(await store.instances(InstanceFilter(), 10)) == 1

    monkeypatch.setattr("mainspring.stores.sqlite.place.apsw", Library())
    asyncio.run(body())
    assert [message for message in caplog.messages if "could not be closed" in message] == caplog.messages
    assert len(caplog.messages) == 2  # a reader's and the writer's


# ---- the disk and the lock


def test_a_lock_that_is_held_too_long_is_an_error_and_then_forgotten(tmp_path: Path) -> None:
    async def body(store: SqliteStore) -> None:
        await works(store, "o-1")
        program = f"import apsw; c = apsw.Connection({str(tmp_path / NAME)!r}); c.execute('BEGIN IMMEDIATE')"
        with Holder(program):
            with pytest.raises(StoreBusyError, match=r"for more than 0\.05 s"):
                await works(store, "o-2")
            assert len(await store.instances(InstanceFilter(), 10)) == 1
        await works(store, "o-2")

    on_store(tmp_path, body, busy_seconds=0.05)


def test_a_lock_that_is_given_up_in_time_only_costs_time(tmp_path: Path) -> None:
    async def body(store: SqliteStore) -> None:
        await works(store, "o-1")
        program = f"import apsw; c = apsw.Connection({str(tmp_path / NAME)!r}); c.execute('BEGIN IMMEDIATE')"
        with Holder(program) as holder:
            step = asyncio.create_task(works(store, "o-2"))
            done, _ = await asyncio.wait({step}, timeout=0.05)
            assert not done
            holder.kill()
            await step

    on_store(tmp_path, body, busy_seconds=PATIENCE_SECONDS)


@pytest.mark.parametrize(
    ("fault", "on_sync", "error"),
    [
        (apsw.FullError, False, StoreFullError),
        (apsw.IOError, False, StoreError),
        (apsw.IOError, True, StoreError),
    ],
)
def test_a_failing_disk_fails_everybody_and_is_then_forgotten(
    fault: type[apsw.Error], on_sync: bool, error: type[StoreError], tmp_path: Path
) -> None:
    async def body(store: SqliteStore, disk: Disk) -> None:
        worker = await store.register_worker("first", 1_000_000)
        await works(store, "o-1")
        disk.fault, disk.on_sync = fault, on_sync
        commits = [store.commit(worker, [step("m-1", send(claimed=True), on=f"o-{n}")]) for n in (2, 3)]
        answers = await asyncio.gather(*commits, store.register_worker("second", 1), return_exceptions=True)
        assert [type(answer) for answer in answers] == [error] * 3
        assert lock_files(tmp_path) == [f"{NAME}-worker-{worker}"]
        disk.fault = None
        await works(store, "o-2")
        assert [row.id for row in await store.instances(InstanceFilter(), 10)] == ["o-1", "o-2"]

    with faulty_disk() as disk:
        on_store(tmp_path, lambda store: body(store, disk), vfs=disk.name)


def test_a_dead_worker_that_a_failing_disk_kept_from_relief_is_relieved_when_it_works_again(tmp_path: Path) -> None:
    async def dies(store: SqliteStore) -> None:
        await store.register_worker("first", 3_600_000_000)

    async def body(store: SqliteStore, disk: Disk) -> None:
        disk.fault = apsw.IOError
        with pytest.raises(StoreError):
            await store.relieve()
        disk.fault = None
        assert await store.relieve() == 1

    on_store(tmp_path, dies)
    with faulty_disk() as disk:
        on_store(tmp_path, lambda store: body(store, disk), vfs=disk.name)


def test_nothing_is_acknowledged_before_it_is_on_the_disk(tmp_path: Path) -> None:
    async def body(store: SqliteStore, disk: Disk) -> None:
        await works(store, "o-1")
        disk.gate, syncs = threading.Event(), disk.syncs
        commit = asyncio.create_task(works(store, "o-2"))
        while disk.syncs == syncs:  # noqa: ASYNC110  another thread sets it
            await asyncio.sleep(0)
        assert not commit.done()
        disk.gate.set()
        await commit

    with faulty_disk() as disk:
        on_store(tmp_path, lambda store: body(store, disk), vfs=disk.name)


def lock_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*-worker-*"))


# ---- single records


def damage(folder: Path, sql: str) -> None:
    elsewhere(folder, f'connection.execute("{sql}")')


def test_a_damaged_event_is_never_replayed(tmp_path: Path) -> None:
    async def body(store: SqliteStore) -> None:
        await store.commit(0, [step("m-1", send(), body=b'{"amount":10}'), step("m-1", on="o-2")])
        damage(tmp_path, "UPDATE events SET body = x'7b7d' WHERE instance = 1 AND version = 2")
        for read in (store.load([order()]), store.stream(order(), 0, 10), store.feed(0, 10)):
            with pytest.raises(DamagedRecordError, match="instance 1, version 2"):
                await read
        assert await store.load([order("o-2")])

    on_store(tmp_path, body)


@pytest.mark.parametrize(
    "change", ["message_id = 'm-2'", "time_us = 5", "state = 'Done'", "type = 'Stop'", "context = NULL"]
)
def test_the_checksum_covers_every_column(change: str, tmp_path: Path) -> None:
    async def body(store: SqliteStore) -> None:
        await store.commit(0, [step("m-1")])
        damage(tmp_path, f"UPDATE events SET {change} WHERE version = 2")  # noqa: S608  the test's own
        with pytest.raises(DamagedRecordError):
            await store.load([order()])

    on_store(tmp_path, body)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_missing_event_is_noticed(version: int, tmp_path: Path) -> None:
    async def body(store: SqliteStore) -> None:
        await store.commit(0, [step("m-1", send())])
        damage(tmp_path, f"DELETE FROM events WHERE version = {version}")  # noqa: S608  the test's own
        with pytest.raises(DamagedRecordError, match=f"version {version} is missing"):
            await store.load([order()])

    on_store(tmp_path, body)


def test_a_damaged_snapshot_is_no_snapshot(tmp_path: Path) -> None:
    async def body(store: SqliteStore) -> None:
        await store.commit(0, [step("m-1", snapshot=Snapshot(2, "f", "Waiting", 1, b'{"n":1}'))])
        damage(tmp_path, "UPDATE snapshots SET body = x'7b7d'")
        (loaded,) = await store.load([order()])
        assert loaded is not None
        assert (loaded.snapshot, len(loaded.events)) == (None, 2)

    on_store(tmp_path, body)


def test_a_damaged_output_is_set_aside_and_stops_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def body(store: SqliteStore) -> None:
        worker = await store.register_worker("first", 1_000_000)
        await store.commit(0, [step("m-1", send()), step("m-1", send(), on="o-2")])
        damage(tmp_path, "UPDATE events SET body = x'7b7d' WHERE instance = 1 AND version = 3")
        for expected in ([OutputKey(2, 3)], []):
            claims = await store.claim(worker, ["Charge"], [], 10)
            assert [claim.output for claim in claims.outputs] == expected
        assert "instance 1, version 3" in caplog.text

    on_store(tmp_path, body)


def test_a_damaged_input_blocks_its_instance_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def body(store: SqliteStore) -> None:
        worker = await store.register_worker("first", 1_000_000)
        await store.commit(0, [accept("w-1", "w-2"), accept("w-3", on="o-2")])
        damage(tmp_path, "UPDATE inbox SET body = x'7b7d7b' WHERE position = 1")
        for expected in (["w-3"], []):
            claims = await store.claim(worker, [], ["Orders"], 10)
            assert [row.message_id for row in claims.inputs] == expected
        assert "position 1" in caplog.text

    on_store(tmp_path, body)


# ---- units that no store could keep


FAULTY = {
    "a gap": replace(step("m-1", on="bad"), events=(EventRow(2, "Began", 0),)),
    "text that is no Unicode": step("m-1", on="bad", state="\ud800"),
    "a number over 64 bits": step("m-1", on="bad", definition_version=1 << 70),
    "text for a number": replace(step("m-1", on="bad"), events=(EventRow(1, "Began", "now"),)),  # pyright: ignore[reportArgumentType]
    "no body": Unit("Orders", "bad", accepts=(replace(accept("w-1", on="bad").accepts[0], body=None),)),  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize("unit", FAULTY.values(), ids=FAULTY.keys())
def test_a_faulty_unit_fails_alone(unit: Unit, tmp_path: Path) -> None:
    async def body(store: SqliteStore) -> None:
        mixed = store.commit(0, [step("m-1"), unit, step("m-2"), step("m-1", on="o-3")])
        other = store.commit(0, [step("m-1", on="o-2")])
        failed, fine = await asyncio.gather(mixed, other, return_exceptions=True)
        assert isinstance(failed, FaultyUnitError)
        first, fault, conflict, second = failed.outcomes
        assert (first, conflict) == (Committed(1), Conflict("version"))
        assert isinstance(second, Committed)
        assert isinstance(fault, StoreError)
        assert isinstance(fine, list)
        assert isinstance(fine[0], Committed)
        assert await store.load([Ref("Orders", "bad")]) == [None]
        assert await store.inbox(Ref("Orders", "bad"), 10) == []
        assert [row.id for row in await store.instances(InstanceFilter(), 10)] == ["o-1", "o-3", "o-2"]

    on_store(tmp_path, body)


def test_a_log_that_another_process_is_moving_is_no_trouble(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # A reader keeps the log where it is, so that who wants to begin a new one waits, and holds the log's lock.
    moving = f"""
import apsw
reader, mover = apsw.Connection({str(tmp_path / NAME)!r}), apsw.Connection({str(tmp_path / NAME)!r})
reader.execute("BEGIN; SELECT count(*) FROM events").fetchall()
mover.execute("SELECT count(*) FROM events").fetchall()
def waits(tries):
    print("ready", flush=True)
    sys.stdin.read()
    return False
mover.set_busy_handler(waits)
mover.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
"""  # noqa: S608  the test's own code

    async def body(store: SqliteStore) -> None:
        await works(store, "o-1")
        connection = apsw.Connection(str(tmp_path / NAME))
        connection.execute("SELECT count(*) FROM events").fetchall()
        writer = store._writer  # noqa: SLF001  no commit gets past who moves the log
        assert writer is not None
        with Holder(moving):
            writer._checkpoint(connection)  # noqa: SLF001  as above
        connection.close()
        await works(store, "o-2")

    with caplog.at_level("WARNING"):
        on_store(tmp_path, body)
    assert caplog.messages == []
