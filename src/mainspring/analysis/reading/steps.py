"""One step, read: a message taken in a state, along each way through decide and, for its decisions, through evolve."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from mainspring.analysis.reading.decisions import UNREAD, events_of, is_decision, output_of
from mainspring.analysis.reading.frames import Frame, RaisedError, Returned
from mainspring.analysis.reading.model import ANSWERS_NO_TASK, ANSWERS_TASK, Ends, Output, Place, Unresolved
from mainspring.analysis.reading.objects import settle_class
from mainspring.analysis.reading.questions import equal, truth
from mainspring.analysis.reading.reader import Reader, Subject
from mainspring.analysis.reading.records import Kind, hints, members
from mainspring.analysis.reading.values import Items, Known, Made, Repeated, Symbol, Value, lifted, text_of
from mainspring.analysis.reading.ways import Condition, TooManyWaysError, Way, ways
from mainspring.core import deadlines, events
from mainspring.core.decisions import Complete, Fail, RefuseAnswer
from mainspring.core.failures import DeadlinePassed, SendFailed
from mainspring.core.messages import Envelope
from mainspring.styles import StateReturningWorkflow

REPEATS: Final = 3
"""Events whose number is unknown are folded this often at most."""
TEXT_CHARACTERS: Final = 200

_STATE: Final = "state"
_FAILED: Final = Symbol("message.type", (str,))


class Taken(Struct, frozen=True):
    """Where one way leads: what is decided, and the state after it. `known` is False where decide has no case."""

    target: str | None
    known: bool = True
    outputs: tuple[Output, ...] = ()
    ends: Ends | None = None
    moved: bool = False
    compensates: bool = False
    decided: Place | None = None
    evolved: tuple[Place, ...] = ()
    problems: tuple[Unresolved, ...] = ()
    failed: tuple[str, ...] = ()


class Led(Struct, frozen=True):
    """One way, with the conditions on it."""

    conditions: tuple[Condition, ...]
    taken: Taken


def read_step(subject: Subject, state: Kind, message: type[Any], *, begins: bool, answers: bool) -> list[Led]:
    """Read what a message does in a state, along every way. `answers` says that it may be the answer to a task."""

    def read(way: Way) -> Taken | None:
        try:
            return _Step(subject, way, state, message, begins=begins, answers=answers).read()
        except RaisedError:
            return None

    return _led(read, subject, state, message)


def read_fold(subject: Subject, state: Kind, recorded: Sequence[Made]) -> list[Led]:
    """Read what events make of a state, along every way."""

    def read(way: Way) -> Taken | None:
        try:
            step = _Step(subject, way, state, type(None), begins=False, answers=False)
            after = step.fold(step.open_state(), recorded)
        except RaisedError:
            return None
        return step.taken(after, (), None)

    return _led(read, subject, state, None)


def _led(read: Any, subject: Subject, state: Kind, message: type[Any] | None) -> list[Led]:
    found: list[Led] = []
    try:
        for way, taken in ways(read):
            if taken is not None:
                found.append(Led(tuple(way.conditions.values()), taken))
    except TooManyWaysError:
        problem = _problem(subject, state, message, "there are too many ways through it to read them all")
        return [Led((), Taken(None, problems=(problem,)))]
    except (RaisedError, KeyboardInterrupt):
        raise
    except Exception as error:  # noqa: BLE001  an author's metaclass or descriptor may raise anything, and that is reported
        reason = f"reading it failed with {type(error).__name__}: {error}"
        return [Led((), Taken(None, problems=(_problem(subject, state, message, reason),)))]
    return found


def _problem(subject: Subject, state: Kind, message: type[Any] | None, reason: str) -> Unresolved:
    """Return a problem with a whole step."""
    place = place_of(subject.cls.decide if message is not None else subject.cls.evolve)
    name = "" if message is None else subject.definition.inputs[message]
    return Unresolved(place, "decide and evolve", reason, state.name, name)


class _Step:
    """Reads one step along one way."""

    def __init__(
        self, subject: Subject, way: Way, state: Kind, message: type[Any], *, begins: bool, answers: bool
    ) -> None:
        self._subject = subject
        self._reader = Reader(subject, way)
        self._state = state
        self._message = message
        self._begins = begins
        self._answers = answers
        self._evolved: list[Place] = []
        self._problems: list[Unresolved] = []

    def read(self) -> Taken:
        """Read decide, and evolve for each event that it would leave."""
        message = Symbol("message", (self._message,))
        sent = tuple(self._subject.definition.outputs.values())
        if self._message is SendFailed and sent:
            # It tells of a command that this workflow has sent, so `type` is one of their names.
            self._reader.way.narrow(_FAILED, (Literal[sent],))
        state = lifted(self._subject.initial) if self._begins else self.open_state()
        envelope = self._envelope(message)
        asked = envelope if self._subject.definition.wants_envelope else message
        returned, frame = self._enter("decide", asked, state)
        place = _place(returned, frame, self._subject)
        decided, became = self._decisions(returned.value, state, place)
        if decided is None:
            return Taken(None, known=False, decided=place, problems=tuple(self._problems), failed=self._failed())
        outputs = tuple(self._outputs(decided, place))
        if any(isinstance(part, Made) and part.cls is RefuseAnswer for part in decided):
            return self.taken(state, outputs, place)  # nothing of it is folded
        after = self.fold(state, self._first(message, envelope))
        after = self.fold(after, became)
        for part in decided:
            after = self._fold_part(after, part)
        return self.taken(after, outputs, place)

    def open_state(self) -> Symbol:
        """Return a state of this kind, of which nothing else is known."""
        if self._state.field is not None:
            self._reader.way.settle(Symbol(f"{_STATE}.{self._state.field}"), self._state.value)
        return Symbol(_STATE, (self._state.cls,))

    def taken(self, after: Value | None, outputs: tuple[Output, ...], place: Place | None) -> Taken:
        """Return where the way leads."""
        names = [output.decision for output in outputs]
        ends: Ends | None = "completed" if "Complete" in names else "failed" if "Fail" in names else None
        return Taken(
            target=None if after is None else self._name(after),
            outputs=outputs,
            ends=ends,
            moved=bool(self._evolved),
            compensates="Compensate" in names,
            decided=place,
            evolved=tuple(dict.fromkeys(self._evolved)),
            problems=tuple(self._problems),
            failed=self._failed(),
        )

    def _failed(self) -> tuple[str, ...]:
        """Return of which commands a SendFailed can tell on this way."""
        return self._reader.way.left(_FAILED) or () if self._message is SendFailed else ()

    # ---- what decide gets, and what it returns

    def _enter(self, name: str, *args: Value) -> tuple[Returned, Frame | None]:
        function = inspect.unwrap(getattr(self._subject.cls, name))
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        bound = dict(zip(names, (Known(self._subject.value), *args), strict=False))
        return self._reader.enter(function, bound, None)

    def _envelope(self, message: Value) -> Made:
        fields: dict[str, Value] = {
            name: Symbol(f"envelope.{name}", members(hint)) for name, hint in hints(Envelope).items()
        }
        fields["message"] = message
        way = self._reader.way
        answers = self._answers and way.ask(ANSWERS_TASK)
        if self._answers:
            way.note(ANSWERS_TASK, ANSWERS_NO_TASK, holds=answers, shown=True)
        if not answers:
            fields["task"] = Known(None)
        for name in ("task", "actor") if answers else ():
            # Who answers a task is known, and has a name.
            fields[name] = Symbol(f"envelope.{name}", (str,))
            way.exclude(Symbol(f"len(envelope.{name})"), 0)
        return Made(Envelope, fields)

    def _decisions(self, value: Value, state: Value, place: Place) -> tuple[list[Made | Repeated] | None, list[Made]]:
        """Return the decisions that were returned, and the state if it was returned with them."""
        became: list[Made] = []
        if value == Known(None):
            if self._message is DeadlinePassed:
                return [*map(_made, deadlines.at_end(self._subject.definition))], became
            return None, became
        if issubclass(self._subject.cls, StateReturningWorkflow):
            pair = value.whole if isinstance(value, Items) else None
            if pair is None or len(pair) != 2:
                self._trouble(place, value, "what decide returns is not written as a state with a list of decisions")
                return [], became
            became = [] if text_of(pair[0]) == text_of(state) else [Made(events.Became, {"state": pair[0]})]
            value = pair[1]
        if isinstance(value, Known):
            value = lifted(value.value)
        if not isinstance(value, Items):
            self._trouble(place, value, "what decide returns is not a list that could be read")
            return [], became
        found: list[Any] = [part for part in value.parts if self._is_readable(part, place)]
        deadline = self._subject.definition.deadline if self._begins else None
        ends = any(isinstance(part, Made) and part.cls in (Complete, Fail) for part in found)
        if deadline is not None and not ends:
            found = [*map(_made, deadlines.at_beginning(deadline, ())), *found]
        return found, became

    def _is_readable(self, part: Value | Repeated, place: Place) -> bool:
        alternatives = part.alternatives if isinstance(part, Repeated) else (part,)
        for each in alternatives:
            if not is_decision(each):
                self._trouble(place, each, "this is among the decisions, and what it is could not be read")
                return False
        return True

    def _outputs(self, decided: Sequence[Made | Repeated], place: Place) -> Iterator[Output]:
        seen: set[Output] = set()
        for part in decided:
            repeated = isinstance(part, Repeated)
            for each in part.alternatives if isinstance(part, Repeated) else (part,):
                output = output_of(self._reader, each, repeated=repeated)  # pyright: ignore[reportArgumentType]
                if output.message == UNREAD or UNREAD in output.messages:
                    self._trouble(output.place or place, each, "the type of its message could not be read")
                if not (repeated and output in seen):
                    yield output
                seen.add(output)

    # ---- what evolve makes of it

    def _first(self, message: Value, envelope: Made) -> list[Made]:
        """Return the events that record the input itself."""
        if self._begins:
            return [Made(events.Began, {}), Made(events.InitiatedBy, {"message": message})]
        found = [Made(events.Received, {"message": message})]
        task = envelope.fields["task"]
        if truth(self._reader.way, task).holds:
            found.append(Made(events.TaskClosed, {"key": task}))
        return found

    def _fold_part(self, state: Value | None, part: Made | Repeated) -> Value | None:
        if isinstance(part, Made):
            return self.fold(state, list(events_of(self._reader, part)))
        for place in range(REPEATS):
            before = state
            for each in part.alternatives:
                key = f"fold {place} {text_of(each)} of {part.text}"
                if isinstance(each, Made) and self._reader.way.ask(key):
                    state = self.fold(state, list(events_of(self._reader, each)))
            if state is before:
                break
        return state

    def fold(self, state: Value | None, recorded: Sequence[Made]) -> Value | None:
        """Return the state after some events, None if it could not be read."""
        for event in recorded:
            if state is None:
                return None
            returned, frame = self._enter("evolve", state, self._seen(event))
            after = returned.value
            if after == Known(None) or text_of(after) == text_of(state):
                continue
            place = _place(returned, frame, self._subject)
            cls = settle_class(self._reader, after)
            if cls is type(None):
                continue
            if cls not in self._subject.definition.states:
                self._trouble(place, after, "the state that evolve returns here could not be read")
                return None
            self._evolved.append(place)
            state = after
        return state

    def _seen(self, event: Made) -> Made:
        """Return an event as evolve asks for it."""
        if not self._subject.definition.wants_occurrences:
            return event
        return Made(events.Occurrence, {"event": event})

    def _name(self, state: Value) -> str | None:
        cls = settle_class(self._reader, state)
        for kind in self._subject.kinds.values():
            if kind.cls is cls and (kind.field is None or self._has(state, kind.field, kind.value)):
                return kind.name
        return None

    def _has(self, state: Value, field: str, value: Any) -> bool:
        """Return True if a field of a state has a value; where it is unknown, the way forks."""
        found = self._reader.field(state, field)
        answer = equal(self._reader.way, found, Known(value))
        if answer.open:
            self._reader.way.note(f"{field} is {value!r}", f"{field} is not {value!r}", holds=answer.holds, shown=False)
        return answer.holds

    def _trouble(self, place: Place, value: Value | Repeated, reason: str) -> None:
        definition = self._subject.definition
        node = value.node if isinstance(value, Made) else None
        text = ast.unparse(node) if isinstance(node, ast.AST) else text_of(value)
        message = definition.inputs.get(self._message, "")
        self._problems.append(Unresolved(place, text[:TEXT_CHARACTERS], reason, self._state.name, message))


def place_of(function: Any) -> Place:
    """Return where a function is written."""
    code = inspect.unwrap(function).__code__
    return Place(code.co_filename, code.co_firstlineno)


def _place(returned: Returned, frame: Frame | None, subject: Subject) -> Place:
    """Return where a function ended: its case, else its return, else the function itself."""
    if frame is None:
        return place_of(subject.cls.decide)
    if frame.case is not None:
        return Place(frame.file, frame.case)
    if isinstance(returned.node, ast.AST):
        return frame.place(returned.node)
    return Place(frame.file, frame.function.__code__.co_firstlineno)


def _made(decision: object) -> Made:
    """Return a decision of the engine's as if decide had made it."""
    made = lifted(decision)
    assert isinstance(made, Made)  # noqa: S101  every decision has fields
    return made
