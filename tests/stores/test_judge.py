"""The judge as a table: what a store answers, what is to be committed, and the verdict on each unit.

It is pure, so no store is needed. A new rule of commit is a line in `judge.py` and a case here; that every store
answers its questions right is what the contract shows.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from mainspring.port.preconditions import Precondition, Unmet
from mainspring.port.records import (
    Committed,
    Conflict,
    DeadLetter,
    Duplicate,
    EventRow,
    InputRow,
    Outcome,
    OutputKey,
    OutputRow,
    Retry,
    Unit,
)
from mainspring.port.tasks import Refused, TaskAnswer, TaskOpening, TaskRow, TaskWork, opened
from mainspring.stores.commit.changes import Changes
from mainspring.stores.commit.facts import Facts, Known, OutputFact
from mainspring.stores.commit.judge import Judge
from mainspring.stores.commit.questions import Questions

ORDER, OTHER = ("Orders", "o-1"), ("Orders", "o-2")
ME, ANOTHER = 1, 2
KEY, NEW_KEY, NEW_POSITION = 7, 100, 50
BODY = b'{"order":"o-1"}'
OUTPUT = OutputKey(KEY, 3)


@dataclass(frozen=True)
class Waits:
    """An input in the inbox of the order."""

    position: int
    id: str = "m-9"
    timer_key: str | None = None
    owner: int | None = ME


@dataclass(frozen=True)
class Stored:
    """What a store knows: of the order its version, what its outbox, inbox and stream hold, and who is registered."""

    version: int | None = 2
    outputs: dict[tuple[int, int], OutputFact] = field(default_factory=dict[tuple[int, int], OutputFact])
    inbox: tuple[Waits, ...] = ()
    taken: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    tasks: tuple[TaskRow, ...] = ()
    workers: frozenset[int] = frozenset({ME, ANOTHER})

    def facts(self, questions: Questions[Known]) -> Facts:
        """Answer a batch's questions as a store does."""
        for name, known in questions.instances.items():
            if name == ORDER and self.version is not None:
                known.key, known.version = KEY, self.version
        facts = Facts()
        facts.workers, facts.outputs = self.workers, dict(self.outputs)
        facts.taken = {(ORDER, id): ("Go", BODY) for id in self.taken}
        facts.letters = {(*ORDER, id): [(1, ("Go", BODY))] for id in self.letters}
        facts.positions, facts.keys = count(NEW_POSITION), count(NEW_KEY)
        wanted = {position for position, _ in questions.consumed}
        for waits in self.inbox:
            facts.waiting[ORDER, waits.id] = (waits.position, waits.timer_key, ("Go", BODY))
            facts.queued.setdefault(ORDER, []).append((waits.timer_key, 1))
            if waits.owner != ME:
                facts.others.setdefault((ORDER, ME), []).append((waits.timer_key, 1))
            if waits.position in wanted:
                facts.consumable[waits.position, ORDER] = waits.timer_key
                facts.holders[waits.position, ORDER] = waits.owner
            elif wanted and waits.position < max(wanted):
                facts.left.setdefault(ORDER, []).append((waits.timer_key, waits.position))
        facts.set_turns()
        facts.turns.setdefault(ORDER, deque())
        for task in self.tasks:
            facts.tasks.put(KEY, task)
        return facts


def judged(stored: Stored, units: list[Unit]) -> tuple[list[Outcome], Changes[Known]]:
    """Return the verdicts on units that this worker commits, and what is to be written."""
    questions, changes = Questions([(ME, unit) for unit in units], Known), Changes[Known](0)
    return Judge(questions, stored.facts(questions), changes, set()).decide(), changes


def step(after: int, *, on: tuple[str, str] = ORDER, body: bytes = BODY, **what: Any) -> Unit:
    """Return a unit that moves an instance by one event behind a version."""
    event = EventRow(after + 1, "Received", 0, "Go", 1, body, message_id=what.get("dedupe"))
    return Unit(*on, expected_version=after, events=(event,), **what)


def accept(id: str, body: bytes = BODY, *, timer_key: str | None = None, claimed: bool = False, **what: Any) -> Unit:
    row = InputRow(*ORDER, id, "command", "Go", 1, body, 0, b"{}", timer_key=timer_key, claimed=claimed)
    return Unit(*ORDER, accepts=(row,), **what)


def bury(id: str, body: bytes = BODY) -> Unit:
    letter = DeadLetter(*ORDER, id, "command", "Go", 1, body, 0, b"{}", "no instance")
    return Unit(*ORDER, dead_letters=(letter,), dedupe=id)


def holds(owner: int | None, kind: str | None = "send", key: str | None = None) -> Stored:
    """Return a store whose outbox has the order's output, held by a worker; without kind, it is gone."""
    return Stored(outputs={(KEY, 3): OutputFact(owner, 0, kind, "Charge", key)})


def asked(**what: Any) -> Stored:
    task = opened(TaskOpening(3, "approval", "Approve", ("Approve",), role="manager"), *ORDER, 0, b"")
    return Stored(tasks=(replace(task, **what),))


def answer(*roles: str) -> TaskWork:
    return TaskWork(TaskAnswer(3, "ann", roles, "Approve"))


def timers_cancelled(after: int = 2) -> Unit:
    return step(after, cancel_all="timers")


RETRY = Retry(OUTPUT, 1, 1_000, "away")
DONE, NOTHING = Committed(KEY), Committed(0)
NEW, KEPT = Committed(0, (NEW_POSITION,)), Committed(0, (0,))
UNCLAIMED = Committed(0, (NEW_POSITION,), (NEW_POSITION,))
LATE, LOST, QUEUED = Conflict("version"), Conflict("lost"), Conflict("inbox")

# What is said of a case: what the store knows, the units, and the verdict on each.
VERSIONS: dict[str, tuple[Stored, list[Unit], list[Outcome]]] = {
    "a step behind the version that is there": (Stored(), [step(2)], [DONE]),
    "behind an older one": (Stored(), [step(1)], [LATE]),
    "behind one that is not there yet": (Stored(), [step(3)], [LATE]),
    "a first step begins the instance, under a new key": (Stored(None), [step(0)], [Committed(NEW_KEY)]),
    "an instance that is there without events is not begun": (Stored(0), [step(0)], [LATE]),
    "but goes on, for who knows its key": (Stored(0), [step(0, key=KEY)], [DONE]),
    "steps of a batch follow one another": (Stored(), [step(2), step(3)], [DONE, DONE]),
    "what stands behind a refused step is refused, whatever its version": (Stored(), [step(1), step(2)], [LATE, LATE]),
    "what moves nothing was not built on it": (Stored(), [step(1), accept("m-1")], [LATE, NEW]),
    "another instance was not built on it": (Stored(), [step(5, on=OTHER), step(2)], [LATE, DONE]),
}
DUPLICATES: dict[str, tuple[Stored, list[Unit], list[Outcome]]] = {
    "a step with what was stepped before": (Stored(taken=("m-1",)), [step(2, dedupe="m-1")], [Duplicate(same=True)]),
    "with another message under its id": (
        Stored(taken=("m-1",)),
        [step(2, body=b"{}", dedupe="m-1")],
        [Duplicate(same=False)],
    ),
    "with what waits": (Stored(inbox=(Waits(4, "m-1"),)), [step(2, dedupe="m-1")], [Duplicate(same=True)]),
    "with what an earlier unit has stepped": (
        Stored(),
        [step(2, dedupe="m-1"), step(3, dedupe="m-1")],
        [DONE, Duplicate(same=True)],
    ),
    "with what an earlier unit has accepted": (
        Stored(),
        [accept("m-1"), step(2, dedupe="m-1")],
        [NEW, Duplicate(same=True)],
    ),
    "not with what a refused one would have stepped": (
        Stored(),
        [step(1, dedupe="m-1"), accept("m-1")],
        [LATE, NEW],
    ),
    "not with what it takes itself": (Stored(inbox=(Waits(4, "m-1"),)), [step(2, dedupe="m-1", consumes=4)], [DONE]),
    "not with a timer that was cancelled": (
        Stored(inbox=(Waits(4, "m-1", "late"),)),
        [timers_cancelled(), step(3, dedupe="m-1")],
        [DONE, DONE],
    ),
    "accepting what is there": (Stored(taken=("m-1",)), [accept("m-1")], [Duplicate(same=True)]),
    "accepting what differs": (Stored(taken=("m-1",)), [accept("m-1", b"{}")], [Duplicate(same=False)]),
    "accepting it beside what must be done all the same": (
        Stored(taken=("m-1",)),
        [accept("m-1", remembers=(), discards=(1,))],
        [KEPT],
    ),
    "burying what was buried": (Stored(letters=("m-1",)), [bury("m-1")], [Duplicate(same=True)]),
    "burying what an earlier unit has buried": (Stored(), [bury("m-1"), bury("m-1")], [NOTHING, Duplicate(same=True)]),
    "stepping what was buried, which is no duplicate": (Stored(letters=("m-1",)), [step(2, dedupe="m-1")], [DONE]),
}
OUTPUTS: dict[str, tuple[Stored, list[Unit], list[Outcome]]] = {
    "settling what this worker holds": (holds(ME), [Unit(*ORDER, settles=(OUTPUT,))], [NOTHING]),
    "settling what another one holds": (holds(ANOTHER), [Unit(*ORDER, settles=(OUTPUT,))], [LOST]),
    "settling what nobody holds": (holds(None), [Unit(*ORDER, settles=(OUTPUT,))], [LOST]),
    "settling what is gone": (holds(ME, None), [Unit(*ORDER, settles=(OUTPUT,))], [LOST]),
    "settling what the store reports no misfit of": (Stored(), [Unit(*ORDER, settles=(OUTPUT,))], [NOTHING]),
    "settling it twice": (holds(ME), [Unit(*ORDER, settles=(OUTPUT,))] * 2, [NOTHING, LOST]),
    "settling what was to be retried": (
        holds(ME),
        [Unit(*ORDER, retries=(RETRY,)), Unit(*ORDER, settles=(OUTPUT,))],
        [NOTHING, LOST],
    ),
    "retrying what another worker holds": (holds(ANOTHER), [Unit(*ORDER, retries=(RETRY,))], [LOST]),
    "settling a timer that was cancelled": (
        holds(ME, "timer"),
        [timers_cancelled(), step(3, settles=(OUTPUT,))],
        [DONE, LOST],
    ),
    "settling a command, which no end of timers cancels": (
        holds(ME),
        [timers_cancelled(), step(3, settles=(OUTPUT,))],
        [DONE, DONE],
    ),
    "settling what was cancelled by its key": (
        holds(ME, "timer", "late"),
        [step(2, cancels=("late",)), step(3, settles=(OUTPUT,))],
        [DONE, LOST],
    ),
    "settling what an earlier unit of this worker has recorded": (
        Stored(),
        [step(2, outputs=(OutputRow(3, "send", "Charge", claimed=True),)), Unit(*ORDER, settles=(OUTPUT,))],
        [DONE, NOTHING],
    ),
    "settling what it has recorded for any worker": (
        Stored(),
        [step(2, outputs=(OutputRow(3, "send", "Charge"),)), Unit(*ORDER, settles=(OUTPUT,))],
        [DONE, LOST],
    ),
    "settling what a worker that is gone has recorded": (
        Stored(workers=frozenset()),
        [step(2, outputs=(OutputRow(3, "send", "Charge", claimed=True),)), Unit(*ORDER, settles=(OUTPUT,))],
        [DONE, LOST],
    ),
}
INBOX: dict[str, tuple[Stored, list[Unit], list[Outcome]]] = {
    "taking the first that waits": (Stored(inbox=(Waits(4),)), [step(2, consumes=4)], [DONE]),
    "taking what is not there": (Stored(), [step(2, consumes=4)], [QUEUED]),
    "taking it twice": (Stored(inbox=(Waits(4),)), [step(2, consumes=4), step(3, consumes=4)], [DONE, QUEUED]),
    "taking one before its turn": (Stored(inbox=(Waits(4, "m-8"), Waits(5))), [step(2, consumes=5)], [QUEUED]),
    "taking both in their order": (
        Stored(inbox=(Waits(4, "m-8"), Waits(5))),
        [step(2, consumes=4), step(3, consumes=5)],
        [DONE, DONE],
    ),
    "taking what stands behind a timer that was cancelled": (
        Stored(inbox=(Waits(4, "m-8", "late"), Waits(5))),
        [timers_cancelled(), step(3, consumes=5)],
        [DONE, DONE],
    ),
    "taking a timer that was cancelled": (
        Stored(inbox=(Waits(4, timer_key="late"),)),
        [step(2, cancels=("late",)), step(3, consumes=4)],
        [DONE, QUEUED],
    ),
    "a direct step where nothing waits": (Stored(), [step(2, direct=True)], [DONE]),
    "where something waits": (Stored(inbox=(Waits(4),)), [step(2, direct=True)], [QUEUED]),
    "where what waits is taken before": (
        Stored(inbox=(Waits(4),)),
        [step(2, consumes=4), step(3, direct=True)],
        [DONE, DONE],
    ),
    "where an earlier unit lets one wait": (Stored(), [accept("m-1"), step(2, direct=True)], [NEW, QUEUED]),
    "an input that is accepted and claimed": (Stored(), [accept("m-1", claimed=True)], [NEW]),
    "not claimed behind one that another worker holds": (
        Stored(inbox=(Waits(4, owner=ANOTHER),)),
        [accept("m-1", claimed=True)],
        [UNCLAIMED],
    ),
    "claimed behind one that this worker holds": (Stored(inbox=(Waits(4),)), [accept("m-1", claimed=True)], [NEW]),
    "not claimed behind one that an earlier unit left unclaimed": (
        Stored(),
        [accept("m-1"), accept("m-2", claimed=True)],
        [NEW, Committed(0, (NEW_POSITION + 1,), (NEW_POSITION + 1,))],
    ),
    "not claimed by a worker that is gone": (
        Stored(workers=frozenset()),
        [accept("m-1", claimed=True)],
        [UNCLAIMED],
    ),
}
REQUIRED: dict[str, tuple[Stored, list[Unit], list[Outcome]]] = {
    "what must exist is there": (Stored(), [accept("m-1", requires=Precondition(exists=True))], [NEW]),
    "what must exist is not": (
        Stored(None),
        [accept("m-1", requires=Precondition(exists=True))],
        [Unmet(0, waiting=False)],
    ),
    "what must stand at a position has moved": (
        Stored(),
        [step(2), accept("m-1", requires=Precondition(position=2))],
        [DONE, Unmet(3, waiting=False)],
    ),
    "something waits that will move it": (
        Stored(inbox=(Waits(4),)),
        [accept("m-1", requires=Precondition(position=2))],
        [Unmet(2, waiting=True)],
    ),
    "a duplicate is that first": (
        Stored(taken=("m-1",)),
        [accept("m-1", requires=Precondition(position=9))],
        [Duplicate(same=True)],
    ),
    "an answer to an open task": (asked(), [step(2, tasks=answer("manager"))], [DONE]),
    "by who was not asked": (asked(), [step(2, tasks=answer("clerk"))], [Refused("not asked")]),
    "to no task": (Stored(), [step(2, tasks=answer("manager"))], [Refused("missing")]),
    "the second answer": (
        asked(),
        [step(2, tasks=answer("manager")), step(3, tasks=answer("manager"))],
        [DONE, Refused("answered")],
    ),
    "behind a step that closed it": (
        asked(),
        [step(2, tasks=TaskWork(closes=("approval",))), step(3, tasks=answer("manager"))],
        [DONE, Refused("closed")],
    ),
    "a message from outside, past an open task": (
        asked(),
        [step(2, tasks=TaskWork(bars=("Approve",)))],
        [Refused("asked")],
    ),
}
CASES = {
    f"{part}: {said}": case
    for part, cases in {
        "versions": VERSIONS,
        "duplicates": DUPLICATES,
        "outputs": OUTPUTS,
        "inbox": INBOX,
        "required": REQUIRED,
    }.items()
    for said, case in cases.items()
}


@pytest.mark.parametrize("said", CASES)
def test_what_is_decided_on_each_unit_of_a_batch(said: str) -> None:
    stored, units, expected = CASES[said]
    assert judged(stored, units)[0] == expected


@pytest.mark.parametrize("said", CASES)
def test_a_refused_unit_leaves_no_trace(said: str) -> None:
    """What would be written is what the others alone bring about."""
    stored, units, expected = CASES[said]
    passed = [unit for unit, outcome in zip(units, expected, strict=True) if isinstance(outcome, Committed)]
    whole, alone = judged(stored, units)[1], judged(stored, passed)[1]
    assert whole.events == alone.events
    assert (whole.outputs, whole.settled, whole.retried) == (alone.outputs, alone.settled, alone.retried)
    assert [position for _, position in whole.consumed] == [position for _, position in alone.consumed]
    assert whole.dead_letters == alone.dead_letters
    assert sorted(map(str, whole.receivers)) == sorted(map(str, alone.receivers))
