"""What a sender asks of an instance before its message is taken in, and the answer where that is not so.

It is judged in the commit, behind the store's locks: a check made beforehand could be out of date already.
"""

from __future__ import annotations

from msgspec import Struct


class Unmet(Struct, frozen=True, gc=False):
    """The unit was not applied, because the instance is not as its sender expects.

    `position` is where its stream ends: 0 if it has none, -1 if it was purged. `waiting` says that inputs wait which
    it has not stepped.
    """

    position: int
    waiting: bool


class Precondition(Struct, frozen=True, gc=False):
    """What must hold of an instance: that it is there (`exists`), or that its stream ends where a sender has seen it.

    Inputs that wait will move it: at no `position` is it as it was seen. Where there is only the first input, which is
    not stepped yet, the instance counts as there. A purged one does not, nor one whose first input was skipped. What is
    a Duplicate is that first.

    >>> Precondition(position=7).unmet(position=7, waiting=False) is None
    True
    >>> Precondition(position=7).unmet(position=9, waiting=False)
    Unmet(position=9, waiting=False)
    >>> Precondition(exists=True).unmet(position=0, waiting=False)
    Unmet(position=0, waiting=False)
    """

    exists: bool = False
    position: int | None = None

    def unmet(self, *, position: int, waiting: bool) -> Unmet | None:
        """Return in what an instance is otherwise; None if it is as it must be."""
        moved = self.position is not None and (self.position != position or waiting)
        missing = self.exists and (position < 0 or not (position or waiting))
        return Unmet(position, waiting) if moved or missing else None
