"""A spread sample of faults at the store's calls; `python -m tests.proof.store_faults` has all of them."""

from pathlib import Path
from random import Random

import apsw
import pytest

import mainspring
from mainspring.engine.inputs.pending import PASSING
from mainspring.errors import StoreError
from mainspring.stores.sqlite.faults import TROUBLE
from mainspring.stores.sqlite.place import Place
from tests.proof.crash_points.runner import Prepared
from tests.proof.crash_points.scenarios import SCENARIOS
from tests.proof.crash_points.test_crash_points import opened
from tests.proof.store_faults.runner import FaultRunner, Run

FAULTS = {"sqlite": 2, "sqlite-files": 1, "postgres": 1}
TRIES = 20
SEED = 7
# A run on a server costs a copy of its database: there, as with files, it is scenarios with calls of their own.
ELSEWHERE = ("start", "transaction", "projection", "purge", "migration-of-schema")
PLAYED = [
    *(("sqlite", name) for name in SCENARIOS),
    *(("sqlite-files", name) for name in ELSEWHERE),
    *(("postgres", name) for name in ELSEWHERE),
]


@pytest.mark.parametrize(("level", "scenario"), PLAYED)
def test_no_promise_is_broken_by_a_call_that_fails(level: str, scenario: str, tmp_path: Path) -> None:
    with opened(level.partition("-")[0]) as store:
        runner = FaultRunner(tmp_path, store, level)
        prepared = runner.prepare(SCENARIOS[scenario])
        random = Random(f"{SEED}/{level}/{scenario}")  # noqa: S311  no secret
        runs = [failed(runner, prepared, random) for _ in range(FAULTS[level])]
        runner.remove(prepared)
    assert [run for run in runs if run.wrong] == []


def failed(runner: FaultRunner, prepared: Prepared, random: Random) -> Run:
    """Let a call fail. A run may lack one that was there when they were counted, such as that of a heartbeat."""
    faults = runner.faults(prepared)
    for _ in range(TRIES):
        if (run := runner.fail(prepared, random.choice(faults))) is not None:
            return run
    raise AssertionError("no call was ever reached")


def test_kinds_that_stand_for_each_other_are_named_by_the_same_modules() -> None:
    """Who does not name an error cannot do anything else for it than for others; who names it has to be looked at.

    Of busy and full, `web/problems.py` names both and answers 503 and 507: that is no call of a store.
    """
    told = {"stores/sqlite/faults.py"}
    for error in ("apsw.IOError", "apsw.NoMemError", "apsw.FullError"):
        assert modules_that_name(error) == told
    # The calls of BUSY_IS_AWAITED; what is inside a lent transaction; a doctor, who opens a connection of her own.
    awaiting = {"stores/sqlite/schema.py", "stores/sqlite/writer.py", "stores/sqlite/lost_commits.py"}
    assert modules_that_name("apsw.BusyError") - told == awaiting
    assert modules_that_name("apsw.InterruptError") - told == {"stores/sqlite/damage.py", "stores/sqlite/loans.py"}
    place = Place("/x.db", busy_seconds=1)
    for one in (apsw.IOError, apsw.NoMemError, apsw.InterruptError):
        assert one in TROUBLE
        assert type(place.error(one())) is StoreError
    # As what both are told on, they are named together wherever they are named.
    assert (apsw.BusyError in TROUBLE, apsw.FullError in TROUBLE) == (True, True)
    assert {type(place.error(one())) for one in (apsw.BusyError, apsw.FullError)} <= set(PASSING)
    assert modules_that_name("StoreBusyError") == modules_that_name("StoreFullError")


def modules_that_name(error: str) -> set[str]:
    source = Path(mainspring.__file__).parent
    return {path.relative_to(source).as_posix() for path in source.rglob("*.py") if error in path.read_text()}


@pytest.mark.parametrize(
    ("level", "plant", "kind", "at"),
    [
        ("sqlite", "commit_swallowed", "full", "inside: COMMIT#"),
        ("postgres", "commit_swallowed", "cancelled", "SET LOCAL statement_timeout = 0;COMMIT#"),
        ("sqlite", "not_rolled_back", "no memory", "inside: INSERT INTO events"),
    ],
)
def test_a_store_that_swallows_an_error_is_found(level: str, plant: str, kind: str, at: str, tmp_path: Path) -> None:
    with opened(level) as store:
        runner = FaultRunner(tmp_path, store, level, plant)
        prepared = runner.prepare(SCENARIOS["start"])
        faults = [fault for fault in runner.faults(prepared, kind) if fault.at.startswith(at)]
        runs = (runner.fail(prepared, fault, patience_seconds=1) for fault in faults)
        assert any(run.wrong for run in runs if run is not None)
