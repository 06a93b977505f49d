"""The documentation is true: its Python runs, its links lead somewhere, its tables name tests that exist."""

import ast
import doctest
import gc
import importlib
import pkgutil
import re
import sys
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from itertools import chain, groupby
from pathlib import Path

import pytest

import mainspring
from mainspring.sources import syntax_tree
from tests.support.paths import ROOT

PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("bench/**/*.md")]
)
TUTORIAL = ROOT / "docs/tutorial"  # its blocks are files and commands, which tests/project/newcomer follows
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
ANCHORED = re.compile(r"\[[^\]]*\]\(([^)#\s]*\.md)?#([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,4} (.+)$", re.MULTILINE)
ROW = re.compile(r"^\| ([A-Z]\d+|\d{3}\.\d+) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
TABLES = ("docs/features.md", "docs/promises.md")
NOT_YET = "not yet"  # stands in a row whose promise is not kept, where its tests would
NOT_KEPT: dict[
    str, str
] = {}  # the ids of these rows, by document: what is missing is named here too, or the test fails
COUNTS = {"A": 18, "B": 6, "C": 12, "D": 10, "E": 11, "F": 15, "G": 11, "H": 4, "I": 5, "J": 8}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", [p for p in PAGES if FENCE.search(p.read_text()) and p.parent != TUTORIAL], ids=named)
def test_the_python_on_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page is one module: what stands in a block is known in those below, and its tests run last."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "page.py"
    path.write_text("\n".join(block[1] for block in FENCE.finditer(page.read_text())))
    module = module_from_spec(spec := spec_from_file_location("page", path) or ModuleSpec("page", None))
    sys.modules["page"] = module
    try:
        assert spec.loader is not None
        spec.loader.exec_module(module)
        for name, test in list(vars(module).items()):
            if name.startswith("test_"):
                test()
    finally:
        del sys.modules["page"]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_to_files_that_exist(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target]

    assert [target for target in targets if not (page.parent / target).exists()] == []


@cache
def anchors_of(page: Path) -> set[str]:
    """Return the names of a page's headings, as a forge and the site make them."""
    found: set[str] = set()
    for heading in HEADING.findall(CODE.sub("", page.read_text())):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip())
        name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found.add(next(each for n in range(99) if (each := f"{name}-{n}" if n else name) not in found))
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_to_headings_that_exist(page: Path) -> None:
    links = ANCHORED.findall(CODE.sub("", page.read_text()))

    assert [
        (target, name)
        for target, name in links
        if name not in anchors_of((page.parent / target).resolve() if target else page)
    ] == []


def test_headings_are_named_as_a_forge_names_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b_c` & [d](e.md)\n\n```sh\n# no heading\n```\n\n## Twice!\n\n## Twice\n")

    assert anchors_of(page) == {"a-b_c--d", "twice", "twice-1"}
    assert ANCHORED.findall("[x](a/b.md#c) [y](#d) [z](e.md)") == [("a/b.md", "c"), ("", "d")]


def modules() -> dict[str, str]:
    """Return the source of every module by its name."""
    folder, found = Path(mainspring.__path__[0]), pkgutil.walk_packages(mainspring.__path__, "mainspring.")
    paths = {m.name: folder.parent.joinpath(*m.name.split("."), *(["__init__"] if m.ispkg else [])) for m in found}
    return {name: path.with_name(f"{path.name}.py").read_text() for name, path in paths.items()}


def test_every_module_can_be_imported() -> None:
    for module in modules():
        importlib.import_module(module)


@pytest.mark.parametrize("module", [name for name, source in modules().items() if ">>> " in source])
def test_docstring_examples_run(module: str) -> None:
    # `testmod` runs every docstring, with examples or without, and for each looks whether any file has changed.
    found = [each for each in doctest.DocTestFinder().find(importlib.import_module(module)) if each.examples]
    runner = doctest.DocTestRunner()
    for each in found:
        runner.run(each)
    assert (runner.failures, runner.tries > 0) == (0, True)
    gc.freeze()  # as tests/conftest.py did; the example of tuning a process undoes it


def rows(page: str) -> list[tuple[str, str, str, str]]:
    return ROW.findall((ROOT / page).read_text())


@pytest.mark.parametrize("page", TABLES)
def test_no_row_is_doubled_and_none_is_passed_over(page: str) -> None:
    text = (ROOT / page).read_text()
    ids = [row[0] for row in rows(page)]

    assert len(set(ids)) == len(ids)
    assert len(ids) == sum(line.startswith("| ") and not line.startswith("| id |") for line in text.splitlines())


def test_every_feature_has_exactly_one_row() -> None:
    expected = list(
        chain.from_iterable([f"{letter}{n}" for n in range(1, count + 1)] for letter, count in COUNTS.items())
    )

    assert [row[0] for row in rows("docs/features.md") if row[0][0] in COUNTS] == expected


def test_the_promises_of_each_document_are_numbered_without_a_gap() -> None:
    ids = [row[0] for row in rows("docs/promises.md")]
    documents = [list(each) for _, each in groupby(ids, key=lambda row: row[:3])]

    assert [ids[0] for ids in documents] == ["000.1", "001.1", "002.1", "003.1", "004.1"]
    for document in documents:
        assert document == [f"{document[0][:3]}.{n}" for n in range(1, len(document) + 1)]


def test_what_is_promised_and_not_kept_is_marked_and_counted() -> None:
    marked = [row[0] for page in TABLES for row in rows(page) if row[2] == NOT_YET]

    assert marked == [f"{document}.{n}" for document, numbers in NOT_KEPT.items() for n in numbers.split()]


@cache
def functions_of(path: str) -> set[str]:
    tree = syntax_tree((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def check_tests(cell: str) -> None:
    """Fail unless a cell names tests, and each of them is there."""
    references = re.findall(r"`([^`]+)`", cell)
    assert references, "name the test that shows it"
    for reference in references:
        path, _, function = reference.partition("::")
        assert function.startswith("test_"), reference
        assert function in functions_of(path), reference


@pytest.mark.parametrize("row", [row for page in TABLES for row in rows(page)], ids=lambda row: row[0])
def test_a_row_names_a_test_and_a_page_that_exist(row: tuple[str, str, str, str]) -> None:
    _, _, test, page = row
    if test != NOT_YET:
        check_tests(test)
    for target in LINK.findall(page):
        assert (ROOT / "docs" / target).exists()
    assert LINK.search(page), "link the page that documents it"


def threats() -> list[tuple[str, str]]:
    """Return what the page of security says somebody may try, each with the tests that try it."""
    page = (ROOT / "docs/operations/security.md").read_text().partition("## The threat model")[2].partition("\n## ")[0]
    lines = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| **")]
    cells = [line.strip("| ").split(" | ") for line in lines[1:]]
    return [(first, last) for first, _, last in cells]


def test_the_threat_model_is_a_table_of_some_length() -> None:
    assert len(threats()) >= 25


@pytest.mark.parametrize("threat", threats(), ids=lambda threat: threat[0])
def test_a_threat_names_the_tests_that_try_it(threat: tuple[str, str]) -> None:
    check_tests(threat[1])
