"""What the tests of secrets share."""

from __future__ import annotations

import logging
from collections.abc import Generator
from pathlib import Path

import pytest

from mainspring.telemetry.logs import JsonLines


@pytest.fixture
def logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A folder for all that is written, with what is logged in it, and temporary files too."""
    folder = tmp_path / "written"
    (folder / "tmp").mkdir(parents=True)
    for name in ("TMPDIR", "SQLITE_TMPDIR"):
        monkeypatch.setenv(name, str(folder / "tmp"))
    root, own = logging.getLogger(), logging.getLogger("mainspring")
    levels = root.level, own.level
    handlers = [logging.FileHandler(folder / "log.txt"), logging.FileHandler(folder / "log.json")]
    handlers[0].setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    handlers[1].setFormatter(JsonLines())
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    own.setLevel(logging.DEBUG)
    yield folder
    for handler in handlers:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(levels[0])
    own.setLevel(levels[1])
