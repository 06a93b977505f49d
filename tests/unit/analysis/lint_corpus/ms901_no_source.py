"""A workflow that was made while the program ran: nothing of it can be read, and nothing impure is known of it.

expect: MS901 MS901 MS901
"""

from __future__ import annotations

from typing import Any

from mainspring import Mainspring

MADE = """
from typing import Never
from mainspring import Complete, Workflow
from tests.unit.analysis.lint_corpus.common import New, Place

class Made(Workflow[Place, New, Never]):
    begins = Place
    again = "refuse"
    initial_state = New()

    def route(self, message):
        return message.id

    def decide(self, message, state):
        return [Complete()]

    def evolve(self, state, event):
        return None
"""

made: dict[str, Any] = {"__name__": __name__}
exec(MADE, made)  # noqa: S102  that is the point

app = Mainspring("memory://")
app.add(made["Made"]())
