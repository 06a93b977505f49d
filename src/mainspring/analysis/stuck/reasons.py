"""Why an instance does not go on: what it waits for, the likeliest first.

The store is asked for all of these; what is found first is the cause:

    suspended      an input or a handler failed, or somebody stopped it
    dead letter    a message that it sent could not be carried out, and nobody has dealt with that
    paused         somebody has paused its workflow, or the handler of a command, or a child waits for such a pause
    lost           a command or an input of it was lost with one worker after the other, and may be why they ended
    held back      a command is due, and workers hold back what goes to its destination: a breaker is open there
    unread         an input, a command, a timer or its own stream has waited for a minute, and no worker can read it
    failing        a handler is tried again and again, and fails
    inbox          inputs wait that no worker takes
    handler        a command is due, or in a handler's hands
    child          a child or a fan-out has not ended
    task           a person was asked
    timer          a timer is to fire
    dead letter    a message that came to it could not be taken
    nothing        nothing is under way: only a message from outside can wake it
    damaged        what it waits for cannot be read
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from mainspring.analysis.export.viewed_store import paused
from mainspring.analysis.stuck.awaited import awaited_of
from mainspring.analysis.stuck.held import held_back, paused_among, paused_below, span, suspected, told_of
from mainspring.engine.fleet.unread import Fleet, fleet_of
from mainspring.engine.operations.pauses import Pause
from mainspring.engine.recording.stored_values import time_us_of
from mainspring.engine.registry import Registry
from mainspring.errors import DamagedRecordError
from mainspring.port.records import DeadLetter, OutputClaim, Ref
from mainspring.port.store import Store
from mainspring.port.tasks import TaskRow
from mainspring.views import OpenChild

Cause: TypeAlias = Literal[
    "suspended",
    "dead letter",
    "paused",
    "lost",
    "held back",
    "unread",
    "failing",
    "inbox",
    "handler",
    "child",
    "task",
    "timer",
    "nothing",
    "gone",
    "damaged",
]

OUTPUTS_LOOKED_AT: Final = 20
INPUTS_LOOKED_AT: Final = 100
LETTERS_LOOKED_AT: Final = 10_000
LETTERS_PER_PAGE: Final = 200
CAUSES_TOLD: Final = 3


class Reason(Struct, frozen=True):
    """The likeliest cause, and it and the next ones in words.

    >>> Reason("timer", ("the timer PaymentTimedOut is due in 4 min",)).text
    'the timer PaymentTimedOut is due in 4 min'
    """

    cause: Cause
    texts: tuple[str, ...]

    @property
    def text(self) -> str:
        """All in one line."""
        return "; ".join(self.texts)


_Told: TypeAlias = list[tuple[Cause, str]]


class _Workers(Struct, frozen=True):
    """What is paused for the workers that run, what they hold back, by destinations, and what they know."""

    paused: Sequence[Pause]
    held: Mapping[str, str]
    fleet: Fleet | None
    suspected: Mapping[Ref, Sequence[str]]


async def reasons_of(store: Store, refs: Sequence[Ref], registry: Registry | None = None) -> list[Reason]:
    """Return why each of these instances does not go on. Which instances their children are, a registry tells."""
    if not refs:
        return []
    letters = await letters_of(store, set(refs))
    workers = _Workers(await paused(store), await held_back(store), await fleet_of(store), await suspected(store))
    return [await _readable(store, ref, letters.get(ref, []), workers, registry) for ref in refs]


async def _readable(
    store: Store, ref: Ref, letters: Sequence[DeadLetter], workers: _Workers, registry: Registry | None
) -> Reason:
    """Return a reason also where one cannot be read: that may well be the reason."""
    try:
        return await _reason(store, ref, letters, workers, registry)
    except DamagedRecordError as error:
        return Reason("damaged", (str(error),))


async def letters_of(store: Store, refs: set[Ref]) -> dict[Ref, list[DeadLetter]]:
    """Return the dead letters of instances, as far as they are among the first of all."""
    found: dict[Ref, list[DeadLetter]] = {}
    after = looked_at = 0
    while looked_at < LETTERS_LOOKED_AT and (page := await store.dead_letters(LETTERS_PER_PAGE, after)):
        after, looked_at = page[-1].id, looked_at + len(page)
        for letter in page:
            ref = Ref(letter.workflow, letter.instance)
            if ref in refs:
                found.setdefault(ref, []).append(letter)
    return found


async def _reason(
    store: Store, ref: Ref, letters: Sequence[DeadLetter], workers: _Workers, registry: Registry | None
) -> Reason:
    (loaded,) = await store.load([ref], most=1)
    if loaded is None or loaded.row.purged_us is not None:
        return Reason("gone", ("it has been purged meanwhile",))
    row, now_us = loaded.row, store.now_us()
    told: _Told = []
    if row.status == "suspended":
        told.append(("suspended", f"suspended: {row.error or 'no reason was given'}"))
    told += _each("dead letter", (_letter(letter) for letter in letters if letter.output is not None))
    outputs = await store.outputs(ref, timers=False, limit=OUTPUTS_LOOKED_AT)
    timers = await store.outputs(ref, timers=True, limit=OUTPUTS_LOOKED_AT)
    waiting = await store.inbox(ref, INPUTS_LOOKED_AT)
    held, awaited = workers.held, await awaited_of(store, row, registry)
    told += _each("paused", paused_among(workers.paused, ref, waiting, [*outputs, *timers], now_us))
    told += _each("paused", await paused_below(store, workers.paused, awaited.children, registry))
    told += _each("lost", workers.suspected.get(ref, ()))
    told += _each("held back", dict.fromkeys(held[claim.type] for claim in outputs if claim.type in held))
    if row.status != "suspended":
        told += _each("unread", told_of(workers.fleet, ref, waiting, [*outputs, *timers]))
    told += _each("failing", (_failing(claim, now_us) for claim in outputs if claim.attempts))
    if waiting and row.status != "suspended":
        more = f", and {len(waiting) - 1:,} more after it" if len(waiting) > 1 else ""
        more = more.replace(" more", " or more") if len(waiting) == INPUTS_LOOKED_AT else more
        told.append(("inbox", f"{waiting[0].type} came {_ago(waiting[0].time_us, now_us)}{more}: no worker took it"))
    told += _each("handler", (_waiting(claim, now_us) for claim in outputs if not claim.attempts))
    told += _each("child", (_child(child, now_us) for child in awaited.children))
    told += _each("task", (_task(task, now_us) for task in awaited.tasks))
    told += _each("timer", (_timer(claim, now_us) for claim in timers))
    told += _each("dead letter", (_letter(letter) for letter in letters if letter.output is None))
    if not told:
        told.append(("nothing", "nothing is under way: only a message from outside can wake it"))
    return Reason(told[0][0], tuple(text for _, text in told[:CAUSES_TOLD]))


def _each(cause: Cause, texts: Iterable[str]) -> _Told:
    return [(cause, text) for text in texts]


def _letter(letter: DeadLetter) -> str:
    why = letter.error or letter.reason
    return f"{letter.type} is dead letter {letter.id} after {_counted(letter.attempts, 'attempt')}: {why}"


def _failing(claim: OutputClaim, now_us: int) -> str:
    next_try = "now" if claim.due_us <= now_us else f"in {span(claim.due_us - now_us)}"
    why = f": {claim.error}" if claim.error else ""
    return f"{claim.type} failed {_counted(claim.attempts, 'time')}, next try {next_try}{why}"


def _waiting(claim: OutputClaim, now_us: int) -> str:
    if claim.due_us > now_us:
        return f"{claim.type} is to be carried out in {span(claim.due_us - now_us)}"
    return f"{claim.type} was due {_ago(claim.due_us, now_us)}, and has no result yet"


def _timer(claim: OutputClaim, now_us: int) -> str:
    if claim.due_us > now_us:
        return f"the timer {claim.type} is due in {span(claim.due_us - now_us)}"
    return f"the timer {claim.type} was due {_ago(claim.due_us, now_us)}, and no worker took it"


def _child(child: OpenChild, now_us: int) -> str:
    if not child.is_fan_out:
        return f"its child, begun by {child.type} {_ago(time_us_of(child.began), now_us)}, has not ended"
    progress = f": {child.progress}" if child.progress else ""
    return f"its fan-out, begun {_ago(time_us_of(child.began), now_us)}, has not ended{progress}"


def _task(task: TaskRow, now_us: int) -> str:
    whom = task.person or task.role or "anybody"
    held = f", held by {task.claimed_by}" if task.claimed_by else ""
    return f"the task {task.title!r} was opened for {whom} {_ago(task.opened_us, now_us)}{held}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what if count == 1 else what + 's'}"


def _ago(time_us: int, now_us: int) -> str:
    return f"{span(now_us - time_us)} ago" if now_us - time_us >= 1_000_000 else "just now"
