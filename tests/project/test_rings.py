"""The import rings hold, and the tool that holds them would notice a breach."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
        ],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "src"), "PATH": "", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def plant(folder: Path, module: str, line: str) -> None:
    path = folder / "src" / "mainspring" / module
    path.write_text(path.read_text().replace("from __future__ import annotations", line, 1) if path.exists() else line)


def test_the_rings_hold(copy: Path) -> None:
    result = lint_imports(copy)

    assert result.returncode == 0, result.stdout + result.stderr


# Which module gets which line, and what is said about it.
BREACHES = [
    ("core/fold.py", "import time", "mainspring.core.fold -> time"),
    ("core/step.py", "import asyncio", "mainspring.core.step -> asyncio"),
    ("styles/history.py", "from random import random", "mainspring.styles.history -> random"),
    ("core/route.py", "import mainspring.codec", "mainspring.core.route -> mainspring.codec"),
    ("newcomer.py", '"""A module in no ring."""', "newcomer"),
]


def test_planted_breaches_are_found(copy: Path) -> None:
    for module, line, _ in BREACHES:
        plant(copy, module, line)

    result = lint_imports(copy)

    assert result.returncode == 1
    told = result.stdout.replace("\n", " ")
    assert [broken for _, _, broken in BREACHES if broken not in told] == []
