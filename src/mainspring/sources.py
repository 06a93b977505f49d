"""What authors wrote: the source of a function, a class, a module or a file. All that reads source reads it here.

Source is slow to find, looked at several times at every start, and the same for a class's whole life: so that of
classes and files is kept.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import textwrap
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, Final, NamedTuple

CLASSES_KEPT: Final = 200
PLACES_KEPT: Final = 5_000
FILES_KEPT: Final = 100
TEXTS_KEPT: Final = 20
PARSED_TIMES: Final = 5


def syntax_tree(text: str) -> ast.Module:
    """Return the tree of a source text, whatever others parse meanwhile.

    Before 3.11.8 and 3.12.2, CPython counts the depth of all trees in one place: one that is parsed while a collection
    of garbage lets others run may end in a SystemError that says nothing of the text (gh-106905).
    """
    for _ in range(PARSED_TIMES - 1):
        try:
            return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)


# ---- a function


def source_of(function: FunctionType) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, int] | None:
    """Return the tree of a function, and what to add to its line numbers; None if there is no source.

    >>> from mainspring.testing.samples import Counter
    >>> source_of(Counter.route)[0].name
    'route'
    """
    try:
        lines, first = inspect.getsourcelines(function)
        # Parsed inside an `if`, a method keeps its indentation, also that of its strings.
        tree = syntax_tree("if True:\n" + "".join(lines) if lines[0][:1].isspace() else "\n" + "".join(lines))
    except (OSError, TypeError, SyntaxError):
        return None
    kinds = (ast.Lambda,) if function.__name__ == "<lambda>" else (ast.FunctionDef, ast.AsyncFunctionDef)
    found = next((node for node in ast.walk(tree) if isinstance(node, kinds)), None)
    return None if found is None else (found, max(first, 1) - 2)


def text_at(file: str, node: ast.expr | ast.pattern, offset: int) -> str:
    """Return an expression or a pattern as the author wrote it, if it stands on one line; else as Python would."""
    if node.lineno == node.end_lineno:
        line = linecache.getline(file, node.lineno + offset).encode()
        written = line[node.col_offset : node.end_col_offset].decode(errors="replace")
        if written:
            return written
    return ast.unparse(node)


def line_text(code: CodeType, line: int, names: dict[str, Any]) -> str:
    """Return a line of a function's file, without its indentation; empty if there is no source."""
    return linecache.getline(code.co_filename, line, names).strip()


def code_text(code: CodeType, names: dict[str, Any]) -> str:
    """Return the source of a function from its first line on, by its code and its globals; empty if there is none.

    >>> code_text(line_text.__code__, globals()).splitlines()[0]
    'def line_text(code: CodeType, line: int, names: dict[str, Any]) -> str:'
    """
    lines = linecache.getlines(code.co_filename, names)[code.co_firstlineno - 1 :]
    return "".join(inspect.getblock(lines)) if lines else ""


# ---- a class


def class_text(cls: type[Any]) -> str | None:
    """Return the source of a class, if there is any.

    >>> from mainspring.testing.samples import Counter
    >>> (class_text(Counter) or "").splitlines()[0]
    'class Counter(Workflow[Count, Counted, CountedThrice]):'
    """
    try:
        return _class_text(cls)
    except (OSError, TypeError, SyntaxError, SystemError):
        # What was typed into a prompt has no source; Python 3.11 says so with a SystemError now and then.
        return None


@lru_cache(maxsize=CLASSES_KEPT)
def _class_text(cls: type[Any]) -> str:
    return "".join(class_lines(cls)[0])


def class_lines(cls: type[Any]) -> tuple[list[str], int]:
    """Return the lines of a class with its decorators, and the first one's number, as `inspect` does.

    Before Python 3.13 that parses the whole file again for each class in it, most of what a second workflow took.
    """
    file = inspect.getsourcefile(cls)
    if sys.version_info < (3, 13) and file is not None:
        linecache.checkcache(file)
        module = sys.modules.get(cls.__module__)
        lines = linecache.getlines(file, None if module is None else vars(module))
        begins = _beginnings("".join(lines)).get(cls.__qualname__)
        if begins is not None:
            return inspect.getblock(lines[begins - 1 :]), begins
    return inspect.getsourcelines(cls)


@lru_cache(maxsize=TEXTS_KEPT)
def _beginnings(text: str) -> dict[str, int]:
    """Return at which line each class of a file begins, by its qualified name; of two with one name, the first."""
    found: dict[str, int] = {}

    def look(node: ast.AST, within: str) -> None:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.ClassDef):
                found.setdefault(within + part.name, min(each.lineno for each in (part, *part.decorator_list)))
                look(part, f"{within}{part.name}.")
            elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                look(part, f"{within}{part.name}.<locals>.")
            elif not isinstance(part, ast.expr):
                look(part, within)

    look(syntax_tree(text), "")
    return found


@lru_cache(maxsize=CLASSES_KEPT)
def class_calls(cls: type[Any]) -> list[ast.Call] | None:
    """Return all calls in the source of a class, None if there is none that could be read."""
    source = class_text(cls)
    try:
        tree = None if source is None else syntax_tree(textwrap.dedent(source))
    except SyntaxError:
        return None
    return None if tree is None else [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


@lru_cache(maxsize=PLACES_KEPT)
def class_place(cls: type[Any]) -> tuple[str, int] | None:
    """Return the file in which a class is written and its line there, behind its decorators; None without a source."""
    try:
        file = inspect.getsourcefile(cls)
        lines, first = class_lines(cls)
    except (OSError, TypeError):
        return None
    decorators = next((place for place, line in enumerate(lines) if line.lstrip().startswith("class ")), 0)
    return None if file is None else (file, max(first, 1) + decorators)


# ---- a module, a file


def module_text(name: str) -> str:
    """Return the source of a module, empty if there is none."""
    try:
        return inspect.getsource(sys.modules[name])
    except (KeyError, OSError, TypeError):
        return ""


class File(NamedTuple):
    """A file: its lines, and its tree."""

    lines: list[str]
    tree: ast.Module

    def text(self, node: Any) -> str:
        """Return a piece of the source in one line."""
        lines = [line.encode() for line in self.lines[node.lineno - 1 : node.end_lineno]]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return " ".join(b" ".join(lines).decode(errors="replace").split())


@lru_cache(maxsize=FILES_KEPT)
def file_source(file: str) -> File | None:
    """Return a file as Python has read it, None if it is not any more what was imported, or not there."""
    lines = linecache.getlines(file)
    try:
        return File(lines, syntax_tree("".join(lines))) if lines else None
    except (SyntaxError, ValueError):
        return None
