"""Where a test's files are: in memory, where there is room, for what waits for a disk proves nothing more."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator
from itertools import count
from pathlib import Path
from typing import Final

import pytest

MEMORY: Final = Path("/dev/shm")  # noqa: S108  directories of one's own are made in it
MEMORY_BYTES: Final = 4 * 1024**3
"""As much must be free where files are kept in memory: each worker of a test run has a PostgreSQL server there."""
NAME_CHARACTERS: Final = 30
NO_PROGRAMS: Final[int] = getattr(os, "ST_NOEXEC", 0)
"""Not every system tells it."""

_NUMBERS: Final = count()
_FAILED: Final = pytest.StashKey[bool]()


def in_memory(memory: Path = MEMORY) -> Path | None:
    """Return where files cost nothing, if there is such a place and room in it, and what is installed there can run."""
    if not memory.is_dir() or not os.access(memory, os.W_OK | os.X_OK) or os.statvfs(memory).f_flag & NO_PROGRAMS:
        return None
    return memory if shutil.disk_usage(memory).free >= MEMORY_BYTES else None


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """Give each test a directory whose name no other had, and keep it if the test has failed.

    pytest's own looks through all directories that there are for the next number; and if it removed them, it would give
    a name again, by which modules, sources and schemas are remembered.
    """
    name = re.sub(r"\W", "_", request.node.name)[:NAME_CHARACTERS]
    path = tmp_path_factory.getbasetemp() / f"{name}-{next(_NUMBERS)}"
    path.mkdir(mode=0o700)
    yield path
    if not request.node.stash.get(_FAILED, False):
        shutil.rmtree(path, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report
