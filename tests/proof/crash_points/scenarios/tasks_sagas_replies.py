"""Task, saga and reply: somebody is asked, something is undone, somebody answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from mainspring import (
    Ask,
    Compensate,
    Complete,
    Context,
    Decisions,
    DoNotRetryError,
    Event,
    Mainspring,
    Received,
    Reply,
    Send,
    SendFailed,
    Workflow,
)
from tests.proof.crash.files import Place, read_lines
from tests.proof.crash.tables import Tables
from tests.proof.crash.workload import Workload
from tests.proof.crash_points.client import Client, acts_of
from tests.proof.crash_points.handler_effects import HandlerEffects
from tests.proof.crash_points.scenario import Found, Scenario


@dataclass(frozen=True)
class Stage:
    name: str = "new"


# ---- a task


@dataclass(frozen=True)
class Submit:
    expense: str


@dataclass(frozen=True)
class Approve:
    expense: str
    by: str


@dataclass(frozen=True)
class Refund:
    expense: str


@dataclass(frozen=True)
class Refunded:
    expense: str


class Expense(Workflow[Submit | Approve | Refunded, Stage, Refund]):
    """Asks a manager, then pays."""

    begins = Submit
    initial_state = Stage()

    def route(self, message: Submit | Approve | Refunded) -> str | None:
        return message.expense

    def evolve(self, state: Stage, event: Event[Any, Any]) -> Stage | None:
        return Stage(type(event.message).__name__) if isinstance(event, Received) else None

    def decide(self, message: Submit | Approve | Refunded, state: Stage) -> Decisions[Any, Any] | None:
        match message:
            case Submit(expense):
                return [Ask(f"Approve {expense}", Approve, role="manager", key="approval")]
            case Approve(expense):
                return [Send(Refund(expense))]
            case Refunded():
                return [Complete()]


def _wire_expense(app: Mainspring, effects: HandlerEffects) -> None:
    app.add(Expense())

    @app.handler
    async def refund(command: Refund, context: Context) -> Refunded:
        with effects.call(context):
            effects.make(context)
            return Refunded(command.expense)


async def _task(client: Client) -> None:
    tasks, task = client.app.tasks, "Expense/e-1/3"

    async def claim() -> str | None:
        return (await tasks.claim(task, actor="ann", roles=("manager",))).claimed_by

    async def complete(actor: str) -> str:
        answer = Approve("e-1", actor)
        return repr((await tasks.complete(task, answer, actor=actor, roles=("manager",))).message)

    await client.ask("submit", "Expense/e-1", Submit("e-1"))
    await client.act("ann claims", claim)
    await client.act("ann completes", lambda: complete("ann"))
    await client.act("bob completes", lambda: complete("bob"))
    await client.ended("Expense/e-1")
    await client.quiet()


def _tasks(tables: Tables, place: Place) -> Found:
    rows = tables.rows("SELECT version, key, status, claimed_by, answered_by, answer_type FROM tasks")
    return {"tasks": [list(row) for row in rows], "told": _told(place)}


def _told(place: Place) -> dict[str, Any]:
    return {line["done"]: line["answer"] for line in read_lines(acts_of(place))}


TASK: Final = Scenario(
    "task",
    Workload(
        workflows={"Expense": Expense()},
        messages={cls.__name__: cls for cls in (Submit, Approve, Refund, Refunded)},
        answered=frozenset({"Refund"}),
        caps={"Refund": 20},
        come_to_rest=frozenset({"Expense"}),
    ),
    _wire_expense,
    _task,
    found=_tasks,
)

# ---- a saga


@dataclass(frozen=True)
class Plan:
    trip: str


@dataclass(frozen=True)
class Book:
    trip: str
    what: str


@dataclass(frozen=True)
class BookCar:
    """There is none, for certain."""

    trip: str


@dataclass(frozen=True)
class Booked:
    trip: str
    what: str


@dataclass(frozen=True)
class Unbook:
    trip: str
    what: str


class Trip(Workflow[Plan | Booked | SendFailed, Stage, Book | BookCar | Unbook]):
    """Books a flight and a hotel; there is no car, so both are given back."""

    begins = Plan
    initial_state = Stage()

    def route(self, message: Plan | Booked | SendFailed) -> str | None:
        return None if isinstance(message, SendFailed) else message.trip

    def evolve(self, state: Stage, event: Event[Any, Any]) -> Stage | None:
        return Stage(type(event.message).__name__) if isinstance(event, Received) else None

    def decide(self, message: Plan | Booked | SendFailed, state: Stage) -> Decisions[Any, Any] | None:
        match message:
            case Plan(trip):
                return [_booking(trip, "flight")]
            case Booked(trip, "flight"):
                return [_booking(trip, "hotel")]
            case Booked(trip):
                return [Send(BookCar(trip), compensate=Unbook(trip, "car"))]
            case SendFailed():
                return [Compensate("no car")]


def _booking(trip: str, what: str) -> Send[Any]:
    return Send(Book(trip, what), compensate=Unbook(trip, what))


def _wire_trip(app: Mainspring, effects: HandlerEffects) -> None:
    app.add(Trip())

    @app.handler
    async def book(command: Book, context: Context) -> Booked:
        with effects.call(context):
            effects.make(context)
            return Booked(command.trip, command.what)

    @app.handler
    async def book_car(_command: BookCar, context: Context) -> None:
        with effects.call(context):
            raise DoNotRetryError("no car")

    @app.handler
    async def unbook(_command: Unbook, context: Context) -> None:
        with effects.call(context):
            effects.make(context)


async def _saga(client: Client) -> None:
    await client.ask("plan", "Trip/t-1", Plan("t-1"))
    await client.ended("Trip/t-1")
    await client.quiet()


SAGA: Final = Scenario(
    "saga",
    Workload(
        workflows={"Trip": Trip()},
        messages={cls.__name__: cls for cls in (Plan, Book, BookCar, Booked, Unbook, SendFailed)},
        answered=frozenset({"Book", "BookCar", "Unbook"}),
        caps={"Book": 20, "BookCar": 1, "Unbook": 20},
        hopeless=frozenset({"BookCar"}),
    ),
    _wire_trip,
    _saga,
)

# ---- a reply


@dataclass(frozen=True)
class Wonder:
    asker: str


@dataclass(frozen=True)
class Question:
    oracle: str
    text: str


@dataclass(frozen=True)
class Answer:
    text: str


class Asker(Workflow[Wonder | Answer, Stage, Question]):
    """Asks an oracle, and ends with its answer."""

    begins = Wonder
    initial_state = Stage()

    def route(self, message: Wonder | Answer) -> str | None:
        return message.asker if isinstance(message, Wonder) else None

    def evolve(self, state: Stage, event: Event[Any, Any]) -> Stage | None:
        return Stage(type(event.message).__name__) if isinstance(event, Received) else None

    def decide(self, message: Wonder | Answer, state: Stage) -> Decisions[Any, Any] | None:
        match message:
            case Wonder(asker):
                return [Send(Question(f"of {asker}", "why"))]
            case Answer():
                return [Complete()]


class Oracle(Workflow[Question, Stage, Answer]):
    """Answers whoever asks: another instance, or a caller outside."""

    initial_state = Stage()

    def route(self, message: Question) -> str | None:
        return message.oracle

    def evolve(self, state: Stage, event: Event[Any, Any]) -> Stage | None:
        return None

    def decide(self, message: Question, state: Stage) -> Decisions[Any, Any] | None:
        return [Reply(Answer(f"because {message.text}"))]


def _wire_oracle(app: Mainspring, _effects: HandlerEffects) -> None:
    app.add(Asker(), Oracle())


async def _reply(client: Client) -> None:
    await client.ask("wonder", "Asker/a-1", Wonder("a-1"))
    await client.request("request", "Oracle/of all", Question("of all", "not"))
    await client.ended("Asker/a-1")
    await client.quiet()


def _replies(_tables: Tables, place: Place) -> Found:
    return {"told": _told(place)}


REPLY: Final = Scenario(
    "reply",
    Workload(
        workflows={"Asker": Asker(), "Oracle": Oracle()},
        messages={cls.__name__: cls for cls in (Wonder, Question, Answer)},
        takers={"Question": ("Oracle",)},
        come_to_rest=frozenset({"Asker"}),
    ),
    _wire_oracle,
    _reply,
    found=_replies,
)
