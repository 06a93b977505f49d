import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mainspring import Complete, Decisions, Envelope, Mainspring, Send
from mainspring.core.decisions import Become
from mainspring.core.events import Became, Began, InitiatedBy, Received, Sent
from mainspring.core.fold import fold
from mainspring.errors import InvalidDecisionError, UndeclaredOutputError, UnknownTransitionError
from mainspring.styles.state_returning import StateReturningWorkflow
from mainspring.testing import Rehearsal, given


@dataclass(frozen=True)
class ReportPublished:
    report: str
    speeding: bool


@dataclass(frozen=True)
class NumberGenerated:
    report: str
    number: str


@dataclass(frozen=True)
class GenerateNumber:
    report: str


@dataclass(frozen=True)
class IssueFine:
    report: str
    number: str


@dataclass(frozen=True)
class Initial:
    pass


@dataclass(frozen=True)
class AwaitingNumber:
    report: str


@dataclass(frozen=True)
class Final:
    pass


Input = ReportPublished | NumberGenerated
State = Initial | AwaitingNumber | Final
Output = GenerateNumber | IssueFine


class Fine(StateReturningWorkflow[Input, State, Output]):
    begins = ReportPublished
    initial_state = Initial()

    def route(self, message: Input) -> str | None:
        return message.report

    def decide(self, message: Input, state: State) -> tuple[State, Decisions[Input, Output]] | None:
        match message, state:
            case ReportPublished(report, speeding=True), Initial():
                return AwaitingNumber(report), [Send(GenerateNumber(report))]
            case ReportPublished(), Initial():
                return Final(), [Complete()]
            case NumberGenerated(report, number), AwaitingNumber():
                return Final(), [Send(IssueFine(report, number)), Complete()]


def test_the_new_state_is_recorded_before_the_decisions() -> None:
    rehearsal = Rehearsal(Fine())

    rehearsal.take(ReportPublished("r-1", speeding=True))

    assert rehearsal.events == [
        Began(),
        InitiatedBy(ReportPublished("r-1", speeding=True)),
        Became(AwaitingNumber("r-1")),
        Sent(GenerateNumber("r-1")),
    ]


def test_a_replay_takes_the_recorded_state_and_never_runs_decide() -> None:
    class Changed(Fine):
        def decide(self, message: Input, state: State) -> tuple[State, Decisions[Input, Output]] | None:
            raise AssertionError

    rehearsal = Rehearsal(Fine())
    rehearsal.take(ReportPublished("r-1", speeding=True))

    assert fold(Changed(), Initial(), rehearsal.events) == AwaitingNumber("r-1")


def test_a_state_that_stays_is_not_recorded_again() -> None:
    class Patient(Fine):
        def decide(self, message: Input, state: State) -> tuple[State, Decisions[Input, Output]] | None:
            return state, []

    rehearsal = Rehearsal(Patient())
    rehearsal.take(ReportPublished("r-1", speeding=True))
    rehearsal.take(NumberGenerated("r-1", "n"))

    assert rehearsal.events[2:] == [Received(NumberGenerated("r-1", "n"))]


def test_a_decide_that_falls_through_is_an_unknown_transition() -> None:
    past = ReportPublished("r-1", speeding=True)
    given(Fine(), past).when(past).then_raises(UnknownTransitionError)


@pytest.mark.parametrize(
    "returned", [[Complete()], (Final(), None), (Final(), Complete()), (Final(),), (Final(), [], "more")]
)
def test_what_is_no_state_with_decisions_is_refused(returned: Any) -> None:
    class Forgetful(Fine):
        def decide(self, message: Input, state: State) -> Any:
            return returned

    with pytest.raises(InvalidDecisionError, match="Return a pair"):
        Rehearsal(Forgetful()).take(ReportPublished("r-1", speeding=True))


def test_decisions_may_be_a_tuple_and_a_list_is_no_pair() -> None:
    class Returns(Fine):
        def __init__(self, returned: Any) -> None:
            self.returned = returned

        def decide(self, message: Any, state: Any) -> Any:
            return self.returned

    assert Returns((Initial(), (Complete(),))).decide_on(None, Final()) == [Become(Initial()), Complete()]
    with pytest.raises(InvalidDecisionError, match="no state with a list of decisions"):
        Returns([Initial(), []]).decide_on(None, Initial())


def test_what_the_style_leaves_to_its_author_is_not_there() -> None:
    with pytest.raises(NotImplementedError):
        StateReturningWorkflow[Any, Any, Any]().decide(None, None)


def test_an_undeclared_state_is_refused() -> None:
    class Odd(Fine):
        def decide(self, message: Input, state: State) -> Any:
            return GenerateNumber("no state"), []

    with pytest.raises(UndeclaredOutputError, match="whose type is not among its states"):
        Rehearsal(Odd()).take(ReportPublished("r-1", speeding=True))


def test_it_may_ask_for_the_envelope_too() -> None:
    class Signed(StateReturningWorkflow[Input, State, Output]):
        begins = ReportPublished
        initial_state = Initial()

        def route(self, message: Input) -> str | None:
            return message.report

        def decide(self, envelope: Envelope[Input], state: State) -> tuple[State, Decisions[Input, Output]] | None:
            return AwaitingNumber(envelope.actor or "nobody"), []

    rehearsal = Rehearsal(Signed())
    rehearsal.take(ReportPublished("r-1", speeding=True), actor="ann")

    assert rehearsal.state == AwaitingNumber("ann")


def test_it_runs_durably_like_any_other(tmp_path: Path) -> None:
    app = Mainspring(f"sqlite:///{tmp_path / 'fines.db'}")
    app.add(Fine())

    @app.handler
    async def number(command: GenerateNumber) -> NumberGenerated:
        return NumberGenerated(command.report, "n-1")

    @app.handler
    async def issue(command: IssueFine) -> None: ...

    async def main() -> None:
        async with app:
            receipt = await app.send(ReportPublished("r-1", speeding=True))
            await receipt.result()
            assert await receipt.state() == Final()

    asyncio.run(main())
