"""The whole machine: every message in every state that can be reached, put together."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from mainspring.analysis.reading.flows import read_flow
from mainspring.analysis.reading.model import (
    ANY_STATE,
    COMPENSATED,
    UNREAD_GUARD,
    Field,
    Gap,
    Machine,
    Message,
    Output,
    Place,
    State,
    Transition,
    Unresolved,
    Way,
)
from mainspring.analysis.reading.reader import Subject
from mainspring.analysis.reading.records import Kind, defaults, field_names
from mainspring.analysis.reading.steps import Led, Taken, place_of, read_fold, read_step
from mainspring.analysis.reading.values import Known, Made, Symbol
from mainspring.analysis.reading.ways import Literal, Term, exclude_each_other, guard_text, simplified, term_of
from mainspring.core import events
from mainspring.core.workflow import Workflow
from mainspring.flows.flow import Flow, flow_of
from mainspring.flows.journal import Journal
from mainspring.sources import class_place
from mainspring.styles import HistoryWorkflow, StateReturningWorkflow

PASSES: Final = 4
"""What the workflow itself asks for is known when all was read; then all is read once more."""


_OWN_WAYS: Final[dict[str, Way]] = {"Schedule": "timer", "FanOut": "join", "Compensate": "then"}


def read_machine(
    workflow: Workflow[Any, Any, Any] | type[Workflow[Any, Any, Any]], *, by_status: bool = False
) -> Machine:
    """Return a workflow as a state machine, read from the code of its decide and evolve. Nothing of it is run.

    States are distinguished by their classes, as streams do. With `by_status`, those of a class with a field `status`,
    `state`, `phase`, `stage` or `step` of an enum or of literals are distinguished by that too: `Order[PAID]`.

    >>> from mainspring.testing.samples import Counter
    >>> for transition in read_machine(Counter).leaving("Counted"):
    ...     print(transition.guard or "at first", "->", transition.ends)
    at first -> None
    state.times == 2 -> completed
    state.times != 2 -> None
    """
    subject = Subject(workflow, by_status=by_status)
    flow = flow_of(subject.value)
    if flow is not None:
        return _of_flow(subject, flow)
    unread = _unread_style(subject)
    if unread is not None:
        return _assembled(subject, _Found(), [unread])
    asked_for: dict[str, list[Way]] = {}
    found = _Found()
    for _ in range(PASSES):
        found = _Found()
        _read_all(subject, found, asked_for)
        known = found.ways()
        if known == asked_for:
            break
        asked_for = known
    return _assembled(subject, found, [])


def _of_flow(subject: Subject, flow: Flow[Any, Any]) -> Machine:
    """Return a flow's stages and what it awaits in them, without what only the engine has to know."""
    found = _Found()
    found.transitions = read_flow(flow)
    found.reached = {transition.target for transition in found.transitions}
    machine = _assembled(subject, found, [])
    stages = {name for name, kind in subject.kinds.items() if issubclass(kind.cls, Journal)}
    given = {name for output in found.outputs() for name in (output.message, output.compensate)}
    taken = {transition.message for transition in machine.transitions}
    outside = {subject.definition.inputs[cls] for cls in subject.definition.from_outside or ()}
    results = {subject.definition.outputs.get(cls) for cls in subject.definition.results}
    return replace(
        machine,
        doc=_doc(subject.cls),
        states=tuple(replace(state, fields=(), place=None) for state in machine.states if state.name in stages),
        inputs=tuple(each for each in machine.inputs if each.name in taken | outside),
        outputs=tuple(each for each in machine.outputs if each.name in given | results),
        place=Place(flow.function.__code__.co_filename, flow.function.__code__.co_firstlineno),
    )


class _Found:
    """What was read so far."""

    def __init__(self) -> None:
        self.transitions: list[Transition] = []
        self.gaps: list[Gap] = []
        self.unresolved: list[Unresolved] = []
        self.reached: set[str] = set()
        self.compensating: set[str] = set()
        self.cancelled: set[str] = set()
        """States in which an instance is only while what it did is undone, because it was cancelled."""

    def outputs(self) -> Iterable[Output]:
        return (output for transition in self.transitions for output in transition.outputs)

    def ways(self) -> dict[str, list[Way]]:
        """Return how messages come back that the workflow itself asks for."""
        found: dict[str, list[Way]] = {}
        for output in self.outputs():
            for place, name in enumerate(output.messages):
                way = _OWN_WAYS.get(output.decision)
                if output.decision == "Ask":
                    way = "answer" if place < len(output.messages) - output.timers else "timer"
                if way is not None and way not in found.setdefault(name, []):
                    found[name].append(way)
        return found


def _read_all(subject: Subject, found: _Found, asked_for: Mapping[str, list[Way]]) -> None:
    """Read every message in every state: first from the beginning on, then the states that nothing leads to."""
    initial = subject.initial_kind()
    for message in subject.definition.inputs:
        if message in subject.definition.begins:
            _read_one(subject, found, initial, message, begins=True, answers=False)
    read: set[str] = set()
    ready = [initial]
    while ready:
        ready = [kind for name, kind in subject.kinds.items() if name in found.reached - read]
        for kind in ready:
            read.add(kind.name)
            _read_state(subject, found, kind, asked_for)
        _read_compensations(subject, found)
    _read_cancellations(subject, found)
    ends = {transition.target for transition in found.transitions if transition.ends is not None}
    for name, kind in subject.kinds.items():
        if name not in read | found.cancelled | ends and kind is not initial:
            aside = _Found()
            _read_state(subject, aside, kind, asked_for)
            found.transitions += aside.transitions
            found.unresolved += aside.unresolved


def _read_state(subject: Subject, found: _Found, kind: Kind, asked_for: Mapping[str, list[Way]]) -> None:
    definition = subject.definition
    for message, name in definition.inputs.items():
        if definition.again == "refuse" and message in definition.begins and name not in asked_for:
            continue  # a second beginning is refused before decide sees it
        _read_one(subject, found, kind, message, begins=False, answers="answer" in asked_for.get(name, ()))


def _read_one(subject: Subject, found: _Found, kind: Kind, message: type[Any], *, begins: bool, answers: bool) -> None:
    led = read_step(subject, kind, message, begins=begins, answers=answers)
    _add(subject, found, kind.name, subject.definition.inputs[message], led, begins=begins)


def _add(subject: Subject, found: _Found, source: str, name: str, led: Sequence[Led], *, begins: bool) -> None:
    for taken, guard in _guarded(led):
        found.unresolved += taken.problems
        if not taken.known:
            found.gaps.append(Gap(source, name, guard, begins=begins, failed=taken.failed))
            continue
        target = taken.target or ANY_STATE
        ignored = not (taken.outputs or taken.moved or taken.problems) and target == source
        found.transitions.append(
            Transition(
                source=source,
                message=name,
                target=target,
                guard=guard,
                outputs=taken.outputs,
                ends=taken.ends,
                begins=begins,
                ignored=ignored,
                decided=taken.decided,
                evolved=taken.evolved,
                failed=taken.failed,
            )
        )
        if taken.ends is None:
            found.reached.update(subject.kinds if target == ANY_STATE else (target,))
        if taken.compensates:
            found.compensating.add(target)


def _read_compensations(subject: Subject, found: _Found) -> None:
    """Read what evolve makes of compensations, and of the failure behind the last of them."""
    undo = next((output.compensate for output in found.outputs() if output.compensate is not None), None)
    done = {transition.source for transition in found.transitions if transition.message == COMPENSATED}
    for name in sorted(found.compensating - done - {ANY_STATE}):
        state = subject.kinds[name]
        undone = Made(events.Compensated, {"message": Symbol("compensation"), "result": Symbol("result")})
        failed = Made(events.Failed, {"reason": Symbol("reason", (str,))})
        ends = () if undo is None else ((undone,),)
        for recorded in (*ends, (undone, failed) if undo is not None else (failed,)):
            for taken, guard in _guarded(read_fold(subject, state, recorded)):
                found.unresolved += taken.problems
                target = taken.target or ANY_STATE
                ended = "failed" if failed in recorded else None
                if ended is None and target != name:
                    found.reached.add(target)
                    found.compensating.add(target)
                found.transitions.append(
                    Transition(name, COMPENSATED, target, guard, ends=ended, ways=("undone",), evolved=taken.evolved)
                )


def _read_cancellations(subject: Subject, found: _Found) -> None:
    """Read what evolve makes of an operator's cancellation, where there is something to undo."""
    if all(output.compensate is None for output in found.outputs()):
        return
    begun = Made(events.Compensating, {"reason": Symbol("reason", (str,)), "cancelled": Known(value=True)})
    undone = Made(events.Compensated, {"message": Symbol("compensation"), "result": Symbol("result")})
    for name in sorted(found.reached):
        for each in read_fold(subject, subject.kinds[name], (begun, undone)):
            found.cancelled.update(() if each.taken.target is None else (each.taken.target,))
        for each in read_fold(subject, subject.kinds[name], (begun,)):
            found.cancelled.update(() if each.taken.target is None else (each.taken.target,))
    found.cancelled -= found.reached


def _guarded(led: Sequence[Led]) -> list[tuple[Taken, str]]:
    """Return the outcomes of all ways, each once, with the condition under which it comes."""
    outcomes: dict[Any, list[Led]] = {}
    for each in led:
        outcomes.setdefault(_outcome(each.taken), []).append(each)
    words: dict[Literal, str] = {}
    order: dict[str, None] = {}
    for each in led:
        for condition in each.conditions:
            words[condition.text, condition.holds] = str(condition)
            order.setdefault(condition.text)
    groups: list[list[Term]] = []
    apart = False
    for all_of_them in (False, True):
        groups = [
            simplified(term_of(each.conditions, all_of_them=all_of_them) for each in group)
            for group in outcomes.values()
        ]
        apart = exclude_each_other(groups)
        if apart:
            break
    always = "" if apart else UNREAD_GUARD
    return [
        (_merged([each.taken for each in same]), guard_text(group, words, list(order)) or always)
        for same, group in zip(outcomes.values(), groups, strict=True)
    ]


def _outcome(taken: Taken) -> Any:
    """Return what makes an outcome another one: not where exactly it is written, and not how the state was made."""
    outputs = tuple(replace(output, place=None) for output in taken.outputs)
    return taken.known, taken.target, taken.ends, taken.decided, taken.compensates, outputs


def _merged(same: Sequence[Taken]) -> Taken:
    evolved = dict.fromkeys(place for taken in same for place in taken.evolved)
    problems = dict.fromkeys(problem for taken in same for problem in taken.problems)
    failed = dict.fromkeys(name for taken in same for name in taken.failed)
    return replace(
        same[0],
        moved=any(taken.moved for taken in same),
        evolved=tuple(evolved),
        problems=tuple(problems),
        failed=tuple(failed),
    )


# ---- the model


def _assembled(subject: Subject, found: _Found, unread: list[Unresolved]) -> Machine:
    definition = subject.definition
    ways = found.ways()
    inputs = tuple(
        _message(cls, name, begins=cls in definition.begins, ways=_ways(ways.get(name, [])))
        for cls, name in definition.inputs.items()
    )
    by_name = {message.name: message.ways for message in inputs}
    ended = {transition.target for transition in found.transitions if transition.ends is not None}
    initial = subject.initial_kind()
    return Machine(
        workflow=definition.name,
        version=definition.version,
        doc=_doc(subject.cls),
        states=tuple(
            State(
                name=name,
                doc=_doc(kind.cls),
                fields=_fields(kind.cls),
                initial=kind is initial,
                ended=name in ended,
                reachable=kind is initial or name in found.reached | found.cancelled | ended,
                place=_place(kind.cls),
            )
            for name, kind in subject.kinds.items()
        ),
        inputs=inputs,
        outputs=tuple(_message(cls, name) for cls, name in definition.outputs.items()),
        transitions=tuple(_with_ways(each, by_name) for each in _in_order(subject, found.transitions)),
        gaps=tuple(_gap_with_ways(each, by_name) for each in dict.fromkeys(found.gaps)),
        unresolved=tuple(sorted({*found.unresolved, *unread})),
        cases=tuple(sorted(subject.cases)),
        place=_place(subject.cls),
    )


def _in_order(subject: Subject, transitions: Iterable[Transition]) -> list[Transition]:
    states = {name: place for place, name in enumerate(subject.kinds)}
    inputs = {name: place for place, name in enumerate(subject.definition.inputs.values())}
    return sorted(
        dict.fromkeys(transitions),
        key=lambda each: (not each.begins, states[each.source], inputs.get(each.message, len(inputs))),
    )


def _with_ways(transition: Transition, ways: dict[str, tuple[Way, ...]]) -> Transition:
    known = transition.ways or ways.get(transition.message, ())
    return replace(transition, ways=known)


def _gap_with_ways(gap: Gap, ways: dict[str, tuple[Way, ...]]) -> Gap:
    return replace(gap, ways=ways.get(gap.message, ()))


def _ways(own: list[Way]) -> tuple[Way, ...]:
    return tuple(own) or ("message",)


def _message(cls: type[Any], name: str, *, begins: bool = False, ways: tuple[Way, ...] = ()) -> Message:
    return Message(name, _doc(cls), _fields(cls), begins, ways, _place(cls))


def _fields(cls: type[Any]) -> tuple[Field, ...]:
    known = defaults(cls)
    annotations: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        annotations |= inspect.get_annotations(base)
    return tuple(Field(name, _type_text(annotations.get(name)), name not in known) for name in field_names(cls) or ())


def _type_text(annotation: Any) -> str:
    if annotation is None or isinstance(annotation, str):
        return annotation or ""
    return inspect.formatannotation(annotation).replace("typing.", "")


def _doc(cls: type[Any]) -> str:
    """Return the docstring that the author wrote; the one that a dataclass makes for itself says nothing."""
    doc = cls.__dict__.get("__doc__") or ""
    generated = doc.startswith(f"{cls.__name__}(")
    return "" if generated else inspect.cleandoc(doc)


def _place(cls: type[Any]) -> Place | None:
    found = class_place(cls)
    return None if found is None else Place(*found)


def _unread_style(subject: Subject) -> Unresolved | None:
    """Return why nothing of a workflow can be read, None if it can."""
    own: Any = subject.cls.decide_on
    if issubclass(subject.cls, HistoryWorkflow):
        reason = "a workflow in the history style has its whole history as its state, and no states to distinguish"
        return Unresolved(place_of(subject.cls.decide), "decide(events)", reason)
    styles: tuple[Any, ...] = (Workflow, StateReturningWorkflow)
    if own not in [style.decide_on for style in styles]:
        return Unresolved(place_of(own), "decide_on", "the workflow has a style of its own")
    return None
