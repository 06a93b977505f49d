from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring import CancelSchedule, Fail, Schedule
from mainspring.core.decisions import KEY_CHARACTERS
from mainspring.errors import InvalidDecisionError
from tests.core.orders import PaymentTimedOut

TIMEOUT = PaymentTimedOut("o-1")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "needs exactly one of `after` and `at`"),
        ({"after": timedelta(1), "at": datetime(2026, 1, 1, tzinfo=UTC)}, "needs exactly one of `after` and `at`"),
        ({"after": timedelta(seconds=-1)}, "the negative delay"),
        ({"after": 5}, "Use a timedelta"),
        ({"at": datetime(2026, 1, 1)}, "Use a datetime with a time zone"),  # noqa: DTZ001  the mistake itself
        ({"at": "tomorrow"}, "Use a datetime with a time zone"),
        ({"after": timedelta(1), "key": ""}, "no string of 1 to 1,000 characters"),
        ({"after": timedelta(1), "key": "k" * (KEY_CHARACTERS + 1)}, "no string of 1 to 1,000 characters"),
        ({"after": timedelta(1), "key": 7}, "no string of 1 to 1,000 characters"),
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


def test_a_failure_has_a_reason_in_words() -> None:
    bad: Any = ValueError("no")
    with pytest.raises(InvalidDecisionError, match="Use a string"):
        Fail(bad)
