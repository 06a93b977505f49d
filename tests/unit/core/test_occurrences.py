"""Who asks for it gets every event with its place in the stream: its position, its time, and what it answers."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from mainspring import Began, Envelope, Event, InitiatedBy, Received, Send, Sent, Workflow
from mainspring.core.definition import definition_of
from mainspring.core.events import AnswerRefused, Compensating, Failed, Occurrence
from mainspring.core.fold import fold, placed
from mainspring.core.saga import Ledger, advanced
from mainspring.core.step import Step, asked_of, step
from mainspring.testing.envelopes import envelope
from tests.unit.core.test_definition import Methods

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Go:
    id: str


@dataclass(frozen=True)
class Work:
    id: str


@dataclass(frozen=True)
class Seen:
    lines: tuple[Any, ...] = ()


class Reader(Methods, Workflow[Go, Seen, Work]):
    """Asks for the place of its events only."""

    begins = Go
    initial_state = Seen()

    def evolve(self, state: Seen, event: Occurrence[Event[Go, Work]]) -> Seen:  # type: ignore[override]
        return Seen((*state.lines, event))


class Diary(Reader):
    """Asks for the place of its input too, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def decide_on(self, asked: Occurrence[Any], state: Seen) -> Any:
        self.asked.append(asked)
        return [Send(Work("w"))]


class Plain(Methods, Workflow[Go, Seen, Work]):
    initial_state = Seen()


class Enveloped(Plain):
    def decide(self, message: Envelope[Go], state: Seen) -> Any: ...


GO, WORK = Go("g"), Work("w")


def test_the_first_step_is_seen_from_position_one_on_and_its_input_at_two() -> None:
    diary = Diary()
    taken = step(diary, Seen(), 0, envelope(GO), begins=True, now=NOON, cause=None)

    assert diary.asked == [Occurrence(InitiatedBy(GO), NOON, 2)]
    seen = Occurrence(Began(), NOON, 1), Occurrence(InitiatedBy(GO), NOON, 2), Occurrence(Sent(WORK), NOON, 3)
    assert taken.state == Seen(seen)


def test_of_a_later_step_the_input_alone_says_what_it_answers() -> None:
    diary = Diary()
    taken = step(diary, Seen(), 4, envelope(GO), begins=False, now=NOON, cause=3)

    assert diary.asked == [Occurrence(Received(GO), NOON, 5, cause=3)]
    assert taken.state == Seen((Occurrence(Received(GO), NOON, 5, cause=3), Occurrence(Sent(WORK), NOON, 6)))


@pytest.mark.parametrize("workflow", [Plain, Reader, Enveloped])
def test_who_does_not_ask_for_it_decides_on_the_message_or_its_envelope(
    workflow: type[Workflow[Any, Any, Any]],
) -> None:
    given = envelope(GO)
    asked = asked_of(definition_of(workflow), given, 4, begins=False, now=None, cause=3)
    assert asked is (given if workflow is Enveloped else GO)


def test_who_does_not_ask_for_it_sees_events_as_they_are_and_needs_no_time() -> None:
    events = [Received(GO)]
    assert placed(definition_of(Plain), events, 4, None, 3) is events


def test_without_a_time_nothing_is_seen() -> None:
    with pytest.raises(TypeError, match="Diary asks when its events were recorded"):
        step(Diary(), Seen(), 4, envelope(GO), begins=False)


def test_what_no_state_takes_in_has_its_position_all_the_same() -> None:
    events = [AnswerRefused(GO, "approval", "no note"), Received(GO)]
    seen = placed(definition_of(Diary), events, 4, NOON)
    assert fold(Diary(), Seen(), seen) == Seen((Occurrence(Received(GO), NOON, 6),))


def test_the_end_of_a_saga_is_seen_behind_its_step_at_the_time_of_the_step() -> None:
    taken: Step[Any, Any, Any] = Step([Received(GO), Compensating("no")], Seen(), 6)
    after = advanced(Diary(), Ledger(), taken, NOON)
    assert after.events[2:] == [Failed("no")]
    assert after.state == Seen((Occurrence(Failed("no"), NOON, 7),))
