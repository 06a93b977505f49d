"""mypy and pyright, both strict, find no mistake in what an author reads or is given, and all in what is wrong.

That is: the Python on the pages (each page is one module), the examples, the project that `mainspring new` writes with
its tests, and a file in which lines with `# refused` have to be refused, and no others.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from mainspring.cli.new import write_project
from tests.project.test_docs import FENCE, PAGES, TUTORIAL
from tests.support.paths import ROOT

WRONG: Final = Path(__file__).parent / "typed_by_authors.py.txt"
# Libraries without types of their own: what is said of them is nothing about mainspring.
UNTYPED: Final = ("aiokafka", "apsw", "asyncpg", "boto3", "django", "nats")
IMPORTS_UNTYPED: Final = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(UNTYPED)})\b", re.MULTILINE)
MYPY: Final = f"""\
[mypy]
strict = true
warn_no_return = false
python_version = 3.11
mypy_path = {ROOT}
[mypy-{",".join(f"{name}.*" for name in UNTYPED)}]
ignore_missing_imports = true
"""
PYRIGHT: Final = {
    "typeCheckingMode": "strict",
    "pythonVersion": "3.11",
    "reportMatchNotExhaustive": "none",
    "reportMissingTypeStubs": "none",
    "reportUnusedImport": "none",  # a page may import what only its prose needs
}
# Its library has no types, so no view of it has any for mypy; basedpyright looks at it in `make lint`.
DJANGO: Final = "examples/frameworks/django_shop"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typed")
    for page in PAGES:
        text = page.read_text()
        if page.parent != TUTORIAL and FENCE.search(text):
            code = on_its_lines(text)
            below = folder / ("untyped_pages" if IMPORTS_UNTYPED.search(code) else "pages")
            below.mkdir(exist_ok=True)
            name = re.sub(r"\W", "_", str(page.relative_to(ROOT)))
            (below / f"{name}.py").write_text(code)
    write_project("shop", folder / "shop")
    write_project("store", folder / "store", flow=True)
    for path in (folder / "store/tests").iterdir():
        path.rename(path.with_name(f"store_{path.name}"))  # no two modules of one name
    shutil.copy(WRONG, folder / "wrong.py")
    return folder


def on_its_lines(page: str) -> str:
    """Return the Python of a page, at the lines at which it stands there."""
    code, last = "", 0
    for block in FENCE.finditer(page):
        code += "\n" * page.count("\n", last, block.start(1)) + block[1]
        last = block.end(1)
    return code


def checked(folder: Path, *command: str) -> dict[str, list[tuple[int, str]]]:
    """Run a checker, and return what it says: for each file the lines with their messages."""
    done = subprocess.run(  # noqa: S603  ours
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found: dict[str, list[tuple[int, str]]] = {}
    for path, line, message in re.findall(r"^\s*(\S+\.py):(\d+):\S* -? ?(error: .*)$", done.stdout, re.MULTILINE):
        found.setdefault(path.removeprefix(f"{folder}/"), []).append((int(line), message))
    assert bool(found) == bool(done.returncode), done.stdout
    return found


def refused_lines() -> list[int]:
    return [number for number, line in enumerate(WRONG.read_text().splitlines(), 1) if line.endswith("# refused")]


def test_the_file_of_mistakes_has_some() -> None:
    assert len(refused_lines()) >= 10


def test_mypy_finds_the_mistakes_and_no_others(folder: Path) -> None:
    (folder / "mypy.ini").write_text(MYPY)
    examples = [str(path) for path in sorted(ROOT.glob("examples/**/*.py")) if DJANGO not in str(path)]

    # What it would keep nobody would read: to write it takes a third of its time.
    found = checked(folder, "mypy", "--cache-dir", os.devnull, "--config-file", "mypy.ini", ".", *examples)

    assert [line for line, _ in found.pop("wrong.py")] == refused_lines()
    assert found == {}


def test_pyright_finds_the_mistakes_and_no_others(folder: Path) -> None:
    # Of the examples, `make lint` says so in every run.
    unknown = [f"reportUnknown{what}Type" for what in ("Member", "Variable", "Argument", "Parameter")]
    relaxed = dict.fromkeys(unknown, "none")
    parts = [
        {"root": "untyped_pages", **relaxed},
        {"root": "shop/tests", "extraPaths": ["shop"], **relaxed},  # Starlette's client has types with httpx2 alone
        {"root": "store/tests", "extraPaths": ["store"], **relaxed},  # as above
        {"root": "shop"},
        {"root": "store"},
        {"root": "."},
    ]
    config = {**PYRIGHT, "executionEnvironments": parts}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))

    found = checked(folder, "basedpyright", "--pythonpath", sys.executable)

    assert sorted({line for line, _ in found.pop("wrong.py")}) == refused_lines()
    assert found == {}
