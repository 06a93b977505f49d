"""What tests write of a flow: a call as its code has it, and not the decision that it makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from msgspec import Struct

from mainspring.core.decisions import Compensate, Complete, Fail, FanOut, Send
from mainspring.core.events import Became, FannedOut
from mainspring.errors import shown
from mainspring.flows.calls import Call, Result, fan_out
from mainspring.flows.code import Code
from mainspring.flows.ends import Failure, StepFailed, Undo, reason_of
from mainspring.flows.journal import Journal


class step(Struct, frozen=True):  # noqa: N801  as tests read it, in what differs
    """A call of a step that was made, as its code has it.

    >>> step("charge(order_id='o-1')", "refund(order_id='o-1')")
    "charge(order_id='o-1')".undone_by("refund(order_id='o-1')")
    """

    message: Any
    undone_by: Any = None

    def __repr__(self) -> str:
        undone = "" if self.undone_by is None else f".undone_by({shown(self.undone_by, 200)})"
        return f"{shown(self.message, 200)}{undone}"


class each(Struct, frozen=True):  # noqa: N801  as above
    """Calls of a step that were made together.

    >>> each(("pack(1)",), int, "pack")
    ['pack(1)']
    """

    messages: tuple[Any, ...]
    into: type[Any]
    key: str | None

    def __repr__(self) -> str:
        return shown(list(self.messages), 400)


def meaning_of(flow: Code, word: Any, state: Journal) -> Any:
    """Return the decision that a word of a test stands for; anything else is what it is."""
    if isinstance(word, Call):
        call = cast("Call[Any]", word)
        call.use()
        return call.decision
    if isinstance(word, list):
        calls = cast("list[Any]", word)
        return _each(flow, calls, state) if calls and all(isinstance(one, Call) for one in calls) else calls
    if isinstance(word, Complete):
        done: Any = cast("Any", word).result
        return word if isinstance(done, Result) else Complete(flow.completed(done))  # pyright: ignore[reportUnknownVariableType]
    match word:
        case step(message, undone_by):
            return Send(message, undone_by)
        case each(messages, into, key):
            return FanOut(messages, into, key)
        case Failure():
            return Fail(reason_of(word))
        case Undo() | StepFailed():
            undone: Compensate[Any] = Compensate(reason_of(word))
            return undone
        case _:
            return word


def word_for(flow: Code, decision: Any) -> Any:
    """Return the word of a test for a decision: that of the code, where it has one."""
    if isinstance(decision, Send):
        sent = cast("Send[Any]", decision)
        return sent if flow.step_of(_type_of(sent.message)) is None else step(sent.message, sent.compensate)
    if isinstance(decision, FanOut):
        parts = cast("FanOut[Any, Any]", decision)
        is_each = bool(parts.messages) and flow.step_of(_type_of(parts.messages[0])) is not None
        return each(tuple(parts.messages), parts.into, parts.key) if is_each else parts
    if isinstance(decision, Complete):
        done: Any = cast("Any", decision).result
        return Complete(done.carried if isinstance(done, Result) else done)
    return decision


def _type_of(value: object) -> type[Any]:
    return type(value)


def _each(flow: Code, calls: Sequence[Call[Any]], state: Journal) -> Any:
    """Return the decision of `each(…)`: the first of a step's, or the next one after those that were made."""
    for call in calls:
        call.use()
    called = flow.step_of(_type_of(calls[0].message))
    if called is None:
        return list(calls)
    made = 1
    for event in (entry.event for entry in state.entries):
        if type(event) is Became:
            made = 1  # it has begun again, and counts anew
        elif isinstance(event, FannedOut) and type(cast("Any", event).messages[0]) is called.command:
            made += 1
    return fan_out(called, calls, called.name if made == 1 else f"{called.name}#{made}")
