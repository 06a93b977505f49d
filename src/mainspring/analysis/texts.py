"""Durations, bytes and shares as people read them in a table.

Texts inside XML and HTML: whatever names, docstrings and messages hold, it stays a text.
"""

from __future__ import annotations

import re
from html import escape as _escape
from typing import Final

_SPANS: Final = (("days", 86_400.0, 3 * 86_400.0), ("h", 3_600.0, 2 * 3_600.0), ("min", 60.0, 120.0), ("s", 1.0, 1.0))
_SIZES: Final = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def lasting(seconds: float | None) -> str:
    """Return a duration in one unit, with three digits.

    >>> [lasting(seconds) for seconds in (0, 0.0123, 1.5, 90, 5_400, 200_000, 400_000)]
    ['0 s', '12.3 ms', '1.5 s', '90 s', '90 min', '55.6 h', '4.63 days']
    """
    if seconds is None:
        return ""
    if not seconds:
        return "0 s"
    for unit, size, least in _SPANS:
        if seconds >= least:
            return f"{_digits(seconds / size)} {unit}"
    return f"{_digits(seconds * 1e3)} ms"


def sized(count: int) -> str:
    """Return a number of bytes.

    >>> sized(900), sized(1_234_000)
    ('900 bytes', '1.23 MB')
    """
    for unit, size in _SIZES:
        if count >= size:
            return f"{_digits(count / size)} {unit}"
    return f"{count} bytes"


def percent(share: float | None) -> str:
    """Return a share of a whole; the small ones are not told as none.

    >>> percent(0.25), percent(0.00001), percent(0), percent(None)
    ('25.0 %', '<0.1 %', '0 %', '')
    """
    if share is None:
        return ""
    if not share:
        return "0 %"
    return f"{share:.1%}".replace("%", " %") if share >= 0.001 else "<0.1 %"


def _digits(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


_ILLEGAL: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def legal(text: str) -> str:
    r"""Return a text in which U+FFFD stands for every character that no XML document may hold.

    >>> legal("bell: \x07")
    'bell: �'
    """
    return _ILLEGAL.sub("\ufffd", text)


def escape(text: str) -> str:
    r"""Return a text for the inside of an element, or of an attribute in quotes.

    >>> escape("a < b \x1b")
    'a &lt; b �'
    """
    return _escape(legal(text))
