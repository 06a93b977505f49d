"""The check phase: what the database says about a batch, behind its locks, in two statements."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from mainspring.port.records import InputRow, OutputKey, Status, Unit
from mainspring.stores.postgres.faults import Surprise
from mainspring.stores.postgres.sql import digest, name_of, packed
from mainspring.stores.postgres.tasks import TaskBook
from mainspring.stores.postgres.transaction import Transaction

# A position in the feed is the transaction's number and, in so many bits, the place in that transaction.
PLACE_BITS: Final = 20
# The second number of an advisory lock; those of workers are positive.
BURYING: Final = -2

Name: TypeAlias = tuple[str, str]
Spot: TypeAlias = tuple[int, int]
Message: TypeAlias = tuple[str | None, bytes | None]


class Known:
    """What is known of an instance: as the database has it, and then as the units so far have changed it.

    There is one for every instance of a batch, so what is rarely changed stays in the class until it is.

    >>> Known("W", "i").version
    0
    """

    key: int = 0
    version: int = 0
    position: int = 0
    # The key of the row that stands for an instance which has not begun, while inputs wait for it.
    awaited: int = 0
    suspended: bool = False
    status: Status = "running"
    state: str | None = None
    error: str | None = None
    definition_version: int = 1
    context: bytes = b"{}"
    context_version: int | None = None
    # What the units of this batch did to it.
    moved: bool = False
    since: int = 0
    cancelled_keys: frozenset[str] = frozenset()
    cancelled_timers: bool = False
    consumed: tuple[int, ...] = ()
    released: frozenset[int] = frozenset()
    accepted: dict[str, tuple[int, InputRow, int | None]] | None = None

    def __init__(self, workflow: str, id: str) -> None:
        self.workflow = workflow
        self.id = id
        self.name = name_of(workflow, id)

    def cancelled_fired(self, timer_key: str | None) -> bool:
        """Tell whether an input that waited before this batch was a timer, and is cancelled."""
        return timer_key is not None and (self.cancelled_timers or timer_key in self.cancelled_keys)


class OutputFact:
    """An outbox row, as far as it matters; one without kind is not there.

    >>> OutputFact(None, None, None, None, None).kind is None
    True
    """

    __slots__ = ("destination", "key", "kind", "owner", "priority")

    def __init__(
        self, owner: int | None, priority: int | None, kind: str | None, destination: str | None, key: str | None
    ) -> None:
        self.owner = owner
        self.priority = priority
        self.kind = kind
        self.destination = destination
        self.key = key


class Questions:
    """All that a batch wants to know, gathered in one walk over its units."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self.instances: dict[Name, Known] = {}
        self.known: list[Known] = []
        self.inputs: list[tuple[Known, str]] = []
        self.consumed: list[tuple[int, bytes]] = []
        self.direct: dict[bytes, Known] = {}
        self.claiming: dict[bytes, Known] = {}
        self.outputs: dict[Spot, bool] = {}
        self.letters: list[tuple[str, str, str]] = []
        self.locked: list[Known] = []
        self.asked: list[tuple[Known, int]] = []
        self.cancels = False
        self.accepts = 0
        self._beginning: set[bytes] = set()
        self._units = units
        self._collect(units)

    @property
    def appends(self) -> bool:
        """Whether there are events among what is to be written."""
        return any(unit.events for unit in self._units)

    def _collect(self, units: Sequence[Unit]) -> None:
        """Gather. Runs once for every unit there ever is: rare things are looked for together."""
        instances, known_ones, outputs, direct = self.instances, self.known, self.outputs, self.direct
        for unit in units:
            name = (unit.workflow, unit.instance)
            known = instances.get(name)
            if known is None:
                known = instances[name] = Known(*name)
                self.locked.append(known)
            known_ones.append(known)
            if unit.dedupe is not None:
                self.inputs.append((known, unit.dedupe))
            if unit.direct or unit.requires is not None:
                direct[known.name] = known
            if unit.expected_version == 0:
                self._beginning.add(known.name)
            for output in unit.settles:
                outputs.setdefault((output.instance, output.version), False)
            if unit.accepts or unit.retries or unit.cancels or unit.releases or unit.consumes is not None:
                self._collect_rare(unit, known)
            if unit.dead_letters or unit.cancel_all:
                self._collect_last(unit)
            if unit.tasks is not None:
                answer, reopens = unit.tasks.answer, unit.tasks.reopens
                self.asked.append((known, answer.version if answer is not None else reopens or 0))
        if self.cancels:
            # Then it depends on an output's kind and key what becomes of it.
            self.outputs = dict.fromkeys(outputs, True)

    def _collect_rare(self, unit: Unit, known: Known) -> None:
        if unit.consumes is not None:
            self.consumed.append((unit.consumes, known.name))
        self.consumed += [(position, known.name) for position in unit.releases]
        if unit.cancels:
            self.cancels = True
        for retry in unit.retries:
            self.outputs.setdefault((retry.output.instance, retry.output.version), False)
        for row in unit.accepts:
            target = (row.workflow, row.instance)
            receiver = self.instances.get(target)
            if receiver is None:
                receiver = self.instances[target] = Known(*target)
                self.locked.append(receiver)
            self.inputs.append((receiver, row.message_id))
            self.accepts += 1
            if row.claimed:
                self.claiming[receiver.name] = receiver

    def _collect_last(self, unit: Unit) -> None:
        if unit.cancel_all:
            self.cancels = True
        for letter in unit.dead_letters:
            if letter.output is None and letter.message_id == unit.dedupe:
                self.letters.append((letter.workflow, letter.instance, letter.message_id))
            elif letter.output is not None and letter.output in unit.settles:
                self.outputs[_spot(letter.output)] = True

    @property
    def new_keys(self) -> int:
        """How many instances may begin. To be asked when the locks are taken."""
        return sum(not known.key and known.name in self._beginning for known in self.locked)


class Facts:
    """The answers, in one open transaction.

    `outputs` are those that are not this worker's, or whose rows are wanted anyway; what is not in it is its own.
    """

    def __init__(self, worker: int, questions: Questions) -> None:
        self._worker = worker
        self.questions = questions
        self.registered = False
        self.database_us = 0
        self.first_position = 0
        self.taken: dict[tuple[bytes, str], Message] = {}
        self.waiting: dict[tuple[bytes, str], tuple[int, str | None, Message]] = {}
        self.consumable: dict[tuple[int, bytes], str | None] = {}
        self.holders: dict[tuple[int, bytes], int | None] = {}
        self.others: dict[bytes, list[tuple[str | None, int]]] = {}
        self.queued: dict[bytes, list[tuple[str | None, int]]] = {}
        # The inputs to be taken or given back, in their order; and the first of others that wait before the last of
        # these, by timer key.
        self.turns: dict[bytes, deque[int]] = {}
        self.left: dict[bytes, list[tuple[str | None, int]]] = {}
        self.outputs: dict[Spot, OutputFact] = {}
        self.letters: dict[tuple[str, str, str], list[tuple[int, Message]]] = {}
        self.tasks = TaskBook()
        self.positions: Iterator[int] = iter(())
        self.keys: Iterator[int] = iter(())

    async def lock(self, transaction: Transaction) -> None:
        """Lock the instances, and learn their keys and versions. What is not there yet cannot be locked."""
        locked = sorted(self.questions.locked, key=lambda known: known.name)
        if self.questions.letters:
            await transaction.rows("bury_alone", transaction.lock_class, BURYING)
        about, *rows = await transaction.rows("lock", self._worker, packed([known.name for known in locked]))
        number, base, self.database_us, worker, _ = about
        transaction.xid = number - base
        self.registered = worker is not None
        self.first_position = number << PLACE_BITS
        for place, key, version, position, suspended in rows:
            at: int = place - 1
            known = locked[at]
            if key < 0:
                known.awaited = key
                continue
            if position >> PLACE_BITS > number and self.questions.appends:
                # Our number is older than what was committed while we waited for the lock: the feed would tell our
                # events before those that they follow.
                raise Surprise
            known.key, known.version, known.position = key, version, position
            if suspended:
                known.suspended, known.status = True, "suspended"

    async def ask(self, transaction: Transaction) -> None:
        """Ask everything else in one statement: one snapshot, taken behind the locks. Tasks have locks of their own."""
        q = self.questions
        if asked := [(known.key, version) for known, version in q.asked if known.key]:
            await self.tasks.lock(transaction, asked)
        # Of a tombstone's stream some events may be left.
        begun = [(known, message_id) for known, message_id in q.inputs if known.key and known.version >= 0]
        spots, direct, claiming = list(q.outputs), list(q.direct), list(q.claiming)
        rows = await transaction.rows(
            "facts",
            packed([(known.key, message_id) for known, message_id in begun]),
            packed([(known.name, digest(message_id)) for known, message_id in q.inputs]),
            packed(q.consumed),
            packed(direct),
            packed([(*spot, wanted) for spot, wanted in q.outputs.items()]),
            self._worker,
            packed(q.letters),
            q.accepts,
            q.new_keys,
            packed(claiming),
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
                    self.consumable[q.consumed[at]] = first
                    self.holders[q.consumed[at]] = other
                case 4:
                    self.queued.setdefault(direct[at], []).append((first, number))
                case 5:
                    self.outputs[spots[at]] = OutputFact(number, other, first, second, third)
                case 6:
                    self.letters.setdefault(q.letters[at], []).append((number, (second, body)))
                case 9:
                    self.left.setdefault(q.consumed[at][1], []).append((first, number))
                case 8:
                    self.others.setdefault(claiming[at], []).append((first, number))
                case _:
                    self.positions, self.keys = iter(positions), iter(keys)
        for position, name in sorted(self.consumable):
            self.turns.setdefault(name, deque()).append(position)


def _spot(output: OutputKey) -> Spot:
    return (output.instance, output.version)
