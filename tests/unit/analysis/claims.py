"""Small workflows to look into: helpers, nested matches, guards, one-line cases, ifs, and the other styles."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from mainspring import (
    Began,
    CancelSchedule,
    Complete,
    Decisions,
    Envelope,
    Event,
    Fail,
    Mainspring,
    Publish,
    Received,
    Schedule,
    Send,
    Workflow,
)
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_words import CompleteWorkflow, RunTask, ScheduleTask, TaskCompleted, WorkflowStarted
from mainspring.styles.state_returning import StateReturningWorkflow


@dataclass(frozen=True)
class Claim:
    id: str
    euros: int
    express: bool = False


@dataclass(frozen=True)
class Reviewed:
    id: str
    good: bool


@dataclass(frozen=True)
class Overdue:
    id: str


@dataclass(frozen=True)
class Note:
    id: str
    text: str


@dataclass(frozen=True)
class Review:
    id: str
    euros: int


@dataclass(frozen=True)
class Pay:
    id: str
    euros: int


@dataclass(frozen=True)
class Paid:
    id: str


@dataclass(frozen=True)
class Open:
    pass


@dataclass(frozen=True)
class UnderReview:
    euros: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settled:
    euros: int
    notes: tuple[str, ...] = ()


Input = Claim | Reviewed | Overdue | Note | Paid
Output = Review | Pay
State = Open | UnderReview | Settled

SMALL = 10


def paying(id: str, euros: int) -> list[Any]:
    """A helper: its branches are part of the explanation."""
    if euros > 1_000:
        return [Send(Pay(id, euros)), Schedule(Overdue(id), after=timedelta(days=1))]
    return [Send(Pay(id, euros))]


class Claims(Workflow[Input, State, Output]):
    begins = Claim
    initial_state = Open()

    def route(self, message: Input) -> str | None:
        return message.id

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Claim(_, euros), Open() if euros < 0:
                return [Fail("a negative claim")]
            case Claim(id, euros), Open() if euros <= SMALL: return paying(id, euros)  # noqa: E701  # fmt: skip
            case Claim(id, euros, express), Open():
                after = timedelta(hours=1) if express else timedelta(days=7)
                return [Send(Review(id, euros)), Schedule(Overdue(id), after=after)]
            case Reviewed(id, good), UnderReview(euros):
                match good:
                    case True:
                        return [CancelSchedule(Overdue), *paying(id, euros)]
                    case False:
                        return [Fail("refused")]
            case Overdue(), UnderReview():
                return [Fail("nobody reviewed it")]
            case Note(), UnderReview() | Settled():
                return []
            case Paid(), _:
                return [Complete()]

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case Open(), Received(Claim(_, euros)):
                return UnderReview(euros)
            case UnderReview(euros, notes), Received(Note(_, text)):
                return UnderReview(euros, (*notes, text))
            case UnderReview(euros, notes), Received(Reviewed(_, good)) if good:
                return Settled(euros, notes)


# ---- the other styles


@dataclass(frozen=True)
class Knock:
    door: str


@dataclass(frozen=True)
class Knocked:
    times: int = 0


class Door(StateReturningWorkflow[Knock, Knocked, Knock]):
    initial_state = Knocked()

    def route(self, message: Knock) -> str | None:
        return message.door

    def decide(self, message: Knock, state: Knocked) -> tuple[Knocked, Decisions[Knock, Knock]] | None:
        match state:
            case Knocked(times) if times >= 2:
                return Knocked(times + 1), [Complete()]
            case Knocked(times):
                return Knocked(times + 1), []


class Greeting(HistoryWorkflow):
    def decide(self, events: Any) -> Any:
        match events[-1]:
            case WorkflowStarted(_, name):
                return [ScheduleTask("greet", "greet", name)]
            case TaskCompleted():
                return [CompleteWorkflow("greeted")]
        return []


@dataclass(frozen=True)
class Tick:
    id: str


class Impure(Workflow[Tick, Knocked, Knock]):
    initial_state = Knocked()
    clock = staticmethod(lambda: 0.0)

    def route(self, message: Tick) -> str | None:
        return message.id

    def decide(self, message: Tick, state: Knocked) -> Decisions[Tick, Knock] | None:
        if self.clock() < 0:
            return [Complete()]
        return []

    def evolve(self, state: Knocked, event: Event[Tick, Knock]) -> Knocked | None:
        return None


@dataclass(frozen=True)
class Ring:
    id: str


class Enveloped(Workflow[Ring, Knocked, Knock]):
    initial_state = Knocked()

    def route(self, message: Ring) -> str | None:
        return message.id

    def decide(self, message: Envelope[Ring], state: Knocked) -> Decisions[Ring, Knock] | None:
        match message.actor:
            case "ann":
                return [Publish(Knock(message.message.id))]
            case _:
                return []

    def evolve(self, state: Knocked, event: Event[Ring, Knock]) -> Knocked | None:
        return None


# ---- what keeps no history, what begins anew, what is undone


class Asker(Workflow[Tick, Knocked, Knock]):
    """Asks, and takes no answer."""

    initial_state = Knocked()

    def route(self, message: Tick) -> str | None:
        return message.id

    def decide(self, message: Tick, state: Knocked) -> Decisions[Tick, Knock] | None:
        return [Send(Knock(message.id))]

    def evolve(self, state: Knocked, event: Event[Tick, Knock]) -> Knocked | None:
        return None


@dataclass(frozen=True)
class Count:
    id: str


class Meter(Workflow[Count, Knocked, Knock]):
    initial_state = Knocked()
    history = "state"

    def route(self, message: Count) -> str | None:
        return message.id

    def decide(self, message: Count, state: Knocked) -> Decisions[Count, Knock] | None:
        return []

    def evolve(self, state: Knocked, event: Event[Count, Knock]) -> Knocked | None:
        return Knocked(state.times + 1) if isinstance(event, Received) else None


@dataclass(frozen=True)
class Shift:
    id: str
    hours: int


@dataclass(frozen=True)
class Worked:
    hours: int = 0


class Shifts(Workflow[Shift, Worked, Knock]):
    """Each shift ends the instance; the next one begins it anew."""

    initial_state = Worked()
    again = "anew"

    def route(self, message: Shift) -> str | None:
        return message.id

    def decide(self, message: Shift, state: Worked) -> Decisions[Shift, Knock] | None:
        return [Complete()] if state.hours + message.hours >= 8 else []

    def evolve(self, state: Worked, event: Event[Shift, Knock]) -> Worked | None:
        match event:
            case Received(Shift(_, hours)):
                return Worked(state.hours + hours)


class Bell(Workflow[Ring, Knocked, Knock]):
    """Its evolve takes note of the beginning itself: the first input is decided before that."""

    initial_state = Knocked()

    def route(self, message: Ring) -> str | None:
        return message.id

    def decide(self, message: Ring, state: Knocked) -> Decisions[Ring, Knock] | None:
        return [Complete()] if state.times else []

    def evolve(self, state: Knocked, event: Event[Ring, Knock]) -> Knocked | None:
        return Knocked(state.times + 1) if isinstance(event, Began) else None


def app_of(url: str) -> Mainspring:
    """Return the app. Reviews are made elsewhere, and come in as messages; payments are answered at once."""
    app = Mainspring(url)
    app.add(Claims(), Door(), Greeting(), Impure(), Enveloped(), Meter(), Shifts())
    app.external(Review)

    @app.handler
    async def pay(command: Pay) -> Paid:
        return Paid(command.id)

    @app.handler
    async def greet(command: RunTask) -> TaskCompleted:
        return TaskCompleted(command.task_id, f"hello {command.input}")

    return app


app = app_of("sqlite:///claims.db")
