"""What becomes of an input, as a table: each row is one answer, and the order of the rows is the order of the rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import ChildFailed, Decisions, Event, SendFailed, Workflow
from mainspring.codec import Codec
from mainspring.core.messages import Kind
from mainspring.engine.inputs.pending import FailedForGood, Pending
from mainspring.engine.recording.stored_values import encode_context
from mainspring.engine.registry import WorkflowEntry
from mainspring.engine.stepping.disposition import (
    KEPT,
    KEPT_LATE,
    PAUSED,
    SUSPENDED,
    Bury,
    Disposition,
    Fault,
    Plain,
    Repeat,
    Suspend,
    disposition,
    late,
)
from mainspring.engine.stepping.lanes import Elsewhere, KnownInstance, Lane, Unfolded
from mainspring.port.preconditions import Precondition
from mainspring.port.records import Context, DeadLetter, Ref


@dataclass(frozen=True)
class Begin:
    id: str = "i"


@dataclass(frozen=True)
class Go:
    id: str = "i"


@dataclass(frozen=True)
class Stranger:
    id: str = "i"


class Joins(Workflow[Begin | Go, str, Go]):
    begins = Begin
    initial_state = "new"

    def decide(self, message: Begin | Go, state: str) -> Decisions[Begin | Go, Go] | None: ...

    def evolve(self, state: str, event: Event[Begin | Go, Go]) -> str | None: ...

    def route(self, message: Begin | Go) -> str | None:
        return message.id


class Refuses(Joins):
    again = "refuse"


class Anew(Joins):
    again = "anew"


class Listens(Workflow[Begin | Go | SendFailed, str, Go]):
    begins = Begin
    initial_state = "new"
    late_events = "dead letter"

    def decide(self, message: Begin | Go | SendFailed, state: str) -> Decisions[Any, Go] | None: ...

    def evolve(self, state: str, event: Event[Any, Go]) -> str | None: ...

    def route(self, message: Any) -> str | None:
        return "i"


class JoinsV2(Joins):
    name = "Joins"
    version = 2


LOST = ValueError("lost")
UNFOLDED = Unfolded(LOST, None)
NO = FailedForGood("no", DeadLetter("Joins", "i", "Joins/i/3", "send", "Go", 1, b"{}", 0, b"{}", "no"))
PARENT = Context("c", parent="Other/o/3")
FAILED = SendFailed("Go", "Joins/i/3", "ValueError: no", 3)


def entry_of(*workflows: Workflow[Any, Any, Any]) -> WorkflowEntry:
    codec = Codec()
    first, *others = (WorkflowEntry(workflow, codec) for workflow in workflows)
    for other in others:
        other.join(first.versions)
    return first


def lane_of(workflow: Workflow[Any, Any, Any] | tuple[Workflow[Any, Any, Any], ...], **known: Any) -> Lane:
    """Return the lane of an instance that runs, but for what is said of it."""
    workflows = workflow if isinstance(workflow, tuple) else (workflow,)
    lane = Lane(Ref("Joins", "i"), entry_of(*workflows), 0)
    lane.entry = lane.entry.versions[0]
    for name, value in {"loaded": True, "version": 5, **known}.items():
        setattr(lane, name, value)
    return lane


def input_of(message: Any = None, kind: Kind = Kind.COMMAND, **known: Any) -> Pending:
    type_name = type(message).__name__
    given: dict[str, Any] = {"context": Context("c"), **known}
    return Pending(Ref("Joins", "i"), message, type_name, 1, b"{}", "m-1", kind, time_us=0, **given)


GO, BEGIN = Go(), Begin()
ELSEWHERE = Elsewhere("version 2 of its definition", "waiting")

# In the order in which the questions are asked. What stands in a row would also meet some of the rows below it.
TABLE: list[tuple[str, Lane, Pending, Disposition]] = [
    ("skipped before, the same", lane_of(Joins(), version=0), input_of(BEGIN, skipped=True), Repeat(same=True)),
    ("skipped before, another one", lane_of(Joins(), version=0), input_of(BEGIN, skipped=False), Repeat(same=False)),
    ("a failure that nobody takes", lane_of(Joins()), input_of(failure=NO, cause=3), Suspend("no")),
    ("the same, of an ended one", lane_of(Joins(), status="failed"), input_of(failure=NO, cause=3), Plain.SETTLE),
    ("the same, never begun", lane_of(Joins(), version=0), input_of(failure=NO, cause=3), Plain.SETTLE),
    ("the same, abandoned", lane_of(Joins(), abandoned={3}), input_of(failure=NO, cause=3), Plain.SETTLE),
    ("the same, elsewhere", lane_of(Joins(), elsewhere=ELSEWHERE), input_of(failure=NO, cause=3), Plain.LEAVE),
    (
        "a compensation that failed",
        lane_of(Joins(), status="compensating"),
        input_of(failure=NO, cause=3, undoes=2),
        Suspend("no", undoing=True),
    ),
    (
        "a command that failed while others are undone",
        lane_of(Joins(), status="compensating"),
        input_of(failure=NO, cause=3),
        Plain.SETTLE,
    ),
    ("a failure that a case takes", lane_of(Listens()), input_of(FAILED, Kind.RESULT, failure=NO), Plain.STEP),
    ("as it was required", lane_of(Joins()), input_of(GO, requires=Precondition(position=5)), Plain.STEP),
    ("otherwise than required", lane_of(Joins()), input_of(GO, requires=Precondition(position=4)), Plain.LOOK_AGAIN),
    ("a child that begins", lane_of(Joins(), version=0), input_of(BEGIN, context=PARENT), Plain.STEP),
    ("a child that is there", lane_of(Joins()), input_of(BEGIN, context=PARENT), Plain.REFUSE_CHILD),
    ("one that may still fail", lane_of(Joins(), under_way=1), input_of(BEGIN, context=PARENT), Plain.WAIT),
    ("a child that cannot begin", lane_of(Joins(), version=0), input_of(GO, context=PARENT), Plain.REFUSE_CHILD),
    (
        "a child that begins anew by the same start",
        lane_of(Anew(), status="completed", context=encode_context(PARENT)),
        input_of(BEGIN, context=PARENT),
        Plain.REFUSE_CHILD,
    ),
    (
        "a child that begins anew",
        lane_of(Anew(), status="completed", context=encode_context(Context("c"))),
        input_of(BEGIN, context=PARENT),
        Plain.BEGIN_ANEW,
    ),
    ("an answer to what was abandoned", lane_of(Joins(), abandoned={3}), input_of(GO, cause=3), KEPT_LATE),
    ("a timer of what was abandoned", lane_of(Joins(), abandoned={3}), input_of(GO, Kind.TIMER, cause=3), Plain.SETTLE),
    ("a second beginning, refused", lane_of(Refuses()), input_of(BEGIN), Bury("Joins/i has begun already")),
    ("of one that may still fail", lane_of(Refuses(), under_way=1), input_of(BEGIN), Plain.WAIT),
    ("a second beginning, joined", lane_of(Joins()), input_of(BEGIN), Plain.STEP),
    ("a new beginning after the end", lane_of(Anew(), status="completed"), input_of(BEGIN), Plain.BEGIN_ANEW),
    (
        "of a purged one",
        lane_of(Anew(), status="completed", purged_us=0),
        input_of(BEGIN),
        Bury("Joins/i ended (completed) and was purged on 1970-01-01"),
    ),
    ("what newer code wrote", lane_of(Joins(), elsewhere=ELSEWHERE), input_of(GO), Plain.LEAVE),
    (
        "what newer code wrote and has ended",
        lane_of(Joins(), elsewhere=ELSEWHERE, status="completed"),
        input_of(GO),
        Bury("Joins/i has completed already"),
    ),
    (
        "what newer code wrote and may begin anew",
        lane_of(Anew(), elsewhere=ELSEWHERE, status="completed"),
        input_of(GO),
        Plain.LEAVE,
    ),
    ("a command after the end", lane_of(Joins(), status="failed"), input_of(GO), Bury("Joins/i has failed already")),
    ("an event after the end", lane_of(Joins(), status="failed"), input_of(GO, Kind.EVENT), KEPT_LATE),
    (
        "an event that is to be told",
        lane_of(Listens(), status="failed"),
        input_of(GO, Kind.EVENT),
        Bury("Joins/i has failed already"),
    ),
    ("a reply after the end", lane_of(Joins(), status="failed"), input_of(GO, Kind.REPLY), KEPT_LATE),
    ("a timer after the end", lane_of(Joins(), status="failed"), input_of(GO, Kind.TIMER), Plain.SETTLE),
    ("suspended", lane_of(Joins(), status="suspended", unfolded=UNFOLDED), input_of(GO, unreadable=LOST), SUSPENDED),
    ("an input that cannot be read", lane_of(Joins()), input_of(unreadable=LOST), Fault(LOST)),
    ("a stream that cannot be folded", lane_of(Joins(), unfolded=UNFOLDED), input_of(GO), Fault(LOST)),
    ("while it is undone", lane_of(Joins(), status="compensating"), input_of(GO), Plain.UNDO),
    (
        "nobody's",
        lane_of(Joins(), version=0),
        input_of(GO),
        Bury("there is no instance Joins/i, and Go may not begin one", unknown=True),
    ),
    ("the first", lane_of(Joins(), version=0), input_of(BEGIN), Plain.STEP),
    ("the next", lane_of(Joins()), input_of(GO), Plain.STEP),
    ("an answer of no declared type", lane_of(Joins()), input_of(Stranger(), cause=3), KEPT),
    (
        "for a newer version",
        lane_of((Joins(), JoinsV2())),
        input_of(Stranger()),
        Bury("Joins/i runs under version 1, which does not take Stranger"),
    ),
    (
        "a child that failed, and no case for it",
        lane_of(Joins()),
        input_of(ChildFailed("Other/o", "failed", "no money"), cause=3),
        Fault(None, "its child Other/o has failed: no money"),
    ),
]


@pytest.mark.parametrize(("lane", "pending", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_what_becomes_of_an_input(lane: Lane, pending: Pending, expected: Disposition) -> None:
    assert disposition(lane, pending) == expected


@pytest.mark.parametrize(("lane", "pending", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_of_a_paused_workflow_only_what_was_settled_before_does_not_wait(
    lane: Lane, pending: Pending, expected: Disposition
) -> None:
    settled = pending.skipped is not None or (
        pending.failure is not None and not isinstance(pending.message, SendFailed)
    )
    assert disposition(lane, pending, frozenset({"Joins"})) == (expected if settled else PAUSED)
    assert disposition(lane, pending, frozenset({"Other"})) == expected


def test_it_changes_nothing() -> None:
    """Whoever asks twice gets the same answer, and finds lane and input as they were."""
    for name, lane, pending, expected in TABLE:
        before = {slot: getattr(lane, slot) for slot in (*KnownInstance.__slots__, *Lane.__slots__)}, repr(pending)
        assert disposition(lane, pending) == disposition(lane, pending) == expected, name
        assert (
            {slot: getattr(lane, slot) for slot in (*KnownInstance.__slots__, *Lane.__slots__)},
            repr(pending),
        ) == before, name


@pytest.mark.parametrize(
    ("pending", "expected"),
    [
        (input_of(GO), Bury("Joins/i is being compensated")),
        (input_of(GO, cause=3), KEPT_LATE),
        (input_of(GO, Kind.TIMER), Plain.SETTLE),
    ],
)
def test_what_comes_while_it_is_undone_and_moves_nothing(pending: Pending, expected: Disposition) -> None:
    assert late(lane_of(Joins(), status="compensating"), pending) == expected


def test_every_disposition_is_in_the_table() -> None:
    met = {_kind(expected) for _, _, _, expected in TABLE} | {_kind(PAUSED)}
    assert met == {*Plain, *(cls for cls in _structs())}


def _kind(found: Disposition) -> object:
    return found if isinstance(found, Plain) else type(found)


def _structs() -> list[Callable[..., Any]]:
    return [type(example) for example in (PAUSED, KEPT, Bury(""), Suspend(""), Fault(None), Repeat(same=True))]
