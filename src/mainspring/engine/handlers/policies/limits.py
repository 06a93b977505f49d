"""The rate limit of one handler, as a token bucket: `burst` calls at once, refilled at a steady rate.

Whole numbers only: a bucket of floats drifts, and after a week it has let through a call too many or too few.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from mainspring.engine.handlers.policies.checks import check_count, check_number

SLOWEST_PER_SECOND: Final = 0.000001
_RATE_PARTS: Final = 10**12
_TOKEN: Final = 1_000_000 * _RATE_PARTS


class RateLimit(Struct, frozen=True):
    """At most `burst` calls at once, and `per_second` in the long run.

    No stretch of t seconds sees more than burst + per_second * t calls. With a burst of 1, therefore, a call that comes
    late is never made up for; 2 or more reaches the full rate.

    >>> RateLimit(per_second=100 / 60, burst=10).burst
    10
    """

    per_second: float
    burst: int = 1

    def __post_init__(self) -> None:
        check_number("RateLimit.per_second", self.per_second, SLOWEST_PER_SECOND)
        check_count("RateLimit.burst", self.burst)


class BucketState(Struct, frozen=True):
    """What is missing from a full bucket (in 10⁻¹⁸ of a call), and when that was so. A new bucket is full.

    >>> BucketState().missing
    0
    """

    missing: int = 0
    at_us: int = 0


def take(policy: RateLimit, state: BucketState, now_us: int) -> tuple[bool, BucketState]:
    """Take one call out of the bucket, if it is there.

    >>> limit = RateLimit(per_second=10, burst=2)
    >>> state, taken = BucketState(), []
    >>> for now_us in (0, 0, 0, 99_999, 100_000):
    ...     passes, state = take(limit, state, now_us)
    ...     taken.append(passes)
    >>> taken
    [True, True, False, False, True]
    """
    missing = _missing(policy, state, now_us)
    passes = missing + _TOKEN <= policy.burst * _TOKEN
    return passes, BucketState(missing + _TOKEN if passes else missing, now_us)


def wait_us(policy: RateLimit, state: BucketState, now_us: int) -> int:
    """Return how long from now until a call may be taken, if no other takes it before; 0 if one is there.

    >>> _, state = take(RateLimit(per_second=10), BucketState(), now_us=0)
    >>> wait_us(RateLimit(per_second=10), state, now_us=30_000)
    70000
    """
    owed = _missing(policy, state, now_us) + _TOKEN - policy.burst * _TOKEN
    return max(0, -(-owed // _rate(policy)))


def _missing(policy: RateLimit, state: BucketState, now_us: int) -> int:
    # A clock that was set back neither fills nor empties the bucket; it continues to fill from the earlier moment.
    return max(0, state.missing - max(0, now_us - state.at_us) * _rate(policy))


def _rate(policy: RateLimit) -> int:
    # Rounded down, so that "never more than" holds to the last digit.
    numerator, denominator = policy.per_second.as_integer_ratio()
    return numerator * _RATE_PARTS // denominator
