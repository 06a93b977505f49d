"""A spread sample of the crash points of every scenario on each store; `python -m tests.proof.crash_points` has all."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.proof.crash_points.runner import Files, OnServer, Runner, Store
from tests.proof.crash_points.scenarios import SCENARIOS
from tests.support.postgres.server import server_url

KILLS = {"sqlite": 4, "postgres": 2}


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


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", ["sqlite", "postgres"])
def test_no_promise_is_broken_by_a_kill_at_a_crash_point(name: str, scenario: str, tmp_path: Path) -> None:
    with opened(name) as store:
        runner = Runner(tmp_path, store)
        prepared = runner.prepare(SCENARIOS[scenario])
        kills = KILLS[name]
        stride = len(prepared.points) // kills
        # Each scenario begins elsewhere, so that all together have every kind of point.
        first = 1 + list(SCENARIOS).index(scenario) * stride // len(SCENARIOS)
        crashes = [runner.crash(prepared, first + n * stride) for n in range(kills)]
        runner.remove(prepared)
    assert [crash for crash in crashes if crash is not None and crash.faults] == []
    # Another run may have a few points less, so that there is no last one.
    assert sum(crash is not None for crash in crashes) >= kills - 1


SETTLING = "before DELETE FROM outbox WHERE (instance, version) IN (SELECT value"


@pytest.mark.parametrize(
    ("plant", "point", "fault"),
    [
        ("outbox_behind_the_commit", "before INSERT INTO outbox", "invariant 3: Order/o-1 Sent Charge"),
        ("settled_behind_the_commit", SETTLING, "invariant 11: Order/o-1 a handler was called"),
    ],
)
def test_a_planted_bug_is_found(plant: str, point: str, fault: str, tmp_path: Path) -> None:
    runner = Runner(tmp_path, Files(), plant)
    prepared = runner.prepare(SCENARIOS["start"])
    crash = runner.crash(prepared, point, patience_seconds=2)
    assert crash is not None
    assert [found for found in crash.faults if found.startswith(fault)], crash


def test_a_kill_where_a_bug_could_be_planted_breaks_no_promise(tmp_path: Path) -> None:
    runner = Runner(tmp_path, Files())
    prepared = runner.prepare(SCENARIOS["start"])
    crashes = [runner.crash(prepared, point) for point in ("before INSERT INTO outbox", SETTLING)]
    assert [crash.faults for crash in crashes if crash is not None] == [(), ()]
