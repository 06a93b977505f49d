import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.folders import MEMORY_BYTES, NO_PROGRAMS, in_memory


class Usage(NamedTuple):
    free: int


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(MEMORY_BYTES))  # pyright: ignore[reportUnknownLambdaType]


def flags(monkeypatch: pytest.MonkeyPatch, flags: int) -> None:
    asked = os.statvfs
    monkeypatch.setattr(
        os, "statvfs", lambda path: os.statvfs_result([*tuple(asked(path))[:8], flags, *tuple(asked(path))[9:]])
    )  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]


def test_files_are_in_memory_where_there_is_room(room: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    flags(monkeypatch, 0)

    assert in_memory(tmp_path) == tmp_path
    assert in_memory(tmp_path / "none") is None


@pytest.mark.skipif(not NO_PROGRAMS, reason="this system does not tell it")
def test_where_no_program_may_run_nothing_is_put(room: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    flags(monkeypatch, NO_PROGRAMS)

    assert in_memory(tmp_path) is None


def test_where_room_is_scarce_nothing_is_put(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(MEMORY_BYTES - 1))  # pyright: ignore[reportUnknownLambdaType]

    assert in_memory(tmp_path) is None


def test_where_nothing_can_be_written_nothing_is_put(
    room: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flags(monkeypatch, 0)
    monkeypatch.setattr(os, "access", lambda _, mode: not mode & os.W_OK)  # pyright: ignore[reportUnknownLambdaType]  root may always

    assert in_memory(tmp_path) is None


@pytest.mark.parametrize("time", range(2))
def test_no_directory_is_given_twice(time: int, tmp_path: Path) -> None:
    assert list(tmp_path.iterdir()) == []
    assert tmp_path not in _GIVEN
    _GIVEN.add(tmp_path)
    # Gone with the test that had it.
    assert [path for path in _GIVEN if path.exists()] == [tmp_path]


_GIVEN: set[Path] = set()
