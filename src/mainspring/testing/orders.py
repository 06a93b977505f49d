"""One order in which messages, answers and timers reach an instance, played step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from mainspring.core.definition import definition_of
from mainspring.core.events import Published, Replied, Scheduled, Sent
from mainspring.core.messages import Envelope, Kind
from mainspring.core.route import route
from mainspring.core.workflow import Workflow
from mainspring.errors import (
    CannotBeginError,
    DecisionAfterEndError,
    InstanceEndedError,
    InvalidIdError,
    MainspringError,
    UnknownTransitionError,
    shown,
)
from mainspring.testing.inspection import Broken, InspectedRehearsal
from mainspring.testing.rehearsal import Rehearsal

Property: TypeAlias = Callable[[Rehearsal[Any, Any, Any]], bool | None]
Draw: TypeAlias = Callable[[Any], Any]

REFUSALS: Final = (UnknownTransitionError, CannotBeginError, InstanceEndedError)


class Say(Struct, frozen=True):
    """A message comes from outside.

    >>> Say("paid").message
    'paid'
    """

    message: Any


class Repeat(Struct, frozen=True):
    """A message that came before comes again.

    >>> Repeat(0).which
    0
    """

    which: int


class Fire(Struct, frozen=True):
    """A timer fires: one that waits, or late, one that does not wait any more.

    >>> Fire(0).which
    0
    """

    which: int


class Answer(Struct, frozen=True):
    """The answer to something that was sent arrives.

    >>> Answer(0).which
    0
    """

    which: int


Move: TypeAlias = Say | Repeat | Fire | Answer


class Attempt(Struct, frozen=True):
    """A message that reached the instance, how, and why it was refused if it was.

    >>> str(Attempt("paid", Kind.COMMAND, "again", actor="ann"))
    "'paid'  (by ann, again)"
    """

    message: Any
    kind: Kind | None = None
    how: str = ""
    actor: str | None = None
    reply_to: str | None = None
    refused: str = ""

    @classmethod
    def of(cls, said: Any, kind: Kind | None = None, how: str = "") -> Attempt:
        """Return an attempt with a message, or with the message and context in an envelope."""
        if isinstance(said, Envelope):
            sealed = cast("Envelope[Any]", said)
            return cls(sealed.message, sealed.kind, how, sealed.actor, sealed.reply_to)
        return cls(said, kind, how)

    def __str__(self) -> str:
        by = "" if self.actor is None else f"by {self.actor}"
        remarks = ", ".join(part for part in (by, self.how, self.refused) if part)
        return f"{shown(self.message, 400)}{f'  ({remarks})' if remarks else ''}"


class Failure(Struct, frozen=True):
    """A property that an order broke, and the order.

    >>> Failure("decide is pure", "It called time.time.", (), None).property
    'decide is pure'
    """

    property: str
    how: str
    attempts: tuple[Attempt, ...]
    rehearsal: Any
    cause: Exception | None = None


class Rules(Struct, frozen=True):
    """What a run checks and allows.

    >>> Rules().late_timers
    True
    """

    answers: Mapping[type[Any], Callable[[Any], Any]] = {}
    properties: tuple[Property, ...] = ()
    fail_on_unknown: bool = False
    duplicates: bool = True
    late_timers: bool = True


class Run:
    """One run: an instance, what reached it, and what may reach it next.

    >>> from mainspring.testing.samples import Count, Counter
    >>> run = Run(Counter(), Rules(), draw=lambda strategy: strategy)
    >>> run.play([Count("c-1")], [Repeat(0), Fire(0)]) is None
    True
    >>> [str(attempt) for attempt in run.attempts]
    ["Count(counter='c-1')", "Count(counter='c-1')  (again)"]
    """

    def __init__(self, workflow: Workflow[Any, Any, Any], rules: Rules, draw: Draw) -> None:
        self.rehearsal: InspectedRehearsal[Any, Any, Any] = InspectedRehearsal(workflow)
        self.attempts: list[Attempt] = []
        self.states: set[type[Any]] = {type(workflow.initial_state)}
        self._rules = rules
        self._draw = draw
        self._answers: list[tuple[str, Any]] = []
        self._instance: str | None = None

    def play(self, openings: Sequence[Any], moves: Sequence[Move]) -> Failure | None:
        """Let the first message that may begin do so, make the moves, and return the first failure."""
        begins = definition_of(type(self.rehearsal.workflow)).begins
        opening = next((said for said in openings if type(Attempt.of(said).message) in begins), None)
        if opening is None:
            return None
        failure = self._make(Say(opening))
        for move in moves:
            if failure is not None or self.rehearsal.end is not None:
                break
            failure = self._make(move)
        return failure

    def _make(self, move: Move) -> Failure | None:
        try:
            attempt = self._attempt(move)
            return None if attempt is None else self._take(attempt)
        except Broken as broken:
            return self._failure(broken.property, broken.how, broken.__cause__)

    def _attempt(self, move: Move) -> Attempt | None:
        """Return what a move means now. One that means nothing, such as a timer where there is none, is left out."""
        match move:
            case Say(message):
                attempt = Attempt.of(message)
                return attempt if self._is_for_this_instance(attempt.message) else None
            case Repeat(which):
                taken = [attempt for attempt in self.attempts if not attempt.refused]
                if not taken or not self._rules.duplicates:
                    return None
                return replace(taken[which % len(taken)], how="again")
            case Fire(which):
                return self._timer(which)
            case Answer(which):
                return self._answer(which)

    def _is_for_this_instance(self, message: Any) -> bool:
        try:
            id = route(self.rehearsal.watched, message)
        except InvalidIdError:
            return False
        except Exception as error:
            self.attempts.append(Attempt(message))
            raise error if isinstance(error, Broken) else Broken("no error is raised", _raised(error)) from error
        if self._instance is None:
            self._instance = id
        return id is not None and id == self._instance

    def _timer(self, which: int) -> Attempt | None:
        waiting = self.rehearsal.waiting()
        scheduled = (
            [e for e in self.rehearsal.events if isinstance(e, Scheduled)] if self._rules.late_timers else waiting
        )
        if not scheduled:
            return None
        timer = scheduled[which % len(scheduled)]
        if any(timer is other for other in waiting):
            how = "timer"
        else:
            fired = any(a.kind is Kind.TIMER and a.message == timer.message for a in self.attempts)
            how = "timer, once more" if fired else "timer, after it was cancelled"
        return Attempt(timer.message, Kind.TIMER, how)

    def _answer(self, which: int) -> Attempt | None:
        if not self._answers:
            return None
        asked, answer = self._answers.pop(which % len(self._answers))
        return Attempt.of(self._draw(answer), Kind.RESULT, f"answer to {asked}")

    def _take(self, attempt: Attempt) -> Failure | None:
        version = self.rehearsal.version
        self.attempts.append(attempt)
        try:
            self.rehearsal.take(attempt.message, kind=attempt.kind, actor=attempt.actor, reply_to=attempt.reply_to)
        except REFUSALS as error:
            self.attempts[-1] = replace(attempt, refused=f"refused: {type(error).__name__}")
            unknown = self._rules.fail_on_unknown and isinstance(error, UnknownTransitionError)
            return self._failure("every message has a transition", str(error), error) if unknown else None
        except Broken:
            raise
        except DecisionAfterEndError as error:
            return self._failure("nothing follows the end", str(error), error)
        except Exception as error:  # noqa: BLE001  whatever a workflow raises is a finding
            return self._failure("no error is raised", _raised(error), error)
        self.states.add(type(cast("object", self.rehearsal.state)))
        self.rehearsal.check_stream()
        self._expect_answers(version)
        return self._check_properties()

    def _expect_answers(self, version: int) -> None:
        for entry in self.rehearsal.entries[version:]:
            if isinstance(entry.event, Sent | Published | Replied):
                output: object = entry.event.message
                answer = self._rules.answers.get(type(output))
                answers = None if answer is None else answer(output)
                several = cast("Sequence[Any]", answers) if isinstance(answers, list | tuple) else [answers]
                self._answers += [(type(output).__name__, one) for one in several if one is not None]

    def _check_properties(self) -> Failure | None:
        for check in self._rules.properties:
            name = getattr(check, "__name__", repr(check))
            try:
                holds = check(self.rehearsal)
            except Exception as error:  # noqa: BLE001  an AssertionError, or a property that is broken itself
                return self._failure(name, _raised(error), error)
            if holds is False:
                return self._failure(name, f"It returned False in state {shown(self.rehearsal.state)}.", None)
        return None

    def _failure(self, property: str, how: str, cause: BaseException | None) -> Failure:
        kept = cause if isinstance(cause, Exception) else None
        return Failure(property, how, tuple(self.attempts), self.rehearsal, kept)


def _raised(error: Exception) -> str:
    return str(error) if isinstance(error, MainspringError) else f"{type(error).__name__}: {error}"
