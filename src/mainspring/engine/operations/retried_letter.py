"""May a dead letter still be carried out? Not where its instance has moved on without it.

The sender of a command may have ended meanwhile, have undone what it did, or have decided on the very failure that the
dead letter reports. To carry it out after that could do what is no longer expected, such as to pay twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from mainspring.core.failures import SendFailed
from mainspring.core.messages import type_of
from mainspring.engine.recording.children import parent_at
from mainspring.engine.recording.event_details import read_detail
from mainspring.errors import OperationError
from mainspring.port.records import ENDED, FAN_OUT, DeadLetter, EventRow, InstanceRow, Ref
from mainspring.port.store import Store

EVENTS_AT_ONCE: Final = 1_000
LETTERS_LOOKED_AT: Final = 10_000
INPUTS_LOOKED_AT: Final = 10_000

# Facts that were published to others stay true, whatever becomes of their instance; only what acts is held back.
_ACTS: Final = frozenset({"send", "child"})
_FAILURE: Final = type_of(SendFailed).name
# What operators do to an instance that stays suspended.
_BESIDE: Final = frozenset({"Retried", "Resent", "Migrated"})


class Since:
    """What has happened to an instance since it decided on an output, as its stream says. Read on where it ended.

    >>> since = Since(3)
    >>> since.take(EventRow(7, "Compensating", 0))
    >>> since.compensated
    7
    """

    __slots__ = ("_asks", "at", "compensated", "former", "taken", "version")

    def __init__(self, version: int, *, ignores: bool = False) -> None:
        self.version = self.at = version
        # Where messages without a case are ignored, a stream does not say whether there was one.
        self._asks = not ignores
        self.former: str | None = None
        self.compensated: int | None = None
        self.taken: int | None = None

    def take(self, row: EventRow) -> None:
        """Take in the next event."""
        self.at = row.version
        match row.event:
            case "Began":
                self.former = "has begun anew since"
            case "Reset":
                back_to = read_detail(row.detail).version or 0
                if back_to < self.version:
                    self.former = "was reset to before it"
                # What was left behind does not count.
                self.compensated = _before(self.compensated, back_to)
                self.taken = _before(self.taken, back_to)
            case "Compensating":
                self.compensated = row.version
            case "Received" if self._asks and row.cause == self.version and row.type == _FAILURE:
                self.taken = row.version
            case _:
                pass


def _before(version: int | None, back_to: int) -> int | None:
    return version if version is not None and version <= back_to else None


async def refuse(store: Store, letter: DeadLetter, since: Since) -> int | None:
    """Refuse to carry out what its instance has moved on without. Return the instance's version up to which that holds.

    None says that nothing of what may become of the instance is a reason to refuse it.
    """
    if letter.kind not in _ACTS or letter.output is None:
        return None
    ref = Ref(letter.workflow, letter.instance)
    # In this order: a failure that waits is taken by a step, which the stream has then.
    waits = any(row.cause == since.version for row in await store.inbox(ref, INPUTS_LOOKED_AT))
    loaded = (await store.load([ref], 0))[0]
    if loaded is None:
        return None
    while since.at < loaded.row.version and (rows := await store.stream(ref, since.at, EVENTS_AT_ONCE)):
        for row in rows:
            since.take(row)
    why = _why_not(loaded.row, since, ref, waits=waits)
    if why is not None:
        fix = "Discard it; or force it (--force), if it is to be carried out all the same."
        if waits:
            fix = f"Resume or skip {ref} first. {fix}"
        raise OperationError(f"Dead letter {letter.id}", f"cannot be retried: {why}", fix)
    return loaded.row.version


def suspended_by(letter: DeadLetter) -> tuple[Ref, int]:
    """Return which instance the failure in a dead letter has suspended, if any, and which of its outputs that is.

    >>> letter = DeadLetter("mainspring.FanOut", "Orders/o-1/3", "m", "end", "", 1, b"", 0, b"", reason="no")
    >>> suspended_by(letter)
    (Ref(workflow='Orders', id='o-1'), 3)
    """
    if letter.workflow == FAN_OUT and letter.kind == "end":
        parent = parent_at(letter.instance)
        return parent.ref, parent.version
    return Ref(letter.workflow, letter.instance), 0 if letter.output is None else letter.output.version


async def waits_for_it_alone(store: Store, letter: DeadLetter, row: InstanceRow) -> bool:
    """Return True if an instance is suspended for the failure in a dead letter that is gone, and for nothing else.

    Not where a person has suspended it, an input of it failed, or a dead letter of it is to be dealt with. That holds
    for the row's version: whatever else suspends it moves it on.
    """
    ref, output = suspended_by(letter)
    if row.status != "suspended":
        return False
    failed = list[int]()
    async for each in while_suspended(store, ref, row.version):
        if each.actor is not None or each.cause is None:
            return False
        failed.append(each.cause)
    # A single one is that of the dead letter which is gone: had it failed again, it would be suspended once more.
    if output in failed and len(failed) > 1:
        async for _ in letters_behind(store, ref, set(failed)):
            return False
    return output in failed


async def while_suspended(store: Store, ref: Ref, version: int) -> AsyncIterator[EventRow]:
    """Yield the suspensions of an instance since it last ran, the last one first."""
    while version > 0:
        after = max(0, version - EVENTS_AT_ONCE)
        for row in reversed(await store.stream(ref, after, version - after)):
            if row.event == "Suspended":
                yield row
            elif row.event not in _BESIDE:
                return
        version = after


async def letters_behind(store: Store, ref: Ref, failed: set[int]) -> AsyncIterator[DeadLetter]:
    """Yield the dead letters of outputs that failed, as far as they are among the first of all."""
    after = looked_at = 0
    while failed and looked_at < LETTERS_LOOKED_AT and (page := await store.dead_letters(EVENTS_AT_ONCE, after)):
        for letter in page:
            its, output = suspended_by(letter)
            if its == ref and output in failed:
                yield letter
        after, looked_at = page[-1].id, looked_at + len(page)


def _why_not(row: InstanceRow, since: Since, ref: Ref, *, waits: bool) -> str | None:
    if since.former is not None:
        return f"{ref} {since.former}"
    if since.compensated is not None:
        is_over = row.status in (*ENDED, "running")
        return f"{ref} {'was compensated since' if is_over else 'is being compensated'}"
    if since.taken is not None:
        return f"{ref} has taken its failure, at position {since.taken}"
    if row.status in ENDED:
        return f"{ref} has {row.status}"
    return f"its failure waits to be taken by {ref}" if waits else None
