"""One small process, written in many ways: however decide and evolve are put, the same machine is to be read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeGuard

from mainspring import Complete, Decisions, Envelope, Event, Fail, Publish, Received, Schedule, Send, Workflow
from mainspring.core.events import Occurrence
from mainspring.styles import StateReturningWorkflow


@dataclass(frozen=True)
class Order:
    id: str
    amount: int


@dataclass(frozen=True)
class Paid:
    id: str


@dataclass(frozen=True)
class Refused:
    id: str


@dataclass(frozen=True)
class Late:
    id: str


@dataclass(frozen=True)
class Charge:
    id: str


@dataclass(frozen=True)
class Lost:
    id: str


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class Waiting:
    amount: int
    tries: int = 0


@dataclass(frozen=True)
class Done:
    pass


Input = Order | Paid | Refused | Late
State = New | Waiting | Done
Output = Charge | Lost
PATIENCE = timedelta(minutes=5)
ANSWERS = (Paid, Refused)

# What every form below is to be read as: state, message, decisions, state after it, end.
MACHINE = {
    ("New", "Order", "Send(Charge), Schedule(Late)", "Waiting", None),
    ("Waiting", "Paid", "Complete()", "Done", "completed"),
    ("Waiting", "Refused", "Send(Charge)", "Waiting", None),
    ("Waiting", "Refused", "Fail()", "Waiting", "failed"),
    ("Waiting", "Late", "Publish(Lost), Complete()", "Waiting", "completed"),
}


class Base(Workflow[Input, State, Output]):
    """What all forms share."""

    begins = Order
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.id

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Order(_, amount)):
                return Waiting(amount)
            case Waiting(), Received(Paid()):
                return Done()
            case Waiting(tries=tries), Received(Refused()):
                return replace(state, tries=tries + 1)


class Matched(Base):
    """The plain form."""

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Order(id), New():
                return [Send(Charge(id)), Schedule(Late(id), after=PATIENCE)]
            case Paid(), Waiting():
                return [Complete()]
            case Refused(id), Waiting(tries=tries) if tries < 3:
                return [Send(Charge(id))]
            case Refused(), Waiting():
                return [Fail("refused")]
            case Late(id), Waiting():
                return [Publish(Lost(id)), Complete()]


class Nested(Base):
    """A match in a match, the state first, with an alternative and an inner if."""

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match state:
            case New():
                match message:
                    case Order(id=id):
                        return [Send(Charge(id)), Schedule(Late(id), after=PATIENCE)]
            case Waiting():
                match message:
                    case Paid() | Late():
                        if isinstance(message, Paid):
                            return [Complete()]
                        return [Publish(Lost(message.id)), Complete()]
                    case Refused() as refused:
                        return [Send(Charge(refused.id))] if state.tries < 3 else [Fail("refused")]
            case _:
                return None
        return None


class Chained(Base):
    """isinstance chains, early returns, and a list that is built up."""

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        decisions: list[Any] = []
        if isinstance(state, New):
            if not isinstance(message, Order):
                return None
            decisions.append(Send(Charge(message.id)))
            decisions += [Schedule(Late(message.id), after=PATIENCE)]
            return decisions
        if not isinstance(state, Waiting) or isinstance(message, Order):
            return None
        if isinstance(message, ANSWERS):
            if type(message) is Paid:
                decisions.extend([Complete()])
            elif state.tries >= 3:
                decisions = [*decisions, Fail("refused")]
            else:
                decisions = decisions + [Send(Charge(message.id))]  # noqa: RUF005  a form that people write
            return decisions
        return (Publish(Lost(message.id)), Complete())


def is_waiting(state: State) -> TypeGuard[Waiting]:
    return isinstance(state, Waiting)


def charge(id: str) -> Send[Output]:
    return Send(Charge(id))


class Helped(Base):
    """Helpers: a method per message, plain functions, and a type guard."""

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        if isinstance(message, Order):
            return self._ordered(message, state)
        return self._answered(message, state) if is_waiting(state) else None

    def _ordered(self, order: Order, state: State) -> Decisions[Input, Output] | None:
        return [charge(order.id), self.timer(order.id)] if isinstance(state, New) else None

    def _answered(self, answer: Paid | Refused | Late, state: Waiting) -> Decisions[Input, Output]:
        if isinstance(answer, Paid):
            return [Complete()]
        if isinstance(answer, Late):
            return [*lost(answer.id)]
        enough = state.tries >= 3
        return [Fail("refused")] if enough else [charge(answer.id)]

    @staticmethod
    def timer(id: str) -> Schedule[Input]:
        return Schedule(Late(id), after=PATIENCE)


def lost(id: str) -> Iterator[Publish[Output] | Complete[Output]]:
    yield Publish(Lost(id))
    yield Complete()


class Dispatched(Base):
    """A table of functions by type."""

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        return HANDLERS[type(message)](message, state)


def on_order(message: Order, state: State) -> Decisions[Input, Output] | None:
    if type(state) is New:
        return [charge(message.id), Schedule(Late(message.id), after=PATIENCE)]
    return None


def on_paid(message: Paid, state: State) -> Decisions[Input, Output] | None:
    return [Complete()] if isinstance(state, Waiting) else None


def on_refused(message: Refused, state: State) -> Decisions[Input, Output] | None:
    match state:
        case Waiting(_, 0 | 1 | 2):
            return [charge(message.id)]
        case Waiting():
            return [Fail("refused")]
    return None


def on_late(message: Late, state: State) -> Decisions[Input, Output] | None:
    return list(lost(message.id)) if isinstance(state, Waiting) else None


HANDLERS: dict[type[Any], Callable[..., Decisions[Input, Output] | None]] = {
    Order: on_order,
    Paid: on_paid,
    Refused: on_refused,
    Late: on_late,
}


class SingleDispatched(Base):
    """functools.singledispatchmethod."""

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        return self.on(message, state)

    @functools.singledispatchmethod
    def on(self, message: Any, state: State) -> Decisions[Input, Output] | None:
        return None

    @on.register
    def _(self, message: Order, state: State) -> Decisions[Input, Output] | None:
        return on_order(message, state)

    @on.register
    def _(self, message: Paid, state: State) -> Decisions[Input, Output] | None:
        return on_paid(message, state)

    @on.register
    def _(self, message: Refused, state: State) -> Decisions[Input, Output] | None:
        return on_refused(message, state)

    @on.register
    def _(self, message: Late, state: State) -> Decisions[Input, Output] | None:
        return on_late(message, state)


class Enveloped(Base):
    """The envelope instead of the message, and super()."""

    def decide(self, envelope: Envelope[Input], state: State) -> Decisions[Input, Output] | None:
        message = envelope.message
        match message, state:
            case Order(id) | Refused(id), New() | Waiting(tries=0 | 1 | 2):
                if isinstance(message, Order) and not isinstance(state, New):
                    return None
                if isinstance(message, Refused) and isinstance(state, New):
                    return None
                return [Send(Charge(id)), *([Schedule(Late(id), after=PATIENCE)] if isinstance(state, New) else [])]
            case _:
                return self.rest(message, state)

    def rest(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        for cls, decided in ((Paid, on_paid), (Refused, on_refused), (Late, on_late)):
            if isinstance(message, cls):
                return decided(message, state)  # pyright: ignore[reportArgumentType]
        return None


class Returning(StateReturningWorkflow[Input, State, Output]):
    """The state-returning style."""

    begins = Order
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.id

    def decide(self, message: Input, state: State) -> tuple[State, Decisions[Input, Output]] | None:
        match message, state:
            case Order(id, amount), New():
                return Waiting(amount), [Send(Charge(id)), Schedule(Late(id), after=PATIENCE)]
            case Paid(), Waiting():
                return Done(), [Complete()]
            case Refused(id), Waiting(amount, tries) if tries < 3:
                return Waiting(amount, tries + 1), [Send(Charge(id))]
            case Refused(), Waiting():
                return state, [Fail("refused")]
            case Late(id), Waiting():
                return state, [Publish(Lost(id)), Complete()]


class Placed(Matched):
    """An evolve that asks for its events with their places."""

    def evolve(self, state: State, event: Occurrence[Event[Input, Output]]) -> State | None:  # type: ignore[override]
        match state, event.event:
            case New(), Received(Order(_, amount)):
                return Waiting(amount)
            case Waiting(), Received(Paid()):
                return Done()
            case Waiting(tries=tries), Received(Refused()):
                return replace(state, tries=tries + 1)


FORMS: tuple[type[Workflow[Any, Any, Any]], ...] = (
    Matched,
    Nested,
    Chained,
    Helped,
    Dispatched,
    SingleDispatched,
    Enveloped,
    Returning,
    Placed,
)
