"""Damage that SQLite does not tell of is told by the store, before anything is written."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from mainspring.errors import DamagedRecordError, DamagedStoreError
from mainspring.port.records import Committed, InstanceFilter, OutputKey, Retry, Unit
from mainspring.stores.sqlite import SqliteStore
from mainspring.stores.sqlite.damage import damage
from mainspring.testing.store_contract.rig import accept, order, send, step, timer
from tests.stores.sqlite_support import NAME, elsewhere, opened

FRAME = 24 + 4_096
LOG = f"{NAME}-wal"


def on_store(folder: Path, body: Callable[[SqliteStore], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with opened(folder) as store:
            return await body(store)

    return asyncio.run(run())


def with_a_log(folder: Path, commits: int = 5) -> Path:
    """Return a folder with a database as a killed process leaves it: its log is not moved."""
    left = folder / "left"
    left.mkdir()

    async def body(store: SqliteStore) -> None:
        for n in range(commits):
            await store.commit(0, [step("m-1", send(), on=f"o-{n}")])
        for name in (NAME, LOG):
            shutil.copy(folder / name, left)

    on_store(folder, body)
    return left


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


async def ids(store: SqliteStore) -> list[str]:
    return [row.id for row in await store.instances(InstanceFilter(), 100)]


def test_a_log_with_commits_behind_a_damaged_place_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    left = with_a_log(tmp_path)
    flip(left / LOG, (left / LOG).stat().st_size // 2)
    before = (left / LOG).read_bytes()
    for _ in range(2):
        with pytest.raises(DamagedStoreError, match=r"its log has \d+ commits behind a damaged place"):
            on_store(left, ids)
    assert (left / LOG).read_bytes() == before


@pytest.mark.parametrize("offset", [0, 9, 12, 18, 21, 30], ids=["magic", "page size", "count", "salt", "salt 2", "sum"])
def test_a_log_with_a_damaged_header_is_refused_and_not_dropped_as_a_whole(offset: int, tmp_path: Path) -> None:
    left = with_a_log(tmp_path)
    flip(left / LOG, offset)
    with pytest.raises(DamagedStoreError, match=r"its log has \d+ commits behind a damaged place"):
        on_store(left, ids)


def test_a_log_whose_last_commit_is_torn_is_what_a_power_cut_leaves(tmp_path: Path) -> None:
    left = with_a_log(tmp_path)
    flip(left / LOG, (left / LOG).stat().st_size - 1)
    assert on_store(left, ids) == ["o-0", "o-1", "o-2", "o-3"]


def test_what_an_earlier_log_left_behind_is_no_damage(tmp_path: Path) -> None:
    async def body(store: SqliteStore) -> None:
        for n in range(5):
            await store.commit(0, [step("m-1", send(), on=f"o-{n}")])
        elsewhere(tmp_path, "connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)")
        await store.commit(0, [step("m-1", on="o-5")])
        (tmp_path / "left").mkdir()
        for name in (NAME, LOG):
            shutil.copy(tmp_path / name, tmp_path / "left")

    on_store(tmp_path, body)
    assert on_store(tmp_path / "left", ids) == [f"o-{n}" for n in range(6)]


@pytest.mark.parametrize(
    "change",
    [
        *("version = 1", "status = 'failed'", "state = 'Done'", "error = 'x'", "updated_us = 5"),
        *("id = 'o-9'", "definition_version = 2", "context = x'7b7d7b'", "created_us = 5"),
    ],
)
def test_a_damaged_instance_is_never_loaded_and_left_out_of_lists(
    change: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(store: SqliteStore) -> None:
        await store.commit(0, [step("m-1"), step("m-1", on="o-2")])
        elsewhere(tmp_path, f'connection.execute("UPDATE instances SET {change} WHERE key = 1")')  # noqa: S608  the test's own
        ref = order("o-9") if change.startswith("id") else order()
        with pytest.raises(DamagedRecordError, match="instances"):
            await store.load([ref])
        assert await ids(store) == ["o-2"]
        assert f"left out of a list: instances holds a damaged record (key 1, '{ref}')" in caplog.text
        assert await store.load([order("o-2")])

    on_store(tmp_path, body)
    [found] = damage(tmp_path / NAME)
    assert "instances, key 1" in found.what


def test_a_damaged_instance_hides_nothing_behind_its_page_of_a_search(tmp_path: Path) -> None:
    async def body(store: SqliteStore) -> None:
        await store.commit(0, [step("m-1", on=f"o-{n}") for n in (1, 2, 3)])
        elsewhere(tmp_path, "connection.execute(\"UPDATE instances SET status = 'failed' WHERE key = 1\")")
        first = await store.search(InstanceFilter(), 2)
        assert ([row.id for row in first.rows], first.next) == (["o-2"], 2)
        second = await store.search(InstanceFilter(), 2, first.next)
        assert [row.id for row in second.rows] == ["o-3"]

    on_store(tmp_path, body)


@pytest.mark.parametrize(
    "change", ["kind = 'timer'", "destination = 'Refund'", "due_us = 0", "priority = 9", "attempts = 3"]
)
def test_a_damaged_row_of_the_outbox_is_never_carried_out(change: str, tmp_path: Path) -> None:
    async def body(store: SqliteStore) -> None:
        worker = await store.register_worker("first", 1_000_000)
        await store.commit(0, [step("m-1", send()), step("m-1", send(), on="o-2")])
        elsewhere(tmp_path, f'connection.execute("UPDATE outbox SET {change} WHERE instance = 1")')  # noqa: S608  the test's own
        claims = await store.claim(worker, ["Charge", "Refund"], [], 10)
        assert [claim.output for claim in claims.outputs] == [OutputKey(2, 3)]

    on_store(tmp_path, body)


def test_an_output_that_is_tried_again_keeps_a_checksum_that_fits(tmp_path: Path) -> None:
    async def body(store: SqliteStore) -> None:
        worker = await store.register_worker("first", 1_000_000)
        await store.commit(worker, [step("m-1", send(claimed=True))])
        again = Unit("", "", retries=(Retry(OutputKey(1, 3), attempts=1, after_us=0, error="no answer"),))
        assert [type(outcome) for outcome in await store.commit(worker, [again])] == [Committed]
        claims = await store.claim(worker, ["Charge"], [], 10)
        assert [claim.attempts for claim in claims.outputs] == [1]

    on_store(tmp_path, body)


@pytest.mark.parametrize("change", ["kind = 'timer'", "destination = 'Refund'", "priority = 9"])
def test_a_row_of_the_outbox_that_is_damaged_while_a_worker_holds_it_is_not_believed_later(
    change: str, tmp_path: Path
) -> None:
    async def body(store: SqliteStore) -> None:
        worker = await store.register_worker("first", 1_000_000)
        await store.commit(worker, [step("m-1", send(claimed=True)), step("m-1", send(claimed=True), on="o-2")])
        elsewhere(tmp_path, f'connection.execute("UPDATE outbox SET {change} WHERE instance = 1")')  # noqa: S608  the test's own
        retries = tuple(Retry(OutputKey(n, 3), attempts=1, after_us=0, error="no answer") for n in (1, 2))
        await store.commit(worker, [Unit("", "", retries=retries)])
        claims = await store.claim(worker, ["Charge", "Refund"], [], 10)
        assert [claim.output for claim in claims.outputs] == [OutputKey(2, 3)]

    on_store(tmp_path, body)


def test_a_stream_without_its_end_is_noticed(tmp_path: Path) -> None:
    async def body(store: SqliteStore) -> None:
        await store.commit(0, [step("m-1", send())])
        elsewhere(tmp_path, "connection.execute('DELETE FROM events WHERE version = 3')")
        for after in (0, 2):
            with pytest.raises(DamagedRecordError, match="version 3 is missing"):
                await store.stream(order(), after, 10)
        assert len(await store.stream(order(), 0, 2)) == 2
        assert await store.stream(order(), 3, 10) == []

    on_store(tmp_path, body)


def test_an_instance_that_its_index_has_lost_does_not_begin_anew(tmp_path: Path) -> None:
    on_store(tmp_path, some)
    connection = apsw.Connection(str(tmp_path / NAME))
    (page,) = (page for (page,) in connection.execute("SELECT pageno FROM dbstat WHERE name = 'instances_by_name'"))
    connection.close()
    content = (tmp_path / NAME).read_bytes()
    flip(tmp_path / NAME, content.index(b"o-1", 4_096 * (page - 1)))
    with pytest.raises(DamagedStoreError, match="instances_by_name"):
        on_store(tmp_path, ids)


def test_a_large_file_is_left_to_the_doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_store(tmp_path, some)
    monkeypatch.setattr("mainspring.stores.sqlite.damage.CHECKED_BYTES", 1)
    monkeypatch.setattr("mainspring.stores.sqlite.damage.CHECKED_TABLES", ("not looked at",))
    assert on_store(tmp_path, ids) == ["o-1", "o-2"]


def test_text_that_is_no_unicode_any_more_is_damage(tmp_path: Path) -> None:
    async def body(store: SqliteStore) -> None:
        await store.commit(0, [step("m-1")])
        elsewhere(tmp_path, "connection.execute(\"UPDATE events SET state = CAST(x'ff' AS TEXT)\")")
        with pytest.raises(DamagedStoreError, match="restore a backup"):
            await store.load([order()])

    on_store(tmp_path, body)


# ---- the doctor


async def some(store: SqliteStore) -> None:
    await store.commit(0, [step("m-1", send(), timer()), accept("w-1"), step("m-1", on="o-2")])


DAMAGES = {
    "UPDATE events SET body = x'7b7d7b' WHERE version = 2 AND instance = 1": "events, instance 1, version 2",
    "UPDATE inbox SET body = x'7b7d7b'": "inbox, position 1",
    "UPDATE instances SET status = 'failed' WHERE key = 2": "instances, key 2",
    "UPDATE outbox SET due_us = 0": "outbox, instance 1, version 3",
    "DELETE FROM events WHERE instance = 2 AND version = 2": "events, instance 2, version 2 is missing",
    "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'inbox_free'": "Page",
}


@pytest.mark.parametrize(("sql", "found"), DAMAGES.items())
def test_the_doctor_finds_damage(sql: str, found: str, tmp_path: Path) -> None:
    on_store(tmp_path, some)
    assert damage(tmp_path / NAME) == []
    connection = apsw.Connection(str(tmp_path / NAME))
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)  # a disk asks nobody
    connection.execute(sql)
    connection.close()
    problems = damage(tmp_path / NAME)
    assert [finding.level for finding in problems] == ["problem"] * len(problems)
    assert any(found in finding.what for finding in problems), problems


def test_the_doctor_comes_to_an_end_on_a_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_store(tmp_path, some)
    monkeypatch.setattr("mainspring.stores.sqlite.damage.STEPS_PER_LOOK", 1)
    (finding,) = damage(tmp_path / NAME, seconds=0)
    assert (finding.level, "too large to be checked" in finding.what) == ("note", True)
