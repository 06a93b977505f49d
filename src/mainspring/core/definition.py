"""Reads a workflow class once, checks all that can be known before it runs, and keeps the result.

Every problem found here is a DefinitionError that names the class, what is wrong and what to write instead.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from types import NoneType
from typing import Any, Final, get_args, get_origin

from msgspec import Struct

from mainspring.core.decisions import LONGEST_DELAY
from mainspring.core.events import Occurrence
from mainspring.core.failures import DeadlinePassed
from mainspring.core.freezing import frozen_fix
from mainspring.core.messages import Envelope, type_of
from mainspring.core.type_parameters import read_type_parameters, union_members, unwrapped
from mainspring.core.workflow import Again, History, Inputs, LateEvents, UnknownTransition, Workflow
from mainspring.errors import DefinitionError, names, shown

NAME_CHARACTERS: Final = 200
LEAST_STEPS_PER_HOUR: Final = 10
_KEPT_AS: Final = "__mainspring_definition__"

_SIGNATURES: Final = {
    "route": "def route(self, message: Input) -> str | None",
    "decide": "def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None",
    "evolve": "def evolve(self, state: State, event: Event[Input, Output]) -> State | None",
}


class Definition(Struct, frozen=True):
    """What is known of a workflow class. The mappings go from a type to its stored name, in the order of declaration.

    >>> from mainspring.testing.samples import Counter
    >>> definition_of(Counter).name
    'Counter'
    """

    name: str
    version: int
    inputs: dict[type[Any], str]
    states: dict[type[Any], str]
    outputs: dict[type[Any], str]
    results: tuple[type[Any], ...]
    begins: frozenset[type[Any]]
    from_outside: frozenset[type[Any]] | None
    unknown_transition: UnknownTransition
    wants_envelope: bool
    wants_occurrences: bool
    decides_on_occurrences: bool
    through_inbox: frozenset[type[Any]]
    again: Again
    late_events: LateEvents
    retention: timedelta | None
    history: History
    expected_within: timedelta | None
    deadline: timedelta | None
    steps_per_hour: int | None


def definition_of(cls: type[Workflow[Any, Any, Any]]) -> Definition:
    """Return the definition of a workflow class, read and checked on first use."""
    try:
        return cls.__dict__[_KEPT_AS]
    except KeyError:
        # With the class, and not in a cache, which would never let a class go: an app makes some for itself.
        setattr(cls, _KEPT_AS, definition := _read(cls))
        return definition


def _read(cls: type[Workflow[Any, Any, Any]]) -> Definition:
    inputs, states, outputs, results = read_type_parameters(cls, Workflow)
    _check_methods(cls)
    _check_snapshot_every(cls)
    for message in (*inputs, *outputs):
        _check_message(cls, message)
    for state in states:
        _check_frozen(cls, state)
    _check_initial_state(cls, states)
    _check_distinct_names(cls, (*inputs, *outputs))
    _check_distinct_names(cls, states)
    return Definition(
        name=_name(cls),
        version=_version(cls),
        inputs=_named(inputs),
        states=_named(states),
        outputs=_named(outputs),
        results=_results(cls, results, outputs),
        begins=_begins(cls, inputs),
        from_outside=_from_outside(cls, inputs),
        unknown_transition=_unknown_transition(cls),
        wants_envelope=_wants_envelope(cls, inputs),
        wants_occurrences=(wants := _is(Occurrence, _hint(cls.evolve, 2))),
        decides_on_occurrences=wants and _is(Occurrence, _hint(cls.decide_on, 1)),
        through_inbox=_through_inbox(cls, inputs),
        again=_again(cls),
        late_events=_late_events(cls),
        retention=_retention(cls),
        history=_history(cls),
        expected_within=_expected_within(cls),
        deadline=_deadline(cls, inputs),
        steps_per_hour=_steps_per_hour(cls),
    )


def _check_methods(cls: type[Workflow[Any, Any, Any]]) -> None:
    for name, signature in _SIGNATURES.items():
        method: Callable[..., Any] = getattr(cls, name)
        if method is getattr(Workflow, name):
            raise DefinitionError(cls.__name__, f"has no {name} method", f"Add `{signature}`.")
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            raise DefinitionError(
                cls.__name__,
                f"has an async {name}",
                f"Make it a plain function, `{signature}`; what must be awaited belongs in a handler.",
            )
        if inspect.isgeneratorfunction(method):
            raise DefinitionError(cls.__name__, f"has a {name} that yields", f"Return the whole, `{signature}`.")
        if not _takes(method, signature.count(":")) and not (name == "decide" and _has_own_style(cls)):
            raise DefinitionError(
                cls.__name__, f"has a {name} with other parameters than it is called with", f"Write `{signature}`."
            )


def _takes(method: Callable[..., Any], count: int) -> bool:
    """Return True if a method can be called with itself and so many arguments."""
    try:
        inspect.signature(method).bind(*range(count + 1))
    except TypeError:
        return False
    return True


def _has_own_style(cls: type[Workflow[Any, Any, Any]]) -> bool:
    return cls.decide_on is not Workflow.decide_on  # pyright: ignore[reportUnknownMemberType]  unbound generics


def _check_message(cls: type[Any], message: type[Any]) -> None:
    _check_frozen(cls, message)
    if not _has_fields(message):
        raise DefinitionError(
            cls.__name__,
            f"has {message.__name__} among its messages, which is not a record with fields",
            f"Make it a `@dataclass(frozen=True)`, with a {message.__name__} as a field if need be.",
        )


def _has_fields(cls: type[Any]) -> bool:
    return dataclasses.is_dataclass(cls) or issubclass(cls, Struct) or hasattr(cls, "model_fields")


def _check_frozen(cls: type[Any], data: type[Any]) -> None:
    if not _has_fields(data) and issubclass(data, (enum.Enum, str, int, float, bytes)):
        return
    fix = frozen_fix(data)
    if fix is not None:
        raise DefinitionError(cls.__name__, f"uses {data.__name__}, which can be changed", f"Freeze it: `{fix}`.")


def _check_initial_state(cls: type[Any], states: tuple[type[Any], ...]) -> None:
    initial = getattr(cls, "initial_state", None)
    if initial is None:
        first = states[0].__name__ if states else "New"
        raise DefinitionError(cls.__name__, "has no initial state", f"Add `initial_state = {first}(…)` to the class.")
    if type(initial) not in states:
        raise DefinitionError(
            cls.__name__,
            f"begins in {shown(initial, 200)}, which is not one of its states: {names(states)}",
            "Let initial_state be one of them, or add its type to the second type parameter.",
        )


def _name(cls: type[Workflow[Any, Any, Any]]) -> str:
    name = cls.__dict__.get("name") or cls.__name__
    if not isinstance(name, str) or not name.replace("-", "_").replace(".", "_").isidentifier():
        raise DefinitionError(
            cls.__name__, f"is named {shown(name, 80)}", "Use letters, digits, dots, dashes and underscores."
        )
    if len(name) > NAME_CHARACTERS:
        raise DefinitionError(cls.__name__, f"has a name of {len(name)} characters", f"Use at most {NAME_CHARACTERS}.")
    return name


def _version(cls: type[Workflow[Any, Any, Any]]) -> int:
    if type(cls.version) is not int or cls.version < 1:
        raise DefinitionError(cls.__name__, f"has version {shown(cls.version, 80)}", "Use a whole number from 1.")
    return cls.version


def _unknown_transition(cls: type[Workflow[Any, Any, Any]]) -> UnknownTransition:
    if cls.unknown_transition not in ("fail", "ignore"):
        raise DefinitionError(
            cls.__name__, f"has unknown_transition = {cls.unknown_transition!r}", 'Use "fail" or "ignore".'
        )
    return cls.unknown_transition


def _retention(cls: type[Workflow[Any, Any, Any]]) -> timedelta | None:
    if cls.retention is not None and (type(cls.retention) is not timedelta or cls.retention <= timedelta(0)):
        raise DefinitionError(
            cls.__name__,
            f"has retention = {shown(cls.retention, 80)}",
            "Use a timedelta of more than 0, as in `timedelta(days=30)`; timedelta.max keeps it without end.",
        )
    return cls.retention


def _expected_within(cls: type[Workflow[Any, Any, Any]]) -> timedelta | None:
    within = cls.expected_within
    if within is not None and (type(within) is not timedelta or within <= timedelta(0)):
        raise DefinitionError(
            cls.__name__,
            f"has expected_within = {shown(within, 80)}",
            "Use how long an instance may run before it seems stuck, as in timedelta(days=2), or None.",
        )
    return within


def _deadline(cls: type[Workflow[Any, Any, Any]], inputs: tuple[type[Any], ...]) -> timedelta | None:
    deadline = cls.deadline
    if deadline is None:
        return None
    if type(deadline) is not timedelta or not timedelta(0) < deadline <= LONGEST_DELAY:
        raise DefinitionError(
            cls.__name__,
            f"has deadline = {shown(deadline, 80)}",
            "Use how long an instance may take in all, as in timedelta(days=30), a thousand years at most, or None.",
        )
    if DeadlinePassed not in inputs:
        raise DefinitionError(
            cls.__name__,
            "has a deadline, but DeadlinePassed is not one of its inputs",
            "Add it to the first type parameter; a decide without a case for it means that the instance fails.",
        )
    return deadline


def _steps_per_hour(cls: type[Workflow[Any, Any, Any]]) -> int | None:
    steps = cls.steps_per_hour
    if steps is not None and (type(steps) is not int or steps < LEAST_STEPS_PER_HOUR):
        fix = f"Use a whole number from {LEAST_STEPS_PER_HOUR}, or None for what the app says."
        raise DefinitionError(cls.__name__, f"has steps_per_hour = {shown(steps, 80)}", fix)
    return steps


def _again(cls: type[Workflow[Any, Any, Any]]) -> Again:
    if cls.again not in get_args(Again):
        raise DefinitionError(cls.__name__, f"has again = {shown(cls.again, 80)}", 'Use "join", "refuse" or "anew".')
    return cls.again


def _late_events(cls: type[Workflow[Any, Any, Any]]) -> LateEvents:
    if cls.late_events not in get_args(LateEvents):
        raise DefinitionError(
            cls.__name__, f"has late_events = {shown(cls.late_events, 80)}", 'Use "kept" or "dead letter".'
        )
    return cls.late_events


def _history(cls: type[Workflow[Any, Any, Any]]) -> History:
    if cls.history not in get_args(History):
        raise DefinitionError(cls.__name__, f"has history = {shown(cls.history, 80)}", 'Use "kept" or "state".')
    if cls.history == "state" and cls.again == "anew":
        raise DefinitionError(
            cls.__name__,
            'has history = "state" and again = "anew", but only a history tells which answers are old',
            'Use again = "join" or "refuse", or keep the history.',
        )
    if cls.history == "state" and cls.snapshot_every is None:
        raise DefinitionError(
            cls.__name__,
            'has history = "state" and snapshot_every = None, but then nothing of it would be stored',
            "Leave snapshot_every out, or keep the history.",
        )
    return cls.history


def _check_snapshot_every(cls: type[Workflow[Any, Any, Any]]) -> None:
    every = cls.snapshot_every
    if every is not None and (type(every) is not int or every < 1):
        raise DefinitionError(
            cls.__name__, f"has snapshot_every = {shown(every, 80)}", "Use a whole number of events from 1, or None."
        )


def _through_inbox(cls: type[Workflow[Any, Any, Any]], inputs: tuple[type[Any], ...]) -> frozenset[type[Any]]:
    modes = cls.mode if isinstance(cls.mode, Mapping) else dict.fromkeys(inputs, cls.mode)
    for input, mode in modes.items():
        if input not in inputs or mode not in ("direct", "inbox"):
            raise DefinitionError(
                cls.__name__,
                f"has mode {shown(mode, 80)} for {getattr(input, '__name__', shown(input, 80))}",
                'Use "direct" or "inbox", for the whole class or in a mapping from its inputs.',
            )
    return frozenset(input for input, mode in modes.items() if mode == "inbox")


def _named(members: Iterable[type[Any]]) -> dict[type[Any], str]:
    return {member: type_of(member).name for member in members}


def _results(cls: type[Any], results: tuple[type[Any], ...], outputs: tuple[type[Any], ...]) -> tuple[type[Any], ...]:
    for result in results:
        if result not in (*outputs, NoneType):
            raise DefinitionError(
                cls.__name__,
                f"has {result.__name__} as its result, which is not one of its outputs",
                "Add it to the third type parameter too: a result is what the workflow gives out in the end.",
            )
    return results


def _check_distinct_names(cls: type[Any], members: Iterable[type[Any]]) -> None:
    found: dict[str, type[Any]] = {}
    for member in members:
        name = type_of(member).name
        other = found.setdefault(name, member)
        if other is not member:
            raise DefinitionError(
                cls.__name__,
                f"has two types that are both stored as {name!r}: {_where(other)} and {_where(member)}",
                'Rename one, or give it a name of its own with @message(name="…").',
            )


def _where(cls: type[Any]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _begins(cls: type[Workflow[Any, Any, Any]], inputs: tuple[type[Any], ...]) -> frozenset[type[Any]]:
    declared = cls.begins
    if declared is None:
        if len(inputs) == 1:
            return frozenset(inputs)
        raise DefinitionError(
            cls.__name__,
            f"has several inputs ({names(inputs)}) and does not say which of them may begin an instance",
            f"Add `begins = {inputs[0].__name__ if inputs else '…'}` to the class.",
        )
    return _chosen(cls, "begins", "begins with", inputs)


def _from_outside(cls: type[Workflow[Any, Any, Any]], inputs: tuple[type[Any], ...]) -> frozenset[type[Any]] | None:
    return None if cls.from_outside is None else _chosen(cls, "from_outside", "takes from outside", inputs)


def _chosen(cls: type[Any], setting: str, verb: str, inputs: tuple[type[Any], ...]) -> frozenset[type[Any]]:
    """Return the inputs that a setting of a class names."""
    declared: Inputs = getattr(cls, setting)
    members: set[Any] = set(declared) if isinstance(declared, tuple) else union_members(declared)
    for member in members:
        if member not in inputs:
            raise DefinitionError(
                cls.__name__,
                f"{verb} {getattr(member, '__name__', shown(member, 80))}, which is not one of its inputs: "
                f"{names(inputs)}",
                f"Let `{setting}` be one of them, a union, or a tuple of them.",
            )
    return frozenset(members)


def _wants_envelope(cls: type[Workflow[Any, Any, Any]], inputs: tuple[type[Any], ...]) -> bool:
    """Return True if decide asks for the envelope, and check that what it takes covers the inputs."""
    hint = unwrapped(_hint(cls.decide, 1))
    wants = _is(Envelope, hint)
    taken = hint if not wants else get_args(hint)[0] if get_args(hint) else Any
    _check_covered(cls, inputs, union_members(taken))
    return wants


def _is(wanted: type[Any], hint: Any) -> bool:
    """Return True if an annotation asks for a generic class, with parameters or without."""
    if isinstance(hint, str):
        # Imported for type checkers only: the name is all there is to see, and it is enough.
        return hint.partition("[")[0].rpartition(".")[2] == wanted.__name__
    hint = unwrapped(hint)
    return hint is wanted or get_origin(hint) is wanted


def _hint(method: Callable[..., Any], place: int) -> Any:
    """Return the annotation of a parameter, as its text where it cannot be read at run time."""
    parameters = list(inspect.signature(method).parameters.values())
    if len(parameters) != 3:
        return Any  # another authoring style, which calls its decide in its own way
    hint = parameters[place].annotation
    if hint is inspect.Parameter.empty:
        return Any
    if not isinstance(hint, str):
        return hint
    try:
        # Only this one: another annotation that cannot be read at run time is none of our business.
        return eval(hint, dict(vars(sys.modules[method.__module__])))  # noqa: S307  the author's own annotation
    except NameError:
        return hint


def _check_covered(cls: type[Any], inputs: tuple[type[Any], ...], taken: set[Any]) -> None:
    # Any has been a class since Python 3.11, and says nothing here; neither does a type variable.
    if not all(isinstance(member, type) and member is not Any for member in taken):
        return
    missing = [i for i in inputs if not any(issubclass(i, member) for member in taken)]
    if missing:
        raise DefinitionError(
            cls.__name__,
            f"takes {names(inputs)} as inputs, but its decide does not take {names(missing)}",
            f"Let decide's first parameter be the whole union of inputs: `{_SIGNATURES['decide']}`.",
        )
