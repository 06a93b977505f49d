"""The workflows of a run, beside those of the kill loop: a saga, a parent, a task, and a state without history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, ClassVar, Final

from mainspring import (
    Ask,
    CancelSchedule,
    ChildFailed,
    Compensate,
    Compensated,
    Complete,
    Decisions,
    Event,
    Fail,
    FanOut,
    Publish,
    Received,
    Reply,
    Schedule,
    Send,
    SendFailed,
    Sent,
    StartChild,
    Workflow,
)
from tests.proof.simulation import consignments, contracts, petitions
from tests.proof.simulation.score import Close, Closed, Point, Score, Standing

UNITS_PER_BILL: Final = 10


# ---- a saga


@dataclass(frozen=True)
class PlanHoliday:
    """`breaks_at` is the step that is refused for good; 0 for none. `replans` goes on after what was done is undone."""

    holiday: str
    steps: int
    breaks_at: int
    replans: bool


@dataclass(frozen=True)
class Reserved:
    holiday: str
    step: int


@dataclass(frozen=True)
class StayHome:
    holiday: str


@dataclass(frozen=True)
class Reserve:
    holiday: str
    step: int
    breaks: bool


@dataclass(frozen=True)
class Unreserve:
    holiday: str
    step: int


@dataclass(frozen=True)
class Planned:
    holiday: str = ""
    steps: int = 0
    breaks_at: int = 0
    replans: bool = False
    reserved: tuple[int, ...] = ()


HolidayInput = PlanHoliday | Reserved | SendFailed | StayHome
HolidayOutput = Reserve | Unreserve


class Holiday(Workflow[HolidayInput, Planned, HolidayOutput]):
    """Reserves one step after the other. The one that is refused undoes all before it."""

    begins = PlanHoliday
    initial_state = Planned()
    snapshot_every: ClassVar[int | None] = 3

    def route(self, message: HolidayInput) -> str | None:
        return None if isinstance(message, SendFailed) else message.holiday

    def evolve(self, state: Planned, event: Event[HolidayInput, HolidayOutput]) -> Planned | None:
        match event:
            case Received(PlanHoliday(holiday, steps, breaks_at, replans)):
                return Planned(holiday, steps, breaks_at, replans)
            case Received(Reserved(_, step)):
                return replace(state, reserved=(*state.reserved, step))
            case Compensated(Unreserve(_, step)):
                return replace(state, reserved=tuple(known for known in state.reserved if known != step))

    def decide(self, message: HolidayInput, state: Planned) -> Decisions[HolidayInput, HolidayOutput] | None:
        match message:
            case PlanHoliday(holiday, _, breaks_at):
                return [_reserve(holiday, 1, breaks_at)]
            case Reserved(holiday, step) if step < state.steps:
                return [_reserve(holiday, step + 1, state.breaks_at)]
            case Reserved():
                return [Complete()]
            case SendFailed():
                then = StayHome(state.holiday) if state.replans else None
                return [Compensate("no room", then=then)]
            case StayHome():
                return [Complete()]


def _reserve(holiday: str, step: int, breaks_at: int) -> Send[Any]:
    return Send(Reserve(holiday, step, step == breaks_at), compensate=Unreserve(holiday, step))


# ---- a parent, its children, and a fan-out


@dataclass(frozen=True)
class StartProject:
    project: str
    errands: int
    parts: int
    spoiled: bool


@dataclass(frozen=True)
class RunErrand:
    errand: str
    spoiled: bool


@dataclass(frozen=True)
class ErrandDone:
    errand: str


@dataclass(frozen=True)
class Fetch:
    errand: str


@dataclass(frozen=True)
class Fetched:
    errand: str


@dataclass(frozen=True)
class Weigh:
    project: str
    part: int


@dataclass(frozen=True)
class Weight:
    grams: int


@dataclass(frozen=True)
class PartsWeighed:
    results: tuple[Weight, ...]
    failures: tuple[ChildFailed, ...]


@dataclass(frozen=True)
class Projected:
    project: str
    grams: int
    failed: int


@dataclass(frozen=True)
class Open:
    project: str = ""
    awaited: int = 0
    grams: int = 0
    failed: int = 0


ProjectInput = StartProject | ErrandDone | ChildFailed | PartsWeighed
ProjectOutput = RunErrand | Weigh | Projected


class Project(Workflow[ProjectInput, Open, ProjectOutput]):
    begins = StartProject
    initial_state = Open()
    snapshot_every: ClassVar[int | None] = 2

    def route(self, message: ProjectInput) -> str | None:
        return message.project if isinstance(message, StartProject) else None

    def evolve(self, state: Open, event: Event[ProjectInput, ProjectOutput]) -> Open | None:
        match event:
            case Received(StartProject(project, errands)):
                return Open(project, errands + 1)
            case Received(message):
                return self.after(state, message)

    def after(self, state: Open, message: ProjectInput) -> Open:
        """Return the state after one of what it waits for."""
        match message:
            case PartsWeighed(results, failures):
                grams = sum(weight.grams for weight in results)
                return replace(state, awaited=state.awaited - 1, grams=grams, failed=state.failed + len(failures))
            case ChildFailed():
                return replace(state, awaited=state.awaited - 1, failed=state.failed + 1)
            case _:
                return replace(state, awaited=state.awaited - 1)

    def decide(self, message: ProjectInput, state: Open) -> Decisions[ProjectInput, ProjectOutput] | None:
        match message:
            case StartProject(project, errands, parts, spoiled):
                children = [StartChild(RunErrand(f"{project}.{n}", spoiled and n == 0)) for n in range(errands)]
                return [*children, FanOut([Weigh(project, n) for n in range(parts)], into=PartsWeighed)]
            case _:
                after = self.after(state, message)
                return [] if after.awaited else [Complete(Projected(after.project, after.grams, after.failed))]


class Errand(Workflow[RunErrand | Fetched, Open, Fetch | ErrandDone]):
    begins = RunErrand
    initial_state = Open()

    def route(self, message: RunErrand | Fetched) -> str | None:
        return message.errand

    def evolve(self, state: Open, event: Event[RunErrand | Fetched, Fetch | ErrandDone]) -> Open | None:
        match event:
            case Received(RunErrand(errand)):
                return Open(errand)

    def decide(
        self, message: RunErrand | Fetched, state: Open
    ) -> Decisions[RunErrand | Fetched, Fetch | ErrandDone] | None:
        match message:
            case RunErrand(_, True):
                return [Fail("the shop is closed")]
            case RunErrand(errand):
                return [Send(Fetch(errand))]
            case Fetched(errand):
                return [Complete(ErrandDone(errand))]


# ---- a task


@dataclass(frozen=True)
class Submit:
    paper: str


@dataclass(frozen=True)
class Approve:
    paper: str
    by: str


@dataclass(frozen=True)
class Refuse:
    paper: str
    by: str


@dataclass(frozen=True)
class Remind:
    paper: str


@dataclass(frozen=True)
class PaperDone:
    paper: str
    by: str


@dataclass(frozen=True)
class Waiting:
    reminders: int = 0


ApprovalInput = Submit | Approve | Refuse | Remind


class Approval(Workflow[ApprovalInput, Waiting, PaperDone]):
    begins = Submit
    initial_state = Waiting()
    mode: ClassVar = {Submit: "inbox"}

    def route(self, message: ApprovalInput) -> str | None:
        return message.paper

    def evolve(self, state: Waiting, event: Event[ApprovalInput, PaperDone]) -> Waiting | None:
        match event:
            case Received(Remind()):
                return Waiting(state.reminders + 1)

    def decide(self, message: ApprovalInput, state: Waiting) -> Decisions[ApprovalInput, PaperDone] | None:
        match message:
            case Submit(paper):
                remind = Schedule(Remind(paper), after=timedelta(seconds=8))
                return [Ask(f"Approve {paper}", Approve | Refuse, role="manager", key="approval", remind=remind)]
            case Approve(paper, by):
                return [Publish(PaperDone(paper, by)), Complete(PaperDone(paper, by))]
            case Refuse(_, by):
                return [Fail(f"refused by {by}")]
            case Remind():
                return []


# ---- a state without history


@dataclass(frozen=True)
class Install:
    gauge: str


@dataclass(frozen=True)
class Read:
    gauge: str
    units: int


@dataclass(frozen=True)
class Billed:
    gauge: str
    units: int


@dataclass(frozen=True)
class Overdue:
    gauge: str


@dataclass(frozen=True)
class AskTotal:
    gauge: str


@dataclass(frozen=True)
class Remove:
    gauge: str


@dataclass(frozen=True)
class Bill:
    gauge: str
    units: int


@dataclass(frozen=True)
class Total:
    gauge: str
    units: int
    reads: int


@dataclass(frozen=True)
class Reading:
    gauge: str = ""
    total: int = 0
    reads: int = 0
    open: int = 0
    billed: int = 0
    overdue: int = 0


GaugeInput = Install | Read | Billed | Overdue | AskTotal | Remove
GaugeOutput = Bill | Total


class Gauge(Workflow[GaugeInput, Reading, GaugeOutput]):
    """Bills what was read since the last bill, as soon as it is enough. Only its state is stored."""

    begins = Install
    initial_state = Reading()
    history = "state"

    def route(self, message: GaugeInput) -> str | None:
        return message.gauge

    def evolve(self, state: Reading, event: Event[GaugeInput, GaugeOutput]) -> Reading | None:
        match event:
            case Received(Install(gauge)):
                return Reading(gauge)
            case Received(Read(_, units)):
                return replace(state, total=state.total + units, open=state.open + units, reads=state.reads + 1)
            case Sent(Bill(_, units)):
                return replace(state, open=state.open - units)
            case Received(Billed(_, units)):
                return replace(state, billed=state.billed + units)
            case Received(Overdue()):
                return replace(state, overdue=state.overdue + 1)

    def decide(self, message: GaugeInput, state: Reading) -> Decisions[GaugeInput, GaugeOutput] | None:
        match message:
            case Install(gauge):
                return [Schedule(Overdue(gauge), after=timedelta(seconds=5))]
            case Read(gauge, units) if state.open + units >= UNITS_PER_BILL:
                return [CancelSchedule(Overdue), Send(Bill(gauge, state.open + units))]
            case AskTotal(gauge):
                return [Reply(Total(gauge, state.total, state.reads))]
            case Remove(gauge):
                return [Complete(Total(gauge, state.total, state.reads))]
            case Read() | Billed() | Overdue():
                return []


OWN: Final[dict[str, Workflow[Any, Any, Any]]] = {
    type(workflow).__name__: workflow
    for workflow in (
        *(Holiday(), Project(), Errand(), Approval(), Gauge(), Score()),
        *(contracts.Contract(), consignments.Consignment(), petitions.Petition()),
    )
}
OWN_MESSAGES: Final[dict[str, type[Any]]] = {
    cls.__name__: cls
    for cls in (
        *(PlanHoliday, Reserved, StayHome, Reserve, Unreserve, SendFailed),
        *(StartProject, RunErrand, ErrandDone, Fetch, Fetched, Weigh, Weight, PartsWeighed, Projected),
        *(Submit, Approve, Refuse, Remind, PaperDone),
        *(Point, Close, Standing, Closed),
        *(Install, Read, Billed, Overdue, AskTotal, Remove, Bill, Total),
        *(*contracts.MESSAGES, *consignments.MESSAGES, *petitions.MESSAGES),
    )
} | {"mainspring.ChildFailed": ChildFailed}
