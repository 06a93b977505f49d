"""How an event changed a state: to another type perhaps, and in which places."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from msgspec import Struct

from mainspring.core.changes import NOTHING, Change, changes, fields_of, same
from mainspring.core.messages import type_of
from mainspring.errors import shown
from mainspring.flows.journal import Journal

CHANGES_KEPT: Final = 200
"""Places that are kept of one change of state; what there is beyond them is only known to be there."""
VALUE_CHARACTERS: Final = 120
"""Of a value in a line of text, before it is cut."""

SIGNS: Final = {"changed": "~", "added": "+", "removed": "-"}


class StateChange(Struct, frozen=True):
    """How a state differs from the one before it. Of two types, fields that both have are compared by name.

    `cut` says that there are more places than are kept.

    >>> StateChange("New", "AwaitingPayment", ()).turned
    True
    """

    before: str
    after: str
    places: tuple[Change, ...]
    cut: bool = False

    @property
    def turned(self) -> bool:
        """Whether the state is of another type."""
        return self.before != self.after


def state_change(before: Any, after: Any) -> StateChange | None:
    """Return how a state differs from the one before it; None where it is the same.

    >>> from mainspring.testing.samples import Counted
    >>> print(*change_lines(state_change(Counted(1), Counted(2))), sep=chr(10))
    ~ times: 1 → 2
    """
    if type(before) is type(after) and (same(before, after) or isinstance(after, Journal)):
        return None  # a flow's journal says nothing that its stream does not
    left, right = fields_of(before), fields_of(after)
    if isinstance(before, Journal) and isinstance(after, Journal):
        return StateChange(type_of(type(before)).name, type_of(type(after)).name, ())
    if type(before) is type(after) or left is None or right is None:
        found = changes(before, after)
    else:
        pairs = ((name, left.get(name, NOTHING), right.get(name, NOTHING)) for name in dict.fromkeys((*left, *right)))
        found = (change for name, one, other in pairs for change in changes(one, other, name))
    places = tuple(islice(found, CHANGES_KEPT + 1))
    names = type(before).__name__, type(after).__name__
    return StateChange(*names, places[:CHANGES_KEPT], cut=len(places) > CHANGES_KEPT)


def change_lines(change: StateChange | None, most: int = CHANGES_KEPT) -> list[str]:
    """Return a change of state as lines: another type first, then `~` changed, `+` added and `-` removed places."""
    if change is None:
        return []
    lines = [f"{change.before} → {change.after}"] if change.turned else []
    lines += [place_line(place) for place in change.places[:most]]
    left_out = len(change.places) - most
    if left_out > 0 or change.cut:
        lines.append(f"… and {'more than ' if change.cut else ''}{max(left_out, 0) or 'these'} more")
    return lines


def place_line(change: Change) -> str:
    """Return one changed place as a line.

    >>> place_line(Change("tags[2]", NOTHING, "new")), place_line(Change("", 1, 2))
    ("+ tags[2]: 'new'", '~ 1 → 2')
    """
    values = [shown(value, VALUE_CHARACTERS) for value in (change.before, change.after) if value is not NOTHING]
    return f"{SIGNS[change.what]} {change.path}{': ' if change.path else ''}{' → '.join(values)}"
