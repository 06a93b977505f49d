"""A step of an instance as a given / when / then test: Python that runs when it is copied into a file.

given    the inputs before it, stepped for real; or the events, where something was compensated on the way
when     its input
then     what was decided, and the state after it
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from typing import Any, Final, cast

from mainspring.analysis.export.redaction import MARKER, Redaction
from mainspring.analysis.reading.records import class_of_value
from mainspring.core import deadlines
from mainspring.core.changes import fields_of
from mainspring.core.decisions import Schedule
from mainspring.core.events import (
    AnswerRefused,
    Asked,
    Became,
    ChildStarted,
    Compensated,
    Compensating,
    Completed,
    Failed,
    FannedOut,
    Published,
    Replied,
    ScheduleCancelled,
    Scheduled,
    Sent,
    StreamEvent,
    TaskClosed,
)
from mainspring.core.messages import Envelope, Kind, type_of
from mainspring.engine.recording.walk import Moment, beside_input
from mainspring.engine.registry import WorkflowEntry
from mainspring.flows.calls import Result
from mainspring.flows.flow import Flow, flow_of
from mainspring.flows.messages import TimerDue

LINE_CHARACTERS: Final = 100
PAST_MOST: Final = 1_000
"""Moments before a step. One with a longer past makes a test that is too long to read."""

_INDENT: Final = "    "
_BUILT_IN: Final = "builtins"


def as_test(entry: WorkflowEntry, past: Sequence[Moment], moment: Moment, redaction: Redaction | None = None) -> str:
    """Return a test of the step at a moment. `past` are the moments before it that count."""
    assert moment.envelope is not None  # noqa: S101  only a step can be tested
    flow = flow_of(entry.workflow)
    writer = _Writer(redaction or Redaction(payloads=True), flow)
    workflow = writer.name(type(entry.workflow))
    given = [workflow if flow else f"{workflow}()", *_past(writer, entry, past)]
    when = _input(writer, entry, moment.envelope)
    events = [happened.entry.event for happened in moment.happened]
    then = _then(writer, entry, events, begins=moment.begins)
    state = repr(type_of(class_of_value(moment.after)).name) if flow else writer.value(moment.after)
    story = writer.call("given", given)
    writer.uses("mainspring.testing", "given")
    lines = [
        "(",
        f"{_INDENT}{_shifted(story)}",
        f"{_INDENT}.when({_shifted(when)})",
        f"{_INDENT}{_shifted(then)}",
        f"{_INDENT}.then_state({_shifted(state)})",
        ")",
    ]
    body = "\n".join(f"{_INDENT}{line}" for line in "\n".join(lines).split("\n"))
    return f"{writer.imports()}\n\n\ndef {_test_name(moment)}() -> None:\n{body}\n"


def file_name(entry: WorkflowEntry) -> str:
    """Return the name of a file for tests of a workflow."""
    return f"test_{_snake(entry.name)}.py"


def _test_name(moment: Moment) -> str:
    assert moment.envelope is not None  # noqa: S101  as above
    return f"test_{_snake(moment.envelope.type)}_in_{_snake(type(moment.before).__name__)}"


def _snake(name: str) -> str:
    """Return a name as functions have it.

    >>> _snake("OrderFulfilment")
    'order_fulfilment'
    """
    return re.sub(r"\W+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).lower()


def _past(writer: _Writer, entry: WorkflowEntry, past: Sequence[Moment]) -> list[str]:
    events = [happened.entry.event for moment in past for happened in moment.happened]
    # The kit undoes at once, as if every compensation succeeded: only the events show what really came of it.
    if any(isinstance(event, Compensating | Compensated) for event in events):
        return [writer.event(event) for event in events if event.folded]
    return [_input(writer, entry, moment.envelope) for moment in past if moment.envelope is not None]


def _input(writer: _Writer, entry: WorkflowEntry, envelope: Envelope[Any]) -> str:
    message = writer.value(envelope.message)
    if not entry.definition.wants_envelope:
        return message
    writer.uses("mainspring.testing", "envelope")
    told = [message, f"id={envelope.id!r}", f"time={writer.value(envelope.time)}"]
    if envelope.kind is not Kind.COMMAND:
        told.append(f"kind={writer.value(envelope.kind)}")
    told += [f"{name}={value!r}" for name in ("actor", "reply_to", "task") if (value := getattr(envelope, name))]
    if envelope.command is not None:
        told.append(f"command={writer.data(envelope.command)}")
    return writer.call("envelope", told)


def _then(writer: _Writer, entry: WorkflowEntry, events: Sequence[StreamEvent[Any, Any]], *, begins: bool) -> str:
    # The deadline of the class is set by the engine: decide does not return it.
    own = events[2:] if begins and deadlines.is_set_by(entry.definition, events[1:]) else beside_input(events)
    if writer.flow is not None:
        # The stage is the state, and a task that is answered is closed by that.
        own = [event for event in own if not isinstance(event, Became | TaskClosed)]
        decisions = [_flow_word(writer, writer.flow, event) or _decision(writer, event) for event in own]
    else:
        decisions = [_decision(writer, event) for event in own]
    if all(decision is not None for decision in decisions):
        return writer.call(".then", [decision for decision in decisions if decision is not None])
    writer.uses("mainspring", "Began")
    recorded = ["Began()"] if begins else []
    return writer.call(".then_events", [*recorded, *(writer.event(event) for event in events)])


def _flow_word(writer: _Writer, flow: Flow[Any, Any], event: StreamEvent[Any, Any]) -> str | None:
    """Return what the code of a flow calls that; None where it has no other word than a decision."""
    match event:
        case Sent(message, compensate, None) if flow.step_of(class_of_value(message)) is not None:
            undone = "" if compensate is None else f".undone_by({writer.step_call(compensate)})"
            return f"{writer.step_call(message)}{undone}"
        case FannedOut(messages) if messages and flow.step_of(class_of_value(messages[0])) is not None:
            return f"[{', '.join(writer.step_call(message) for message in messages)}]"
        case Asked(key, title, answers, due=None) if (types := flow.answers_named(answers)) is not None:
            told = {name: value for name, value in _options(event).items() if value not in (None, (), {})}
            named = {} if key == answers[0] else {"key": repr(key)}
            named |= {name: writer.value(value) for name, value in told.items()}
            return writer.decision("Ask", repr(title), " | ".join(map(writer.name, types)), **named)
        case Scheduled(TimerDue(key), timedelta() as after):
            writer.uses("mainspring.flows", "TimerDue")
            number = key.partition("#")[2]
            return f"TimerDue.after({after.total_seconds():g}{number and f', {number}'})"
        case Completed(Result() as result):
            return writer.decision("Complete", writer.value(flow.result_of(result)))
        case _:
            return None


def _options(asked: StreamEvent[Any, Any]) -> dict[str, Any]:
    names = ("role", "person", "excludes", "data")
    return {name: getattr(asked, name) for name in names}


def _decision(writer: _Writer, event: StreamEvent[Any, Any]) -> str | None:
    """Return the decision that an event records, or None where that would take more than the event tells."""
    value = writer.value
    match event:
        case Sent(message, None, None):
            return writer.decision("Send", value(message))
        case Sent(message, compensate, None):
            return writer.decision("Send", value(message), compensate=value(compensate))
        case Published(message):
            return writer.decision("Publish", value(message))
        case Replied(message, to):
            return writer.decision("Reply", value(message), **({} if to is None else {"to": repr(to)}))
        case Scheduled(message, after, at, key):
            when = {"after": value(after)} if after is not None else {"at": value(at)}
            usual = Schedule(message, after=after, at=at).cancel_key
            return writer.decision("Schedule", value(message), **when, **({} if key == usual else {"key": repr(key)}))
        case ScheduleCancelled(key):
            return writer.decision("CancelSchedule", repr(key))
        case ChildStarted(message, "cancel"):
            return writer.decision("StartChild", value(message))
        case Completed(result):
            return writer.decision("Complete", *(() if result is None else (value(result),)))
        case Failed(reason):
            return writer.decision("Fail", writer.reason(reason))
        case AnswerRefused(_, _, reason):
            return writer.decision("RefuseAnswer", writer.reason(reason))
        case _:
            return None


class _Writer:
    """Writes values as Python, and remembers what has to be imported for them."""

    def __init__(self, redaction: Redaction, flow: Flow[Any, Any] | None = None) -> None:
        self.flow = flow
        self._redaction = redaction
        self._imports: dict[str, set[str]] = {}
        # The names that are hidden in the message or state that is being written.
        self._hidden: Collection[str] | None = None

    def uses(self, module: str, name: str) -> None:
        if module != _BUILT_IN:
            self._imports.setdefault(module, set()).add(name)

    def imports(self) -> str:
        found = sorted(self._imports.items())
        return "\n".join(f"from {module} import {', '.join(sorted(names))}" for module, names in found)

    def name(self, cls: type[Any]) -> str:
        """Return the name of a class as it is written behind its import."""
        if cls is TimerDue:
            self.uses("mainspring.flows", "TimerDue")
            return "TimerDue"
        self.uses(cls.__module__, cls.__qualname__.partition(".")[0])
        is_command = self.flow is not None and self.flow.step_of(cls) is not None
        return f"{cls.__qualname__}.command" if is_command else cls.__qualname__

    def step_call(self, message: Any) -> str:
        """Return a step's command as the call that makes it."""
        name = cast("type[Any]", type(message)).__name__
        return self.value(message).replace(f"{name}.command(", f"{name}(", 1)

    def event(self, event: StreamEvent[Any, Any]) -> str:
        self.uses("mainspring", type(event).__name__)
        fields = {**(fields_of(event) or {})}
        if "reason" in fields:
            fields["reason"] = self._redaction.error(fields["reason"])
        return self._record(event, type(event).__name__, fields)

    def reason(self, reason: str) -> str:
        return repr(self._redaction.error(reason))

    def data(self, data: Any) -> str:
        """Return the data of a command: where anything is hidden, all of it is, for its type is not known."""
        return repr(MARKER) if self._redaction.fields else self.value(data)

    def decision(self, name: str, *arguments: str, **named: str) -> str:
        self.uses("mainspring", name)
        return self.call(name, [*arguments, *(f"{key}={value}" for key, value in named.items())])

    def value(self, value: Any) -> str:
        """Return a value as Python writes it."""
        if isinstance(value, Enum):
            return f"{self.name(type(value))}.{value.name}"
        fields = fields_of(value)
        if fields is not None:
            return self._content(value, self.name(cast("type[Any]", type(value))), fields)
        if isinstance(value, list | tuple) and type(cast("object", value)) in (list, tuple):
            return self._sequence(cast("Sequence[Any]", value))
        if isinstance(value, Mapping) and type(cast("object", value)) is dict:
            items = [self._item(key, each) for key, each in cast("dict[Any, Any]", value).items()]
            return f"{{{', '.join(items)}}}"
        if isinstance(value, set | frozenset):
            name = "set" if isinstance(value, set) else "frozenset"
            inside = ", ".join(sorted(self.value(each) for each in cast("frozenset[Any]", value)))
            return f"{name}({{{inside}}})" if inside else f"{name}()"
        return self._plain(value)

    def _item(self, key: Any, value: Any) -> str:
        hidden = self._redaction.within("", None) if self._hidden is None else self._hidden
        return f"{self.value(key)}: {self.value(MARKER if key in hidden else value)}"

    def call(self, function: str, arguments: Sequence[str]) -> str:
        """Return a call in one line, or in one for each argument."""
        line = f"{function}({', '.join(arguments)})"
        if len(line) <= LINE_CHARACTERS and "\n" not in line:
            return line
        inside = "".join(f"\n{_INDENT}{_shifted(argument)}," for argument in arguments)
        return f"{function}({inside}\n)"

    def _content(self, value: Any, name: str, fields: Mapping[str, Any]) -> str:
        """Return a message, a state or a part of one: what is hidden in it is hidden in all its parts."""
        outer = self._hidden
        self._hidden = self._redaction.within(type_of(cast("type[Any]", type(value))).name, outer)
        try:
            return self._record(value, name, fields)
        finally:
            self._hidden = outer

    def _record(self, value: Any, name: str, fields: Mapping[str, Any]) -> str:
        type_name = type_of(cast("type[Any]", type(value))).name
        told = [
            f"{field}={MARKER!r}"
            if self._redaction.hides(type_name, field, self._hidden)
            else f"{field}={self.value(each)}"
            for field, each in fields.items()
        ]
        return self.call(name, told)

    def _sequence(self, value: Sequence[Any]) -> str:
        inside = ", ".join(self.value(each) for each in value)
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"

    def _plain(self, value: Any) -> str:
        cls = cast("type[Any]", type(value))
        if cls.__module__ == "datetime":
            # Its repr names the module, as in datetime.timedelta(seconds=300).
            text = repr(value)
            for name in dict.fromkeys(re.findall(r"datetime\.(\w+)", text)):
                self.uses("datetime", name)
            return re.sub(r"datetime\.(?=\w)", "", text)
        self.uses(cls.__module__, cls.__qualname__.partition(".")[0])
        return repr(value)


def _shifted(text: str) -> str:
    return text.replace("\n", f"\n{_INDENT}")
