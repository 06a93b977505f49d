"""The base of all errors, and how they show values."""

from __future__ import annotations

from typing import Any, Final

SHOWN_CHARACTERS: Final = 2_000


def shown(value: object, limit: int = SHOWN_CHARACTERS) -> str:
    """Return `repr(value)`, shortened to `limit` characters, for use in an error's message.

    >>> shown("x" * 50, limit=10)
    "'xxxxxxxxx… (52 characters)"
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  the error that is being told matters more than a value that cannot be shown
        return f"<{type(value).__name__} that cannot be shown>"
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def names(types: Any) -> str:
    """Return the names of some types as an English list.

    >>> names([int, str])
    'int, str'
    """
    return ", ".join(t.__name__ for t in types) or "none"


class MainspringError(Exception):
    """The base of every error that mainspring raises.

    >>> from mainspring.errors import UnknownTransitionError
    >>> issubclass(UnknownTransitionError, MainspringError)
    True
    """
