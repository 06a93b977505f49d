"""Workflow: what an author writes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from mainspring.core.decisions import Decisions
from mainspring.core.events import Event
from mainspring.core.messages import In, Out

State = TypeVar("State")
if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    Result_co = TypeVarWithDefault("Result_co", covariant=True, default=Out | None)
else:  # Python has defaults of type variables since 3.13
    Result_co = TypeVar("Result_co", covariant=True)

Inputs: TypeAlias = type[Any] | UnionType | tuple[type[Any], ...] | None
UnknownTransition: TypeAlias = Literal["fail", "ignore"]
Again: TypeAlias = Literal["join", "refuse", "anew"]
Mode: TypeAlias = Literal["direct", "inbox"]
History: TypeAlias = Literal["kept", "state"]
LateEvents: TypeAlias = Literal["kept", "dead letter"]

SNAPSHOT_EVERY_EVENTS = 100
STEPS_PER_HOUR = 1_000_000
"""What an instance may take in any hour, unless its workflow or its app says otherwise."""


class AnyOutput:
    """Stands in the place of the fourth type parameter where it is left out."""


class Workflow(Generic[In, State, Out, Result_co]):
    """A process, as what a message means in a state (`decide`) and what that makes of the state (`evolve`).

    The type parameters are the unions of its input messages, of its states and of its output messages, and the type of
    its result; without the last, any output or None may be the result. They are read at run time, so nothing is
    registered twice.

    >>> from dataclasses import dataclass
    >>> from mainspring import Complete, Decisions, Event, Received, Workflow
    >>> @dataclass(frozen=True)
    ... class Count:
    ...     counter: str
    >>> @dataclass(frozen=True)
    ... class Counted:
    ...     times: int = 0
    >>> @dataclass(frozen=True)
    ... class CountedThrice:
    ...     counter: str
    >>> class Counter(Workflow[Count, Counted, CountedThrice]):
    ...     initial_state = Counted()
    ...
    ...     def route(self, message: Count) -> str | None:
    ...         return message.counter
    ...
    ...     def decide(self, message: Count, state: Counted) -> Decisions[Count, CountedThrice] | None:
    ...         return [Complete(CountedThrice(message.counter))] if state.times == 2 else []
    ...
    ...     def evolve(self, state: Counted, event: Event[Count, CountedThrice]) -> Counted | None:
    ...         match event:
    ...             case Received():
    ...                 return Counted(state.times + 1)
    """

    initial_state: State
    """The state before anything happened."""

    begins: ClassVar[Inputs] = None
    """Which inputs may begin an instance. A workflow with a single input type need not say."""

    from_outside: ClassVar[Inputs] = None
    """Which inputs are taken from outside the app: by HTTP, from brokers and webhooks, from the command line. None: all
    but those that answer its tasks, and what only the engine knows, as SendFailed. Code that has the app sends any."""

    unknown_transition: ClassVar[UnknownTransition] = "fail"
    """What a decide that falls through means: an error, or an input that is recorded and ignored."""

    again: ClassVar[Again] = "join"
    """What a message that may begin an instance means to one that has begun: `join`, it is an input like any other, and
    after the end a dead letter, or kept (`late_events`); `refuse`, it is a dead letter; `anew`, after the end it begins
    the instance anew."""

    late_events: ClassVar[LateEvents] = "kept"
    """What becomes of a published event that comes after the instance's end: `kept`, it is recorded in the stream and
    not decided on, since at-least-once publishing delivers some events twice; or `dead letter`, as of a command."""

    name: ClassVar[str | None] = None
    """The workflow's name in ids, tables and tools; the class's name unless given."""

    version: ClassVar[int] = 1
    """The definition's version. An instance pins the one it began with."""

    mode: ClassVar[Mode | Mapping[type[Any], Mode]] = "direct"
    """How inputs from outside are taken: `direct`, stepped in the commit that makes them durable; `inbox`, made durable
    first and stepped next. A mapping chooses for each type; those not named are direct."""

    snapshot_every: ClassVar[int | None] = SNAPSHOT_EVERY_EVENTS
    """After how many events the state is stored beside the stream; None for never. It only saves time."""

    history: ClassVar[History] = "kept"
    """What is stored of an instance: `kept`, every event; `state`, its state alone, with what is still to be done and
    the ids of the messages that it took. An instance stays as it began."""

    retention: ClassVar[timedelta | None] = None
    """How long an ended instance is kept, where the app purges at all; None for as long as the app says. timedelta.max
    keeps it without end."""

    expected_within: ClassVar[timedelta | None] = None
    """How long an instance is expected to run at most; None for no expectation. It stops nothing: `mainspring stuck`
    and `mainspring doctor` report those that run longer."""

    deadline: ClassVar[timedelta | None] = None
    """How long an instance may take in all; None for as long as it likes. Then it gets DeadlinePassed, which has to be
    one of its inputs; a decide without a case for it means that the instance fails, and what was done is undone."""

    steps_per_hour: ClassVar[int | None] = None
    """How many steps an instance may take in an hour; None for as many as the app says. At 80 % a warning is reported;
    an instance that needs more is suspended: usually it sends to itself without end."""

    if not TYPE_CHECKING:

        def __class_getitem__(cls, given: Any) -> Any:
            """Fill in the type of the result where it is left out."""
            parameters = cls.__parameters__
            if isinstance(given, tuple) and parameters[-1:] == (Result_co,) and len(given) == len(parameters) - 1:
                given = (*given, AnyOutput)
            return super().__class_getitem__(given)

    @classmethod
    def own_type_parameters(cls) -> tuple[Any, Any, Any, Any] | None:
        """Return the four type parameters where an authoring style finds them elsewhere than in the class statement."""
        return None

    def route(self, message: In, /) -> str | None:
        """Return the id of the instance that the message belongs to, or None to skip it."""
        raise NotImplementedError

    def decide(self, message: Any, state: State, /) -> Decisions[In, Out] | None:
        """Return what is to be done about a message in a state. None means: no such transition.

        Annotate the first parameter as `Envelope[Input]` to get the message with its context.
        """
        raise NotImplementedError

    def evolve(self, state: State, event: Event[In, Out], /) -> State | None:
        """Return the state after an event. None leaves it as it is.

        An authoring style annotates the event as `Occurrence[Event[In, Out]]` to get it with its place in the stream,
        and so may its decide_on the input.
        """
        raise NotImplementedError

    def attributes(self, state: State, /) -> Mapping[str, str | int | float | bool | datetime]:
        """Return what an instance in this state can be searched by: `{"customer": state.customer}`.

        They are indexed in the commit of the step that changes them. Like evolve, it sees nothing but the state.
        """
        return {}

    def meaning_of(self, word: Any, state: State, /) -> Any:
        """Return what a word of a test stands for: a message, an event or a decision, itself unless a style has others.

        None stands for nothing, or for what the state holds already; an Occurrence says when it was.
        """
        return word

    def word_for(self, decision: Any, /) -> Any:
        """Return the word of a test that stands for a decision: itself unless a style has others."""
        return decision

    def state_named(self, word: Any, state: State, /) -> Any:
        """Return the state that a word of a test stands for where this is the state; the word itself otherwise."""
        return word

    def result_of(self, result: Any, /) -> Any:
        """Return what callers get that wait for the end: the message that it completed with. Styles override this."""
        return result

    def decide_on(self, asked: Any, state: State, /) -> Decisions[In, Out] | None:
        """Call decide with what it asked for, the message or its envelope. Other authoring styles override this."""
        return self.decide(asked, state)
