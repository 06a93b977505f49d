"""Shows offending values in errors, whatever they are."""

from __future__ import annotations

from mainspring.errors import shown

SHOWN_CHARACTERS = 200


def shown_safely(value: object) -> str:
    """Return a value as text, also where `repr` itself fails, as it does for integers of more than 4,300 digits.

    >>> shown_safely(10**5000)
    '(cannot be shown)'
    """
    try:
        return shown(value, SHOWN_CHARACTERS)
    except Exception:  # noqa: BLE001  the error that is being told matters more
        return "(cannot be shown)"
