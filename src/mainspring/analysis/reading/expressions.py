"""Expressions: what each stands for."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from types import UnionType
from typing import Any, Final

from mainspring.analysis.reading.frames import Frame, Reading
from mainspring.analysis.reading.patterns import bind_target
from mainspring.analysis.reading.questions import element_types, truth
from mainspring.analysis.reading.records import class_of, class_of_value
from mainspring.analysis.reading.values import (
    Closure,
    Items,
    Known,
    Repeated,
    Symbol,
    Table,
    Test,
    Value,
    lifted,
    symbol_of,
    text_of,
)
from mainspring.analysis.reading.ways import ways
from mainspring.purity.names import MISSING, InstanceOf

MOST_ITEMS: Final = 100
"""Of a list that the code writes down or makes of one; a longer one is read as many of the same."""

_OPERATORS: Final[dict[type[ast.cmpop], tuple[str, bool]]] = {
    ast.Eq: ("==", True),
    ast.NotEq: ("==", False),
    ast.Is: ("is", True),
    ast.IsNot: ("is", False),
    ast.In: ("in", True),
    ast.NotIn: ("in", False),
    ast.Lt: ("<", True),
    ast.LtE: ("<=", True),
    ast.Gt: (">", True),
    ast.GtE: (">=", True),
}
_OPPOSITES: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.Is: ast.IsNot,
    ast.In: ast.NotIn,
    ast.Lt: ast.GtE,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.GtE: ast.Lt,
}
_NEGATIVE: Final = {opposite: op for op, opposite in _OPPOSITES.items() if op in (ast.Eq, ast.Is, ast.In)}
_SCALARS: Final = (int, float, str, Decimal, datetime, timedelta)
_ARITHMETIC: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
}


def evaluate(reader: Reading, node: ast.expr, frame: Frame) -> Value:
    """Return what an expression stands for."""
    match node:
        case ast.Constant(value=value):
            return Known(value)
        case ast.Name(id=name):
            return frame.env[name] if name in frame.env else _outer(node, frame)
        case ast.Attribute(value=owner, attr=name):
            return reader.attribute(reader.evaluate(owner, frame), name, frame)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return Items(tuple if isinstance(node, ast.Tuple) else list, _parts(reader, parts, frame))
        case ast.Dict():
            return _table(reader, node, frame)
        case ast.Call():
            return _called(reader, node, frame)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return reader.evaluate(body if reader.test(test, frame) else orelse, frame)
        case ast.BoolOp():
            return _either(reader, node, frame)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Known(not reader.test(operand, frame))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return Known(-number)
        case ast.Compare():
            return _comparison(reader, node, frame)
        case ast.BinOp():
            return _arithmetic(reader, node, frame)
        case ast.NamedExpr(target=target, value=value):
            found = reader.evaluate(value, frame)
            bind_target(target, found, reader, frame)
            return found
        case ast.Subscript():
            return _item(reader, node, frame)
        case ast.ListComp() | ast.GeneratorExp():
            return Items(list, _comprehended(reader, node, frame))
        case ast.Lambda():
            return Closure(node, frame)
        case ast.JoinedStr():
            return symbol_of(node, frame.env, (str,))
        case ast.Yield(value=value) if frame.yields is not None:
            given = Known(None) if value is None else reader.evaluate(value, frame)
            frame.yields += as_often([given], frame)
            return Known(None)
        case ast.YieldFrom(value=value) if frame.yields is not None:
            frame.yields += as_often(spread(reader, reader.evaluate(value, frame)), frame)
            return Known(None)
        case _:
            return symbol_of(node, frame.env)


def test(reader: Reading, node: ast.expr, frame: Frame) -> bool:
    """Return a condition's outcome on this way, and note it in the author's words where it was open."""
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            return all(reader.test(value, frame) for value in values)
        case ast.BoolOp(values=values):
            return any(reader.test(value, frame) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not reader.test(operand, frame)
        case _:
            quiet, frame.quiet = frame.quiet, True
            value = reader.evaluate(node, frame)
            frame.quiet = quiet
            answer = truth(reader.way, value)
            if answer.open:
                _note(reader, node, value, frame, holds=answer.holds)
            return answer.holds


def spread(reader: Reading, value: Value) -> list[Value | Repeated]:
    """Return the parts of a list, or of what would be one."""
    if isinstance(value, Known):
        value = lifted(value.value)
    if isinstance(value, Items):
        return list(value.parts)
    if isinstance(value, Table):
        return [Known(key) for key in value.entries]
    types = reader.way.types(value) if isinstance(value, Symbol) else None
    element = next((element_types(hint) for hint in types or ()), None)
    return [Repeated((Symbol(f"{text_of(value)}[…]", element),), text_of(value))]


def as_often(parts: list[Value | Repeated], frame: Frame) -> list[Value | Repeated]:
    """Return parts that are added in a loop, an unknown number of times."""
    if not frame.repeating:
        return parts
    return [part if isinstance(part, Repeated) else Repeated((part,), text_of(part)) for part in parts]


def _outer(node: ast.Name, frame: Frame) -> Value:
    around = frame.names.value(node)
    if around is MISSING or isinstance(around, InstanceOf):
        return Symbol(node.id)
    return lifted(around) if type(around) in (list, tuple, dict) else Known(around)


def _parts(reader: Reading, nodes: list[ast.expr], frame: Frame) -> list[Value | Repeated]:
    found: list[Value | Repeated] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            found += spread(reader, reader.evaluate(node.value, frame))
        else:
            found.append(reader.evaluate(node, frame))
    return found


def _table(reader: Reading, node: ast.Dict, frame: Frame) -> Value:
    entries: dict[Any, Value] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        known = None if key is None else reader.evaluate(key, frame)
        if not isinstance(known, Known):
            return symbol_of(node, frame.env, (dict,))
        entries[known.value] = reader.evaluate(value, frame)
    return Table(entries)


def _called(reader: Reading, node: ast.Call, frame: Frame) -> Value:
    function = _function(reader, node.func, frame)
    args = _parts(reader, node.args, frame)
    keywords: dict[str, Value] = {}
    for keyword in node.keywords:
        value = reader.evaluate(keyword.value, frame)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
        elif isinstance(value, Table) and all(isinstance(key, str) for key in value.entries):
            keywords |= value.entries
        else:
            return symbol_of(node, frame.env)
    return reader.call(function, args, keywords, node, frame)


def _function(reader: Reading, node: ast.expr, frame: Frame) -> Value:
    match node:
        case ast.Subscript(value=inner):  # Send[Output](…), or a table of functions
            owner = reader.evaluate(inner, frame)
            return owner if isinstance(owner, Known) and isinstance(owner.value, type) else reader.evaluate(node, frame)
        case _:
            return reader.evaluate(node, frame)


def _either(reader: Reading, node: ast.BoolOp, frame: Frame) -> Value:
    stops_at = isinstance(node.op, ast.Or)
    for value in node.values[:-1]:
        found = reader.evaluate(value, frame)
        answer = truth(reader.way, found)
        if answer.open:
            _note(reader, value, found, frame, holds=answer.holds)
        if answer.holds is stops_at:
            return found
    return reader.evaluate(node.values[-1], frame)


def _comparison(reader: Reading, node: ast.Compare, frame: Frame) -> Value:
    left = reader.evaluate(node.left, frame)
    # A set that is written down behind `in` is only looked into; elsewhere it may be changed, which is not followed.
    listed = [
        ast.Tuple(each.elts, ast.Load()) if isinstance(each, ast.Set) and isinstance(op, ast.In | ast.NotIn) else each
        for op, each in zip(node.ops, node.comparators, strict=True)
    ]
    rights = [reader.evaluate(each, frame) for each in listed]
    if len(rights) == 1:
        op, holds = _OPERATORS[type(node.ops[0])]
        return Test(op, left, rights[0], holds)
    signs = [ast.unparse(ast.Compare(ast.Name("a"), [op], [ast.Name("b")]))[1:-1].strip() for op in node.ops]
    text = text_of(left) + "".join(f" {sign} {text_of(right)}" for sign, right in zip(signs, rights, strict=True))
    return Symbol(text_of(Symbol(text)), (bool,))


def _arithmetic(reader: Reading, node: ast.BinOp, frame: Frame) -> Value:
    left, right = reader.evaluate(node.left, frame), reader.evaluate(node.right, frame)
    if isinstance(node.op, ast.Add) and (isinstance(left, Items) or isinstance(right, Items)):
        cls = left.cls if isinstance(left, Items) else right.cls if isinstance(right, Items) else list
        return Items(cls, [*spread(reader, left), *spread(reader, right)])
    match left, right:
        case Items(), Known(int() as times) if isinstance(node.op, ast.Mult) and times * len(left.parts) <= MOST_ITEMS:
            return Items(left.cls, left.parts * times)
        case Known(one), Known(other) if isinstance(node.op, ast.BitOr) and _is_type(one) and _is_type(other):
            return Known(one | other)
        case Known(int() as one), Known(int() as other) if type(node.op) in _ARITHMETIC:
            try:
                return Known(_ARITHMETIC[type(node.op)](one, other))
            except (ArithmeticError, ValueError, MemoryError):
                return symbol_of(node, frame.env, (int,))
        case _:
            kinds = {_kind(reader, left), _kind(reader, right)}
            kind = kinds.pop() if len(kinds) == 1 else None
            whole = kind is int and not isinstance(node.op, ast.Div)
            types = (kind,) if kind is not None and (whole or kind is not int) else None
            return Symbol(text_of(Symbol(f"({text_of(left)} {_sign(node.op)} {text_of(right)})")), types)


def _is_type(value: Any) -> bool:
    return value is None or isinstance(value, type | UnionType)


def _sign(op: ast.operator) -> str:
    return type(op).__name__


def _kind(reader: Reading, value: Value) -> type[Any] | None:
    types: tuple[Any, ...] | None = None
    if isinstance(value, Known):
        types = (class_of_value(value.value),)
    elif isinstance(value, Symbol):
        types = reader.way.types(value)
    cls = class_of(types[0]) if types is not None and len(types) == 1 else None
    return cls if cls in _SCALARS else None


def _item(reader: Reading, node: ast.Subscript, frame: Frame) -> Value:
    owner = reader.evaluate(node.value, frame)
    if isinstance(node.slice, ast.Slice):
        return _slice(reader, node, node.slice, owner, frame)
    key = reader.evaluate(node.slice, frame)
    match owner, key:
        case Table(entries), Known(known) if known in entries:
            return entries[known]
        case Items(), Known(int() as place) if owner.whole is not None and -len(owner.whole) <= place < len(
            owner.whole
        ):
            return owner.whole[place]
        case Known(cls), _ if isinstance(cls, type):
            return owner
        case Symbol(), _:
            hint = next(iter(reader.way.types(owner) or ()), None)
            types = element_types(hint) if class_of(hint) in (tuple, list) else None
            return Symbol(text_of(Symbol(f"{text_of(owner)}[{text_of(key)}]")), types)
        case _:
            return symbol_of(node, frame.env)


def _slice(reader: Reading, node: ast.Subscript, part: ast.Slice, owner: Value, frame: Frame) -> Value:
    bounds = [None if each is None else reader.evaluate(each, frame) for each in (part.lower, part.upper, part.step)]
    known: list[Any] = [each.value if isinstance(each, Known) else each for each in bounds]
    if isinstance(owner, Items) and owner.whole is not None and all(isinstance(each, int | None) for each in known):
        return Items(owner.cls, owner.parts[slice(*known)])
    return symbol_of(node, frame.env, reader.way.types(owner) if isinstance(owner, Symbol) else None)


def _comprehended(reader: Reading, node: ast.ListComp | ast.GeneratorExp, frame: Frame) -> list[Value | Repeated]:
    """Return the parts of a comprehension: exact where it goes over what is written down, else many of its element."""
    first = node.generators[0]
    over = spread(reader, reader.evaluate(first.iter, frame))
    exact = len(node.generators) == 1 and len(over) <= MOST_ITEMS
    if exact and all(not isinstance(part, Repeated) for part in over):
        found: list[Value | Repeated] = []
        for part in over:
            inner = frame.inside({})
            bind_target(first.target, part, reader, inner)  # pyright: ignore[reportArgumentType]
            if all(reader.test(condition, inner) for condition in first.ifs):
                found.append(reader.evaluate(node.elt, inner))
        return found
    return [Repeated(_elements(reader, node, frame), symbol_of(node, frame.env).path)]


def _elements(reader: Reading, node: ast.ListComp | ast.GeneratorExp, frame: Frame) -> tuple[Value, ...]:
    """Return all that an element of a comprehension can be."""

    def read(way: Any) -> Value:
        inner, own = frame.inside({}), reader.copy(way)
        inner.quiet = True
        for generator in node.generators:
            over = spread(own, own.evaluate(generator.iter, inner))
            element = over[0] if over else Known(None)
            value = element.alternatives[0] if isinstance(element, Repeated) else element
            bind_target(generator.target, value, own, inner)
        return own.evaluate(node.elt, inner)

    found = {text_of(value): value for _, value in ways(read, around=reader.way)}
    return tuple(found.values())


def _note(reader: Reading, node: ast.expr, value: Value, frame: Frame, *, holds: bool) -> None:
    text, negation = texts(node, value, reader, frame)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _NEGATIVE:
        text, negation, holds = negation, text, not holds
    reader.way.note(text, negation, holds=holds, shown=not frame.quiet)


def texts(node: ast.expr, value: Value, reader: Reading, frame: Frame) -> tuple[str, str]:
    """Return a condition in the author's words, and its opposite."""
    if isinstance(node, ast.NamedExpr):
        node = node.value
    text = frame.text(node)
    match node, value:
        case ast.Compare(ops=[op]), Test(_, left, right):
            opposite = _OPPOSITES.get(type(op)) or _NEGATIVE.get(type(op))
            ordered = isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE)
            if opposite is not None and (not ordered or _kind(reader, left) or _kind(reader, right)):
                return text, ast.unparse(ast.Compare(node.left, [opposite()], node.comparators))
        case ((ast.Name() | ast.Attribute() | ast.Call() | ast.Subscript()), _):
            return text, f"not {text}"
        case _:
            pass
    return text, f"not ({text})"
