"""Rules about messages that come: MS101 unhandled-message, MS102 second-beginning, MS103 unused-input.

Rules about what comes from outside: MS104 answer-from-outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, TypeAlias

from mainspring.analysis.lint.rules import Finding, finding
from mainspring.analysis.lint.runs import Coming, Runs, Situation, is_of
from mainspring.analysis.reading.model import Gap, Machine, Place
from mainspring.core.definition import Definition, definition_of
from mainspring.core.messages import type_of
from mainspring.core.workflow import Workflow
from mainspring.purity.task_answers import answers_in

_Met: TypeAlias = dict[tuple[str, str], tuple[Gap, Coming | None, Situation]]

_BRINGS: Final = {
    "command": "as the outcome of {key}",
    "child": "as the outcome of the child that {key} began",
    "task": "as the answer to the task {key}",
    "join": "as the join of a fan-out",
    "then": "after compensation",
}


_CLASS_FOR_EACH: Final = (
    "Give each state a class of its own: lint, diagrams, lists and figures tell states by their class."
)


def check_messages(runs: Runs, definition: Definition, decide: Place) -> Iterator[Finding]:
    """Yield what is wrong with the messages that can come."""
    unused = set(_unused(runs))
    machine = runs.machine
    for name in sorted(unused):
        what = f"no state of {machine.workflow} has a case for its input {name}"
        yield finding("MS103", machine.workflow, decide, what, name)
    if definition.unknown_transition == "ignore":
        return
    plain = {name for cls, name in definition.states.items() if issubclass(cls, str | int | float | Enum)}
    if unread := sorted({gap.source for gap in machine.gaps if gap.guard} & plain):
        what = f"{', '.join(unread)} is one state here, and decide tells its values apart"
        yield finding("MS901", machine.workflow, decide, what, *unread, fix=_CLASS_FOR_EACH)
    for gap in machine.gaps:
        if gap.begins and gap.message not in unused and not _is_by_value(gap, plain):
            what = f"{gap.message} may begin an instance, and decide has no case for it in {gap.source}{_under(gap)}"
            yield finding("MS101", machine.workflow, decide, what, gap.message, gap.source, witness=(gap.message,))
    met = {pair: found for pair, found in sorted(_met(runs).items()) if pair[1] not in unused}
    yield from _second_beginnings(runs, met, machine.place or decide)
    for (state, message), (gap, how, situation) in met.items():
        if (machine.input(message).begins and how is None) or _is_by_value(gap, plain):
            continue
        comes = "at any time" if how is None else _BRINGS[how.kind].format(key=how.key)
        what = f"{message} can come {comes} in {state}, and decide has no case for it{_under(gap)}"
        witness = (*runs.witness(situation), message)
        yield finding("MS101", machine.workflow, decide, what, message, state, witness=witness)


def _is_by_value(gap: Gap, plain: set[str]) -> bool:
    """Return True if a case is missing for some values of a state only, which may never occur."""
    return bool(gap.guard) and gap.source in plain


def _unused(runs: Runs) -> Iterator[str]:
    """Yield the inputs that no state has a case for."""
    if runs.machine.unresolved:
        return
    used = {transition.message for transition in runs.machine.transitions}
    states = {state.name for state in runs.machine.states}
    for message in runs.machine.inputs:
        if message.name not in used and states:
            yield message.name


def _met(runs: Runs) -> _Met:
    """Return the gaps that a message can really meet, and what brings it; messages that are asked for come first."""
    met: _Met = {}
    for situation in runs.entered:
        for (state, message), gaps in runs.gaps.items():
            if state != situation.state or not situation.clear:
                continue
            origins = [
                origin for origin in runs.origins(situation, message) if origin is None or origin.kind != "timer"
            ]
            for origin in origins:
                gap = next((gap for gap in gaps if is_of(gap.failed, origin)), None)
                known = met.get((state, message))
                if gap is not None and (known is None or (known[1] is None and origin is not None)):
                    met[state, message] = (gap, origin, situation)
    return met


def _second_beginnings(runs: Runs, met: _Met, place: Place) -> Iterator[Finding]:
    states: dict[str, dict[str, tuple[str, ...]]] = {}
    for (state, message), (_, how, situation) in met.items():
        if runs.machine.input(message).begins and how is None:
            states.setdefault(message, {})[state] = (*runs.witness(situation), message)
    for message, found in states.items():
        what = f"a second {message} finds no case in {', '.join(found)}"
        witness = min(found.values(), key=len)
        yield finding("MS102", runs.machine.workflow, place, what, message, *found, witness=witness)


def _under(gap: Gap) -> str:
    return f" when {gap.guard}" if gap.guard else ""


_UNREAD: Final = "Name what it takes from outside in from_outside: until then only what begins an instance is taken."


def check_outside(cls: type[Workflow[Any, Any, Any]], machine: Machine, decide: Place) -> Iterator[Finding]:
    """Yield which answers to tasks may come past the task."""
    allowed, answers = definition_of(cls).from_outside, answers_in(cls)
    if answers is None and allowed is None:
        what = f"which inputs of {machine.workflow} answer its tasks"
        yield finding("MS901", machine.workflow, decide, what, fix=_UNREAD)
    for name in sorted(type_of(each).name for each in (answers or frozenset()) & (allowed or frozenset())):
        what = f"{name} answers a task of {machine.workflow}, and from_outside lets it come past the task"
        yield finding("MS104", machine.workflow, machine.place or decide, what, name)
