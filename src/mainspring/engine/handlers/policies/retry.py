"""Retry: whether a handler that failed is called again, and how long to wait before.

The wait is drawn from the whole range between the minimum, which is nothing, and the grown backoff ("full jitter"):
calls that failed together must not retry together, when the destination has just recovered.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final, cast

from msgspec import Struct

from mainspring.engine.handlers.policies.checks import (
    check_count,
    check_duration,
    check_errors,
    check_number,
    microseconds,
)
from mainspring.errors import DoNotRetryError, RetryLaterError, SettingError

LONGEST_ASKED: Final = timedelta(days=1)
"""The cap on waits that others ask for: a server that asks for a year is not believed."""


class Retry(Struct, frozen=True):
    """How often a handler is tried, and how long the waits between its attempts grow.

    The longest wait after the first failure is `first`; each further failure multiplies it, up to `cap`. No wait is
    shorter than `minimum`; without `jitter` each is the longest, exactly. After an error of a type in `never`, or a
    DoNotRetryError, there is no further attempt.

    >>> Retry(max_attempts=5, never=(ValueError,)).wants_another(TimeoutError(), attempts=4)
    True
    >>> Retry(jitter=False).delay(attempts=3, random=0.5)
    datetime.timedelta(seconds=4)
    """

    max_attempts: int = 20
    first: timedelta = timedelta(seconds=1)
    multiplier: float = 2.0
    cap: timedelta = timedelta(seconds=60)
    jitter: bool = True
    never: tuple[type[Exception], ...] = ()
    minimum: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        check_count("Retry.max_attempts", self.max_attempts)
        check_duration("Retry.first", self.first, timedelta(0))
        check_number("Retry.multiplier", self.multiplier, 1)
        check_duration("Retry.cap", self.cap, self.first)
        if not isinstance(self.jitter, bool):
            raise SettingError("Retry.jitter", self.jitter, "Use True or False.")
        check_errors("Retry.never", self.never)
        check_duration("Retry.minimum", self.minimum, timedelta(0), self.cap)

    def wants_another(self, error: Exception, attempts: int) -> bool:
        """Return True if another attempt is to follow `attempts` attempts, the latest of which ended with `error`.

        An exception group counts as its worst member: if one of them is useless to retry, so is the whole.

        >>> Retry(max_attempts=5).wants_another(TimeoutError(), attempts=5)
        False
        >>> Retry().wants_another(DoNotRetryError("the card is stolen"), attempts=1)
        False
        """
        return attempts < self.max_attempts and not self._is_useless(error)

    def wait(self, error: Exception, attempts: int, random: float) -> timedelta:
        """Return how long to wait after an error: as long as the policy says, or longer if the error asks for it.

        >>> Retry().wait(RetryLaterError("the bank is closed", timedelta(minutes=5)), attempts=1, random=0.5)
        datetime.timedelta(seconds=300)
        """
        asked = min(error.after, LONGEST_ASKED) if isinstance(error, RetryLaterError) else timedelta(0)
        return max(self.delay(attempts, random), asked)

    def delay(self, attempts: int, random: float) -> timedelta:
        """Return how long to wait after `attempts` attempts (1 or more); `random` is from [0, 1).

        >>> [Retry().delay(attempts, random=0.5).total_seconds() for attempts in (1, 2, 3, 1_000_000)]
        [0.5, 1.0, 2.0, 30.0]
        >>> Retry(minimum=timedelta(seconds=3)).delay(attempts=3, random=0.5).total_seconds()
        3.5
        """
        least = microseconds(self.minimum)
        longest = max(least, self._longest_us(attempts))
        wait_us = least + int((longest - least) * random) if self.jitter else longest
        return timedelta(microseconds=wait_us)

    def _longest_us(self, attempts: int) -> int:
        cap = microseconds(self.cap)
        try:
            return round(min(cap, microseconds(self.first) * self.multiplier ** (attempts - 1)))
        except OverflowError:
            # Only the power can overflow, far above any cap; but zero stays zero however often it doubles.
            return cap if self.first else 0

    def _is_useless(self, error: Exception) -> bool:
        useless = (DoNotRetryError, *self.never)
        if isinstance(error, ExceptionGroup) and not isinstance(error, useless):
            return any(self._is_useless(each) for each in cast("ExceptionGroup[Exception]", error).exceptions)
        return isinstance(error, useless)
