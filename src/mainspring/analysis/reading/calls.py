"""Calls: what a constructor makes, what a function of the author's returns, and what Python's own functions do.

Of Python's own, those are known that decide and evolve use on lists, records and types.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct, structs

from mainspring.analysis.reading.expressions import as_often, spread
from mainspring.analysis.reading.frames import Frame, RaisedError, Reading
from mainspring.analysis.reading.objects import Above, result_types, settle_class, single_class
from mainspring.analysis.reading.questions import truth
from mainspring.analysis.reading.records import NO_DEFAULT, defaults, field_names
from mainspring.analysis.reading.values import (
    Bound,
    Closure,
    Items,
    Known,
    Made,
    Repeated,
    Symbol,
    Table,
    Test,
    Value,
    lifted,
    text_of,
)
from mainspring.analysis.reading.ways import TooManyWaysError, ways

_UNKNOWN: Final = object()


class Call(Struct, frozen=True):
    """One call: what is called, on what, and with what."""

    # Structs take a class as a field's type to be one of their own.
    function: Any
    receiver: Any
    args: Sequence[Any]
    keywords: Mapping[str, Any]
    reader: Any
    frame: Any

    def opaque(self, types: tuple[Any, ...] | None = None) -> Symbol:
        """Return what a call stands for that is not looked into."""
        return opaque(self.function, self.args, self.keywords, types)


Read: TypeAlias = Callable[[Call], Value]


def opaque(function: Value, args: Sequence[Any], keywords: Mapping[str, Value], types: Any = None) -> Symbol:
    """Return what a call stands for that is not looked into: the same call, the same value."""
    given = [*map(text_of, args), *(f"{name}={text_of(value)}" for name, value in keywords.items())]
    return Symbol(text_of(Symbol(f"{text_of(function)}({', '.join(given)})")), types)


def own_function(known: Any) -> Read | None:
    """Return how a function of Python's is read, None if it is none that is known here."""
    try:
        return _FUNCTIONS.get(known)
    except TypeError:  # what cannot be hashed is none of them
        return None


def own_method(name: str) -> Read | None:
    """Return how a method of lists, dicts and models is read, None if it is none that is known here."""
    return _METHODS.get(name)


def replaced(call: Call) -> Value:
    """Read dataclasses.replace and its kin: the same type with other fields."""
    reader: Reading = call.reader
    if not call.args or isinstance(call.args[0], Repeated):
        return call.opaque()
    value: Value = call.args[0]
    cls = settle_class(reader, value)
    names = None if cls is None else field_names(cls)
    if cls is None or names is None:
        return call.opaque()
    fields = {name: call.keywords.get(name) or reader.attribute(value, name, call.frame) for name in names}
    return Made(cls, fields)


# ---- functions


def _isinstance(call: Call) -> Value:
    return Test("isinstance", call.args[0], call.args[1]) if len(call.args) == 2 else call.opaque((bool,))


def _type(call: Call) -> Value:
    one = call.args[0] if len(call.args) == 1 else Repeated(())
    cls = None if isinstance(one, Repeated) else single_class(call.reader, one)
    return call.opaque() if cls is None else Known(cls)


def _len(call: Call) -> Value:
    match list(call.args):
        case [Items() as items] if items.whole is not None:
            return Known(len(items.whole))
        case _:
            return call.opaque((int,))


def _bool(call: Call) -> Value:
    return Known(truth(call.reader.way, call.args[0]).holds if call.args else False)


def _cast(call: Call) -> Value:
    return call.args[1] if len(call.args) == 2 else call.opaque()


def _list(call: Call) -> Value:
    return Items(list, [part for arg in call.args[:1] for part in spread(call.reader, arg)])


def _tuple(call: Call) -> Value:
    return Items(tuple, [part for arg in call.args[:1] for part in spread(call.reader, arg)])


def _reversed(call: Call) -> Value:
    return Items(list, [part for arg in call.args[:1] for part in reversed(spread(call.reader, arg))])


def _chained(call: Call) -> Value:
    if any(isinstance(arg, Repeated) for arg in call.args):
        return call.opaque()
    return Items(list, [part for arg in call.args for part in spread(call.reader, arg)])


def _next(call: Call) -> Value:
    match list(call.args):
        case [Items() as items, *rest] if items.whole is not None:
            return items.whole[0] if items.whole else rest[0] if rest else call.opaque()
        case _:
            return call.opaque()


def _super(call: Call) -> Value:
    frame: Frame = call.frame
    receiver = next(iter(frame.env.values()), None)
    owner = receiver.value if isinstance(receiver, Known) else None
    order: tuple[Any, ...] = (owner if isinstance(owner, type) else type(owner)).__mro__
    for place, base in enumerate(order):
        own = cast("dict[str, Any]", vars(base))
        if any(inspect.unwrap(member) is frame.function for member in own.values() if callable(member)):
            return Known(Above(order[place + 1 :], receiver))
    return call.opaque()


def _computed(function: Callable[..., Any]) -> Read:
    """Return how a pure function is read: computed where all that it gets is known."""

    def read(call: Call) -> Value:
        known = [_plain(arg) for arg in call.args]
        if call.keywords or any(value is _UNKNOWN for value in known):
            return call.opaque()
        try:
            return Known(function(*known))
        except (TypeError, ValueError, ArithmeticError):
            return call.opaque()

    return read


def _plain(value: Any) -> Any:
    match value:
        case Known(None | bool() | int() | float() | str() as plain):
            return plain
        case Items() if value.whole is not None:
            parts = [_plain(part) for part in value.whole]
            return _UNKNOWN if any(part is _UNKNOWN for part in parts) else parts
        case _:
            return _UNKNOWN


# ---- methods


def _append(call: Call) -> Value:
    if isinstance(call.receiver, Items) and len(call.args) == 1:
        call.receiver.parts += as_often(list(call.args), call.frame)
    return Known(None)


def _extend(call: Call) -> Value:
    if isinstance(call.receiver, Items) and len(call.args) == 1:
        call.receiver.parts += as_often(spread(call.reader, call.args[0]), call.frame)
    return Known(None)


def _insert(call: Call) -> Value:
    if isinstance(call.receiver, Items) and len(call.args) == 2:
        at = call.args[0].value if isinstance(call.args[0], Known) else 0
        call.receiver.parts[at:at] = as_often(list(call.args[1:]), call.frame)
    return Known(None)


def _get(call: Call) -> Value:
    match call.receiver, list(call.args):
        case Table(entries), [Known(key), *rest]:
            return entries.get(key, rest[0] if rest else Known(None))
        case _:
            return call.opaque()


def _copied(call: Call) -> Value:
    return Items(call.receiver.cls, list(call.receiver.parts)) if isinstance(call.receiver, Items) else call.opaque()


def _model_copied(call: Call) -> Value:
    update = call.keywords.get("update")
    changed = {str(key): value for key, value in update.entries.items()} if isinstance(update, Table) else {}
    return replaced(Call(call.function, None, [call.receiver], changed, call.reader, call.frame))


_METHODS: Final[dict[str, Read]] = {
    "append": _append,
    "extend": _extend,
    "insert": _insert,
    "get": _get,
    "copy": _copied,
    "model_copy": _model_copied,
}
_FUNCTIONS: Final[dict[Any, Read]] = {
    isinstance: _isinstance,
    type: _type,
    len: _len,
    bool: _bool,
    cast: _cast,
    list: _list,
    tuple: _tuple,
    sorted: _list,
    reversed: _reversed,
    itertools.chain: _chained,
    super: _super,
    next: _next,
    sum: _computed(sum),
    max: _computed(max),
    min: _computed(min),
    any: _computed(any),
    all: _computed(all),
    dataclasses.replace: replaced,
    structs.replace: replaced,
    getattr(copy, "replace", dataclasses.replace): replaced,
}


DEEPEST_CALL: Final = 12
SAME_FUNCTION: Final = 2
"""A function that calls itself is followed so often."""
PROBED_WAYS: Final = 64

Args: TypeAlias = Sequence[Any]
Keywords: TypeAlias = Mapping[str, Value]


def call(reader: Reading, function: Value, args: Args, keywords: Keywords, node: Any, frame: Frame) -> Value:
    """Return what a call stands for."""
    match function:
        case Known(known):
            special = own_function(known)
            if special is not None:
                return special(Call(function, None, args, keywords, reader, frame))
            if isinstance(known, type):
                return _made(cast("type[Any]", known), args, keywords, node, frame)
            if isinstance(known, functools.partial):
                partial = cast("functools.partial[Any]", known)
                given = {name: lifted(value) for name, value in partial.keywords.items()} | dict(keywords)
                return call(reader, Known(partial.func), [*map(lifted, partial.args), *args], given, node, frame)
            if isinstance(known, MethodType):
                return _followed(reader, known.__func__, [Known(known.__self__), *args], keywords, frame)
            return _followed(reader, known, args, keywords, frame)
        case Bound(bound, receiver):
            method = own_method(getattr(bound, "__name__", ""))
            if method is not None and not reader.is_own(bound):
                return method(Call(function, receiver, args, keywords, reader, frame))
            return _followed(reader, bound, [receiver, *args], keywords, frame)
        case Closure():
            return _closed(reader, function, args, keywords)
        case _:
            return opaque(function, args, keywords)


# ---- functions


def _followed(reader: Reading, function: Any, args: Args, keywords: Keywords, frame: Frame) -> Value:
    """Read a function of the author's own; what is not theirs stands for whatever it says it returns."""
    function = _dispatched(reader, function, args)
    written = inspect.unwrap(function) if callable(function) else function
    types = result_types(written)
    unknown = opaque(Known(function), args, keywords, types)
    bound = _arguments(written, args, keywords) if isinstance(written, FunctionType) else None
    if bound is None or not reader.is_near(written) or _is_deep(written, frame):
        return unknown
    if reader.is_plain(written):
        return _probed(reader, written, bound, frame) or unknown
    return reader.run_function(written, bound, frame).value


def _dispatched(reader: Reading, function: Any, args: Args) -> Any:
    """Return the function that singledispatch would choose."""
    at = 0
    if isinstance(function, functools.singledispatchmethod):
        function, at = cast("Any", function).dispatcher, 1
    dispatch = getattr(function, "dispatch", None)
    if dispatch is None or not hasattr(function, "registry") or len(args) <= at:
        return function
    cls = settle_class(reader, args[at])
    return function if cls is None else dispatch(cls)


def _arguments(function: FunctionType, args: Args, keywords: Keywords) -> dict[str, Value] | None:
    if any(isinstance(arg, Repeated) for arg in args):
        return None
    try:
        bound = inspect.signature(function).bind(*args, **keywords)
    except (TypeError, ValueError):
        return None
    found: dict[str, Value] = {}
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            found[name] = Items(tuple, list(bound.arguments.get(name, ())))
        elif parameter.kind is parameter.VAR_KEYWORD:
            found[name] = Table(bound.arguments.get(name, {}))
        elif name in bound.arguments:
            found[name] = bound.arguments[name]
        else:
            found[name] = lifted(parameter.default)
    return found


def _is_deep(function: FunctionType, frame: Frame | None) -> bool:
    if frame is not None and frame.depth >= DEEPEST_CALL:
        return True
    same = 0
    while frame is not None:
        same += frame.function is function
        frame = frame.around
    return same >= SAME_FUNCTION


def _probed(reader: Reading, function: FunctionType, bound: dict[str, Value], frame: Frame) -> Value | None:
    """Return what a function returns, if that is one known value, or one comparison, whatever it asks on its way."""

    def read(way: Any) -> Value | None:
        try:
            return reader.copy(way).run_function(function, bound, frame).value
        except RaisedError:
            return None

    found: list[Known | Test] = []
    try:
        for _, value in ways(read, around=reader.way, most=PROBED_WAYS):
            if not isinstance(value, Known | Test) or (found and found[0] != value):
                return None
            found.append(value)
    except TooManyWaysError:
        return None
    return found[0] if found else None


def _closed(reader: Reading, closure: Closure, args: Args, keywords: Keywords) -> Value:
    node: ast.Lambda | ast.FunctionDef = closure.node
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
    bound = dict(zip(names, args, strict=False)) | dict(keywords)
    frame: Frame = closure.frame.inside(bound)
    if frame.depth >= DEEPEST_CALL or len(args) > len(names):
        return opaque(closure, args, keywords)
    frame.depth += 1
    if isinstance(node, ast.Lambda):
        return reader.evaluate(node.body, frame)
    ended = reader.run(node.body, frame)
    return Known(None) if ended is None else ended.value


# ---- constructors


def _made(cls: type[Any], args: Args, keywords: Keywords, node: Any, frame: Frame) -> Value:
    names = field_names(cls)
    if names is None or any(isinstance(arg, Repeated) for arg in args):
        return opaque(Known(cls), args, keywords, (cls,))
    fields: dict[str, Value] = dict(zip(names, args, strict=False))
    fields |= {name: value for name, value in keywords.items() if name in names}
    for name, default in defaults(cls).items():
        if name not in fields and default is not NO_DEFAULT:
            fields[name] = lifted(default)
    ordered = {name: fields[name] for name in names if name in fields}
    place = None if node is None else frame.place(node)
    return Made(cls, ordered, node, place.line if place else 0, place.file if place else "")
