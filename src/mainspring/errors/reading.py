"""What is raised for bytes that are no JSON of a type. Not among the errors: the help of commands needs no msgspec."""

from __future__ import annotations

from typing import Final

from msgspec import MsgspecError

UNREADABLE: Final = (MsgspecError, UnicodeDecodeError, RecursionError)
"""Not all of it is msgspec's own."""
