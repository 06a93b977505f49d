"""A subscriber pays every month, and is written to, until somebody cancels or the card fails. As decide and evolve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from mainspring import Complete, Decisions, Event, Mainspring, Received, Schedule, Send, SendFailed, Workflow

MONTH = timedelta(days=30)
GRACE = timedelta(days=7)


@dataclass(frozen=True)
class Subscribe:
    customer: str
    cents: int


@dataclass(frozen=True)
class Cancel:
    customer: str


@dataclass(frozen=True)
class MonthOver:
    customer: str


@dataclass(frozen=True)
class GraceOver:
    customer: str


@dataclass(frozen=True)
class Charged:
    customer: str


Input = Subscribe | Cancel | MonthOver | GraceOver | Charged | SendFailed


@dataclass(frozen=True)
class Charge:
    customer: str
    cents: int
    month: int


@dataclass(frozen=True)
class Write:
    customer: str
    text: str


@dataclass(frozen=True)
class Over:
    why: str


Output = Charge | Write | Over


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class Paying:
    customer: str
    cents: int
    month: int = 1
    tries: int = 1
    cancelled: bool = False


@dataclass(frozen=True)
class Overdue:
    paying: Paying


@dataclass(frozen=True)
class Paid:
    paying: Paying


State = New | Paying | Overdue | Paid


class Subscription(Workflow[Input, State, Output, Over]):
    begins = Subscribe
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return None if isinstance(message, SendFailed) else message.customer

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(Subscribe(customer, cents)):
                return Paying(customer, cents)
            case Paying(), Received(Cancel()):
                return replace(state, cancelled=True)
            case Overdue(paying), Received(Cancel()):
                return Overdue(replace(paying, cancelled=True))
            case Paying(), Received(Charged()):
                return Paid(state)
            case Paying(tries=1), Received(SendFailed(type="Charge")):
                return Overdue(state)
            case Overdue(paying), Received(GraceOver()):
                return replace(paying, tries=2)
            case Paid(paying), Received(MonthOver()):
                return Paying(paying.customer, paying.cents, paying.month + 1)

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case Subscribe(customer, cents), New():
                return [Send(Charge(customer, cents, 1))]
            case Charged(customer), Paying(month=month, cancelled=cancelled):
                welcome = Send(Write(customer, "Welcome" if month == 1 else "Thank you for staying"))
                return (
                    [welcome, *goodbye(customer)]
                    if cancelled
                    else [welcome, Schedule(MonthOver(customer), after=MONTH)]
                )
            case SendFailed(type="Charge"), Paying(customer=customer, tries=1):
                return [Send(Write(customer, "Your card was declined")), Schedule(GraceOver(customer), after=GRACE)]
            case SendFailed(type="Charge"), Paying(customer=customer):
                return [Send(Write(customer, "Your subscription has ended")), Complete(Over("not paid"))]
            case GraceOver(customer), Overdue(paying):
                return [Send(Charge(customer, paying.cents, paying.month))]
            case MonthOver(customer), Paid(paying):
                return [Send(Charge(customer, paying.cents, paying.month + 1))]
            case Cancel(customer), Paid():
                return goodbye(customer)
            case Cancel(), Paying() | Overdue():
                return []


def goodbye(customer: str) -> list[Send[Output] | Complete[Output]]:
    return [Send(Write(customer, "Sorry to see you go")), Complete(Over("cancelled"))]


app = Mainspring("sqlite:///subscriptions.db")
app.add(Subscription())


@app.handler
async def charge(command: Charge) -> Charged:
    return Charged(command.customer)


@app.handler
async def write(command: Write) -> None: ...
