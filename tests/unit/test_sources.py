"""What authors wrote is found where it stands."""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

from mainspring import sources
from mainspring.testing import samples

SOURCE = '''\
def kept(*given):
    return lambda cls: cls

class Plain:
    a = 1
    # the last line of it

# and this is none of it

@kept(
    1
)
@kept()
class Decorated:
    class Inner:
        """A text with

class Plain:
        """
        b = 2

def made():
    class Local:
        class Deep: c = 3
    return Local

try:
    raise OSError
except OSError:
    class Caught: e = 6
match 1:
    case 1:
        class Matched: f = 7
'''


def classes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[type[Any]]:
    name = folder.name.replace("-", "_")
    (folder / f"{name}.py").write_text(f"{SOURCE}# {name}\n")
    monkeypatch.syspath_prepend(str(folder))
    written: Any = importlib.import_module(name)
    local = written.made()
    inner = written.Decorated.Inner
    return [written.Plain, written.Decorated, inner, local, local.Deep, written.Caught, written.Matched]


def test_the_lines_of_a_class_are_those_that_python_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for cls in [*classes(tmp_path, monkeypatch), samples.Counter, samples.LeaveRequests]:
        assert sources.class_lines(cls) == inspect.getsourcelines(cls), cls


def test_a_file_is_parsed_once_for_all_its_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = classes(tmp_path, monkeypatch)
    parsed: list[Any] = []
    parse = ast.parse

    def spied(source: Any, *others: Any, **named: Any) -> Any:
        parsed.append(source)
        return parse(source, *others, **named)

    with monkeypatch.context() as spying:
        spying.setattr(ast, "parse", spied)
        for cls in written:
            sources.class_lines(cls)
    assert len(parsed) == (0 if sys.version_info >= (3, 13) else 1)


def test_what_has_no_source_is_said_to_have_none() -> None:
    typed = type("Typed", (), {"__module__": __name__})

    assert sources.class_text(typed) is None
    assert sources.class_text(int) is None


def test_a_text_is_parsed_though_another_one_is_parsed_in_the_middle_of_it() -> None:
    """CPython 3.11.7 mixes them up: gh-106905."""
    others = [1]

    def parse_another(depth: int) -> None:
        if depth:
            parse_another(depth - 1)
        else:
            ast.parse("1 + 2")

    def collecting(phase: str, _: object) -> None:
        if phase == "start" and others:
            others.pop()
            parse_another(10)

    gc.callbacks.append(collecting)
    try:
        tree = sources.syntax_tree("x = [1, (2, 3)]\n" * 2_000)
    finally:
        gc.callbacks.remove(collecting)

    assert len(tree.body) == 2_000
    assert others == [], "nothing was collected meanwhile"
