"""The examples' databases, made once for all tests of a process."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.unit.analysis.example_apps import APPS
from tests.unit.analysis.example_databases import fill
from tests.unit.analysis.refunds import fill as fill_refunds
from tests.unit.analysis.refunds import refunds, running


@pytest.fixture(scope="session")
def example_databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database of each example, to be read only."""
    folder = tmp_path_factory.mktemp("examples")
    for example in APPS:
        asyncio.run(fill(example, folder / f"{example}.db"))
    return folder


@pytest.fixture
def examples(example_databases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a copy of the examples' databases in it."""
    for path in example_databases.glob("*.db*"):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def refunds_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with six claims in it, to be copied: one file, for the app that filled it has stopped."""
    path = tmp_path_factory.mktemp("refunds") / "refunds.db"
    running(refunds(f"sqlite:///{path}"), fill_refunds, work=True)
    assert [each.name for each in path.parent.iterdir()] == ["refunds.db"]
    return path
