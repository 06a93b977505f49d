"""The source of a function, as a tree."""

from __future__ import annotations

import ast
import inspect
import linecache
from types import FunctionType


def source_of(function: FunctionType) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, int] | None:
    """Return the tree of a function, and what to add to its line numbers; None if there is no source.

    >>> from mainspring.testing.samples import Counter
    >>> source_of(Counter.route)[0].name
    'route'
    """
    try:
        lines, first = inspect.getsourcelines(function)
        # Parsed inside an `if`, a method keeps its indentation, also that of its strings.
        tree = ast.parse("if True:\n" + "".join(lines) if lines[0][:1].isspace() else "\n" + "".join(lines))
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
