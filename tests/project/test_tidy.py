"""Style held by a test, not by a reviewer."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from io import StringIO
from pathlib import Path
from tokenize import COMMENT, generate_tokens
from typing import NamedTuple

import pytest

import mainspring
from mainspring import _names
from mainspring.sources import syntax_tree
from tests.support.paths import ROOT

MODULE_LINES = 500
CODE = (".py", ".ts", ".tsx", ".mjs", ".css")
FUNCTION_LINES = 70
WRITTEN = "studio/src/documents.ts"  # by `python -m docs.site --pages`, and by no hand
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
SLEEPS = ("asyncio.sleep", "time.sleep", "sleep")
SWITCH = re.compile(r"# (?:noqa: (?!ASYNC110)|pyright: |type: )[^#]*")
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
# Written in pieces, so that this file does not hold what it looks for.
PLACES = re.compile(r"/(wo" + r"rk|ro" + r"ot|ho" + r"me)/|py" + r"pi\.org|python" + r"hosted|npm" + r"js")


@cache
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


@cache
def texts() -> list[tuple[str, str]]:
    binary, bytes_to_read = {".png", ".db", ".xz"}, ROOT / "tests/edges/fuzzing/corpus"
    read = (path for path in tracked() if path.suffix not in binary and bytes_to_read not in path.parents)
    return [(str(path.relative_to(ROOT)), path.read_text()) for path in read]


class Facts(NamedTuple):
    """What is asked of a module. Its tree is not kept: all trees together would be millions of objects."""

    long: dict[str, int]
    bare: list[str]
    says_what_for: bool


def modules(*folders: str) -> Iterator[tuple[str, Facts]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), facts(path)


@cache
def facts(path: Path) -> Facts:
    tree = syntax_tree(path.read_text())
    long = {
        node.name: lines
        for node in functions(tree)
        if (lines := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES
    }
    bare = [f"{node.lineno} {node.name}" for node in public(tree) if ast.get_docstring(node) is None]
    return Facts(long, bare, ast.get_docstring(tree) is not None)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return all functions, wherever they stand; expressions, which hold none, are most of a tree and left out."""
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        inner = getattr(tree, part, ())
        for node in inner if isinstance(inner, list) else ():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node
            yield from functions(node)


def test_modules_are_small() -> None:
    read = ((name, text) for name, text in texts() if name.endswith(CODE) and name != WRITTEN)
    long = {name: lines for name, text in read if (lines := text.count("\n")) > MODULE_LINES}

    assert long == {}, "split by noun"


def test_functions_are_small() -> None:
    long = {
        f"{name}:{function}": lines
        for name, found in modules("src", "examples", "bench", "tests")
        for function, lines in found.long.items()
    }

    assert long == {}, "name the parts"


def test_a_function_is_found_wherever_it_stands() -> None:
    tree = ast.parse(
        "class A:\n  def a(): ...\nif x:\n  ...\nelse:\n  async def b():\n    def c(): ...\n"
        "try: ...\nexcept E:\n  def d(): ...\nfinally:\n  def e(): ...\nmatch x:\n  case 1:\n    def f(): ...\n"
    )

    assert [function.name for function in functions(tree)] == ["a", "b", "c", "d", "e", "f"]


def test_every_sleep_says_why_it_is_there() -> None:
    bare = [
        f"{name}:{number}"
        for name, text in texts()
        # In the simulator it is the simulated time that is slept for.
        if name.startswith(("tests/", "examples/", "bench/")) and not name.startswith("tests/proof/simulation/")
        for number in (bare_sleeps(text) if name.endswith(".py") and "sleep" in text else ())
    ]

    assert bare == [], "wait for a signal, or with tests.support.waiting.until; else say why, beside or above it"


def test_a_sleep_is_bare_without_a_reason_beside_or_above_it() -> None:
    text = (
        "time.sleep(1)\n# why\ntime.sleep(1)\nx = 1\nawait asyncio.sleep(0.1)  # why\nawait asyncio.sleep(0)\n"
        "await asyncio.sleep(x)  # noqa: S311  no secret\nslow.compute(lambda: time.sleep(0.5))\nif x: time.sleep(x)\n"
        "while True:  # noqa: ASYNC110  why\n  time.sleep(1)\nsleep(\n  1  # why\n)\n"
        "async def sleep(seconds):\n  await asyncio.sleep(seconds)\n"
    )

    assert bare_sleeps(text) == [1, 7, 8, 9]


def bare_sleeps(text: str) -> list[int]:
    """Return the lines that sleep for a time and give no reason; a clock's own `sleep` needs none."""
    tree, reasons = syntax_tree(text), reasoned(text)
    clocks = [node for node in functions(tree) if node.name == "sleep"]
    own = {id(each) for clock in clocks for each in ast.walk(clock)}
    return sorted(
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in SLEEPS and id(node) not in own
        if not (isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)  # a turn for others
        if not reasons & {*range(node.lineno - 1, (node.end_lineno or 0) + 1)}
    )


def reasoned(text: str) -> set[int]:
    """Return the lines that say why: what switches another rule off is no reason, unless that is the one on sleeps."""
    comments = (token for token in generate_tokens(StringIO(text).readline) if token.type == COMMENT)
    return {token.start[0] for token in comments if SWITCH.sub("", token.string).strip("# ")}


def test_nothing_is_marked_unfinished() -> None:
    assert [name for name, text in texts() if UNFINISHED.search(text)] == []


def test_the_tree_names_no_machine_and_no_registry() -> None:
    assert PLACES.search("/" + "home/ann")
    assert [name for name, text in texts() if PLACES.search(text)] == []


def test_the_root_holds_only_what_belongs_there() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in tracked()} <= ROOT_FILES


def test_every_public_name_has_a_docstring() -> None:
    assert [f"{name}:{bare}" for name, found in modules("src") for bare in found.bare] == []


def public(tree: ast.Module) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the public definitions of a module; of a function with overloads the one that is run."""
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) or node.name.startswith("_"):
            continue
        if not any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list):
            yield node


def test_every_module_says_what_it_is_for() -> None:
    assert [name for name, found in modules("src") if not found.says_what_for] == []


@pytest.mark.parametrize("name", [name for name, value in vars(_names).items() if isinstance(value, type)])
def test_every_exported_class_shows_an_example(name: str) -> None:
    documented = getattr(mainspring, name)
    if issubclass(documented, Exception):
        return
    assert ">>>" in (documented.__doc__ or "")


def test_every_suggested_command_is_quoted_by_one_function() -> None:
    """An id may hold whatever a shell would run: see `mainspring.app.commands`."""
    found: list[str] = []
    for path in sorted((ROOT / "src/mainspring").rglob("*.py")):
        for node in ast.walk(syntax_tree(path.read_text())):
            match node:
                case ast.JoinedStr(values=parts):
                    text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)
                case ast.Constant(value=str(text)):
                    pass
                case _:
                    continue
            if re.search(r"\bmainspring(?: [a-z-]+)+ [\w/]*\{[\w.]*\}", text):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {text}")
    assert found == []


def test_authors_source_is_read_in_one_place() -> None:
    """Purity, lint, diagrams and explanations share `mainspring.sources`, which knows how Python's releases differ."""
    reads = re.compile(r"\b(?:ast\.parse|inspect\.getsource\w*|getsourcelines|linecache)\b")
    found = {
        name
        for name, text in texts()
        if name.startswith("src/") and any(reads.search(line) for line in text.splitlines() if ">>>" not in line)
    }
    assert found == {"src/mainspring/sources.py"}


# Who steps inputs: the engine for its commits, the one walker of recorded streams, and the two that make up a stream.
STEPPERS = {
    "engine/stepping/stepper.py": "takes inputs",
    "engine/operations/pause_orders.py": "its own workflow of pauses",
    "engine/recording/redecision.py": "on moments of the one walker",
    "analysis/what_if/comparison.py": "is a kind of the one walker",
    "analysis/replay/retelling.py": "makes up the stream of a changed story",
    "testing/rehearsal.py": "makes up the stream of a test",
}


def test_recorded_streams_have_one_walker() -> None:
    stepped = re.compile(r"^from mainspring\.core\.step import .*\bstep\b", re.MULTILINE)
    inside = [(name.removeprefix("src/mainspring/"), text) for name, text in texts() if name.startswith("src/")]
    assert {name for name, text in inside if stepped.search(text)} == set(STEPPERS)
    assert {name for name, text in inside if re.search(r"^class \w+\((?:Walk|Journey)\)", text, re.MULTILINE)} == {
        "engine/recording/walk.py",
        "analysis/what_if/comparison.py",
        "analysis/replay/travel.py",
    }
