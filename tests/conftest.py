"""What must be said before any test module is imported, and how the work is shared."""

import gc
import os
import sys
from collections.abc import Generator
from typing import Final

import hypothesis
import pytest
from hypothesis import HealthCheck

# Tests start hundreds of processes: where this is set, each of them, and each run, would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A test that is slow on a busy machine has not failed. Each run tries the same examples, so that a change is not blamed
# for what it has no part in; a soak tries others: --hypothesis-profile others.
hypothesis.settings.register_profile("others", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis.settings.register_profile("mainspring", hypothesis.settings.get_profile("others"), derandomize=True)
hypothesis.settings.load_profile("mainspring")

# Its assertions explain themselves only if pytest rewrites them, which it can do only before the first import.
pytest.register_assert_rewrite("mainspring.testing.store_contract", "mainspring.testing.broker_contract")

# Where single tests take many seconds: begun last, one of them would run on alone when all the others are done.
LONG: Final = (
    "tests/proof/crash/",
    "tests/proof/model/",
    "tests/proof/simulation/",
    "tests/proof/postgres_faults/",
    "tests/proof/broker_faults/",
    "tests/proof/power_cuts/",
    "tests/proof/memory_soak/",
    "tests/project/newcomer/",
    "tests/project/bench/test_postgres.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


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
    """Tests wait a third of their time, for a server or for a process: three share two cores."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)
