"""What must be said before any test module is imported, and how the work is shared."""

import os
from typing import Final

import hypothesis
import pytest

# A test that is slow on a busy machine has not failed.
hypothesis.settings.register_profile("mainspring", deadline=None)
hypothesis.settings.load_profile("mainspring")

# Its assertions explain themselves only if pytest rewrites them, which it can do only before the first import.
pytest.register_assert_rewrite("mainspring.testing.store_contract", "mainspring.testing.broker_contract")

# Where single tests take many seconds: begun last, one of them would run on alone when all the others are done.
LONG: Final = (
    "tests/crash/",
    "tests/model/",
    "tests/simulation/",
    "tests/postgres_faults/",
    "tests/broker_faults/",
    "tests/power_cuts/",
    "tests/memory_soak/",
    "tests/newcomer/",
    "tests/bench/test_postgres.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def pytest_xdist_auto_num_workers() -> int:
    """Tests wait a third of their time, for a server or for a process: three share two cores."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)
