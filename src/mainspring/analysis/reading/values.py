"""What an expression stands for while code is read and not run.

    Known      an object that exists before the code runs: a constant, a class, a function, the workflow itself
    Made       an instance of a known class, made by the code, with what its fields stand for
    Symbol     something of one of some types: the message, a field of the state, the result of a call
    Items      a list or a tuple; a part of it may be Repeated: none, one or many
    Table      a dict with known keys
    Bound      a function or a method with its first argument
    Closure    a function written inside the one that is read
    Test       the outcome of a comparison, before code has asked for it

A symbol is known by its path, `message.offence`, as pure code would find the same object there again. What was learnt
of it on the way, its type or that it is not None, belongs to the way and not to the symbol: see `ways`.
"""

from __future__ import annotations

import ast
import enum
import hashlib
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from mainspring.analysis.reading.records import class_of_value, field_names
from mainspring.core.workflow import Workflow

TEXT_CHARACTERS: Final = 300
"""What is longer is known by its beginning and a digest."""

DIGEST_CHARACTERS: Final = 16
ANYTHING: Final = None


class Known(Struct, frozen=True):
    """An object that exists before the code runs."""

    value: Any


class Symbol(Struct, frozen=True):
    """Something of one of some types; `types` is None when nothing is known of them."""

    path: str
    types: tuple[Any, ...] | None = ANYTHING


class Made(Struct, frozen=True):
    """An instance that the code makes, with what its fields stand for; one that is missing can be anything."""

    cls: Any
    fields: dict[str, Value]
    node: Any = None
    line: int = 0
    file: str = ""


class Repeated(Struct, frozen=True):
    """A part of a list: none, one or many of one of these. `text` says of which many it is."""

    alternatives: tuple[Value, ...]
    text: str = ""


class Items:
    """A list or a tuple. Lists are changed in place, as the code would."""

    def __init__(self, cls: type[Any], parts: list[Value | Repeated]) -> None:
        self.cls = cls
        self.parts = parts

    @property
    def whole(self) -> list[Value] | None:
        """The parts, if their number is known."""
        parts = [part for part in self.parts if not isinstance(part, Repeated)]
        return parts if len(parts) == len(self.parts) else None


class Table(Struct, frozen=True):
    """A dict with known keys."""

    entries: dict[Any, Value]


class Bound(Struct, frozen=True):
    """A function with its first argument."""

    function: Any
    receiver: Value


class Closure(Struct, frozen=True):
    """A function inside the one that is read, with the frame around it."""

    node: Any
    frame: Any


class Test(Struct, frozen=True):
    """A comparison, or its opposite."""

    op: str
    left: Value
    right: Value
    holds: bool = True


Value: TypeAlias = Known | Symbol | Made | Items | Table | Bound | Closure | Test


def lifted(value: Any) -> Value:
    """Return an object as the value that the code would have made: its parts can be looked at.

    >>> lifted([1]).parts
    [Known(value=1)]
    """
    cls = class_of_value(value)
    if cls in (list, tuple):
        return Items(cls, [lifted(part) for part in value])
    if cls is dict:
        return Table({key: lifted(part) for key, part in value.items()})
    names = None if issubclass(cls, type | enum.Enum) else field_names(cls)
    if names is not None:
        return Made(cls, {name: lifted(getattr(value, name)) for name in names if hasattr(value, name)})
    return Known(value)


def text_of(value: Value | Repeated) -> str:
    """Return what a value is known by: the same text, the same value.

    >>> text_of(Made(int, {"a": Symbol("message.id")}))
    'int(a=message.id)'
    """
    match value:
        case Known(known):
            text = _known(known)
        case Symbol(path):
            text = path
        case Made(cls, fields):
            text = f"{cls.__name__}({', '.join(f'{name}={text_of(part)}' for name, part in fields.items())})"
        case Items():
            text = f"[{', '.join(map(text_of, value.parts))}]"
        case Repeated(alternatives, of):
            text = f"*({' | '.join(map(text_of, alternatives))} of {of})"
        case Table(entries):
            text = f"{{{', '.join(f'{key!r}: {text_of(part)}' for key, part in entries.items())}}}"
        case Bound(function, receiver):
            text = f"{text_of(receiver)}.{function.__name__}"
        case Closure(node):
            text = f"function at {node.lineno}"
        case Test(op, left, right, holds):
            text = f"{'' if holds else 'not '}({text_of(left)} {op} {text_of(right)})"
    if len(text) > TEXT_CHARACTERS:
        digest = hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARACTERS]
        return f"{text[: TEXT_CHARACTERS - DIGEST_CHARACTERS - 1]}…{digest}"
    return text


def _known(value: Any) -> str:
    if value is None or isinstance(value, int | float | str | bytes):
        return repr(value)
    if isinstance(value, Workflow):
        return "self"
    name = getattr(value, "__qualname__", None)
    return name if isinstance(name, str) else f"{type(value).__name__}@{id(value):x}"


def symbol_of(node: ast.AST, names: Mapping[str, Value], types: tuple[Any, ...] | None = ANYTHING) -> Symbol:
    """Return the symbol of an expression that is not looked into: its source, and what the names in it stand for."""
    used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} & names.keys()
    inside = ", ".join(f"{name}={text_of(names[name])}" for name in sorted(used))
    path = text_of(Symbol(f"{ast.unparse(node)}{f' with {inside}' if inside else ''}"))
    return Symbol(path, types)
