"""The text of an error, as it is recorded."""

from __future__ import annotations

from typing import Final

from mainspring.errors import told

ERROR_CHARACTERS: Final = 4_000


def error_text(error: BaseException) -> str:
    """Return an error's type and text, bounded.

    >>> error_text(ValueError("no"))
    'ValueError: no'
    """
    return told(error, ERROR_CHARACTERS)
