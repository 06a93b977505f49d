"""given / when / then: a whole test of a workflow, with no runtime and no mocks."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Generic, TypeAlias, cast, get_args, get_origin, overload

from mainspring.core.decisions import Become, Decision, Send
from mainspring.core.definition import definition_of
from mainspring.core.difference import diff, show, value_diff
from mainspring.core.events import Compensated, Event, Published, Recorded, Replied, Sent
from mainspring.core.fold import fold, placed
from mainspring.core.messages import Envelope, In, Kind, Message, Out
from mainspring.core.translate import recorded
from mainspring.core.workflow import State, Workflow
from mainspring.errors import shown
from mainspring.flows.calls import Call
from mainspring.flows.ends import Failure, StepFailed, Undo
from mainspring.flows.flow import Flow
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_words import HistoryEvent, HistoryInput
from mainspring.testing.causes import cause_of
from mainspring.testing.rehearsal import Rehearsal, check_workflow

FlowWord: TypeAlias = Call[Any] | list[Call[Any]] | Failure | Undo | StepFailed

_DECISIONS = tuple(get_origin(member) or member for member in get_args(Decision))


@overload
def given(workflow: HistoryWorkflow, *past: HistoryInput | HistoryEvent | Envelope[Any], guard: bool = True) -> Any: ...
@overload
def given(workflow: Flow[Any, Any], *past: Any, guard: bool = True) -> Given[Any, str, Any]: ...
@overload
def given(
    workflow: Workflow[In, State, Out, Any],
    # Not In | Out: a message of one would be taken for one of the other, and no workflow has such outputs.
    *past: Message | Envelope[Any] | Event[Any, Any] | Sequence[Message | Envelope[Any] | Event[Any, Any]],
    guard: bool = True,
) -> Given[In, State, Out]: ...
def given(workflow: Workflow[Any, Any, Any], *past: Any, guard: bool = True) -> Given[Any, Any, Any]:
    """Begin a scenario: a workflow, and what happened before, one after the other or as a list.

    Inputs are stepped for real; events are taken as is, and so is a bare output, as the event that moves the state.
    Where it matters who did something, or when, put the input into an `envelope`. decide and evolve run under the
    purity guard, unless `guard=False`. A workflow in the history style takes that style's words for all of it.

    >>> from mainspring import Complete
    >>> from mainspring.testing.samples import Count, Counted, CountedThrice, Counter
    >>> scenario = given(Counter(), Count("c-1"), Count("c-1")).when(Count("c-1"))
    >>> _ = scenario.then(Complete(CountedThrice("c-1"))).then_state(Counted(3))
    """
    __tracebackhide__ = True
    check_workflow(workflow, "given")
    rehearsal = Rehearsal(workflow, guard=guard)
    for place, each in enumerate(_listed(past), 1):
        _check_past(each)
        item, before = _meant(rehearsal, each), rehearsal.state
        try:
            rehearsal.live(item)
        except Exception as error:  # noqa: BLE001  whatever it is, the scenario cannot begin
            head = f"{type(workflow).__name__} raised an error at number {place} of its past"
            raise AssertionError(_story(head, "given", item, before, [_text(error)])) from cause_of(error)
    return Given(rehearsal)


class Given(Generic[In, State, Out]):
    """A workflow with a past, waiting for a message.

    >>> from mainspring.testing.samples import Count, Counter
    >>> given(Counter()).when(Count("c-1")).then()
    When(Counter on Count(counter='c-1'))
    """

    def __init__(self, rehearsal: Rehearsal[In, State, Out]) -> None:
        self._rehearsal = rehearsal

    def when(
        self,
        message: In | Envelope[In],
        *,
        kind: Kind | None = None,
        actor: str | None = None,
        time: datetime | None = None,
        reply_to: str | None = None,
        command: object = None,
    ) -> When[In, State, Out]:
        """Step a message, in an envelope with this context.

        One that was scheduled before counts as a timer, one that answers an open task as its answer, one with the
        `command` that it answers as a result. An envelope of your own is taken as it is.
        """
        __tracebackhide__ = True
        rehearsal = self._rehearsal
        _check_no_call(message)
        meant, was = rehearsal.meaning_of(message)
        message, time = message if meant is None else meant, time or was
        _check_message(message)
        sealed = rehearsal.sealed(message, kind, actor, reply_to, time, command)
        workflow, came, before, version = rehearsal.workflow, sealed.message, rehearsal.state, rehearsal.position
        try:
            taken = rehearsal.take(sealed)
        except Exception as error:  # noqa: BLE001  whatever it is, then_raises may expect it
            return When(workflow, came, before, error=error)
        undone = [entry.event.message for entry in rehearsal.entries[version:] if isinstance(entry.event, Compensated)]
        return When(
            workflow, came, before, decisions=rehearsal.decisions, events=taken.events, state=taken.state, undone=undone
        )


class When(Generic[In, State, Out]):
    """What a message led to, ready to be compared. Every `then` returns it again.

    >>> from mainspring.testing.samples import Count, Counted, Counter
    >>> given(Counter()).when(Count("c-1")).then().then_state(Counted(1))
    When(Counter on Count(counter='c-1'))
    """

    def __init__(
        self,
        workflow: Workflow[In, State, Out],
        message: In,
        before: State,
        *,
        decisions: Sequence[Decision[In, Out]] = (),
        events: Sequence[Event[In, Out]] = (),
        state: State | None = None,
        error: Exception | None = None,
        undone: Sequence[Out] = (),
    ) -> None:
        self._workflow = workflow
        self._name = type(workflow).__name__
        self._message = message
        self._before = before
        self._decisions = decisions
        self._events = events
        self._state = state
        self._error = error
        self._undone = undone

    def __repr__(self) -> str:
        return f"When({self._name} on {shown(self._message, 200)})"

    def then(self, *decisions: Decision[In, Out] | FlowWord) -> When[In, State, Out]:
        """Expect exactly these decisions, in this order. None at all: expect that nothing was decided.

        Of a flow, calls as its code has them: `charge("o-1", 500)`, and a list of them for `each(…)`.

        A state that decide returns beside its decisions is for `then_state`, unless a Become is expected here.
        """
        __tracebackhide__ = True
        meant: list[Any] = [self._workflow.meaning_of(word, self._before) for word in decisions]
        expects: list[Any] = [decision for decision in meant if decision is not None]
        for decision in expects:
            _check_decision(decision)
        self._check_taken()
        decided = list(self._decisions)
        if decided and type(decided[0]) is Become and Become not in map(type, expects):
            del decided[0]
        # Compared as recorded: CancelSchedule(PaymentTimedOut) and CancelSchedule("PaymentTimedOut") are the same.
        if [recorded(d) for d in expects] != [recorded(d) for d in decided]:
            expected, came = self._words(expects), self._words(decided)
            self._fail("decided something else", diff(expected, came, text=show, key=self._recorded, verb="decided"))
        return self

    def _words(self, decisions: Sequence[Any]) -> list[Any]:
        """Return decisions in the words of the workflow's style."""
        return [self._workflow.word_for(decision) for decision in decisions]

    def _recorded(self, word: Any) -> Any:
        return recorded(self._workflow.meaning_of(word, self._before))

    def then_events(self, *events: Event[In, Out]) -> When[In, State, Out]:
        """Expect exactly these events to be recorded: the input, and what was decided about it."""
        __tracebackhide__ = True
        self._check_taken()
        if list(events) != list(self._events):
            self._fail("recorded something else", diff(events, self._events, text=shown, verb="recorded"))
        return self

    def then_undone(self, *compensations: Out | Call[Any]) -> When[In, State, Out]:
        """Expect exactly these compensations to be sent, in this order, before the instance ends or continues."""
        __tracebackhide__ = True
        self._check_taken()
        words: list[Any] = [self._workflow.meaning_of(word, self._before) for word in compensations]
        expected: list[Any] = [cast("Any", word).message if isinstance(word, Send) else word for word in words]
        if expected != list(self._undone):
            self._fail("undid something else", diff(expected, self._undone, text=shown, verb="undid"))
        return self

    def then_state(self, state: State) -> When[In, State, Out]:
        """Expect this state afterwards."""
        __tracebackhide__ = True
        self._check_taken()
        expected = self._workflow.state_named(state, cast("Any", self._state))
        if self._state != expected:
            self._fail("is in another state", value_diff(expected, self._state, "is"))
        return self

    def then_raises(
        self, error: type[Exception] | tuple[type[Exception], ...], match: str | None = None
    ) -> When[In, State, Out]:
        """Expect an error of this type, in whose text `match` occurs, as it is or as a regular expression."""
        __tracebackhide__ = True
        expected = " or ".join(e.__name__ for e in (error if isinstance(error, tuple) else (error,)))
        if self._error is None:
            decided = [f"+ {show(word)}" for word in self._words(self._decisions)] or ["+ nothing"]
            self._fail(f"raised nothing, expected {expected}; it decided", decided)
        elif not isinstance(self._error, error):
            self._fail(f"raised another error than {expected}", [_text(self._error)], self._error)
        elif match is not None and not _occurs(match, str(self._error)):
            lines = [f"- {match}", *(f"+ {line}" for line in str(self._error).splitlines())]
            self._fail(f"raised {type(self._error).__name__} with another text", lines, self._error)
        return self

    def _check_taken(self) -> None:
        __tracebackhide__ = True
        if self._error is not None:
            self._fail("raised an error", [_text(self._error)], self._error)

    def _fail(self, what: str, lines: Sequence[str], cause: Exception | None = None) -> None:
        __tracebackhide__ = True
        story = _story(f"{self._name} {what}", "when", self._message, self._before, lines)
        raise AssertionError(story) from cause_of(cause)


def _listed(past: Sequence[Any]) -> Iterator[Any]:
    for item in past:
        # A message may be a named tuple.
        yield from item if type(item) in (list, tuple) else (item,)


def _meant(rehearsal: Rehearsal[Any, Any, Any], item: Any) -> Any:
    """Return an item of the past; of a bare output the event, if it does not matter by which way it went out."""
    __tracebackhide__ = True
    cls, definition = cast("type[Any]", type(item)), definition_of(type(rehearsal.workflow))
    if cls in definition.inputs or cls not in definition.outputs:
        return item
    moving = [
        (event, after) for event in (Published(item), Sent(item), Replied(item)) for after in _moved(rehearsal, event)
    ]
    if moving and all(after == moving[0][1] for _, after in moving):
        return moving[0][0]
    name = cls.__name__
    raise TypeError(f"{name} is an output: write Published({name}(…)) if it was published, Sent(…) if it was sent.")


def _moved(rehearsal: Rehearsal[Any, Any, Any], event: Event[Any, Any]) -> list[Any]:
    """Return the state that an event leads to, nothing where it stays as it is, or evolve will not have the event."""
    try:
        events = placed(definition_of(type(rehearsal.workflow)), [event], rehearsal.position, rehearsal.time)
        after = fold(rehearsal.watched, copy.deepcopy(rehearsal.state), events)
    except Exception:  # noqa: BLE001  an evolve may raise on what it does not know; the author of that event sees it
        return []
    return [] if after == rehearsal.state else [after]


def _check_no_call(message: object) -> None:
    __tracebackhide__ = True
    if isinstance(message, Call):
        name = cast("Call[Any]", message).name
        raise TypeError(
            f"{message!r} is a call, which the flow makes itself. Write what comes back of it: "
            f"{name}.returned(…), or {name}.failed(…)."
        )


def _check_past(item: object) -> None:
    __tracebackhide__ = True
    _check_no_call(item)
    if isinstance(item, _DECISIONS):
        decision = cast("Decision[Any, Any]", item)
        raise TypeError(
            f"given() got the decision {show(decision)}; the past is made of inputs and events. "
            f"Write the event, {shown(recorded(decision), 200)}, or the input that led to it."
        )
    if not isinstance(item, Recorded):
        _check_message(item)


def _check_message(message: object) -> None:
    __tracebackhide__ = True
    if isinstance(message, type):
        raise TypeError(f"{message.__name__} is a class. Pass a message: {message.__name__}(...).")
    if isinstance(message, Envelope):
        _check_message(cast("Envelope[object]", message).message)
    elif isinstance(message, (Recorded, *_DECISIONS)):
        raise TypeError(f"{shown(message, 200)} was passed as a message. Pass the input message itself.")


def _check_decision(decision: object) -> None:
    __tracebackhide__ = True
    if isinstance(decision, _DECISIONS):
        return
    if isinstance(decision, Recorded):
        raise TypeError(f"then() got the event {shown(decision, 200)}. Write decisions (Send), or use then_events().")
    if isinstance(decision, list | tuple):
        raise TypeError("then() got a list. Write the decisions one after another: then(Send(...), Complete()).")
    raise TypeError(f"then() got {shown(decision, 200)}, which is no decision. Wrap it, as in Send(...).")


def _story(head: str, label: str, item: object, before: object, lines: Sequence[str]) -> str:
    context = [f"  {f'{label}:':<9} {shown(item)}", f"  in state: {shown(before)}"]
    return "\n".join([head, *context, "", *lines])


def _text(error: Exception) -> str:
    notes = [note for note in getattr(error, "__notes__", ()) if "\n" not in note]
    return "\n".join([f"{type(error).__name__}: {error}", *notes])


def _occurs(match: str, text: str) -> bool:
    if match in text:
        return True
    try:
        return re.search(match, text) is not None
    except re.error:
        return False
