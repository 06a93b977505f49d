from datetime import UTC, datetime, timedelta

import pytest
from msgspec import Struct

from mainspring.core import decisions, events
from mainspring.core.translate import recorded, translate
from tests.unit.core.orders import CardCharged, OrderShipped, PaymentTimedOut

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
TIMEOUT = PaymentTimedOut("o-1")
ASK = decisions.Ask(
    "Approve",
    answer=CardCharged | OrderShipped,
    role="manager",
    person="ann",
    excludes=("bob",),
    key="approval",
    reject=OrderShipped,
    due=timedelta(days=2),
    remind=decisions.Schedule(TIMEOUT, after=timedelta(days=1)),
    escalate=decisions.Schedule(TIMEOUT, at=MOMENT),
    data={"amount": 3},
)


class Joined(Struct, frozen=True):
    results: tuple[int, ...]
    failures: tuple[str, ...]


@pytest.mark.parametrize(
    ("decision", "event"),
    [
        (decisions.Send("do", compensate="undo"), events.Sent("do", "undo")),
        (decisions.Reply("yes", to="m-1"), events.Replied("yes", "m-1")),
        (decisions.Schedule(TIMEOUT, at=MOMENT), events.Scheduled(TIMEOUT, None, MOMENT, "PaymentTimedOut")),
        (decisions.CloseTask(CardCharged), events.TaskClosed("CardCharged")),
        (decisions.StartChild("ship", "abandon"), events.ChildStarted("ship", "abandon")),
        (decisions.FanOut([1, 2], into=Joined, key="k"), events.FannedOut((1, 2), "Joined", "k")),
        (decisions.Compensate("no", then="on"), events.Compensating("no", "on")),
        (decisions.Become("waiting"), events.Became("waiting")),
        (decisions.Complete("ok"), events.Completed("ok")),
        (
            ASK,
            events.Asked(
                "approval",
                "Approve",
                ("CardCharged", "OrderShipped"),
                "manager",
                "ann",
                ("bob",),
                "OrderShipped",
                timedelta(days=2),
                {"amount": 3},
            ),
        ),
        (decisions.Ask("Look", CardCharged, "r"), events.Asked("CardCharged", "Look", ("CardCharged",), "r")),
        (decisions.RefuseAnswer("no note"), events.AnswerRefused(None, "", "no note")),
    ],
)
def test_a_decision_is_recorded_with_all_that_it_says(decision: decisions.Decision, event: events.Event) -> None:
    assert recorded(decision) == event


def test_the_timers_of_a_task_stand_behind_it_and_before_the_next_decision() -> None:
    assert translate(False, "go", [ASK, decisions.Send("do")]) == [
        events.Received("go"),
        recorded(ASK),
        events.Scheduled(TIMEOUT, timedelta(days=1), None, "task:approval"),
        events.Scheduled(TIMEOUT, None, MOMENT, "task:approval"),
        events.Sent("do"),
    ]


def test_an_answer_that_is_refused_closes_nothing() -> None:
    assert translate(False, "yes", [decisions.RefuseAnswer("no note")], "approval") == [
        events.AnswerRefused("yes", "approval", "no note")
    ]


def test_what_is_refused_and_answers_no_task_names_none() -> None:
    assert translate(False, "yes", [decisions.RefuseAnswer("no note")]) == [events.AnswerRefused("yes", "", "no note")]


def test_an_answer_closes_its_task_first() -> None:
    assert translate(False, "yes", [decisions.Send("do")], "approval") == [
        events.Received("yes"),
        events.TaskClosed("approval"),
        events.Sent("do"),
    ]
