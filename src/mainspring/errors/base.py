"""The base of all errors, and how they show values."""

from __future__ import annotations

from types import NoneType
from typing import Any, Final

SHOWN_CHARACTERS: Final = 2_000


def shown(value: object, limit: int = SHOWN_CHARACTERS) -> str:
    """Return `repr(value)`, shortened to `limit` characters, for use in an error's message.

    >>> shown("x" * 50, limit=10)
    "'xxxxxxxxx… (52 characters)"
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  the error that is being reported matters more than a value that cannot be shown
        return f"<{type(value).__name__} that cannot be shown>"
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def told(error: BaseException, limit: int = SHOWN_CHARACTERS) -> str:
    r"""Return an error's type and text, shortened, as every store can keep it: NUL and lone surrogates are escaped.

    >>> told(ValueError("no"))
    'ValueError: no'
    >>> told(ValueError("\0 \ud800"))
    'ValueError: \\x00 \\ud800'
    """
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  of an error that cannot even be shown, its type is shown
        return type(error).__name__
    size = len(text)
    text = text[:limit].encode(errors="backslashreplace").decode().replace("\0", "\\x00")
    return text if size <= limit else f"{text}… ({size} characters)"


def visible(text: str) -> str:
    r"""Return a text with everything escaped that could move a terminal's cursor or break a line.

    >>> visible("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def names(types: Any) -> str:
    """Return the names of some types as an English list.

    >>> names([int, type(None)])
    'int, None'
    """
    return ", ".join("None" if t is NoneType else t.__name__ for t in types) or "none"


class MainspringError(Exception):
    """The base of every error that mainspring raises.

    >>> from mainspring.errors import UnknownTransitionError
    >>> issubclass(UnknownTransitionError, MainspringError)
    True
    """
