"""What a setting must be, said by an error that names it."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Final, cast

from mainspring.errors import SettingError

LONGEST: Final = timedelta(days=365)
_MICROSECOND: Final = timedelta(microseconds=1)


def check_count(name: str, value: object) -> None:
    """Refuse what is no whole number of 1 or more.

    >>> check_count("Retry.max_attempts", 1)
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SettingError(name, value, "Use a whole number of 1 or more.")


def check_number(name: str, value: object, least: float) -> None:
    """Refuse what is no finite number of `least` or more.

    >>> check_number("Retry.multiplier", 1.5, 1)
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value < math.inf:
        raise SettingError(name, value, f"Use a number of {least} or more.")


def check_duration(name: str, value: object, least: timedelta, most: timedelta = LONGEST) -> None:
    """Refuse what is no timedelta from `least` to `most`, a year.

    >>> check_duration("Breaker.open_for", timedelta(minutes=1), timedelta(0))
    """
    if not isinstance(value, timedelta) or not least <= value <= most:
        raise SettingError(name, value, f"Use a timedelta from {least} to {most}.")


def check_errors(name: str, value: object) -> None:
    """Refuse what is no tuple of exception classes.

    >>> check_errors("Retry.never", (ValueError,))
    """
    if not _are_errors(value):
        raise SettingError(name, value, "Use a tuple of exception classes, such as (ValueError,).")


def _are_errors(value: object) -> bool:
    kinds = cast("tuple[object, ...]", value)
    return isinstance(value, tuple) and all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds)


def microseconds(duration: timedelta) -> int:
    """Return a duration in whole microseconds, exactly.

    >>> microseconds(timedelta(seconds=1))
    1000000
    """
    return duration // _MICROSECOND
