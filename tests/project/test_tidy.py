"""Style held by a test, not by a reviewer."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import mainspring
from tests.support.paths import ROOT

MODULE_LINES = 500
CODE = (".py", ".ts", ".tsx", ".mjs", ".css")
FUNCTION_LINES = 70
ROOT_FILES = {
    ".ci",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "bench",
    "docs",
    "examples",
    "release",
    "pyproject.toml",
    "requirements.lock",
    "simulate.py",
    "src",
    "studio",
    "tests",
}
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
# Written in pieces, so that this file does not hold what it looks for.
PLACES = re.compile(r"/(wo" + r"rk|ro" + r"ot|ho" + r"me)/|py" + r"pi\.org|python" + r"hosted|npm" + r"js")


def tracked() -> list[Path]:
    """Return the files of the project: those git knows of, or all outside a checkout."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607  whichever git there is
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout: there is no list of the project's files")
    return [path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file()]


def texts() -> Iterator[tuple[str, str]]:
    for path in tracked():
        if path.suffix not in {".png", ".db", ".xz"}:
            yield str(path.relative_to(ROOT)), path.read_text()


def modules(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def test_modules_are_small() -> None:
    long = {name: lines for name, text in texts() if name.endswith(CODE) and (lines := text.count("\n")) > MODULE_LINES}

    assert long == {}, "split by noun"


def test_functions_are_small() -> None:
    long = {
        f"{name}:{node.name}": lines
        for name, tree in modules("src", "examples", "bench", "tests")
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES
    }

    assert long == {}, "name the parts"


def test_nothing_is_marked_unfinished() -> None:
    assert [name for name, text in texts() if UNFINISHED.search(text)] == []


def test_the_tree_names_no_machine_and_no_registry() -> None:
    assert PLACES.search("/" + "home/ann")
    assert [name for name, text in texts() if PLACES.search(text)] == []


def test_the_root_holds_only_what_belongs_there() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in tracked()} <= ROOT_FILES


def test_every_public_name_has_a_docstring() -> None:
    bare = [
        f"{name}:{node.lineno} {node.name}"
        for name, tree in modules("src")
        for node in public(tree)
        if ast.get_docstring(node) is None
    ]

    assert bare == []


def public(tree: ast.Module) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_"):
            yield node


def test_every_module_says_what_it_is_for() -> None:
    assert [name for name, tree in modules("src") if ast.get_docstring(tree) is None] == []


@pytest.mark.parametrize("name", [name for name in mainspring.__all__ if isinstance(getattr(mainspring, name), type)])
def test_every_exported_class_shows_an_example(name: str) -> None:
    documented = getattr(mainspring, name)
    if issubclass(documented, Exception):
        return
    assert ">>>" in (documented.__doc__ or "")
