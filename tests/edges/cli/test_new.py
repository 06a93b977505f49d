"""The project to start from is tidy, typed, and writes over nothing. That it works: test_starter_readme.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mainspring.cli.new import new

HERE = Path(sys.executable).parent


def made(folder: Path, name: str = "day_off", *options: str) -> Path:
    outcome = CliRunner().invoke(new, [name, "--into", str(folder / name), *options])
    assert outcome.exit_code == 0, outcome.output
    assert f"mainspring studio {name}.app:app" in outcome.output
    return folder / name


def run(folder: Path, *command: str) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "MAINSPRING"))}
    done = subprocess.run(  # noqa: S603  ours
        [HERE / command[0], *command[1:]],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("options", [(), ("--flow",)], ids=["decide", "flow"])
def test_a_new_project_is_tidy(tmp_path: Path, options: tuple[str, ...]) -> None:
    project = made(tmp_path, "day_off", *options)
    run(project, "ruff", "check", "--isolated", "--line-length", "120", ".")
    run(project, "ruff", "format", "--isolated", "--line-length", "120", "--check", ".")
    leftovers = [path for path in project.rglob("*") if path.is_file() and b"__NAME__" in path.read_bytes()]
    assert leftovers == []


def test_the_tests_of_a_project_with_a_flow_pass(tmp_path: Path) -> None:
    project = made(tmp_path, "day_off", "--flow")
    assert " passed" in run(project, "pytest", "-q", "-p", "no:cacheprovider")
    assert not (project / "day_off/workflow.py").exists()


@pytest.mark.soak  # a type checker reads all of the package for it; the templates change seldom
def test_a_new_project_is_typed(tmp_path: Path) -> None:
    project = made(tmp_path)
    run(project, "basedpyright", "--level", "error", "--pythonpath", sys.executable, "day_off")


@pytest.mark.parametrize("name", ["day-off", "class", "mainspring", "fastapi", "json", "tests", "", "1st", "x" * 51])
def test_what_cannot_name_a_package_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = CliRunner().invoke(new, [name])
    assert outcome.exit_code != 0
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    outcome = CliRunner().invoke(new, ["day_off", "--into", str(tmp_path / "file" / "day_off")])
    assert (outcome.exit_code, "cannot be written" in outcome.output) == (1, True)


def test_nothing_that_exists_is_written_over(tmp_path: Path) -> None:
    project = made(tmp_path)
    (project / "day_off/app.py").write_text("mine")
    outcome = CliRunner().invoke(new, ["day_off", "--into", str(project)])
    assert outcome.exit_code != 0
    assert (project / "day_off/app.py").read_text() == "mine"
