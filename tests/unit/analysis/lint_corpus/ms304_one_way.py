"""A request that gets no reply on one of its ways.

expect: MS304
"""

from __future__ import annotations

from mainspring import Decisions, Event, Mainspring, Reply, Workflow
from tests.unit.analysis.lint_corpus.common import New, Paid, Pay


class Bank(Workflow[Pay, New, Paid]):
    initial_state = New()

    def route(self, message: Pay) -> str | None:
        return message.id

    def decide(self, message: Pay, state: New) -> Decisions[Pay, Paid] | None:
        if not message.id.startswith("o-"):
            return []
        return [Reply(Paid(message.id))]

    def evolve(self, state: New, event: Event[Pay, Paid]) -> New | None:
        return None


app = Mainspring("memory://")
app.add(Bank())
