from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mainspring.engine.handlers.policies.checks import LONGEST
from mainspring.engine.handlers.policies.retry import LONGEST_ASKED, Retry
from mainspring.errors import DoNotRetryError, RetryLaterError, SettingError

SECOND = timedelta(seconds=1)
ALMOST_ONE = 1 - 2**-53
randoms = st.floats(min_value=0, max_value=1, exclude_max=True)
attempts = st.integers(min_value=1, max_value=2**63) | st.integers(min_value=1, max_value=40)


@st.composite
def retries(draw: st.DrawFn) -> Retry:
    first, cap = sorted(draw(st.tuples(*[st.timedeltas(min_value=timedelta(0), max_value=LONGEST)] * 2)))
    minimum = draw(st.just(timedelta(0)) | st.timedeltas(min_value=timedelta(0), max_value=cap))
    multiplier = draw(st.floats(min_value=1, allow_infinity=False) | st.floats(min_value=1, max_value=4))
    return Retry(first=first, cap=cap, multiplier=multiplier, jitter=draw(st.booleans()), minimum=minimum)


@given(retry=retries(), attempts=attempts, random=randoms)
def test_a_delay_is_never_under_the_minimum_and_never_over_the_cap(retry: Retry, attempts: int, random: float) -> None:
    assert retry.minimum <= retry.delay(attempts, random) <= retry.cap


@given(retry=retries(), attempts=attempts, random=randoms)
def test_jitter_only_shortens_and_more_attempts_only_lengthen(retry: Retry, attempts: int, random: float) -> None:
    steady = replace(retry, jitter=False)

    assert retry.delay(attempts, random) <= steady.delay(attempts, random)
    assert retry.delay(attempts, random) <= retry.delay(attempts + 1, random)


def test_the_default_doubles_from_a_second_to_a_minute() -> None:
    delays = [Retry(jitter=False).delay(attempts, 0.0) for attempts in range(1, 9)]

    assert delays == [s * SECOND for s in (1, 2, 4, 8, 16, 32, 60, 60)]


def test_jitter_spreads_over_the_whole_range() -> None:
    assert Retry().delay(3, 0.0) == timedelta(0)
    assert Retry().delay(3, 0.5) == 2 * SECOND
    assert Retry().delay(3, ALMOST_ONE) == 4 * SECOND - timedelta(microseconds=1)


def test_jitter_spreads_from_the_minimum_on() -> None:
    patient = Retry(minimum=timedelta(seconds=3))

    assert [patient.delay(1, random) for random in (0.0, ALMOST_ONE)] == [3 * SECOND, 3 * SECOND]
    assert [patient.delay(3, random) for random in (0.0, 0.5, ALMOST_ONE)] == [
        timedelta(seconds=seconds) for seconds in (3, 3.5, 3.999_999)
    ]
    assert Retry(minimum=timedelta(seconds=3), jitter=False).delay(1, 0.5) == 3 * SECOND


def test_a_delay_without_jitter_is_right_to_the_microsecond() -> None:
    """1.2 is a little less as a binary number: that must not cut a microsecond off."""
    steady = Retry(first=timedelta(seconds=1), multiplier=1.2, jitter=False)

    assert [steady.delay(attempts, 0.0) for attempts in (1, 2, 3, 4)] == [
        timedelta(seconds=seconds) for seconds in (1, 1.2, 1.44, 1.728)
    ]


def test_a_first_delay_of_nothing_stays_nothing_however_often_it_doubles() -> None:
    assert Retry(first=timedelta(0), jitter=False).delay(10**6, 0.0) == timedelta(0)


def test_the_last_attempt_is_the_last() -> None:
    assert Retry(max_attempts=3).wants_another(TimeoutError(), 2)
    assert not Retry(max_attempts=3).wants_another(TimeoutError(), 3)
    assert not Retry(max_attempts=3).wants_another(TimeoutError(), 4)


def test_an_error_that_is_never_to_be_retried_is_not_nor_are_its_subclasses() -> None:
    retry = Retry(never=(LookupError,))

    assert not retry.wants_another(KeyError("x"), 1)
    assert retry.wants_another(ValueError("x"), 1)


def test_a_handler_can_say_that_trying_again_is_useless() -> None:
    assert not Retry().wants_another(DoNotRetryError("the card is stolen"), 1)


def test_a_handler_can_say_when_trying_again_makes_sense_but_not_sooner_than_the_policy_and_not_in_a_year() -> None:
    steady = Retry(jitter=False)

    assert steady.wait(RetryLaterError("busy", timedelta(seconds=90)), 1, 0.5) == 90 * SECOND
    assert steady.wait(RetryLaterError("busy", timedelta(0)), 3, 0.5) == steady.delay(3, 0.5)
    assert steady.wait(RetryLaterError("busy", timedelta(days=400)), 1, 0.5) == LONGEST_ASKED
    assert steady.wait(TimeoutError(), 3, 0.5) == steady.delay(3, 0.5)
    with pytest.raises(SettingError, match="timedelta"):
        RetryLaterError("busy", 90)  # pyright: ignore[reportArgumentType]  what no type checker would allow


def test_a_group_of_errors_is_as_useless_as_its_worst_member() -> None:
    stolen = DoNotRetryError("the card is stolen")

    assert not Retry().wants_another(ExceptionGroup("two calls", [TimeoutError(), stolen]), 1)
    assert not Retry().wants_another(ExceptionGroup("two calls", [ExceptionGroup("one of them", [stolen])]), 1)
    assert not Retry(never=(ExceptionGroup,)).wants_another(ExceptionGroup("two calls", [TimeoutError()]), 1)
    assert Retry(never=(ExceptionGroup,)).wants_another(TimeoutError(), 1)
    assert Retry().wants_another(ExceptionGroup("two calls", [TimeoutError(), OSError()]), 1)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("max_attempts", 0),
        ("max_attempts", 2.5),
        ("max_attempts", True),
        ("first", 1),
        ("first", timedelta(seconds=-1)),
        ("multiplier", 0.5),
        ("multiplier", float("nan")),
        ("multiplier", float("inf")),
        ("multiplier", "2"),
        ("cap", timedelta(milliseconds=1)),
        ("cap", timedelta(days=366)),
        ("jitter", None),
        ("minimum", 1),
        ("minimum", timedelta(seconds=-1)),
        ("minimum", timedelta(seconds=61)),
        ("never", ValueError),
        ("never", (ValueError("x"),)),
        ("never", (KeyboardInterrupt,)),
    ],
)
def test_a_setting_without_sense_is_refused_by_name(setting: str, value: Any) -> None:
    with pytest.raises(SettingError, match=rf"^Retry\.{setting} is .*\. Use ") as caught:
        Retry(**{setting: value})

    assert caught.value.value is value
