import asyncio
import re
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

from mainspring.cli import doctor
from mainspring.engine.fleet import unread
from mainspring.engine.fleet.knowledge import Knowledge
from mainspring.engine.fleet.knowledge import written as written_knowledge
from mainspring.engine.fleet.standing import OpenBreaker, Standing, TakenThreads, written
from mainspring.engine.recording.stored_values import moment
from mainspring.engine.runtime import SystemClock
from mainspring.stores.sql.migrations import Migration
from mainspring.stores.sqlite import examination, schema
from mainspring.stores.sqlite.store import SqliteStore
from mainspring.testing.clock import VirtualClock
from mainspring.views import Lag, ProjectionStatus, Stats
from tests.edges.cli.conftest import Run, order


def test_a_new_app_is_healthy_and_nothing_is_made_by_looking(run: Run, folder: Path) -> None:
    ran = run("doctor")

    assert ran.code == 0
    assert ran.out.endswith("note: There is no file orders.db yet. The first start makes it.\nNothing is wrong.\n")
    assert not (folder / "orders.db").exists()


@pytest.mark.parametrize("theirs", ["", "CREATE TABLE accounts (id TEXT)"])
def test_a_file_without_our_tables_is_left_as_it_is(theirs: str, run: Run, folder: Path) -> None:
    (folder / "orders.db").touch()
    with closing(apsw.Connection(str(folder / "orders.db"))) as connection:
        connection.execute(theirs)
    before = (folder / "orders.db").read_bytes()

    ran = run("doctor")

    assert ran.code == 0
    assert ran.out.endswith(
        "note: There are no tables yet in orders.db. The first start makes them.\nNothing is wrong.\n"
    )
    assert (folder / "orders.db").read_bytes() == before


def test_an_app_without_work_is_healthy(run: Run) -> None:
    run("ls")

    ran = run("doctor")

    assert ran.code == 0
    assert ran.out.endswith("note: No worker runs. Nothing waits for one now.\nNothing is wrong.\n")
    assert f"SQLite        {apsw.sqlite_lib_version()}" in ran.out


def test_work_without_a_worker_is_wrong(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5))

    ran = run("doctor")

    assert ran.code == 1
    assert "wrong: Work waits, and no worker runs." in ran.out


def test_suspended_instances_and_dead_letters_are_wrong(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", -1))
    run("send", "CardCharged", '{"order_id": "o-9"}')

    report = run("doctor", "--json")

    assert report.code == 1
    found = report.document
    assert found["ok"] is False
    assert (found["instances"], found["dead_letters"], found["inbox"]) == ({"suspended": 1}, 1, 1)
    assert [(row["instance"], row["error"]) for row in found["suspended"]] == [
        ("Orders/o-1", "ValueError: a negative amount")
    ]
    assert {finding["what"] for finding in found["findings"]} >= {
        "1 instance is suspended",
        "1 message could not be carried out",
    }
    (fix,) = [one["fix"] for one in found["findings"] if one["what"] == "1 message could not be carried out"]
    assert "retry what is still wanted: it says what is refused, and why. Discard that" in fix


def test_what_waits_for_a_suspended_instance_waits_for_no_worker(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", -1))
    run("send", "CardCharged", '{"order_id": "o-1"}')
    assert "note: No worker runs. Nothing waits for one now." in run("doctor").out

    run("send", "PlaceOrder", order("o-2", 5))
    assert "wrong: Work waits, and no worker runs." in run("doctor").out


def hold_back(standing: Standing, knows: str = "") -> None:
    """Leave a living worker behind, which holds something back."""

    async def main() -> None:
        store = SqliteStore(Path("orders.db"), SystemClock())
        await store.open()
        worker = await store.register_worker("charger", 3_600_000_000, knows)
        assert await store.heartbeat(worker, written(standing))
        await store.close()

    asyncio.run(main())


def test_what_workers_hold_back_is_wrong_and_an_instance_says_that_it_waits_for_it(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5))
    now_us = SystemClock().now_us()
    hold_back(Standing(breakers=(OpenBreaker("ChargeCard", now_us, 5, "TimeoutError", now_us, 41),)))

    ran, shown, document = run("doctor"), run("show", "o-1"), run("show", "o-1", "--json").document

    assert ran.code == 1
    (told,) = [line for line in ran.out.splitlines() if "ChargeCard" in line]
    assert re.fullmatch(
        r"wrong: ChargeCard is held back by an open breaker since (\S+ )?\d\d:\d\d UTC \(TimeoutError, 5 in a row\); "
        r"41 commands wait; the next probe now. "
        r"Look at what it calls. What waits goes on by itself when calls go well again.",
        told,
    )
    (held,) = document["held_back"]
    assert held in told
    stuck = run("stuck", "--json")
    assert (stuck.code, stuck.document["held_back"]) == (1, [held])
    assert run("stuck").out.splitlines() == ["None of 1 instance that has not ended seems stuck.", held]
    assert shown.out.splitlines()[-1] == held


def test_what_keeps_plain_functions_waiting_is_wrong(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5))
    hold_back(Standing(threads=TakenThreads(SystemClock().now_us(), 9, {"charge": 30, "mail": 2})))

    ran = run("doctor")

    assert ran.code == 1
    assert re.search(
        r"^wrong: No thread for plain functions has become free since (\S+ )?\d\d:\d\d UTC, and 9 calls wait: "
        r"charge has 30, mail 2\.",
        ran.out,
        re.MULTILINE,
    )


def test_a_read_model_that_waits_for_a_newer_worker_is_wrong_only_when_it_is_late() -> None:
    def told(seconds: float) -> list[tuple[str, str]]:
        lag = Lag(generation=1, version=1, position=7, events=3, seconds=seconds, error=None)
        status = ProjectionStatus("trips", declared=True, live=lag, building=None, left="Ridden: is not registered")
        return [(finding.level, finding.fix) for finding in doctor.projection_findings(status)]

    (soon,), (note, late) = told(1.0), told(3_600.0)
    assert soon == note == ("note", "There is nothing to do while one runs: it continues with the others.")
    assert late == ("problem", "No worker that runs can read what is next: start one of the newer release.")


def lose(times: int) -> None:
    """Let a command be lost with so many workers."""

    async def main() -> None:
        clock = VirtualClock(datetime.now(UTC))
        store = SqliteStore(Path("orders.db"), clock)
        await store.open()
        for _ in range(times):
            worker = await store.register_worker("charger", 1_000_000)
            claims = await store.claim(worker, ["ChargeCard"], [], 10)
            if not claims.outputs:
                (suspect,) = await store.suspects(10)
                assert await store.claim_alone(worker, suspect) is not None
            clock.advance(2)
            assert await store.relieve() == 1
        await store.close()

    asyncio.run(main())


def test_what_takes_workers_down_is_wrong_and_an_instance_says_so(run: Run) -> None:
    run("send", "PlaceOrder", order("o-1", 5))
    lose(1)
    assert "ChargeCard" not in run("doctor").out
    lose(2)

    ran, shown = run("doctor"), run("show", "o-1")

    assert ran.code == 1
    told = "takes workers down: 3 were lost with it, 1 of them tried nothing else; it waits to be tried alone"
    assert re.search(rf"wrong: ChargeCard \(Orders/o-1/\d\) {told}\. Find out why the workers ended", ran.out)
    assert told in shown.out
    assert told in run("stuck").out


def test_what_no_running_worker_knows_is_wrong(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("send", "PlaceOrder", order("o-1", 5))
    hold_back(Standing(), written_knowledge(Knowledge(frozenset(), {}, frozenset({"Orders"}))))
    assert "ChargeCard" not in run("doctor").out
    monkeypatch.setattr(unread, "UNREAD_SECONDS", 0.0)

    ran, shown = run("doctor"), run("show", "o-1")

    assert ran.code == 1
    (told,) = [line for line in ran.out.splitlines() if "ChargeCard" in line]
    assert told.startswith("wrong: No worker that runs knows ChargeCard: 1 has waited for ")
    assert told.endswith(". Run a worker of the release that knows it, in its pool; or register it, " + ALIAS)
    assert "ChargeCard was due" in shown.out.splitlines()[-1]
    assert "No worker that runs knows ChargeCard" in run("stuck").out


ALIAS = "or let the type that took its place have the old name as an alias."


def test_messages_that_nobody_here_handles_are_wrong(run: Run, folder: Path) -> None:
    run("send", "PlaceOrder", order("o-1", 5))
    (folder / "other.py").write_text('from mainspring import Mainspring\napp = Mainspring("sqlite:///orders.db")\n')

    assert (
        "wrong: No handler of this app takes ChargeCard: 1 message waiting. Register one."
        in run("doctor", "--app", "other:app").out
    )


def test_an_app_that_cannot_start_is_a_finding(run: Run, folder: Path) -> None:
    (folder / "orders.db").write_bytes(b"this is no database, however long one looks at it" * 100)

    ran = run("doctor")

    assert ran.code == 1
    assert "wrong: shop:app cannot be read: " in ran.out


def test_without_an_app_it_shows_versions(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAINSPRING_APP")

    ran = run("doctor")

    assert ran.code == 0
    assert "Python " in ran.out


def test_an_sqlite_that_can_damage_its_file_is_wrong(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.40.1")

    assert "wrong: SQLite 3.40.1 can damage a database in WAL mode. Upgrade apsw" in run("doctor").out


def test_a_late_message_is_wrong_though_workers_run() -> None:
    stats = Stats({}, 0, 1, 0, 0, 1, moment(0))

    (late,) = doctor.queue_findings(stats, moment(600_000_000))

    assert late.what == "The oldest due message was due 10 min ago"


def test_a_full_disk_and_a_large_log_are_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "orders.db-wal").write_bytes(b"wal")
    monkeypatch.setattr(examination, "LITTLE_SPACE_BYTES", 1 << 62)
    monkeypatch.setattr(examination, "LARGE_WAL_BYTES", 1)

    found = examination.examine(folder / "orders.db").findings

    assert [finding.level for finding in found] == ["note", "problem", "note"]


def test_a_network_file_system_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = folder / "mounts"
    mounts.write_text(f"server:/shop {folder} nfs4 rw 0 0\n")
    monkeypatch.setattr(examination, "MOUNTS", mounts)

    (found, _) = examination.examine(folder / "orders.db").findings

    assert found.what == "orders.db lies on a network file system (nfs4)"


def test_a_file_of_an_older_release_is_left_as_it_is(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("ls")
    newer = [*schema.migrations(), Migration(len(schema.migrations()) + 1, "more", "CREATE TABLE more (x)")]
    monkeypatch.setattr(schema, "migrations", lambda: newer)
    monkeypatch.setattr(examination, "migrations", lambda: newer)

    ran = run("doctor")

    assert f"note: orders.db has version {len(newer) - 1}, and this release brings version {len(newer)}." in ran.out
    with closing(apsw.Connection(str(folder / "orders.db"))) as file:
        assert not list(file.execute("SELECT 1 FROM sqlite_schema WHERE name = 'more'"))


@pytest.mark.parametrize("offset", [100, 4_096 + 3], ids=["the first page", "another page"])
def test_a_damaged_file_is_told_without_a_trace_and_found(offset: int, run: Run, folder: Path) -> None:
    run("send", "PlaceOrder", order("o-1", 5))
    file = folder / "orders.db"
    content = bytearray(file.read_bytes())
    content[offset : offset + 2] = b"\xff\xff"
    file.write_bytes(content)

    ran = run("doctor")

    assert ran.code == 1
    assert "wrong: orders.db is damaged" in ran.out or "is damaged or no database of mainspring" in ran.out
    listed = run("ls")
    assert "Traceback" not in ran.err + listed.out + listed.err


def test_a_damaged_record_is_told_by_every_command_that_reads_it(
    run: Run, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run("send", "PlaceOrder", order("o-1", 5))
    run("send", "PlaceOrder", order("o-2", 5))
    with closing(apsw.Connection(str(folder / "orders.db"))) as file:
        file.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)  # a disk asks nobody
        file.execute("UPDATE instances SET definition_version = 7 WHERE key = 1")

    shown = run("show", "Orders/o-1")

    assert shown.code == 1
    assert "instances holds a damaged record (key 1, 'Orders/o-1'). Restore it from a backup" in shown.err
    assert "wrong: orders.db is damaged: instances, key 1, 'Orders/o-1'." in run("doctor").out
    listed = run("ls")
    assert listed.code == 0
    assert "Orders/o-2" in listed.out
    assert "o-1" not in listed.out
    assert "left out of a list: instances holds a damaged record (key 1, 'Orders/o-1')" in caplog.text


LATE = """
from datetime import timedelta
from mainspring import Mainspring
from mainspring.testing.samples import Counter

class Late(Counter):
    expected_within = timedelta(microseconds=1)

app = Mainspring("sqlite:///late.db")
app.add(Late())
"""


def test_instances_that_run_longer_than_expected_are_wrong(run: Run, folder: Path) -> None:
    (folder / "late.py").write_text(LATE)
    run("send", "Count", '{"counter": "c-1"}', "--app", "late:app")

    ran = run("doctor", "--app", "late:app")

    assert ran.code == 1
    assert (
        "wrong: 1 instance of Late runs longer than 0.000001 s. `mainspring stuck --workflow Late` says why." in ran.out
    )
    stuck = run("stuck", "--app", "late:app", "--json")
    assert (stuck.code, stuck.document["shown"][0]["by"]) == (1, "bound")
