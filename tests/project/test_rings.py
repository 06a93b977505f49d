"""The import rings hold, and the tool that holds them would notice a breach."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from mainspring.sources import syntax_tree
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


def imports(folder: Path) -> dict[str, set[str]]:
    """Return which modules each module imports, wherever in it and for whatever, type checking too."""
    modules = {_name(path.relative_to(folder)): path for path in folder.rglob("*.py")}
    return {name: {found for found in _imported(path, modules) if found != name} for name, path in modules.items()}


def _name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _imported(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(syntax_tree(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in modules else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)


def without_the_app(found: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out what knows the app, or what it is made of, only because it is a part of it."""
    app = {"mainspring.app.app", "mainspring.app.internals"}
    return {name: known - app if name.startswith("mainspring.app.") else known for name, known in found.items()}


def test_no_module_imports_itself_through_others_not_even_for_its_types() -> None:
    TopologicalSorter(without_the_app(imports(ROOT / "src"))).prepare()


def test_a_circle_that_is_hidden_behind_type_checking_is_found(tmp_path: Path) -> None:
    package = tmp_path / "mainspring"
    package.mkdir()
    (package / "first.py").write_text("from mainspring import second\n")
    (package / "second.py").write_text("if TYPE_CHECKING:\n    from mainspring.first import First\n")
    (package / "__init__.py").write_text("")
    with pytest.raises(CycleError):
        TopologicalSorter(imports(tmp_path)).prepare()


def packages_both_ways(found: dict[str, set[str]]) -> set[tuple[str, str]]:
    """Return the packages of the engine that import each other. A file at its top counts as one."""
    engine = "mainspring.engine."
    ways = {
        (name.removeprefix(engine).partition(".")[0], known.removeprefix(engine).partition(".")[0])
        for name, imported in found.items()
        for known in imported
        if name.startswith(engine) and known.startswith(engine)
    }
    return {(one, other) for one, other in ways if one < other and (other, one) in ways}


# Of packages there is none. The registry knows the workflows of the engine itself, whose code stands in packages, and
# the runtime the means that one has for its own; who works there asks both.
BOTH_WAYS = {
    ("handlers", "runtime"),
    ("inputs", "registry"),
    ("operations", "registry"),
    ("outputs", "registry"),
    ("projections", "registry"),
    ("recording", "registry"),
}


def test_no_packages_of_the_engine_import_each_other_and_no_more_of_its_top_files() -> None:
    assert packages_both_ways(imports(ROOT / "src")) == BOTH_WAYS


def test_a_top_file_that_knows_a_package_which_knows_it_is_found() -> None:
    engine = "mainspring.engine"
    found = {f"{engine}.clock": {f"{engine}.inputs.turns"}, f"{engine}.inputs.turns": {f"{engine}.clock"}}
    assert packages_both_ways(found) == {("clock", "inputs")}
