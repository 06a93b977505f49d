"""Calls: what a constructor makes, and what a function of the author's returns."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any, Final, TypeAlias, cast

from mainspring.analysis.reading.frames import Frame, RaisedError, Reading
from mainspring.analysis.reading.library import Call, opaque, own_function, own_method
from mainspring.analysis.reading.objects import result_types, settle_class
from mainspring.analysis.reading.records import NO_DEFAULT, defaults, field_names
from mainspring.analysis.reading.values import Bound, Closure, Items, Known, Made, Repeated, Table, Test, Value, lifted
from mainspring.analysis.reading.ways import TooManyWaysError, ways

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
