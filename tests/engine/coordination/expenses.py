"""An expense that a manager must approve, for the tests of tasks."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from mainspring import (
    Ask,
    CloseTask,
    Complete,
    Decisions,
    Envelope,
    Event,
    Fail,
    Mainspring,
    Received,
    Schedule,
    Task,
    Workflow,
)
from mainspring.app.internals import internals_of
from mainspring.errors import TaskRefusedError
from mainspring.testing.clock import VirtualClock
from tests.support.apps import MakeApp
from tests.support.waiting import until

DAY = timedelta(days=1)
APPROVAL = "approval"


@dataclass(frozen=True)
class Submit:
    id: str
    amount: int = 100


@dataclass(frozen=True)
class Approve:
    id: str
    note: str = ""


@dataclass(frozen=True)
class Reject:
    id: str
    reason: str


@dataclass(frozen=True)
class Withdraw:
    id: str
    fails: bool = False


@dataclass(frozen=True)
class Pause:
    id: str


@dataclass(frozen=True)
class Remind:
    id: str


@dataclass(frozen=True)
class Escalate:
    id: str


@dataclass(frozen=True)
class Approved:
    id: str
    by: str


@dataclass(frozen=True)
class Open:
    reminders: int = 0


Input = Submit | Approve | Reject | Withdraw | Pause | Remind | Escalate


def asked(id: str, amount: int, maker: str) -> Ask[Input]:
    """What a new expense asks."""
    return Ask(
        f"Approve {id}",
        Approve | Reject,
        role="manager",
        excludes=(maker,),
        key=APPROVAL,
        reject=Reject,
        due=7 * DAY,
        remind=Schedule(Remind(id), after=2 * DAY),
        escalate=Schedule(Escalate(id), after=5 * DAY),
        data={"id": id, "amount": amount},
    )


class Expenses(Workflow[Input, Open, Approved]):
    """Asks a manager; after five days, a director instead. `Pause` closes the task and waits."""

    begins = Submit
    initial_state = Open()

    def route(self, message: Input) -> str | None:
        return message.id

    def evolve(self, state: Open, event: Event[Input, Approved]) -> Open | None:
        match event:
            case Received(Remind()):
                return Open(state.reminders + 1)

    def decide(self, envelope: Envelope[Input], state: Open) -> Decisions[Input, Approved] | None:
        match envelope.message:
            case Submit(id, amount):
                return [asked(id, amount, envelope.actor or "nobody")]
            case Approve(id, note):
                if note == "boom":
                    raise ZeroDivisionError
                return [Complete(Approved(id, envelope.actor or "nobody"))]
            case Reject(_, reason):
                return [Fail(reason)]
            case Withdraw(_, fails):
                return [Fail("withdrawn") if fails else Complete()]
            case Pause():
                return [CloseTask(APPROVAL)]
            case Remind():
                return []
            case Escalate(id):
                return [Ask(f"Decide {id}", Approve | Reject, role="director", key=APPROVAL)]


class CarefulExpenses(Expenses):
    """The same through the inbox."""

    mode = "inbox"


MANAGER: dict[str, Any] = {"actor": "bob", "roles": ["manager"]}


def app_of(make_app: MakeApp, clock: VirtualClock | None = None, workflow: type[Expenses] = Expenses) -> Mainspring:
    app = make_app(clock)
    app.add(workflow())
    return app


async def opened(app: Mainspring, id: str = "e-1", maker: str = "ann") -> Task:
    """Submit an expense, and return the task that it asks."""
    found: list[Task] = []

    async def is_open() -> bool:
        found[:] = [task for task in await app.tasks.list(limit=1_000) if task.instance == id]
        return bool(found)

    await app.send(Submit(id), actor=maker)
    await until(is_open)
    return found[0]


async def events(app: Mainspring, id: str = "e-1") -> list[str]:
    (name,) = (name for name in internals_of(app).registry.workflows if name.endswith("Expenses"))
    return [type(entry.event).__name__ for entry in await app.instance_at(f"{name}/{id}").stream()]


async def refusal(attempt: Any) -> str:
    with pytest.raises(TaskRefusedError) as refused:
        await attempt
    return refused.value.reason
