"""Wiring errors, found before the first message: a sent type that nobody takes, and who would have to."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

from mainspring.core.decisions import Send
from mainspring.core.messages import type_of
from mainspring.engine.registry import Registry
from mainspring.errors import WiringError


def check_wiring(registry: Registry, pools: Iterable[str] | None = None) -> None:
    """Raise a WiringError that names every message which a workflow sends and nobody takes.

    A worker that serves some pools only is not asked: others may have the rest.
    """
    if pools is not None:
        return
    missing = [
        f"{name} (sent by {entry.name})"
        for entry in registry.workflows.values()
        for name in sorted(sent_types(type(entry.workflow), entry.definition.outputs))
        if not registry.knows(name) and name not in registry.external
    ]
    if missing:
        raise WiringError(
            f"Nobody takes {', '.join(missing)}",
            "Register a handler with @app.handler, add the workflow that takes it, "
            "or say app.external(…) if another process does.",
        )


def sent_types(cls: type[Any], outputs: dict[type[Any], str]) -> set[str]:
    """Return the names of those outputs that stand in a `Send(…)` in the class's source, as far as can be seen.

    >>> from mainspring.testing.samples import Counter
    >>> sent_types(Counter, {})
    set()
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return set()
    namespace = vars(sys.modules[cls.__module__])
    sent: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _resolved(node.func, namespace) is Send and node.args:
            argument = node.args[0]
            target = _resolved(argument.func, namespace) if isinstance(argument, ast.Call) else None
            if isinstance(target, type) and target in outputs:
                sent.add(type_of(target).name)
    return sent


def _resolved(node: ast.expr, namespace: dict[str, Any]) -> Any:
    match node:
        case ast.Name(id):
            return namespace.get(id)
        case ast.Attribute(ast.Name(module), attribute):
            return getattr(namespace.get(module), attribute, None)
        case _:
            return None
