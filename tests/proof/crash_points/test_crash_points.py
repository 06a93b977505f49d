"""A spread sample of the crash points of every scenario on each store; `python -m tests.proof.crash_points` has all."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.proof.crash_points.client import PATIENCE_SECONDS
from tests.proof.crash_points.runner import Crash, Files, OnServer, Prepared, Runner, Store
from tests.proof.crash_points.scenarios import SCENARIOS
from tests.support.postgres.server import server_url

# On a server each database is a template's copy, which costs more than the kill: there it is scenarios that have verbs
# of their own. The long form has every point of every scenario on each store.
ON_A_SERVER = ("start", "projection", "purge", "migration-of-schema", "migration-of-instance")
PLAYED = [*(("sqlite", name) for name in SCENARIOS), *(("postgres", name) for name in ON_A_SERVER)]


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


@pytest.mark.parametrize(("name", "scenario"), PLAYED)
def test_no_promise_is_broken_by_a_kill_at_a_crash_point(name: str, scenario: str, tmp_path: Path) -> None:
    with opened(name) as store:
        runner = Runner(tmp_path, store)
        prepared = runner.prepare(SCENARIOS[scenario])
        crash = killed(runner, prepared, spread(name, scenario, len(prepared.points)))
        runner.remove(prepared)
    assert crash.faults == (), crash


def spread(name: str, scenario: str, points: int) -> int:
    """Return where to kill. Each scenario begins elsewhere, so that all together have every kind of point."""
    played = [scenario for store, scenario in PLAYED if store == name]
    part = (played.index(scenario) + 0.5) / len(played)
    return 1 + int(points * part)


def killed(runner: Runner, prepared: Prepared, point: int) -> Crash:
    """Kill at a point. A run may have fewer than the one that was counted, which a heartbeat may have fallen into."""
    while (crash := runner.crash(prepared, point)) is None:
        assert point > 1, "no point was ever reached"
        point //= 2
    return crash


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
