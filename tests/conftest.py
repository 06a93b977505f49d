"""What must be said before any test module is imported, and how the work is shared."""

import gc
import os
import sys
from collections.abc import Generator
from typing import Final

import hypothesis
import pytest
from hypothesis import HealthCheck
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import is_local_module_file

from tests.support.examples import limit_examples
from tests.support.folders import in_memory, pytest_runtest_makereport, tmp_path
from tests.support.ordering import dealt

__all__ = ["pytest_runtest_makereport", "tmp_path"]

# Tests start hundreds of processes: where this is set, each of them, and each run, would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Thousands of tests write a database: on a disk, waiting for it to be written would be a fifth of their work.
if (memory := in_memory()) is not None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))

# A test that is slow on a busy machine has not failed. Each run tries the same examples, so that a change is not blamed
# for what it has no part in; a soak tries others: --hypothesis-profile others.
hypothesis.settings.register_profile("others", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis.settings.register_profile("mainspring", hypothesis.settings.get_profile("others"), derandomize=True)
hypothesis.settings.load_profile("mainspring")

# Hypothesis draws constants from whatever modules of this repository are imported by then, so that the same test got
# other examples alone, in another order or on another worker; and it parses all of them, in each process.


def _tells_constants(path: str) -> bool:
    chosen = hypothesis.settings.default
    return chosen is not None and not chosen.derandomize and is_local_module_file(path)


providers.is_local_module_file = _tells_constants  # pyright: ignore[reportPrivateImportUsage]  there is no setting

# Its assertions explain themselves only if pytest rewrites them, which it can do only before the first import.
pytest.register_assert_rewrite("mainspring.testing.store_contract", "mainspring.testing.broker_contract")

# Seconds on a quiet machine, roughly, of the files, each of a folder too, that take long: they are begun first. What is
# begun last is shared out test by test: a file that sets up much would be set up by each worker.
LONG: Final = {
    "examples/test_demo.py": 6,
    "tests/edges/brokers/test_contract.py": 10,
    "tests/edges/brokers/test_kafka_contract.py": 8,
    "tests/edges/brokers/test_nats_and_redis.py": 12,
    "tests/edges/brokers/test_sqs.py": 15,
    "tests/edges/brokers/test_wire_layouts.py": 10,
    "tests/edges/cli/test_doctor_postgres.py": 10,
    "tests/edges/cli/test_ending.py": 6,
    "tests/edges/cli/test_starter_readme.py": 10,
    "tests/edges/cli/test_what_if_against.py": 15,
    "tests/edges/frameworks/test_examples.py": 12,
    "tests/edges/fuzzing/": 6,
    "tests/edges/web/test_connections.py": 10,
    "tests/edges/web/test_fuzz.py": 8,
    "tests/engine/test_isolation.py": 12,
    "tests/engine/test_lost_with_workers.py": 8,
    "tests/engine/test_processes.py": 10,
    "tests/engine/test_same_streams.py": 12,
    "tests/mutants/test_mutants.py": 8,
    "tests/project/bench/test_bench.py": 12,
    "tests/project/bench/test_postgres.py": 15,
    "tests/project/bench/test_results.py": 5,
    "tests/project/examples/": 5,
    "tests/project/newcomer/": 20,
    "tests/project/operations/": 6,
    "tests/project/release/": 15,
    "tests/project/test_site.py": 5,
    "tests/project/test_types.py": 30,
    "tests/proof/broker_faults/": 15,
    "tests/proof/crash/": 30,
    "tests/proof/crash_points/": 25,
    "tests/proof/first_weeks/": 12,
    "tests/proof/fleet/": 7,
    "tests/proof/floods/": 12,
    "tests/proof/memory_soak/": 10,
    "tests/proof/model/": 15,
    "tests/proof/postgres_faults/": 25,
    "tests/proof/power_cuts/": 10,
    "tests/proof/secrets/": 30,
    "tests/proof/simulation/": 20,
    "tests/proof/store_faults/": 12,
    "tests/stores/test_postgres_lives.py": 8,
    "tests/studio/test_access.py": 10,
    "tests/studio/test_hostile.py": 8,
    "tests/studio/test_journeys.py": 20,
    "tests/studio/test_live.py": 12,
    "tests/studio/test_many.py": 12,
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hypothesis.settings().derandomize:
        limit_examples(items)
    workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
    # Those of a soak are left out afterwards: among the others they would shift the workers' parts.
    soaked = [item for item in items if item.get_closest_marker("soak")]
    others = [item for item in items if not item.get_closest_marker("soak")]
    items[:] = [others[place] for place in dealt([item.nodeid for item in others], LONG, workers)] + soaked


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without collecting garbage.

    Hundreds of thousands of objects are made that live to the end. Looking through them again and again took a third of
    the time, and then a part of every test's.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_xdist_auto_num_workers() -> int:
    """Tests wait almost half of their time, for a server or for a process: three share a core."""
    return 3 * (os.cpu_count() or 1)
