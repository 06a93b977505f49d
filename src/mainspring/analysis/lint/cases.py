"""The rule about cases of decide and evolve that can never match: MS204 dead-case."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

from mainspring.analysis.lint.findings import Finding, finding
from mainspring.analysis.model import Machine, Place
from mainspring.purity.sources import source_of, text_at


def check_cases(cls: type[Any], machine: Machine) -> Iterator[Finding]:
    """Yield the cases that no message in any state comes to. A last `case _` is no mistake: it is there for safety."""
    if machine.unresolved:
        return
    for name in ("decide", "evolve"):
        function = inspect.unwrap(getattr(cls, name))
        source = source_of(function)
        tree, offset = source if source is not None else (ast.Pass(), 0)
        for node in ast.walk(tree):
            if not isinstance(node, ast.match_case) or _takes_anything(node):
                continue
            place = Place(function.__code__.co_filename, node.pattern.lineno + offset)
            if place not in machine.cases:
                text = text_at(place.file, node.pattern, offset)
                what = f"`case {text}` of {name} can never match"
                yield finding("MS204", machine.workflow, place, what, name)


def _takes_anything(case: ast.match_case) -> bool:
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
