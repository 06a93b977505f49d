"""Texts inside XML and HTML: whatever names, docstrings and messages hold, it stays a text."""

from __future__ import annotations

import re
from html import escape as _escape
from typing import Final

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
