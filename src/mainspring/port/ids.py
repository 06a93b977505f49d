"""Ids in the store: those that mainspring derives bear a mark, so that no id given by a caller can collide with them.

An input that comes of a stream (a message from instance to instance, a result, a timer, an answer to a task) has an id
that follows from its place there, as `Transfer/t9/3`, and a caller may give that very text as the id of its own
message. In the store a derived one begins with a no-break space, which is not printable, and an id that is given must
be. Handlers, workflows, other services and people see it without the mark: what was a key yesterday is one tomorrow.

What an older release has stored has no mark, and is read as it is.
"""

from __future__ import annotations

from typing import Final, TypeVar

from msgspec.structs import replace

from mainspring.port.records import DeadLetter, InputRow

MARK: Final = "\u00a0"
OWN_KEYS: Final = ("key:", "reply:", "told:", "undelivered:", "source:", "skipped:")
"""What mainspring remembers for itself begins with one of these, in the same table as results under business keys."""

R = TypeVar("R", InputRow, DeadLetter)


def plain(id: str) -> str:
    r"""Return an id as all but the store know it.

    >>> plain("\u00a0Transfer/t9/3"), plain("m-1")
    ('Transfer/t9/3', 'm-1')
    """
    return id.removeprefix(MARK)


def given_key(key: str) -> str:
    r"""Return a business key as it is stored: often made of data from outside, it must not look like a derived one.

    >>> given_key("charge:o-1"), given_key("source:orders:paused")
    ('charge:o-1', '\xa0source:orders:paused')
    """
    return MARK + key if key.startswith((MARK, *OWN_KEYS)) else key


def unmarked(row: R) -> R:
    """Return a row as people are to see it, without the mark."""
    return replace(row, message_id=plain(row.message_id)) if row.message_id.startswith(MARK) else row
