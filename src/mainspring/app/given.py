"""Checks of what callers pass beside messages, so that no malformed value reaches a store or a stream."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final, cast

from mainspring.errors import SettingError

LARGEST: Final = 2**63 - 1
MOST_PROCESSES: Final = 256
REASON_CHARACTERS: Final = 10_000


def checked_limit(limit: object) -> int:
    """Return a limit, if it is a valid number.

    >>> checked_limit(100)
    100
    """
    if type(limit) is not int or not 0 < limit <= LARGEST:
        raise SettingError("limit", limit, "Use a whole number from 1, such as limit=100.")
    return limit


def checked_processes(processes: object) -> int:
    """Return a number of processes, if it is valid.

    >>> checked_processes(2)
    2
    """
    if type(processes) is not int or not 0 < processes <= MOST_PROCESSES:
        raise SettingError(
            "processes", processes, f"Use a whole number from 1 to {MOST_PROCESSES}, such as processes=2."
        )
    return processes


def checked_place(after: object, name: str = "after") -> int:
    """Return a place in a list or a stream, if it can be one.

    >>> checked_place(0)
    0
    """
    if type(after) is not int or not 0 <= after <= LARGEST:
        raise SettingError(name, after, "Use the number of the last one seen, or 0 to begin.")
    return after


def checked_text(name: str, text: object) -> str:
    """Return a text, if every store can keep it and look for it.

    >>> checked_text("role", "manager")
    'manager'
    """
    if not isinstance(text, str) or "\0" in text or not _is_unicode(text):
        raise SettingError(name, text, "Use a text without NUL and lone surrogates.")
    return text


def optional_text(name: str, text: object) -> str | None:
    """Return a text, or None where nothing is asked for.

    >>> optional_text("role", None) is None
    True
    """
    return None if text is None else checked_text(name, text)


def checked_texts(name: str, texts: object) -> tuple[str, ...]:
    """Return one text or several as several.

    >>> checked_texts("role", "manager")
    ('manager',)
    """
    if isinstance(texts, str):
        return (checked_text(name, texts),)
    if not isinstance(texts, Iterable):
        raise SettingError(name, texts, "Use a text, or a list of texts.")
    return tuple(checked_text(name, text) for text in cast("Iterable[object]", texts))


def checked_reason(reason: object) -> str:
    """Return why an operator does something, if it can be recorded.

    >>> checked_reason("by an operator")
    'by an operator'
    """
    text = checked_text("reason", reason)
    if len(text) > REASON_CHARACTERS:
        raise SettingError("reason", text, f"Use at most {REASON_CHARACTERS:,} characters.")
    return text


def checked_seconds(timeout: object) -> float:
    """Return how long a caller wants to wait.

    >>> checked_seconds(timedelta(minutes=1))
    60.0
    """
    if not isinstance(timeout, timedelta):
        raise SettingError("timeout", timeout, "Use a timedelta, as in timedelta(seconds=30).")
    return timeout.total_seconds()


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
