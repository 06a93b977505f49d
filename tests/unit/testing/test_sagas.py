"""The pure kit knows sagas: given / when / then, rehearsals and fuzzing."""

import pytest

from mainspring import Compensate, Send, SendFailed
from mainspring.core.difference import show
from mainspring.errors import DecisionAfterEndError, InstanceEndedError, InvalidDecisionError, UndeclaredOutputError
from mainspring.testing import fuzz, given
from mainspring.testing.rehearsal import Rehearsal
from tests.engine.coordination.trips import Book, Booked, CancelBooking, GiveUp, Planning, PlanTrip, Replan, Trip

FAILED = SendFailed("Book", "Trip/t-1/5", "full", 1, definite=True)
PLAN = PlanTrip("t-1", ("flight", "hotel"))


def test_a_scenario_tells_what_is_undone() -> None:
    scenario = given(Trip(), PLAN, Booked("flight")).when(FAILED)
    scenario.then(Compensate("no hotel")).then_undone(CancelBooking("t-1", "flight"))
    with pytest.raises(AssertionError, match="undid something else"):
        scenario.then_undone()


def test_an_unknown_outcome_is_undone_in_a_scenario_too() -> None:
    unknown = SendFailed("Book", "Trip/t-1/5", "timed out", 3)
    scenario = given(Trip(), PLAN, Booked("flight")).when(unknown)
    scenario.then_undone(CancelBooking("t-1", "hotel"), CancelBooking("t-1", "flight"))


def test_a_rehearsal_ends_when_all_is_undone() -> None:
    given(Trip(), PLAN, Booked("flight"), FAILED).when(GiveUp("t-1")).then_raises(InstanceEndedError, "no hotel")


def test_a_rehearsal_goes_on_with_the_message_it_gave_itself() -> None:
    rehearsal = Rehearsal(Trip())
    for message in (PlanTrip("t-1", ("flight", "hotel"), instead="train"), Booked("flight"), FAILED):
        rehearsal.take(message)
    assert rehearsal.decisions == [Compensate("no hotel", Replan("train"))]
    assert rehearsal.end is None
    assert rehearsal.state == Planning("t-1", ("train",))


def test_a_send_is_compared_with_its_compensation() -> None:
    scenario = given(Trip()).when(PLAN)
    scenario.then(Send(Book("t-1", "flight"), compensate=CancelBooking("t-1", "flight")))
    with pytest.raises(AssertionError, match="compensate"):
        scenario.then(Send(Book("t-1", "flight")))


def test_decisions_are_shown_as_an_author_writes_them() -> None:
    assert show(Compensate("no")) == "Compensate('no')"
    assert show(Compensate("no", then="x")) == "Compensate('no', then='x')"
    assert show(Send("a", compensate="b")) == "Send('a', compensate='b')"


def test_fuzzing_finds_nothing_wrong_with_a_saga() -> None:
    answers = {Book: lambda command: [Booked(command.step), SendFailed("Book", "Trip/t-1/3", "no", 1)]}
    seen = fuzz(Trip(), [PLAN, GiveUp("t-1")], answers=answers, max_examples=50)
    assert seen.ended > 0


class Wrong(Trip):
    decisions: list = []  # noqa: RUF012

    def decide(self, message: object, state: Planning) -> list:
        return self.decisions


@pytest.mark.parametrize(
    ("decisions", "error"),
    [
        ([Compensate("no"), Send(Book("t-1", "flight"))], DecisionAfterEndError),
        ([Send(Book("t-1", "flight"), compensate=Booked("flight"))], UndeclaredOutputError),
        ([Compensate("no", then=Book("t-1", "flight"))], UndeclaredOutputError),
    ],
)
def test_wrong_decisions_are_refused(decisions: list, error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wrong, "decisions", decisions)
    given(Wrong()).when(PLAN).then_raises(error)


@pytest.mark.parametrize("reason", ["", "a\0b", 7])
def test_a_reason_that_cannot_be_stored_is_refused(reason: object) -> None:
    with pytest.raises(InvalidDecisionError, match="Compensate got reason="):
        Compensate(reason)  # pyright: ignore[reportArgumentType]
