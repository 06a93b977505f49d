"""A history is a sequence, costs the same for one event more however long it is, and its branches stay apart."""

import copy
import tracemalloc
from typing import Any

import pytest

from mainspring.codec import Codec
from mainspring.core.definition import definition_of
from mainspring.core.events import Received
from mainspring.core.fold import fold, placed
from mainspring.core.step import step
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_events import History
from mainspring.styles.history_words import (
    ExternalEventReceived,
    HistoryCommand,
    HistoryEvent,
    ScheduleTask,
    StartTimer,
    TaskCompleted,
    TaskScheduled,
    TimerFired,
    WorkflowStarted,
)
from mainspring.testing.envelopes import EPOCH, envelope
from tests.proof.counted_work.calls import counted_calls

STARTED = WorkflowStarted("o-1", None)
SOME: list[HistoryEvent] = [STARTED, TaskScheduled("t", "name", 1), TaskCompleted("t", 2), TimerFired("late")]


def test_it_is_a_sequence() -> None:
    history = History(SOME)

    assert list(history) == list(history.events) == SOME
    assert (history[0], history[-1], history[1:3]) == (SOME[0], SOME[-1], tuple(SOME[1:3]))
    assert (len(history), SOME[2] in history, list(reversed(history))) == (4, True, SOME[::-1])
    match history:
        case [WorkflowStarted(id), *rest]:
            assert (id, len(rest)) == ("o-1", 3)
        case _:
            pytest.fail("it has no pattern of a sequence")
    for place in (4, -5):
        with pytest.raises(IndexError, match="a history of 4 events has none at"):
            history[place]


def test_what_is_asked_most_needs_no_scan() -> None:
    history = History(SOME)

    assert (history.result_of("t"), history.result_of("u"), history.end_of("u")) == (2, None, None)
    assert (history.has_fired("late"), history.has_fired("early")) == (True, False)
    assert (history.has_scheduled("t"), history.has_scheduled("u")) == (True, False)
    assert history.of(TimerFired) == [TimerFired("late")]


def test_what_is_being_taken_is_seen_and_not_kept() -> None:
    base = History(SOME[:2])
    ahead = base.before(SOME[2])

    assert (ahead[-1], len(ahead), ahead.result_of("t"), ahead.of(TaskCompleted)) == (SOME[2], 3, 2, [SOME[2]])
    assert (len(base), base.result_of("t"), base.of(TaskCompleted)) == (2, None, [])
    assert list(ahead.appended(SOME[3])) == SOME
    assert History(SOME).before(TimerFired("later")).of(TimerFired) == [TimerFired("late"), TimerFired("later")]


def test_branches_do_not_see_each_other() -> None:
    base = History([STARTED, TaskScheduled("t", "name", 1)])
    left = base.appended(TaskCompleted("t", "left"))
    right = base.appended(TaskCompleted("t", "right")).appended(TimerFired("right"))

    assert [len(each) for each in (base, left, right)] == [2, 3, 4]
    assert [each.result_of("t") for each in (base, left, right)] == [None, "left", "right"]
    assert [each.has_fired("right") for each in (base, left, right)] == [False, False, True]
    assert left.of(TaskCompleted) == [TaskCompleted("t", "left")]
    assert base.of(TaskCompleted) == []
    assert left.appended(TimerFired("on"))[-1] == TimerFired("on")


def test_where_a_task_was_handed_out_is_known_on_every_branch() -> None:
    base = History([STARTED]).appended(TaskScheduled("t", "name", 1), 3)
    base.appended(TimerFired("left"))

    assert base.appended(TimerFired("right")).task_at(3) == "t"
    assert base.task_at(4) is None


def test_of_a_task_whose_place_is_not_known_no_place_tells() -> None:
    base = History(SOME[:2])
    base.appended(SOME[2])
    for history in (base, base.appended(SOME[3]), History().appended(SOME[1])):
        assert [history.task_at(place) for place in (None, 0, 1, 2)] == [None] * 4


def test_it_is_stored_with_all_its_times_and_comes_back_the_same() -> None:
    codec = Codec()
    codec.register(History)
    history = History([WorkflowStarted("o-1", {"n": 1}, 5.5), TaskScheduled("t", "name", 1, 6.5)])
    encoded = codec.encode(history)

    assert codec.decode("History", 1, encoded.body) == history == copy.deepcopy(history)
    assert [event.timestamp for event in codec.decode("History", 1, encoded.body)] == [5.5, 6.5]
    assert history != History(SOME)
    assert history != list(history)
    assert history != tuple(history)
    assert hash(history) == hash(copy.deepcopy(history))


class Chain(HistoryWorkflow):
    """Has one task done for every note, and looks at nothing that grows."""

    def decide(self, events: History) -> list[HistoryCommand]:
        number = len(events)
        return [ScheduleTask(f"t-{number}", "note", None), StartTimer(f"n-{number}", 1)]


def grown(events: int) -> History:
    """A history as long as that, folded."""
    received = [Received(ExternalEventReceived("o-1", "note", n)) for n in range(events - 1)]
    started = History([STARTED])
    return fold(Chain(), started, placed(definition_of(Chain), received, 2, EPOCH))


def stepped(state: History) -> History:
    note: Any = envelope(ExternalEventReceived("o-1", "note", "one more"))
    return step(Chain(), state, len(state), note, begins=False, now=EPOCH).state


def test_a_step_at_ten_thousand_events_calls_what_one_at_a_hundred_calls() -> None:
    calls: dict[int, int] = {}
    for size in (100, 10_000):
        state = grown(size)
        with counted_calls() as counted:
            stepped(state)
        calls[size] = sum(counted.values())

    assert calls[10_000] == calls[100]


def test_a_step_at_ten_thousand_events_copies_none_of_them() -> None:
    def allocated(size: int) -> int:
        """Return the fewest bytes that one of several steps needed at once: a list grows only now and then."""
        state, least = grown(size), 1 << 60
        for _ in range(5):
            tracemalloc.start()
            state = stepped(state)
            least = min(least, tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        return least

    few = allocated(100)
    assert allocated(10_000) < few + 4_096  # ten thousand pointers alone are 80,000 bytes
