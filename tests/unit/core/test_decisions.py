from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring import (
    Ask,
    CancelSchedule,
    CloseTask,
    Compensate,
    Fail,
    FanOut,
    RefuseAnswer,
    Reply,
    Schedule,
    Send,
    StartChild,
)
from mainspring.core.decisions import (
    DATA_VALUES,
    FAN_OUT_MOST,
    KEY_CHARACTERS,
    LONGEST_DELAY,
    REASON_CHARACTERS,
    TITLE_CHARACTERS,
)
from mainspring.errors import InvalidDecisionError
from tests.unit.core.orders import CardCharged, OrderShipped, PaymentTimedOut

TIMEOUT = PaymentTimedOut("o-1")
IN_A_DAY = Schedule(TIMEOUT, after=timedelta(days=1))


@dataclass(frozen=True)
class Joined:
    results: tuple[str, ...]
    failures: tuple[str, ...]
    key: str


@dataclass(frozen=True)
class Unjoined:
    failures: tuple[str, ...]


def ask(**changed: Any) -> Ask[Any]:
    given: dict[str, Any] = {"title": "Approve", "answer": CardCharged, "role": "manager"}
    return Ask(**given | changed)


def refusal(build: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(InvalidDecisionError) as caught:
        build(*arguments, **named)
    return str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "needs exactly one of `after` and `at`"),
        ({"after": timedelta(1), "at": datetime(2026, 1, 1, tzinfo=UTC)}, "needs exactly one of `after` and `at`"),
        ({"after": timedelta(seconds=-1)}, "Use zero or more, and at most a thousand years"),
        ({"after": timedelta.max}, "at most a thousand years"),
        ({"after": 5}, "Use a timedelta"),
        ({"at": datetime(2026, 1, 1)}, "Use a datetime with a time zone"),  # noqa: DTZ001  the mistake itself
        ({"at": "tomorrow"}, "Use a datetime with a time zone"),
        ({"after": timedelta(1), "key": ""}, "Use a string of 1 to 1,000 characters"),
        ({"after": timedelta(1), "key": "k" * (KEY_CHARACTERS + 1)}, "Use a string of 1 to 1,000 characters"),
        ({"after": timedelta(1), "key": 7}, "Use a string of 1 to 1,000 characters"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused_where_it_is_written(arguments: Any, problem: str) -> None:
    with pytest.raises(InvalidDecisionError, match=problem):
        Schedule(TIMEOUT, **arguments)


def test_a_schedule_is_named_by_its_message_type_unless_it_has_a_key() -> None:
    assert Schedule(TIMEOUT, after=timedelta(0)).cancel_key == "PaymentTimedOut"
    assert Schedule(TIMEOUT, after=timedelta(0), key="payment").cancel_key == "payment"


def test_a_schedule_is_cancelled_by_type_or_by_key() -> None:
    assert CancelSchedule(PaymentTimedOut).cancel_key == "PaymentTimedOut"
    assert CancelSchedule("payment").cancel_key == "payment"


@pytest.mark.parametrize(
    "build",
    [
        Fail,
        lambda text: Reply(TIMEOUT, to=text),
        CancelSchedule,
        lambda text: Schedule(TIMEOUT, after=timedelta(0), key=text),
    ],
    ids=["Fail", "Reply", "CancelSchedule", "Schedule"],
)
@pytest.mark.parametrize("text", [5, "", "a\0b", "\ud800", "x" * 10_001, ValueError("no")])
def test_text_that_cannot_be_stored_is_refused_where_it_is_written(build: Any, text: Any) -> None:
    with pytest.raises(InvalidDecisionError, match=r"Use a string|Leave out NUL"):
        build(text)


def test_cancelling_nothing_in_particular_is_refused() -> None:
    nothing: Any = None
    with pytest.raises(InvalidDecisionError, match="CancelSchedule got key=None"):
        CancelSchedule(nothing)


@pytest.mark.parametrize("after", [timedelta(0), LONGEST_DELAY])
def test_the_shortest_and_the_longest_delay_are_allowed(after: timedelta) -> None:
    assert Schedule(TIMEOUT, after=after).after == after
    assert ask(due=after).due == after


@pytest.mark.parametrize(
    ("build", "most", "told"),
    [
        (lambda text: Reply(TIMEOUT, to=text), KEY_CHARACTERS, "Reply got to="),
        (lambda text: Schedule(TIMEOUT, after=timedelta(0), key=text), KEY_CHARACTERS, "Schedule got key="),
        (CancelSchedule, KEY_CHARACTERS, "CancelSchedule got key="),
        (CloseTask, KEY_CHARACTERS, "CloseTask got key="),
        (lambda text: FanOut([], into=Joined, key=text), KEY_CHARACTERS, "FanOut got key="),
        (Fail, REASON_CHARACTERS, "Fail got reason="),
        (Compensate, REASON_CHARACTERS, "Compensate got reason="),
        (RefuseAnswer, REASON_CHARACTERS, "RefuseAnswer got reason="),
        (lambda text: ask(title=text), TITLE_CHARACTERS, "Ask got title="),
        (lambda text: ask(role=text), KEY_CHARACTERS, "Ask got role="),
        (lambda text: ask(person=text), KEY_CHARACTERS, "Ask got person="),
        (lambda text: ask(key=text), KEY_CHARACTERS, "Ask got key="),
        (lambda text: ask(excludes=(text,)), KEY_CHARACTERS, "Ask got excludes="),
    ],
)
def test_every_text_has_its_bound_and_a_refusal_names_the_field(build: Any, most: int, told: str) -> None:
    build("x")
    build("x" * most)
    assert refusal(build, "x" * (most + 1)).startswith(told)
    assert f"Use a string of 1 to {most:,} characters" in refusal(build, "")


def test_a_nul_and_a_lone_surrogate_are_no_proper_text() -> None:
    for text in ("\0", "a\0", "\ud800", "\udfff", "ok\ud900"):
        assert "which is no proper text" in refusal(Fail, text)


@pytest.mark.parametrize("text", ["\ud7ff", "\ue000"])
def test_the_characters_beside_the_surrogates_are_text(text: str) -> None:
    assert Fail(text).reason == text


def test_a_task_is_named_by_its_first_answer_unless_it_has_a_key() -> None:
    assert ask(answer=CardCharged | OrderShipped).task_key == "CardCharged"
    assert ask(answer=(OrderShipped, CardCharged)).task_key == "OrderShipped"
    assert ask(key="approval").task_key == "approval"


def test_the_answers_of_a_task_are_one_type_or_several_in_their_order() -> None:
    assert ask().answers == (CardCharged,)
    assert ask(answer=OrderShipped | CardCharged).answers == (OrderShipped, CardCharged)
    assert ask(answer=(OrderShipped, CardCharged)).answers == (OrderShipped, CardCharged)


@pytest.mark.parametrize("answer", [(), "CardCharged", (CardCharged, "OrderShipped"), None])
def test_an_answer_that_is_no_type_is_refused(answer: Any) -> None:
    assert "Use an input type, or several" in refusal(ask, answer=answer)


def test_the_no_is_one_of_the_answers() -> None:
    assert ask(answer=CardCharged | OrderShipped, reject=OrderShipped).reject is OrderShipped
    assert "which is none of its answers" in refusal(ask, reject=OrderShipped)


def test_a_task_asks_a_role_or_a_person_or_both() -> None:
    assert "names no one to ask" in refusal(ask, role=None)
    assert ask(role=None, person="ann").person == "ann"
    assert ask(person="ann").role == "manager"


def test_who_is_excluded_cannot_be_the_only_one_who_is_asked() -> None:
    assert "asks ann and excludes the same" in refusal(ask, role=None, person="ann", excludes=("bob", "ann"))
    assert ask(person="ann", excludes=("ann",)).excludes == ("ann",)
    assert ask(role=None, person="ann", excludes=("bob",)).excludes == ("bob",)
    assert "Use a tuple of people" in refusal(ask, excludes=["ann"])


@pytest.mark.parametrize(
    "due",
    [timedelta(microseconds=-1), LONGEST_DELAY + timedelta(1), datetime(2026, 1, 1), 7, "tomorrow"],  # noqa: DTZ001
)
def test_a_task_is_due_in_a_while_or_at_a_moment(due: Any) -> None:
    assert "Ask got due=" in refusal(ask, due=due)
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert ask(due=moment).due == moment


@pytest.mark.parametrize(
    "data",
    [
        {"n": float("nan")},
        {"n": float("inf")},
        {1: "n"},
        {"n": ["a"]},
        {"n": "x" * (REASON_CHARACTERS + 1)},
        {f"n{n}": n for n in range(DATA_VALUES + 1)},
        [("n", 1)],
        None,
    ],
)
def test_what_is_shown_beside_a_form_is_plain_and_bounded(data: Any) -> None:
    assert f"Use a mapping of at most {DATA_VALUES} names" in refusal(ask, data=data)


def test_texts_numbers_booleans_and_nothing_are_shown_beside_a_form() -> None:
    data = {"text": "x" * REASON_CHARACTERS, "count": 1, "share": 0.5, "new": True, "note": None}
    assert ask(data=data).data == data
    assert len(ask(data={f"n{n}": n for n in range(DATA_VALUES)}).data) == DATA_VALUES


def test_the_timers_of_a_task_are_scheduled_under_its_own_key() -> None:
    at = Schedule(PaymentTimedOut("o-2"), at=datetime(2026, 1, 1, tzinfo=UTC))
    assert ask().timers == []
    assert ask(key="k", remind=IN_A_DAY, escalate=at).timers == [
        Schedule(TIMEOUT, after=timedelta(days=1), key="task:k"),
        Schedule(PaymentTimedOut("o-2"), at=datetime(2026, 1, 1, tzinfo=UTC), key="task:k"),
    ]
    assert [timer.message for timer in ask(escalate=at).timers] == [PaymentTimedOut("o-2")]


@pytest.mark.parametrize("field", ["remind", "escalate"])
@pytest.mark.parametrize("timer", [timedelta(1), Schedule(TIMEOUT, after=timedelta(1), key="own")])
def test_a_timer_of_a_task_is_a_schedule_without_a_key(field: str, timer: Any) -> None:
    assert f"Ask got {field}=" in refusal(ask, **{field: timer})


def test_a_task_is_closed_by_type_or_by_key() -> None:
    assert CloseTask(CardCharged).task_key == "CardCharged"
    assert CloseTask("approval").task_key == "approval"


def test_a_child_is_cancelled_with_its_parent_or_abandoned() -> None:
    assert StartChild("ship").when_parent_ends == "cancel"
    assert StartChild("ship", "abandon").when_parent_ends == "abandon"
    wrong: Any = "forget"
    assert "StartChild got when_parent_ends='forget'" in refusal(StartChild, "ship", wrong)


def test_a_fan_out_is_named_by_its_input_unless_it_has_a_key() -> None:
    assert FanOut([1], into=Joined).join_key == "Joined"
    assert FanOut([1], into=Joined, key="squares").join_key == "squares"


def test_a_fan_out_keeps_its_messages_as_they_were() -> None:
    messages = [1, 2]
    fan_out = FanOut(messages, into=Joined)
    messages.append(3)
    assert fan_out.messages == (1, 2)


def test_a_fan_out_has_a_bound_and_takes_a_list_or_a_tuple() -> None:
    assert len(FanOut([1] * FAN_OUT_MOST, into=Joined).messages) == FAN_OUT_MOST
    assert "FanOut got 50,001 messages" in refusal(FanOut, [1] * (FAN_OUT_MOST + 1), into=Joined)
    assert "Use a list or a tuple" in refusal(FanOut, {1, 2}, into=Joined)
    assert FanOut((1,), into=Joined).messages == (1,)


def test_a_fan_out_joins_into_results_and_failures() -> None:
    assert "it has no field results" in refusal(FanOut, [1], into=Unjoined)
    assert "it is no class" in refusal(FanOut, [1], into="Joined")


def test_decisions_that_are_left_bare_mean_the_plain_case() -> None:
    assert (Compensate("no").then, Reply("yes").to) == (None, None)
    plain = ask()
    assert (plain.person, plain.excludes, plain.key, plain.reject, plain.due) == (None, (), None, None, None)
    assert (plain.remind, plain.escalate, plain.data) == (None, None, {})


def test_a_decision_is_shown_as_it_was_written() -> None:
    assert (repr(Send("x")), repr(Compensate("no"))) == ("Send(message='x')", "Compensate(reason='no')")


@pytest.mark.parametrize(
    "decision",
    [
        ask(),
        Reply("yes"),
        CloseTask("k"),
        CancelSchedule("k"),
        Fail("no"),
        Compensate("no"),
        RefuseAnswer("no"),
        IN_A_DAY,
    ],
)
def test_a_decision_cannot_be_changed(decision: Any) -> None:
    with pytest.raises(AttributeError):
        setattr(decision, decision.__struct_fields__[0], "changed")
