"""One order in which messages, answers and timers reach an instance, played step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from mainspring.core.definition import definition_of
from mainspring.core.events import ChildStarted, Published, Replied, Scheduled, Sent
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
from mainspring.testing.inspection import Broken, Declined, InspectedRehearsal
from mainspring.testing.rehearsal import Rehearsal

Property: TypeAlias = Callable[[Rehearsal[Any, Any, Any]], bool | None]
Draw: TypeAlias = Callable[[Any], Any]

OTHERS_TRIED: Final = 12
AGAIN, TIMER, ANSWER = "again", "timer", "answer to "
REFUSALS: Final = (UnknownTransitionError, CannotBeginError, InstanceEndedError)


class Say(Struct, frozen=True):
    """A message comes from outside."""

    message: Any


class Repeat(Struct, frozen=True):
    """A message that came before comes again."""

    which: int


class Fire(Struct, frozen=True):
    """A timer fires: one that waits, or late, one that does not wait any more."""

    which: int


class Answer(Struct, frozen=True):
    """The answer to something that was sent arrives."""

    which: int


Move: TypeAlias = Say | Repeat | Fire | Answer


class Attempt(Struct, frozen=True):
    """A message that reached the instance, bare or in its envelope, how, and why it was refused if it was.

    >>> from mainspring.testing.envelopes import envelope
    >>> str(Attempt.of(envelope("paid", actor="ann"), how="again"))
    "'paid'  (by ann, again)"
    """

    message: Any
    kind: Kind | None = None
    how: str = ""
    sealed: Envelope[Any] | None = None
    refused: str = ""

    @classmethod
    def of(cls, said: Any, kind: Kind | None = None, how: str = "") -> Attempt:
        """Return an attempt with a message, or with the message and context in an envelope."""
        if isinstance(said, Envelope):
            sealed = cast("Envelope[Any]", said)
            return cls(sealed.message, sealed.kind, how, sealed)
        return cls(said, kind, how)

    def __str__(self) -> str:
        by = "" if self.sealed is None or self.sealed.actor is None else f"by {self.sealed.actor}"
        remarks = ", ".join(part for part in (by, self.how, self.refused) if part)
        return f"{shown(self.message, 400)}{f'  ({remarks})' if remarks else ''}"


class Failure(Struct, frozen=True):
    """A property that an order broke, and the order."""

    property: str
    how: str
    attempts: tuple[Attempt, ...]
    rehearsal: Any
    cause: Exception | None = None


class Rules(Struct, frozen=True):
    """What a run checks and allows."""

    answers: Mapping[type[Any], Callable[[Any], Any]] = {}
    properties: tuple[Property, ...] = ()
    fail_on_unknown: bool = False
    duplicates: bool = True
    late_timers: bool = True
    raises: tuple[type[Exception], ...] = ()


class Run:
    """One run: an instance, what reached it, and what may reach it next.

    >>> from mainspring.testing.samples import Count, Counter
    >>> run = Run(Counter(), Rules(), draw=lambda strategy: strategy)
    >>> run.play([Count("c-1")], [Repeat(0), Fire(0)]) is None
    True
    >>> [str(attempt) for attempt in run.attempts]
    ["Count(counter='c-1')", "Count(counter='c-1')  (again)", "Count(counter='c-1')"]
    """

    def __init__(self, workflow: Workflow[Any, Any, Any], rules: Rules, draw: Draw) -> None:
        self.rehearsal: InspectedRehearsal[Any, Any, Any] = InspectedRehearsal(workflow, rules.raises)
        self.attempts: list[Attempt] = []
        self.states: set[type[Any]] = {type(workflow.initial_state)}
        self._rules = rules
        self._draw = draw
        self._answers: list[tuple[str, Any]] = []
        self._instance: str | None = None
        self._begins = definition_of(type(workflow)).begins
        self._others: Sequence[Attempt] = ()

    def play(self, openings: Sequence[Any], moves: Sequence[Move]) -> Failure | None:
        """Begin with the first message that may, make the moves, and return the first failure."""
        failure = self._begin(openings)
        for move in moves if self.rehearsal.entries else ():
            if failure is not None or self.rehearsal.end is not None:
                break
            failure = self._make(move)
        return failure

    def replay(self, attempts: Sequence[Attempt]) -> Failure | None:
        """Play the messages of another run again, each as it came there, and return the first failure.

        None as well when one of them could not come: a timer that was not set, an answer that was not asked for.
        """
        for before in attempts:
            attempt = self._same(before)
            failure = None if attempt is None else self._told([attempt])
            if attempt is None or failure is not None:
                return failure
        return None

    def _same(self, attempt: Attempt) -> Attempt | None:
        asked = attempt.how.removeprefix(ANSWER)
        if attempt.how == AGAIN:
            came = any(not a.refused and a.message == attempt.message for a in self.attempts)
        elif attempt.how.startswith(TIMER):
            which = next((i for i, timer in enumerate(self._timers()) if timer.message == attempt.message), None)
            return None if which is None else self._timer(which)
        elif attempt.how.startswith(ANSWER):
            which = next((i for i, (name, _) in enumerate(self._answers) if name == asked), None)
            came = which is not None and bool(self._answers.pop(which))
        else:
            came = True
        return replace(attempt, refused="") if came else None

    def _begin(self, openings: Sequence[Any]) -> Failure | None:
        for opening in openings:
            if type(Attempt.of(opening).message) in self._begins:
                failure = self._make(Say(opening))
                if failure is not None or self.rehearsal.entries:
                    return failure or self._look_at(openings)
        return None

    def _look_at(self, openings: Sequence[Any]) -> Failure | None:
        """Find out once which of the messages are for the instance that has just begun."""
        try:
            attempts = [self._attempt(Say(opening)) for opening in openings]
        except Broken as broken:
            return self._failure(broken.property, broken.how, broken.__cause__)
        self._others = [attempt for attempt in attempts if attempt is not None]
        return None

    def _make(self, move: Move) -> Failure | None:
        return self._told(self._choices(move))

    def _told(self, attempts: Iterable[Attempt]) -> Failure | None:
        """Let the first of some messages come that is not refused, and return the failure if there is one."""
        try:
            for attempt in attempts:
                failure = self._take(attempt)
                if failure is not None or not self.attempts[-1].refused:
                    return failure
        except Broken as broken:
            return self._failure(broken.property, broken.how, broken.__cause__)
        return None

    def _choices(self, move: Move) -> Iterator[Attempt]:
        """Yield what a move means now, and what may come instead, so that a run gets as deep as it can."""
        # Not always the same one first: what is never refused would keep all others from their turn.
        turn = len(self.attempts) % max(1, len(self._others))
        attempt = self._attempt(move)
        if attempt is not None:
            yield attempt
        yield from [*self._others[turn:], *self._others[:turn]][:OTHERS_TRIED]

    def _attempt(self, move: Move) -> Attempt | None:
        """Return what a move means now, or None when it means nothing, such as a timer where there is none."""
        match move:
            case Say(message):
                return self._addressed(Attempt.of(message))
            case Repeat(which):
                taken = [attempt for attempt in self.attempts if not attempt.refused]
                if not taken or not self._rules.duplicates:
                    return None
                return replace(taken[which % len(taken)], how=AGAIN)
            case Fire(which):
                return self._timer(which)
            case Answer(which):
                return self._answer(which)

    def _addressed(self, attempt: Attempt) -> Attempt | None:
        """Return a message for this instance: one that is routed to it, or a result, which needs no route."""
        try:
            id = route(self.rehearsal.watched, attempt.message)
        except InvalidIdError:
            return None
        except Exception as error:
            self.attempts.append(attempt)
            raise error if isinstance(error, Broken) else Broken("no error is raised", _raised(error)) from error
        if id is None:
            return self._as_result(attempt)
        if self._instance is None:
            self._instance = id
        return attempt if id == self._instance else None

    def _as_result(self, attempt: Attempt) -> Attempt | None:
        # What may begin an instance comes from outside; where that has no route, the workflow skips it on purpose.
        if not self.rehearsal.entries or type(attempt.message) in self._begins:
            return None
        is_told = attempt.kind is not None or self.rehearsal.was_scheduled(attempt.message)
        return attempt if is_told else replace(attempt, kind=Kind.RESULT)

    def _timers(self) -> list[Scheduled[Any]]:
        if not self._rules.late_timers:
            return self.rehearsal.waiting()
        return [event for event in self.rehearsal.events if isinstance(event, Scheduled)]

    def _timer(self, which: int) -> Attempt | None:
        timers = self._timers()
        if not timers:
            return None
        timer = timers[which % len(timers)]
        if any(timer is other for other in self.rehearsal.waiting()):
            how = TIMER
        else:
            fired = any(a.kind is Kind.TIMER and a.message == timer.message for a in self.attempts)
            how = f"{TIMER}, once more" if fired else f"{TIMER}, after it was cancelled"
        return Attempt(timer.message, Kind.TIMER, how)

    def _answer(self, which: int) -> Attempt | None:
        if not self._answers:
            return None
        asked, answer = self._answers.pop(which % len(self._answers))
        return Attempt.of(self._draw(answer), Kind.RESULT, f"{ANSWER}{asked}")

    def _take(self, attempt: Attempt) -> Failure | None:
        version = self.rehearsal.position
        self.attempts.append(attempt)
        try:
            if attempt.sealed is not None:
                self.rehearsal.take(attempt.sealed)
            else:
                self.rehearsal.take(attempt.message, kind=attempt.kind)
        except REFUSALS as error:
            self.attempts[-1] = replace(attempt, refused=f"refused: {type(error).__name__}")
            unknown = self._rules.fail_on_unknown and isinstance(error, UnknownTransitionError)
            return self._failure("every message has a transition", str(error), error) if unknown else None
        except Declined as declined:
            self.attempts[-1] = replace(attempt, refused=f"refused: {type(declined.error).__name__}")
            return None
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
            if isinstance(entry.event, Sent) and entry.event.undoes is not None:
                continue  # it was answered at once
            if isinstance(entry.event, Sent | Published | Replied | ChildStarted):
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


def shortest(failure: Failure, begin: Callable[[], Run]) -> Failure:
    """Return the same failure without every message that it does not need, such as those that were refused.

    hypothesis shrinks the moves of a run; which messages they lead to is another matter.
    """
    place = len(failure.attempts) - 1
    while place > 0:
        place -= 1
        attempts = failure.attempts
        again = begin().replay([*attempts[:place], *attempts[place + 1 :]])
        if again is not None and again.property == failure.property:
            failure = again
            place = min(place, len(failure.attempts) - 1)
    return failure


def _raised(error: Exception) -> str:
    return str(error) if isinstance(error, MainspringError) else f"{type(error).__name__}: {error}"
