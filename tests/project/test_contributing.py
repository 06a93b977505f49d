"""What CONTRIBUTING says of the tree and of the changelog is so."""

import ast
import re
from pathlib import Path

from tests.project.test_tidy import tracked
from tests.support.paths import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
PACKAGE = ROOT / "src/mainspring"
CHANGE_CHARACTERS = 200
# `a/b` in code; what holds a blank is a command, what holds a `<` a pattern.
PATH = re.compile(r"`([\w.]+(?:/[\w.]+)+/?)`")


def named_in_map(head: str) -> list[str]:
    """Return what the first column of the table under this head names."""
    rows = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    return sorted(name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1]))


def unnamed(package: Path) -> list[str]:
    """Return the modules and packages in a package that its docstring does not name."""
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    inside = [path.stem for path in package.glob("[a-z]*.py")] + [
        path.parent.name for path in package.glob("*/__init__.py")
    ]
    return [f"{package.name}: {name}" for name in inside if not re.search(rf"\b{name}\b", docstring)]


def test_the_map_names_every_package_once_and_no_other() -> None:
    packages = [path.parent.name for path in PACKAGE.glob("*/__init__.py")]
    modules = [path.name for path in PACKAGE.glob("*.py") if path.name != "__init__.py"]

    assert named_in_map("package") == sorted(packages + modules)


def test_the_map_names_every_folder_once_and_no_other() -> None:
    paths = [path.relative_to(ROOT).parts for path in tracked()]

    assert named_in_map("folder") == sorted({parts[0] for parts in paths if len(parts) > 1} - {"src"})


def test_the_docstrings_of_engine_port_and_stores_name_every_module() -> None:
    packages = [path.parent for name in ("engine", "port", "stores") for path in (PACKAGE / name).rglob("__init__.py")]

    assert len(packages) > 20, "they are found at all"
    assert [name for package in packages for name in unnamed(package)] == []


def test_every_path_on_the_page_is_there() -> None:
    paths = PATH.findall(PAGE)

    assert len(paths) > 20, "they are found at all"
    assert [
        path for path in paths if not any((folder / path).exists() for folder in (ROOT, PACKAGE, ROOT / "src"))
    ] == []


def test_a_change_is_one_line_of_the_changelog_under_its_area() -> None:
    unreleased = (ROOT / "CHANGELOG.md").read_text().partition("\n## Unreleased\n")[2].partition("\n## ")[0]
    before, *areas = unreleased.split("\n### ")
    lines = [line for area in areas for line in area.splitlines()[1:] if line]

    assert "\n- " not in before, "put it under its area"
    assert [line for line in lines if len(line) > CHANGE_CHARACTERS or line.startswith(" ")] == [], "say it in one line"
