"""The step: one input taken. Fold has happened; decide, check, translate, fold again. Pure from end to end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Generic

from msgspec import Struct

from mainspring.core import deadlines
from mainspring.core.decisions import (
    Ask,
    Become,
    CancelSchedule,
    CloseTask,
    Compensate,
    Complete,
    Decision,
    Decisions,
    Fail,
    FanOut,
    Publish,
    RefuseAnswer,
    Reply,
    Schedule,
    Send,
    StartChild,
)
from mainspring.core.definition import Definition, definition_of
from mainspring.core.events import OUTPUTS, Event, InitiatedBy, Received
from mainspring.core.failures import OF_THE_ENGINE, DeadlinePassed
from mainspring.core.fold import evolved, placed
from mainspring.core.messages import Envelope, In, Kind, Out
from mainspring.core.translate import translate
from mainspring.core.unkept import check_unkept
from mainspring.core.workflow import State, Workflow
from mainspring.errors import (
    CannotBeginError,
    DecisionAfterEndError,
    InvalidDecisionError,
    LeftError,
    TooManyOutputsError,
    UnaskedRefusalError,
    UndeclaredInputError,
    UndeclaredOutputError,
    UnknownTransitionError,
    shown,
)

OUTPUTS_PER_STEP: Final = 2_000

# What is decided where decide has no case. Its identity distinguishes it from an author's own empty list.
_NO_CASE: Final[list[Any]] = []


class Output(Struct, Generic[In, Out], frozen=True, gc=False):
    """A recorded decision that is still to be carried out, and the version at which it stands in the stream.

    >>> from mainspring.core.events import Sent
    >>> Output(3, Sent("charge")).version
    3
    """

    version: int
    event: Event[In, Out]


class Step(Struct, Generic[In, State, Out], frozen=True, gc=False):
    """The outcome of a step: what to append, the state after it, and what to carry out.

    `no_case` says that decide had none for the input, and that this is no mistake: it is recorded, and nothing follows.
    """

    events: Sequence[Event[In, Out]]
    state: State
    version: int
    no_case: bool = False

    @property
    def outputs(self) -> list[Output[In, Out]]:
        """What is to be carried out, with the versions at which it stands in the stream."""
        first = self.version - len(self.events) + 1
        return [
            Output(version, event) for version, event in enumerate(self.events, first) if isinstance(event, OUTPUTS)
        ]


def step(
    workflow: Workflow[In, State, Out],
    state: State,
    version: int,
    envelope: Envelope[In],
    begins: bool,
    now: datetime | None = None,
    cause: int | None = None,
) -> Step[In, State, Out]:
    """Take one input in a state, and return what is to be recorded. `version` is that of the last recorded event.

    A workflow that asks for occurrences needs `now`, the time at which the events are recorded, and has in `cause` the
    position of the output that the input answers.

    >>> from mainspring.testing.envelopes import envelope
    >>> from mainspring.testing.samples import Count, Counter
    >>> taken = step(Counter(), Counter.initial_state, 0, envelope(Count("c-1")), begins=True)
    >>> taken.events
    [Began(), InitiatedBy(message=Count(counter='c-1'))]
    >>> taken.state, taken.version
    (Counted(times=1), 2)
    """
    definition = definition_of(type(workflow))
    _check_input(definition, envelope.message, state, begins)
    asked = envelope if definition.wants_envelope else envelope.message
    if definition.decides_on_occurrences:
        asked = asked_of(definition, envelope, version, begins, now, cause)
    decisions = _decide(workflow, definition, envelope, asked, state)
    _check_decisions(definition, decisions, envelope, state, begins)
    recorded = decisions
    if begins and definition.deadline is not None:
        recorded = deadlines.at_beginning(definition.deadline, decisions)
    events = translate(begins, envelope.message, recorded, envelope.task)
    if definition.history == "state":
        check_unkept(definition.name, events)
    seen = placed(definition, events, version, now, cause) if definition.wants_occurrences else events
    after = evolved(workflow, definition.states, state, seen)
    return Step(events, after, version + len(events), decisions is _NO_CASE)


def asked_of(
    definition: Definition, envelope: Envelope[Any], version: int, begins: bool, now: datetime | None, cause: int | None
) -> Any:
    """Return what decide_on asks for: the message, its envelope, or the input as it is going to be recorded.

    >>> from mainspring.testing.envelopes import envelope
    >>> from mainspring.testing.samples import Counter
    >>> asked_of(definition_of(Counter), envelope("go"), 0, True, None, None)
    'go'
    """
    if not definition.decides_on_occurrences:
        return envelope if definition.wants_envelope else envelope.message
    input = InitiatedBy(envelope.message) if begins else Received(envelope.message)
    return placed(definition, [input], version + begins, now, cause)[0]


def _check_input(definition: Definition, message: object, state: object, begins: bool) -> None:
    if type(message) not in definition.inputs:
        raise UndeclaredInputError(definition.name, message, state, definition.inputs)
    if begins and type(message) not in definition.begins:
        raise CannotBeginError(definition.name, message, state, definition.begins, told=type(message) in OF_THE_ENGINE)


def _decide(
    workflow: Workflow[In, State, Out], definition: Definition, envelope: Envelope[In], asked: Any, state: State
) -> Decisions[In, Out]:
    try:
        decisions = workflow.decide_on(asked, state)
    except Exception as error:
        error.add_note(f"while {definition.name} decided on {shown(envelope.message)} in {shown(state)}")
        raise
    except KeyboardInterrupt:
        raise  # the process is being stopped; nothing is wrong with the message
    except BaseException as error:
        raise LeftError(definition.name, "decide", error, message=envelope.message, state=state) from error
    if decisions is not None:
        return decisions
    if type(envelope.message) is DeadlinePassed:
        return deadlines.at_end(definition)
    # A timer that lost its race is no mistake of the author's: it is recorded, and nothing follows.
    if definition.unknown_transition == "ignore" or envelope.kind is Kind.TIMER:
        return _NO_CASE
    raise UnknownTransitionError(definition.name, envelope.message, state)


def _check_decisions(
    definition: Definition, decisions: Decisions[Any, Any], envelope: Envelope[Any], state: object, begins: bool
) -> None:
    message: object = envelope.message
    if not isinstance(decisions, (list, tuple)):
        raise InvalidDecisionError(
            f"{definition.name} decided {shown(decisions)}, which is no list of decisions",
            "Return a list, as in [Complete()].",
        )
    if len(decisions) > OUTPUTS_PER_STEP:
        raise TooManyOutputsError(definition.name, len(decisions), OUTPUTS_PER_STEP, message=message, state=state)
    end: object = None
    asked: list[str] = []
    for decision in decisions:
        if end is not None:
            raise DecisionAfterEndError(definition.name, end, decision, message=message, state=state)
        if type(decision) is Send and decision.compensate is None and type(decision.message) in definition.outputs:
            continue  # by far the most of them
        role = _undeclared_role(definition, decision)
        if role is not None:
            declared = getattr(definition, role)
            raise UndeclaredOutputError(
                definition.name, decision, message=message, state=state, declared=declared, role=role
            )
        if isinstance(decision, (Complete, Fail, Compensate)):
            end = decision
        elif isinstance(decision, Ask):
            asked.append(decision.task_key)
        elif isinstance(decision, RefuseAnswer):
            _check_refusal(definition, decision, decisions, envelope, begins)
    if asked and len(set(asked)) < len(asked):
        raise InvalidDecisionError(
            f"{definition.name} asks twice under one key in one step: {shown(asked, 200)}",
            'Give each task a key of its own, as in Ask(…, key="review by ann").',
        )


def _check_refusal(
    definition: Definition, refusal: RefuseAnswer, decisions: Decisions[Any, Any], envelope: Envelope[Any], begins: bool
) -> None:
    if len(decisions) > 1:
        raise InvalidDecisionError(
            f"{definition.name} refuses an answer and decides more with it: {shown(decisions, 400)}",
            "Return [RefuseAnswer(…)] alone: what is refused changes nothing.",
        )
    if envelope.task is None or begins:
        raise UnaskedRefusalError(definition.name, shown(envelope.message, 200), refusal.reason)


def _undeclared_role(definition: Definition, decision: Decision[Any, Any]) -> str | None:
    """Return the type parameter in which what the decision carries is missing, or None when all is declared."""
    match decision:
        case Send(carried, compensation) if compensation is not None:
            return None if {type(carried), type(compensation)} <= definition.outputs.keys() else "outputs"
        case Complete(result):
            if type(result) in definition.results:
                return None
            return "results" if result is None or type(result) in definition.outputs else "outputs"
        case Send(carried) | Publish(carried) | Reply(carried) | StartChild(carried):
            return None if type(carried) in definition.outputs else "outputs"
        case Schedule(carried):
            return None if type(carried) in definition.inputs else "inputs"
        case Compensate(_, then):
            return None if then is None or type(then) in definition.inputs else "inputs"
        case CancelSchedule(key):
            return None if isinstance(key, str) or key in definition.inputs else "inputs"
        case Ask():
            timers = (type(timer.message) in definition.inputs for timer in decision.timers)
            return None if all(a in definition.inputs for a in decision.answers) and all(timers) else "inputs"
        case CloseTask(key):
            return None if isinstance(key, str) or key in definition.inputs else "inputs"
        case FanOut(messages, into):
            if into not in definition.inputs:
                return "inputs"
            return None if all(type(each) in definition.outputs for each in messages) else "outputs"
        case Become(state):
            return None if type(state) in definition.states else "states"
        case Fail() | RefuseAnswer():
            return None
        case _:
            raise InvalidDecisionError(
                f"{definition.name} decided {shown(decision)}, which is no decision",
                "Wrap a message in Send, Publish, Reply or Schedule.",
            )
