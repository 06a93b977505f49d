from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring import CancelSchedule, Fail, Reply, Schedule
from mainspring.core.decisions import KEY_CHARACTERS
from mainspring.errors import InvalidDecisionError
from tests.unit.core.orders import PaymentTimedOut

TIMEOUT = PaymentTimedOut("o-1")


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
