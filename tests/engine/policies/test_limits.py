from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.engine.handlers.policies.limits import SLOWEST_PER_SECOND, BucketState, RateLimit, take, wait_us
from mainspring.errors import SettingError

SECOND = 1_000_000
NOW = 1_800_000_000 * SECOND
limits = st.builds(
    RateLimit,
    per_second=st.floats(min_value=SLOWEST_PER_SECOND, max_value=1e7) | st.integers(1, 1_000) | st.just(100 / 60),
    burst=st.integers(1, 5),
)
waits = st.integers(0, 1_000) | st.integers(0, 3 * SECOND)
moves = st.integers(-1_000, 1_000) | st.integers(-3 * SECOND, 3 * SECOND)


def pull(limit: RateLimit, moves: list[int]) -> list[int]:
    """Move the clock on and try once, for each move; return the moments at which a call passed."""
    state, now, passed = BucketState(), NOW, list[int]()
    for move in moves:
        now += move
        passes, state = take(limit, state, now)
        if passes:
            passed.append(now)
    return passed


@given(limit=limits, moves=st.lists(waits, max_size=30))
def test_no_window_sees_more_than_the_burst_and_the_rate(limit: RateLimit, moves: list[int]) -> None:
    passed = pull(limit, moves)
    rate = Fraction(limit.per_second) / SECOND

    for first, start in enumerate(passed):
        for last, end in enumerate(passed[first:], first):
            assert last - first + 1 <= limit.burst + rate * (end - start)


@given(limit=limits, moves=st.lists(moves, max_size=50))
def test_a_clock_set_back_gives_nothing_away(limit: RateLimit, moves: list[int]) -> None:
    forward = sum(move for move in moves[1:] if move > 0)

    assert len(pull(limit, moves)) <= limit.burst + Fraction(limit.per_second) / SECOND * forward


@given(limit=limits, moves=st.lists(moves, max_size=10))
def test_the_wait_ends_exactly_when_a_call_passes(limit: RateLimit, moves: list[int]) -> None:
    state, now = BucketState(), NOW
    for move in moves:
        now += move
        _, state = take(limit, state, now)

    wait = wait_us(limit, state, now)

    assert take(limit, state, now + wait)[0]
    assert wait == 0 or not take(limit, state, now + wait - 1)[0]


@given(limit=limits, moves=st.lists(waits, min_size=1, max_size=10))
def test_asking_in_vain_costs_nothing(limit: RateLimit, moves: list[int]) -> None:
    state = BucketState()
    for _ in range(limit.burst):
        _, state = take(limit, state, NOW)
    patient, ready = state, NOW + wait_us(limit, state, NOW)

    for move in sorted(moves):
        _, patient = take(limit, patient, min(ready - 1, NOW + move))

    assert wait_us(limit, patient, ready) == 0


@pytest.mark.parametrize("per_second", [3, 7.5, 100 / 60, 0.29, 999])
def test_the_full_rate_is_reached_in_the_long_run(per_second: float) -> None:
    limit, state, now = RateLimit(per_second, burst=2), BucketState(), NOW
    calls = 2_000
    for _ in range(calls):
        now += wait_us(limit, state, now)
        passes, state = take(limit, state, now)
        assert passes

    assert now - NOW == pytest.approx((calls - limit.burst) / per_second * SECOND, abs=2)


def test_a_rate_that_no_float_holds_is_rounded_down() -> None:
    _, state = take(RateLimit(1 / 3), BucketState(), NOW)

    assert wait_us(RateLimit(1 / 3), state, NOW) == 3 * SECOND + 1


def test_a_new_bucket_is_full_and_never_fuller_however_long_it_waits() -> None:
    assert len(pull(RateLimit(10, burst=3), [0] * 10)) == 3
    assert len(pull(RateLimit(10, burst=3), [SECOND * 3_600] + [0] * 10)) == 3


def test_after_a_clock_was_set_back_by_an_hour_the_bucket_fills_as_before() -> None:
    _, state = take(RateLimit(1), BucketState(), NOW)
    earlier = NOW - 3_600 * SECOND

    refused, state = take(RateLimit(1), state, earlier)

    assert not refused
    assert wait_us(RateLimit(1), state, earlier) == SECOND


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("per_second", 0),
        ("per_second", -1.0),
        ("per_second", float("nan")),
        ("per_second", float("inf")),
        ("per_second", "10"),
        ("burst", 0),
        ("burst", 1.5),
    ],
)
def test_a_setting_without_sense_is_refused_by_name(setting: str, value: Any) -> None:
    with pytest.raises(SettingError, match=rf"^RateLimit\.{setting} is .*\. Use "):
        RateLimit(**dict[str, Any](per_second=1.0) | {setting: value})
