"""The check phase: what the database says about a batch, behind its locks, in two statements."""

from __future__ import annotations

from typing import Final

from mainspring.stores.commit.facts import Facts, Known, Name, OutputFact
from mainspring.stores.commit.questions import Questions
from mainspring.stores.postgres.dialect import DIALECT
from mainspring.stores.postgres.faults import Surprise
from mainspring.stores.postgres.statements import digest, name_of
from mainspring.stores.postgres.transaction import Transaction
from mainspring.stores.sql.dialect import packed
from mainspring.stores.sql.dialogue import run_async
from mainspring.stores.sql.tasks import read_tasks

# A position in the feed is the transaction's number and, in so many bits, the place in that transaction.
PLACE_BITS: Final = 20
# The second number of an advisory lock; those of workers are positive.
BURYING: Final = -2


class PostgresKnown(Known, eq=False):
    """What is known of an instance, with what only this store asks for."""

    position: int = 0
    # The key of the row that stands for an instance which has not begun, while inputs wait for it.
    awaited: int = 0
    suspended: bool = False


def known_here(workflow: str, id: str, _pair: Name) -> PostgresKnown:
    """Return what is known of an instance: nothing yet, but for the name that this store knows it by.

    >>> known_here("W", "i", ("W", "i")).version
    0
    """
    return PostgresKnown(workflow, id, name_of(workflow, id))


class PostgresFacts(Facts):
    """The answers, in one open transaction of one worker."""

    def __init__(self, worker: int, questions: Questions[PostgresKnown]) -> None:
        super().__init__()
        self._worker = worker
        self._questions = questions
        self.database_us = 0
        self.first_position = 0

    async def lock(self, transaction: Transaction) -> None:
        """Lock the instances, and learn their keys and versions. What is not there yet cannot be locked."""
        locked = sorted(self._questions.instances.values(), key=lambda known: known.name)
        if self._questions.letters:
            await transaction.rows("bury_alone", transaction.lock_class, BURYING)
        about, *rows = await transaction.rows("lock", self._worker, packed([known.name for known in locked]))
        number, base, self.database_us, worker, _ = about
        transaction.xid = number - base
        if worker is not None:
            self.workers = {self._worker}
        self.first_position = number << PLACE_BITS
        for place, key, version, position, suspended in rows:
            at: int = place - 1
            known = locked[at]
            if key < 0:
                known.awaited = key
                continue
            if position >> PLACE_BITS > number and self._questions.appends:
                # Our number is older than what was committed while we waited for the lock: the feed would show our
                # events before those that they follow.
                raise Surprise
            known.key, known.version, known.position = key, version, position
            if suspended:
                known.suspended, known.status = True, "suspended"

    async def ask(self, transaction: Transaction) -> None:
        """Ask everything else in one statement: one snapshot, taken behind the locks. Tasks have locks of their own."""
        q = self._questions
        if asked := [(known.key, version) for known, version in q.asked if known.key]:
            await run_async(read_tasks(DIALECT, self.tasks, asked), transaction.rows)
        # Of a tombstone's stream some events may be left.
        begun = [(known, message_id) for known, message_id in q.inputs if known.key and known.version >= 0]
        spots, direct, claiming = list(q.outputs), list(q.direct), list(q.claiming)
        consumed = [(position, known.name) for position, known in q.consumed]
        rows = await transaction.rows(
            "facts",
            packed([(known.key, message_id) for known, message_id in begun]),
            packed([(known.name, digest(message_id)) for known, message_id in q.inputs]),
            packed(consumed),
            packed(direct),
            packed([(*spot[:2], wanted) for spot, wanted in q.outputs.items()]),
            self._worker,
            packed(q.letters),
            q.accepts,
            q.new_keys,
            packed([name for name, _ in claiming]),
        )
        for question, place, number, other, first, second, third, body, positions, keys in rows:
            at: int = (place or 0) - 1
            match question:
                case 1:
                    known, message_id = begun[at]
                    self.taken[known.name, message_id] = (second, body)
                case 2:
                    known, message_id = q.inputs[at]
                    self.waiting[known.name, message_id] = (number, first, (second, body))
                case 3:
                    self.consumable[consumed[at]] = first
                    self.holders[consumed[at]] = other
                case 4:
                    self.queued.setdefault(direct[at], []).append((first, number))
                case 5:
                    self.outputs[spots[at][:2]] = OutputFact(number, other, first, second, third)
                case 6:
                    self.letters.setdefault(q.letters[at], []).append((number, (second, body)))
                case 9:
                    self.left.setdefault(consumed[at][1], []).append((first, number))
                case 8:
                    self.others.setdefault(claiming[at], []).append((first, number))
                case _:
                    self.positions, self.keys = iter(positions), iter(keys)
        self.set_turns()
