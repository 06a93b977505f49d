"""A chosen crash point of every scenario; `python -m tests.proof.crash_points` has all, on each store."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.proof.crash_points.client import PATIENCE_SECONDS
from tests.proof.crash_points.points import OPENED
from tests.proof.crash_points.runner import Files, OnServer, Runner, Store
from tests.proof.crash_points.scenarios import SCENARIOS
from tests.support.postgres.server import server_url

DURING_MIGRATION: Final = ""
# Where each scenario is killed once: at what it has of its own, or at what all have. On a server each database is a
# template's copy, which costs more than the kill: there it is scenarios that have verbs of their own. The long form has
# every point of every scenario on each store.
KILLED_AT: Final = {
    ("sqlite", "start"): "after COMMIT",
    ("sqlite", "step"): "before INSERT INTO events",
    ("sqlite", "retry"): "after UPDATE outbox",
    ("sqlite", "timer"): "after DELETE FROM outbox",
    ("sqlite", "transaction"): "after INSERT INTO payments",
    ("sqlite", "task"): "after INSERT INTO tasks",
    ("sqlite", "saga"): "before COMMIT",
    ("sqlite", "reply"): "before INSERT OR REPLACE INTO results",
    ("sqlite", "projection"): "before INSERT OR REPLACE INTO documents",
    ("sqlite", "purge"): "after UPDATE instances SET purged_us",
    ("sqlite", "migration-of-schema"): DURING_MIGRATION,
    ("sqlite", "migration-of-instance"): "before INSERT INTO outbox",
    ("postgres", "start"): "before COMMIT",
    ("postgres", "projection"): "after COMMIT",
    ("postgres", "purge"): "after WITH purged AS ( DELETE FROM",
    ("postgres", "migration-of-schema"): DURING_MIGRATION,
    ("postgres", "migration-of-instance"): "before WITH settled AS ( DELETE FROM",
}


@contextmanager
def opened(name: str) -> Generator[Store]:
    if name == "sqlite":
        yield Files()
        return
    store = OnServer(server_url())
    try:
        yield store
    finally:
        store.close()


@pytest.mark.parametrize(("name", "scenario"), KILLED_AT)
def test_no_promise_is_broken_by_a_kill_at_a_crash_point(name: str, scenario: str, tmp_path: Path) -> None:
    with opened(name) as store:
        runner = Runner(tmp_path, store)
        prepared = runner.prepare(SCENARIOS[scenario])
        # Nothing else is done while a database is opened: there a point has the same number each time.
        named, half_way = KILLED_AT[name, scenario], prepared.points.index(OPENED) // 2
        crash = runner.crash(prepared, named or half_way)
        runner.remove(prepared)
    assert crash is not None, f"there was no point {named!r}"
    assert crash.where.startswith(named or prepared.points[half_way - 1])
    assert crash.faults == (), crash


def test_each_scenario_is_killed_and_some_around_all_that_makes_a_step() -> None:
    assert [scenario for name, scenario in KILLED_AT if name == "sqlite"] == list(SCENARIOS)
    killed_at = " ".join(at for (name, _), at in KILLED_AT.items() if name == "sqlite")
    for at in ("before COMMIT", "after COMMIT", "INSERT INTO events", "INSERT INTO outbox", "DELETE FROM outbox"):
        assert at in killed_at
    on_a_server = {at for (name, _), at in KILLED_AT.items() if name == "postgres"}
    assert {"before COMMIT", "after COMMIT"} <= on_a_server


SETTLING = "before DELETE FROM outbox WHERE (instance, version) IN (SELECT value"


@pytest.mark.parametrize(
    ("plant", "point", "fault", "patience_seconds"),
    [
        # What was lost never comes, however long the next process waits. What is done twice comes, however late.
        ("outbox_behind_the_commit", "before INSERT INTO outbox", "invariant 3: Order/o-1 Sent Charge", 0.2),
        ("settled_behind_the_commit", SETTLING, "invariant 11: Order/", PATIENCE_SECONDS),
    ],
)
def test_a_planted_bug_is_found(plant: str, point: str, fault: str, patience_seconds: float, tmp_path: Path) -> None:
    runner = Runner(tmp_path, Files(), plant)
    prepared = runner.prepare(SCENARIOS["start"])
    crash = runner.crash(prepared, point, patience_seconds)
    assert crash is not None
    assert [found for found in crash.faults if found.startswith(fault)], crash


def test_a_kill_where_a_bug_could_be_planted_breaks_no_promise(tmp_path: Path) -> None:
    runner = Runner(tmp_path, Files())
    prepared = runner.prepare(SCENARIOS["start"])
    crashes = [runner.crash(prepared, point) for point in ("before INSERT INTO outbox", SETTLING)]
    assert [crash.faults for crash in crashes if crash is not None] == [(), ()]
