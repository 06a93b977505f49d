from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mainspring import Complete, Decisions, Envelope, Event, Kind, Received, Send, Sent, Workflow
from mainspring.core.messages import InstanceId
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_words import (
    CompleteWorkflow,
    HistoryCommand,
    HistoryEvent,
    ScheduleTask,
    StartWorkflow,
    TaskCompleted,
)
from mainspring.testing import Rehearsal, envelope, fuzz
from tests.unit.testing.paid_orders import CHARGED, PLACE, Orders
from tests.unit.testing.stories import story

RUNGS = 10


@dataclass(frozen=True)
class Climb:
    ladder: str
    rung: int


@dataclass(frozen=True)
class At:
    rung: int = 0


class Ladder(Workflow[Climb, At, Climb]):
    """Takes its rungs in order, and refuses all others."""

    initial_state = At()

    def route(self, message: Climb) -> str | None:
        return message.ladder

    def decide(self, message: Climb, state: At) -> Decisions[Climb, Climb] | None:
        if message.rung != state.rung:
            return None
        return [Complete()] if message.rung == RUNGS - 1 else []

    def evolve(self, state: At, event: Event[Climb, Climb]) -> At | None:
        return At(state.rung + 1) if isinstance(event, Received) else None


CLIMBS = [Climb("l-1", rung) for rung in reversed(range(RUNGS))]

# How deep a run gets.


def test_a_refused_message_gives_way_to_another_so_that_runs_reach_the_end() -> None:
    fuzzed = fuzz(Ladder(), CLIMBS, max_examples=60)
    assert fuzzed.ended > 20
    assert fuzzed.refused > fuzzed.steps


def test_messages_of_other_instances_do_not_keep_a_run_from_its_end() -> None:
    others = [Climb(f"l-{ladder}", rung) for ladder in (2, 3, 4) for rung in range(RUNGS)]
    assert fuzz(Ladder(), [*others, *CLIMBS], max_examples=60).ended > 10


class Rickety(Ladder):
    def decide(self, message: Climb, state: At) -> Decisions[Climb, Climb] | None:
        if state.rung == 6:
            raise ValueError("the ladder broke")
        return super().decide(message, state)


def test_a_story_has_no_message_that_the_failure_comes_without() -> None:
    lines = story(lambda: fuzz(Rickety(), CLIMBS)).splitlines()[2:9]
    assert lines[:6] == [f"  {rung + 1}. Climb(ladder='l-1', rung={rung})" for rung in range(6)]
    assert lines[6].startswith("  7. Climb")


# Messages without a route.


class Greeting(HistoryWorkflow):
    def decide(self, events: Sequence[HistoryEvent]) -> list[HistoryCommand]:
        done = any(isinstance(event, TaskCompleted) for event in events)
        return [CompleteWorkflow("greeted")] if done else [ScheduleTask("greet-1", "greet", None)]


def test_a_message_without_a_route_comes_as_a_result_once_the_instance_has_begun() -> None:
    kinds: set[Kind | None] = set()

    def remember(rehearsal: Rehearsal[Any, Any, Any]) -> None:
        results = [e for e in rehearsal.entries if isinstance(e.event, Received) and e.position > 2]
        kinds.update(entry.kind for entry in results)

    messages = [TaskCompleted("greet-1", "hello"), StartWorkflow("g-1", "Ada")]
    assert fuzz(Greeting(), messages, properties=[remember], max_examples=20).ended > 10
    assert kinds == {Kind.RESULT, Kind.COMMAND}


class Picky(Ladder):
    """Has no use for some of what could begin it."""

    def route(self, message: Climb) -> str | None:
        return None if message.ladder == "broken" else message.ladder


def test_what_could_begin_an_instance_and_has_no_route_is_skipped() -> None:
    def only_mine(rehearsal: Rehearsal[Any, Any, Any]) -> bool:
        return all(e.message.ladder == "l-1" for e in rehearsal.events if isinstance(e, Received))

    messages = [Climb("broken", 1), Climb("l-1", 0), Climb("l-1", 1)]
    assert fuzz(Picky(), messages, properties=[only_mine], max_examples=20).steps > 20


# Envelopes.


class Diary(Workflow[Climb, At, Climb]):
    initial_state = At()

    def route(self, message: Climb) -> str | None:
        return message.ladder

    def decide(self, message: Envelope[Climb], state: At) -> Decisions[Climb, Climb] | None:
        return [Send(Climb(f"{message.id} {message.time:%H:%M} {message.sender} {message.correlation_id}", 0))]

    def evolve(self, state: At, event: Event[Climb, Climb]) -> At | None:
        return None


def test_an_envelope_is_kept_whole() -> None:
    seen: set[str] = set()

    def remember(rehearsal: Rehearsal[Any, Any, Any]) -> None:
        seen.update(e.message.ladder for e in rehearsal.events if isinstance(e, Sent))

    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    whole = envelope(Climb("l-1", 0), id="m-7", time=noon, sender=InstanceId("Shop", "s-1"), correlation_id="c-1")
    fuzz(Diary(), [whole], properties=[remember], max_examples=20)
    assert seen == {"m-7 12:00 Shop/s-1 c-1"}


def test_a_story_says_whose_message_it_was() -> None:
    def never_charged(rehearsal: Rehearsal[Any, Any, Any]) -> bool:
        return not any(isinstance(e, Received) and e.message == CHARGED for e in rehearsal.events)

    messages = [envelope(PLACE, actor="ann"), envelope(CHARGED, actor="bob")]
    lines = story(lambda: fuzz(Orders(), messages, properties=[never_charged])).splitlines()
    assert lines[3] == "  2. CardCharged(order_id='o-1')  (by bob)"
