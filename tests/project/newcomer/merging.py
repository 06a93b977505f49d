"""Changing parts of a file, as a reader does: namesakes are replaced, what is new goes before what follows it."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass
class Part:
    """A statement of a module with the lines that belong to it, and what it is known by."""

    name: str
    text: str


def merged(file: str, changes: str) -> str:
    """Return a file with the parts that `changes` holds, each new or in the place of its namesake.

    >>> print(merged("import a\\nx = 1\\n", "import b\\nx = 2\\ny = 3\\n"))
    import a
    import b
    x = 2
    y = 3
    <BLANKLINE>
    """
    parts = _parts(file)
    place = None  # before which part something new goes: before what follows it in the changes, else at the end
    for change in reversed(_parts(changes)):
        known = next((n for n, part in enumerate(parts) if part.name == change.name), None)
        if known is not None:
            parts[known] = change
            place = known
        else:
            place = len(parts) if place is None else place
            parts.insert(place, change)
    return "".join(part.text for part in parts)


def _parts(module: str) -> list[Part]:
    lines = module.splitlines(keepends=True)
    statements = ast.parse(module).body
    parts: list[Part] = []
    begun = 0
    for statement in statements:
        end = statement.end_lineno or 0
        parts.append(Part(_name(statement), "".join(lines[begun:end])))
        begun = end
    if parts:
        parts[-1].text = parts[-1].text.rstrip("\n") + "\n"
    return parts


def _name(statement: ast.stmt) -> str:
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.ImportFrom(module=module):
            return f"from {module}"
        case ast.Import(names=[ast.alias(name=name)]):
            return f"import {name}"
        case ast.Expr(value=ast.Call(func=called)):
            return ast.unparse(called)
    return ast.unparse(statement)
