"""What the code asks for, beside what is recorded. Usually the same in each step; where it is not, by value.

Something recorded may be asked for in a later step than it was, or in an earlier one: nothing is sent twice for that.
What is recorded and never asked for, and what is asked for and was never recorded, is drift.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mainspring.core.decisions import CloseTask
from mainspring.flows.asked import Asked, is_asked, matches
from mainspring.flows.journal import Entry


class Comparison:
    """What was asked for, with the positions at which it stands in the stream."""

    def __init__(self, *, adopt: bool) -> None:
        self._adopt = adopt
        self.open: dict[int, Asked] = {}
        """What was asked for and has no answer yet, by its position."""
        self.unasked: list[Entry] = []
        """Recorded, and not asked for by now."""
        self.new: list[Asked] = []
        """Asked for in a step that is long recorded, and to be sent now."""
        self.ahead: Sequence[Entry] = ()
        """The whole journal, while a run goes through it."""
        self._early: list[Asked] = []
        self._answers: dict[int, Any] = {}

    def settle(self, asked: list[Asked], outputs: list[Entry], last: int) -> list[Asked]:
        """Take what was asked for in a step for what is recorded of it; return what is not recorded at all.

        `last` is the position up to which the run has come.
        """
        if len(asked) == len(outputs) and all(map(matches, asked, outputs)):
            for each, entry in zip(asked, outputs, strict=True):
                if each.future is not None:
                    self.open[entry.position] = each
            return []
        self.unasked += [entry for entry in outputs if not self._was_early(entry)]
        missing = [each for each in asked if not self.claim(each)]
        later = [entry for entry in self.ahead if entry.position > last and is_asked(entry)]
        return [each for each in missing if not self._is_early(each, later)]

    def answered(self, position: int, message: Any) -> Asked | None:
        """Return what an answer belongs to. One to what is not asked for by now is kept for when it is."""
        asked = self.open.pop(position, None)
        if asked is None and any(entry.position == position for entry in self.unasked):
            self._answers[position] = message
        return asked

    def closes(self) -> list[CloseTask | None]:
        """Return what closes the tasks that wait for an answer."""
        return [asked.closes for asked in self.open.values()]

    def claim(self, asked: Asked) -> bool:
        """Take what is asked for for what was recorded earlier, if it was, and give it its answer, if that has come."""
        entry = next((entry for entry in self.unasked if matches(asked, entry)), None)
        if entry is None:
            return False
        self.unasked.remove(entry)
        if entry.position in self._answers:
            asked.give(self._answers.pop(entry.position))
        elif asked.future is not None:
            self.open[entry.position] = asked
        return True

    def adopted(self, missing: Iterable[Asked]) -> bool:
        """Let what was not recorded be sent with the next decisions, if that is what the flow wants."""
        if self._adopt:
            self.new += missing
        return self._adopt

    @property
    def drifts(self) -> bool:
        """Whether something is recorded that the code does not ask for, and that is not to be passed over."""
        return bool(self.unasked) and not self._adopt

    def _is_early(self, asked: Asked, later: list[Entry]) -> bool:
        """Return True if this is recorded in a step that comes only later."""
        entry = next((entry for entry in later if matches(asked, entry)), None)
        if entry is None:
            return False
        later.remove(entry)
        self._early.append(asked)
        return True

    def _was_early(self, entry: Entry) -> bool:
        """Return True if the code has asked for this in an earlier step, and connect the two."""
        asked = next((each for each in self._early if matches(each, entry)), None)
        if asked is None:
            return False
        self._early.remove(asked)
        if asked.future is not None:
            self.open[entry.position] = asked
        return True
