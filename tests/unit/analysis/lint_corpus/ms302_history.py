"""A workflow in the history style whose tasks nobody runs, and which looks at the clock.

expect: MS302 MS401 MS901
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from mainspring import Mainspring
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_words import (
    CompleteWorkflow,
    HistoryCommand,
    HistoryEvent,
    ScheduleTask,
    WorkflowStarted,
)


class Greeting(HistoryWorkflow):
    def decide(self, events: Sequence[HistoryEvent], /) -> Sequence[HistoryCommand]:
        match events[-1]:
            case WorkflowStarted(_, name):
                return [ScheduleTask("greet-1", "greet", name)]
            case _:
                return [CompleteWorkflow(time.time())]


app = Mainspring("memory://")
app.add(Greeting())
