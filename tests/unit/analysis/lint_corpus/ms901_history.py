"""The history style has no states to tell apart.

expect: MS901
"""

from __future__ import annotations

from collections.abc import Sequence

from mainspring import Mainspring
from mainspring.styles import HistoryWorkflow
from mainspring.styles.history_words import CompleteWorkflow, HistoryCommand, HistoryEvent


class Greeting(HistoryWorkflow):
    def decide(self, events: Sequence[HistoryEvent], /) -> Sequence[HistoryCommand]:
        return [CompleteWorkflow("greeted")]


app = Mainspring("memory://")
app.add(Greeting())
