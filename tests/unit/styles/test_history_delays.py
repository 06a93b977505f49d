"""How long a timer of the history style runs."""

from datetime import timedelta
from typing import Any

import pytest

from mainspring import Schedule
from mainspring.core.decisions import LONGEST_DELAY
from mainspring.errors import InvalidDecisionError
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_events import History
from mainspring.styles.history_words import HistoryCommand, StartTimer, StartWorkflow, TimerFired
from mainspring.testing import given

STARTED = StartWorkflow("o-1", None)
LONG = LONGEST_DELAY - timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("delay", "due"),
    [
        (90, timedelta(seconds=90)),
        (0.5, timedelta(seconds=0.5)),
        (0, timedelta(0)),
        (timedelta(hours=1), timedelta(hours=1)),
        (LONGEST_DELAY.total_seconds(), LONGEST_DELAY),
        (LONG, LONG),
    ],
)
def test_a_delay_is_seconds_or_a_timedelta(delay: Any, due: timedelta) -> None:
    class Sleepy(HistoryWorkflow):
        def decide(self, events: History) -> list[HistoryCommand]:
            return [StartTimer("nap", delay)]

    given(Sleepy()).when(STARTED).then(Schedule(TimerFired("nap"), after=due, key="nap"))


@pytest.mark.parametrize("delay", [float("nan"), float("inf"), -1, -0.5, True, "90", None, timedelta(-1), 10**400])
def test_a_delay_that_is_none_is_refused_with_the_name_of_the_timer(delay: Any) -> None:
    class Sleepy(HistoryWorkflow):
        def decide(self, events: History) -> list[HistoryCommand]:
            return [StartTimer("nap", delay)]

    given(Sleepy()).when(STARTED).then_raises(InvalidDecisionError, match="starts the timer 'nap' with a delay of")
