"""Statements: what is assigned, which branch is taken, and how a function ends."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final

from mainspring.analysis.reading.expressions import as_often, spread
from mainspring.analysis.reading.frames import Frame, RaisedError, Reading, Returned
from mainspring.analysis.reading.patterns import Patterns, bind_target
from mainspring.analysis.reading.values import Closure, Items, Known, Repeated, Symbol, Value, text_of

ROUNDS: Final = 2
"""A loop of which nobody knows how often it runs is read so often at most: enough for one part to follow another."""
EXACT_ROUNDS: Final = 100

_LEFT: Final = Returned(Known(None))
"""How `break` and `continue` end a body; the loop knows it by identity."""
_NEXT: Final = Returned(Known(None), "continue")


def run(reader: Reading, body: Sequence[ast.stmt], frame: Frame) -> Returned | None:
    """Read statements; return how they ended, None if they fell through."""
    for node in body:
        ended = _run_one(reader, node, frame)
        if ended is not None:
            return ended
    return None


def _run_one(reader: Reading, node: ast.stmt, frame: Frame) -> Returned | None:
    match node:
        case ast.Return(value=value):
            return Returned(Known(None) if value is None else reader.evaluate(value, frame), node)
        case ast.If(test=test, body=body, orelse=orelse):
            return run(reader, body if reader.test(test, frame) else orelse, frame)
        case ast.Match():
            return _matched(reader, node, frame)
        case ast.Assign(targets=targets, value=value):
            found = reader.evaluate(value, frame)
            for target in targets:
                bind_target(target, found, reader, frame)
        case ast.AnnAssign(target=target, value=value) if value is not None:
            bind_target(target, reader.evaluate(value, frame), reader, frame)
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
            _augment(reader, name, op, value, frame)
        case ast.Expr(value=value):
            reader.evaluate(value, frame)
        case ast.For():
            return _looped(reader, node, frame)
        case ast.While():
            return _while(reader, node, frame)
        case ast.With(body=body):
            return run(reader, body, frame)
        case ast.Try():
            return _tried(reader, node, frame)
        case ast.Raise():
            raise RaisedError
        case ast.Assert(test=test):
            if not reader.test(test, frame):
                raise RaisedError
        case ast.FunctionDef(name=name):
            frame.env[name] = Closure(node, frame)
        case ast.Break():
            return _LEFT
        case ast.Continue():
            return _NEXT
        case _:
            pass  # imports, pass, global: what they bind is looked up where it is used
    return None


def _matched(reader: Reading, node: ast.Match, frame: Frame) -> Returned | None:
    quiet = frame.quiet
    frame.quiet = quiet or isinstance(node.subject, ast.Call)
    value = reader.evaluate(node.subject, frame)
    frame.quiet = quiet
    patterns = Patterns(reader, frame)
    for case in node.cases:
        before = dict(frame.env)
        if patterns.case(case.pattern, node.subject, value) and (case.guard is None or reader.test(case.guard, frame)):
            place = frame.place(case.pattern)
            frame.case = place.line
            reader.enters(place)
            return run(reader, case.body, frame)
        frame.env = before
    return None


def _augment(reader: Reading, name: str, op: ast.operator, value: ast.expr, frame: Frame) -> None:
    added = reader.evaluate(value, frame)
    before = frame.env.get(name, Symbol(name))
    if isinstance(before, Items) and isinstance(op, ast.Add):
        parts = as_often(spread(reader, added), frame)
        if before.cls is list:
            before.parts += parts
        else:
            frame.env[name] = Items(before.cls, [*before.parts, *parts])
    else:
        types = reader.way.types(before) if isinstance(before, Symbol) else None
        frame.env[name] = Symbol(text_of(Symbol(f"({text_of(before)} {type(op).__name__} {text_of(added)})")), types)


def _looped(reader: Reading, node: ast.For, frame: Frame) -> Returned | None:
    over = spread(reader, reader.evaluate(node.iter, frame))
    exact = len(over) <= EXACT_ROUNDS and not any(isinstance(part, Repeated) for part in over)
    # Another loop over the same may stop at another element: each has its own.
    rounds = over if exact else _rounds(over, str(frame.place(node)))
    frame.repeating += not exact
    try:
        for place, part in enumerate(rounds):
            if not exact and not reader.way.ask(f"round {place} over {text_of(part)} at {frame.place(node)}"):
                continue
            value: Value = part.alternatives[0] if isinstance(part, Repeated) else part
            bind_target(node.target, value, reader, frame)
            ended = run(reader, node.body, frame)
            if ended is _LEFT:
                return None
            if ended is not None and ended is not _NEXT:
                return ended
    finally:
        frame.repeating -= not exact
    return run(reader, node.orelse, frame)


def _rounds(over: Sequence[Any], loop: str) -> list[Any]:
    """Return what a loop of unknown length is read with: each alternative may follow each other one."""
    alternatives = [
        alternative for part in over for alternative in (part.alternatives if isinstance(part, Repeated) else (part,))
    ]
    found: list[Any] = []
    for place in range(ROUNDS):
        for value in alternatives:
            renamed = Symbol(f"{value.path}[{place} at {loop}]", value.types) if isinstance(value, Symbol) else value
            found.append(renamed)
    return found


def _while(reader: Reading, node: ast.While, frame: Frame) -> Returned | None:
    frame.repeating += 1
    try:
        for _ in range(ROUNDS):
            if not reader.test(node.test, frame):
                break
            ended = run(reader, node.body, frame)
            if ended is _LEFT:
                return None
            if ended is not None and ended is not _NEXT:
                return ended
    finally:
        frame.repeating -= 1
    return run(reader, node.orelse, frame)


def _tried(reader: Reading, node: ast.Try, frame: Frame) -> Returned | None:
    """Read a try statement: all goes well, or a handler takes over at its beginning."""
    for handler in node.handlers:
        raised = reader.way.ask(f"raises into {frame.place(handler)}")
        what = "an error" if handler.type is None else frame.text(handler.type)
        reader.way.note(f"{what} is raised", f"{what} is not raised", holds=raised, shown=not frame.quiet)
        if raised:
            return run(reader, [*handler.body, *node.finalbody], frame)
    ended = run(reader, [*node.body, *node.orelse], frame)
    return ended if ended is not None else run(reader, node.finalbody, frame)
