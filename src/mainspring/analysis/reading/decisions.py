"""Decisions as they were read: what the model says of each, and the events that evolve sees."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

from mainspring.analysis.reading.model import Output, Place
from mainspring.analysis.reading.objects import settle_class
from mainspring.analysis.reading.questions import classes_of
from mainspring.analysis.reading.reader import Reader
from mainspring.analysis.reading.values import Items, Known, Made, Repeated, Symbol, Value, text_of
from mainspring.core import decisions, events
from mainspring.core.decisions import task_timer_key
from mainspring.core.messages import type_of
from mainspring.core.story import duration

UNREAD: Final = "(not read)"
"""Stands for a type of message that could not be read."""

_EVENTS: Final[dict[type[Any], type[Any]]] = {
    decisions.Send: events.Sent,
    decisions.Publish: events.Published,
    decisions.Reply: events.Replied,
    decisions.Schedule: events.Scheduled,
    decisions.CancelSchedule: events.ScheduleCancelled,
    decisions.Ask: events.Asked,
    decisions.CloseTask: events.TaskClosed,
    decisions.RefuseAnswer: events.AnswerRefused,
    decisions.StartChild: events.ChildStarted,
    decisions.FanOut: events.FannedOut,
    decisions.Complete: events.Completed,
    decisions.Fail: events.Failed,
    decisions.Compensate: events.Compensating,
    decisions.Become: events.Became,
}
_OWN: Final = frozenset({"message", "result", "answer", "title", "messages", "into", "then", "state", "compensate"})
"""Arguments that the model has a place of its own for."""

_SIMPLE: Final = re.compile(r"[\w.]{1,60}")
_HIDDEN: Final = frozenset({"remind", "escalate", "data", "excludes", "reject", "key"})


def is_decision(value: object) -> bool:
    """Return True if a value is a decision that was read.

    >>> is_decision(Made(decisions.Complete, {}))
    True
    """
    return isinstance(value, Made) and value.cls in _EVENTS


def output_of(reader: Reader, decision: Made, *, repeated: bool) -> Output:
    """Return what the model says of a decision."""
    describe = _DESCRIBED.get(decision.cls, _carrying)
    message, back, compensate = describe(reader, decision)
    return Output(
        decision=decision.cls.__name__,
        message=message,
        messages=tuple(back),
        detail=_detail(decision),
        when=_when(decision),
        key=_found_by(reader, decision),
        timers=_timers(decision),
        repeated=repeated,
        compensate=compensate,
        place=Place(decision.file, decision.line) if decision.line else None,
    )


def events_of(reader: Reader, decision: Made) -> Iterator[Made]:
    """Yield the events that record a decision, in order, as evolve sees them."""
    fields = decision.fields
    if decision.cls is decisions.Schedule:
        yield Made(events.Scheduled, {**fields, "key": _key(reader, fields.get("key"), fields.get("message"))})
    elif decision.cls in (decisions.CancelSchedule, decisions.CloseTask):
        yield Made(_EVENTS[decision.cls], {"key": _named(fields.get("key"))})
    elif decision.cls is decisions.Ask:
        key = Known(task_key(decision))
        answers = Items(tuple, [Known(name) for name in _names(classes_of(fields.get("answer", Known(object))))])
        yield Made(events.Asked, {**fields, "key": key, "answers": answers})
        for name in ("remind", "escalate"):
            timer = fields.get(name)
            if isinstance(timer, Made):
                yield Made(events.Scheduled, {**timer.fields, "key": Known(task_timer_key(key.value))})
    elif decision.cls is decisions.FanOut:
        yield Made(events.FannedOut, {**fields, "into": _named(fields.get("into"))})
    else:
        yield Made(_EVENTS[decision.cls], dict(fields))


def task_key(ask: Made) -> str:
    """Return the key under which a task is known."""
    key = ask.fields.get("key", Known(None))
    if isinstance(key, Known) and key.value is not None:
        return str(key.value)
    if isinstance(key, Known):
        return next(iter(_names(classes_of(ask.fields.get("answer", Known(object))))), UNREAD)
    return text_of(key)


def message_name(reader: Reader, value: Value | None) -> str:
    """Return the name of the type of a message that a decision carries."""
    cls = None if value is None else settle_class(reader, value)
    return UNREAD if cls is None else type_of(cls).name


# ---- what each kind of decision carries, and what comes back by it

_Described = tuple[str | None, Iterable[str], str | None]


def _carrying(reader: Reader, decision: Made) -> _Described:
    undo = decision.fields.get("compensate", Known(None))
    compensate = None if undo == Known(None) else message_name(reader, undo)
    return message_name(reader, decision.fields.get("message")), (), compensate


def _scheduling(reader: Reader, decision: Made) -> _Described:
    name = message_name(reader, decision.fields.get("message"))
    return name, (name,), None


def _cancelling(_reader: Reader, decision: Made) -> _Described:
    key = _named(decision.fields.get("key"))
    return (str(key.value) if isinstance(key, Known) else text_of(key)), (), None


def _asking(reader: Reader, decision: Made) -> _Described:
    back = list(_names(classes_of(decision.fields.get("answer", Known(object)))))
    for name in ("remind", "escalate"):
        timer = decision.fields.get(name)
        if isinstance(timer, Made):
            back.append(message_name(reader, timer.fields.get("message")))
    return task_key(decision), back, None


def _fanning(reader: Reader, decision: Made) -> _Described:
    into = _named(decision.fields.get("into"))
    messages = decision.fields.get("messages")
    parts = messages.parts if isinstance(messages, Items) else []
    values = [v for part in parts for v in (part.alternatives if isinstance(part, Repeated) else (part,))]
    names = dict.fromkeys(message_name(reader, value) for value in values)
    return " | ".join(names) or UNREAD, (str(into.value) if isinstance(into, Known) else UNREAD,), None


def _ending(reader: Reader, decision: Made) -> _Described:
    result = decision.fields.get("result", Known(None))
    return (None if result == Known(None) else message_name(reader, result)), (), None


def _failing(_reader: Reader, _decision: Made) -> _Described:
    return None, (), None


def _compensating(reader: Reader, decision: Made) -> _Described:
    then = decision.fields.get("then", Known(None))
    return None, (() if then == Known(None) else (message_name(reader, then),)), None


_DESCRIBED: Final[dict[type[Any], Callable[[Reader, Made], _Described]]] = {
    decisions.Schedule: _scheduling,
    decisions.CancelSchedule: _cancelling,
    decisions.CloseTask: _cancelling,
    decisions.Ask: _asking,
    decisions.FanOut: _fanning,
    decisions.Complete: _ending,
    decisions.Fail: _failing,
    decisions.RefuseAnswer: _failing,
    decisions.Compensate: _compensating,
    decisions.Become: _failing,
}


# ---- texts


def _detail(decision: Made) -> str:
    """Return the other arguments of a decision, as they are written; a name as what it stands for if that is known."""
    node = decision.node
    if not isinstance(node, ast.Call) or decision.cls in (decisions.CancelSchedule, decisions.CloseTask):
        return ""
    names: tuple[str, ...] = decision.cls.__struct_fields__
    given = [*zip(names, node.args, strict=False), *((k.arg or "", k.value) for k in node.keywords)]
    hidden = _OWN | _HIDDEN if decision.cls is decisions.Ask else _OWN
    bare = decision.cls in (decisions.Fail, decisions.Compensate, decisions.RefuseAnswer)
    parts: list[str] = []
    for name, argument in given:
        text = _argument(argument, decision.fields.get(name))
        if name not in hidden and text:
            parts.append(text if bare else f"{name}={text}")
    return ", ".join(parts)


def _argument(node: ast.expr, value: Value | None) -> str:
    match node, value:
        case _, Known(timedelta() as span):
            return duration(span)
        case ast.Name(), Known(None):
            return ""
        case ast.Name(), Known(int() | float() | str() as plain):
            return repr(plain)
        case ast.Name(), Symbol(path) if _SIMPLE.fullmatch(path):
            return path
        case _:
            return ast.unparse(node)


def _when(decision: Made) -> str:
    fields = (
        ("after", "at") if decision.cls is decisions.Schedule else ("due",) if decision.cls is decisions.Ask else ()
    )
    for name in fields:
        value = decision.fields.get(name, Known(None))
        if isinstance(value, Known) and isinstance(value.value, timedelta):
            return duration(value.value)
        if value != Known(None):
            return text_of(value) if isinstance(value, Known | Symbol) else UNREAD
    return ""


def _found_by(reader: Reader, decision: Made) -> str | None:
    """Return the key under which a timer or a task is found again."""
    if decision.cls is decisions.Ask:
        return task_key(decision)
    if decision.cls is decisions.Schedule:
        key = _key(reader, decision.fields.get("key"), decision.fields.get("message"))
    elif decision.cls in (decisions.CancelSchedule, decisions.CloseTask):
        key = _named(decision.fields.get("key"))
    else:
        return None
    return str(key.value) if isinstance(key, Known) else text_of(key)


def _timers(decision: Made) -> int:
    if decision.cls is decisions.Schedule:
        return 1
    return sum(isinstance(decision.fields.get(name), Made) for name in ("remind", "escalate"))


def _names(classes: Iterable[type[Any]]) -> Iterator[str]:
    return (type_of(cls).name for cls in classes)


def _named(value: Value | None) -> Value:
    """Return a key as its text: a type stands for its name."""
    if isinstance(value, Known) and isinstance(value.value, type):
        return Known(type_of(value.value).name)
    return Known(UNREAD) if value is None else value


def _key(reader: Reader, key: Value | None, message: Value | None) -> Value:
    return Known(message_name(reader, message)) if key is None or key == Known(None) else key
