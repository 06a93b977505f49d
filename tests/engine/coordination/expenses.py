"""An expense that a manager must approve, for the tests of tasks."""

from dataclasses import dataclass
from datetime import timedelta

from mainspring import (
    Ask,
    CloseTask,
    Complete,
    Decisions,
    Envelope,
    Event,
    Fail,
    Received,
    Schedule,
    Workflow,
)

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
