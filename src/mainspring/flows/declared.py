"""What a flow sends, receives and calls its stages: read from its code, so that nothing is written twice.

Followed are the functions of the author's own package that the code names. What cannot be seen is declared.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType, UnionType
from typing import Any, Final, cast, get_args

from mainspring.flows import ends, words
from mainspring.flows.calls import Step
from mainspring.sources import source_of

FUNCTIONS_READ: Final = 500

_SENDING: Final = frozenset({words.call, words.child})
_UNSENT: Final = frozenset({words.publish, words.reply})


class Declared:
    """What was found in the code of a flow."""

    def __init__(self) -> None:
        self.steps: dict[Step[Any, Any], None] = {}
        self.flows: dict[Any, None] = {}
        self.sends: dict[type[Any], None] = {}
        self.receives: dict[type[Any], None] = {}
        self.asks: dict[type[Any], None] = {}
        self.answers: dict[type[Any], None] = {}
        self.stages: dict[str, None] = {}


def declared_in(function: Callable[..., Any], is_flow: Callable[[Any], bool]) -> Declared:
    """Return what the code of a function, and of those that it names, says."""
    found = Declared()
    package = (function.__module__ or "").partition(".")[0]
    left, read = [inspect.unwrap(function)], set[Any]()
    while left and len(read) < FUNCTIONS_READ:
        one = left.pop()
        if one in read or not isinstance(one, FunctionType):
            continue
        read.add(one)
        source = source_of(one)
        if source is None:
            continue
        names = _names_of(one)
        for node in ast.walk(source[0]):
            if isinstance(node, ast.Call):
                _read_call(node, names, found)
            if isinstance(node, ast.Name | ast.Attribute):
                value = _resolved(node, names)
                if isinstance(value, Step):
                    found.steps.setdefault(cast("Step[Any, Any]", value))
                elif is_flow(value):
                    found.flows.setdefault(value)
                elif isinstance(value, FunctionType) and (value.__module__ or "").partition(".")[0] == package:
                    left.append(value)
    return found


def _read_call(node: ast.Call, names: dict[str, Any], found: Declared) -> None:
    word = _resolved(node.func, names)
    if not isinstance(word, FunctionType) or word.__module__ not in (words.__name__, ends.__name__):
        return
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    if word is words.receive:
        for argument in arguments:
            found.receives.update(dict.fromkeys(_types(argument, names)))
    elif word is words.ask:
        for argument in arguments[1:2]:
            found.asks.update(dict.fromkeys(_types(argument, names)))
    elif word is words.stage:
        if arguments and isinstance(arguments[0], ast.Constant) and isinstance(arguments[0].value, str):
            found.stages.setdefault(arguments[0].value)
    elif word in _SENDING or word in _UNSENT:
        sent = _resolved(arguments[0].func, names) if arguments and isinstance(arguments[0], ast.Call) else None
        if isinstance(sent, type):
            found.sends.setdefault(sent)
        for argument in arguments[1:] if word in _SENDING else ():
            found.answers.update(dict.fromkeys(_types(argument, names)))


def _names_of(function: FunctionType) -> dict[str, Any]:
    closure = function.__closure__ or ()
    free: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, closure, strict=True):
        try:
            free[name] = cell.cell_contents
        except ValueError:
            continue  # not bound yet
    own = {*function.__code__.co_varnames, *function.__code__.co_cellvars}
    return {name: value for name, value in {**function.__globals__, **free}.items() if name not in own}


def _types(node: ast.expr, names: dict[str, Any]) -> Iterator[type[Any]]:
    """Yield the types that an expression names: `Approve | Reject`, `(Approve, Reject)`, an alias."""
    if isinstance(node, ast.BinOp):
        yield from _types(node.left, names)
        yield from _types(node.right, names)
    elif isinstance(node, ast.Tuple):
        for element in node.elts:
            yield from _types(element, names)
    else:
        value = _resolved(node, names)
        yield from (
            (each for each in get_args(value) or (value,) if isinstance(each, type))
            if isinstance(value, type | UnionType)
            else ()
        )


def _resolved(node: ast.expr, names: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _resolved(node.value, names)
        return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
    return None
