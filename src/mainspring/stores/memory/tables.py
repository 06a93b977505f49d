"""The memory store's tables: what it keeps of an instance, of work and of workers, and small questions about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from msgspec.structs import replace

from mainspring.port.attempts import ATTEMPTS_KEPT, ATTEMPTS_OF_INSTANCE, Attempt
from mainspring.port.attributes import AttributeRow
from mainspring.port.leaving import Waiting
from mainspring.port.outlines import Outline
from mainspring.port.records import (
    ENDED,
    ENGINES_OWN,
    DeadLetter,
    EventRow,
    InputRow,
    InstanceFilter,
    InstanceRow,
    OutputKey,
    OutputRow,
    Ref,
    Remembered,
    Snapshot,
    Stats,
)
from mainspring.port.searching import ATTRIBUTE_NAMES, SEARCHED, AttributeName, Found
from mainspring.port.store import Tally
from mainspring.port.suspects import SUSPECT
from mainspring.stores.memory.tasks import MemoryTasks

ASIDE: Final = -2
"""The owner of what is to be tried alone."""


@dataclass
class Work:
    """Who holds something, and how often it was lost with its worker."""

    owner: int | None = field(default=None, kw_only=True)
    lost: int = field(default=0, kw_only=True)

    @property
    def free(self) -> bool:
        """Whether nobody holds it."""
        return self.owner in (None, ASIDE)

    def give_back(self) -> None:
        """Let nobody hold it; one that is suspected is set aside."""
        self.owner = ASIDE if self.lost >= SUSPECT else None


@dataclass
class Input(Work):
    """An input that waits."""

    row: InputRow


@dataclass
class Output(Work):
    """An output that is not carried out yet."""

    ref: Ref
    row: OutputRow
    due_us: int
    attempts: int = 0
    error: str | None = None


@dataclass
class Instance:
    """An instance with its work, or only an inbox: inputs may be accepted before their instance begins."""

    row: InstanceRow | None = None
    ended_us: int | None = None
    snapshot: Snapshot | None = None
    attributes: tuple[AttributeRow, ...] = ()
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    events: dict[int, EventRow] = field(default_factory=dict[int, EventRow])
    taken: dict[str, EventRow] = field(default_factory=dict[str, EventRow])
    inbox: dict[int, Input] = field(default_factory=dict[int, Input])
    outbox: dict[OutputKey, Output] = field(default_factory=dict[OutputKey, Output])

    @property
    def version(self) -> int:
        """The version that a unit must expect; of a tombstone there is none."""
        if self.row is None:
            return 0
        return self.row.version if self.row.purged_us is None else -1

    @property
    def suspended(self) -> bool:
        """Whether its inputs are left alone."""
        return self.row is not None and self.row.status == "suspended"

    def behind(self, version: int, limit: int | None = None) -> list[EventRow]:
        """Return the events behind a version that can be read."""
        versions = range(max(version, 0) + 1, self.version + 1)
        return list(islice((event for v in versions if (event := self.events.get(v))), limit))

    def trim(self, after: int, upto: int, pinned: set[int]) -> None:
        """Remove events behind a version up to another that nothing needs any more."""
        needed = pinned | {cause for version in pinned if (cause := self.events[version].cause) is not None}
        for version in range(after + 1, upto + 1):
            event = self.events.get(version)
            if event and event.message_id is None and event.actor is None and version not in needed:
                del self.events[version]

    def note(self, attempt: Attempt) -> None:
        """Keep a failed attempt: the latest of each command, and of all."""
        own = [old for old in self.attempts if old.version == attempt.version]
        gone = own[0] if len(own) == ATTEMPTS_KEPT else None
        self.attempts = [*(old for old in self.attempts if old is not gone), attempt][-ATTEMPTS_OF_INSTANCE:]

    def takes(self, row: InstanceRow) -> None:
        """Take over a row, and note when the instance ended; what it is told afterwards does not change that."""
        self.row = row
        if row.status not in ENDED:
            self.ended_us = None
        elif self.ended_us is None:
            self.ended_us = row.updated_us

    def is_at(self, version: int | None) -> bool:
        """Tell whether it is there, and at this version, if one is expected."""
        return version is None or (self.row is not None and self.row.version == version)

    def bury(self, now_us: int) -> None:
        """Make a tombstone: of the row its identity, version, status and times are left."""
        if self.row is not None:
            self.row = replace(self.row, state=None, error=None, context=b"{}", purged_us=now_us)
        self.snapshot = None
        self.attributes = ()
        self.attempts.clear()
        self.taken.clear()


@dataclass
class Worker:
    """A live worker's name and lease, and what it says of itself."""

    name: str
    lease_us: int
    ends_us: int
    knows: str = ""
    held: str = ""


class Tables:
    """All that there is. Each instance has its own work, and all of it stands here once more.

    What is claimed is looked for across instances.
    """

    def __init__(self) -> None:
        self.instances: dict[Ref, Instance] = {}
        self.begun: list[Ref] = []
        """The place of an instance is its key, from 1."""
        self.feed: list[tuple[int, Ref, EventRow]] = []
        self.inbox: dict[int, Input] = {}
        self.outbox: dict[OutputKey, Output] = {}
        self.dead: dict[int, tuple[DeadLetter, Output | None]] = {}
        """A dead letter keeps the outbox row that it was, so that it can become one again."""
        self.tasks = MemoryTasks()
        self.remembered: dict[str, Remembered] = {}
        self.workers: dict[int, Worker] = {}
        self.alone: dict[int, OutputKey | int] = {}
        """What a worker tries alone: the position of an input, or an output."""
        self.inputs_accepted = self.letters_died = self.events_fed = 0

    def at(self, ref: Ref) -> Instance:
        """Return an instance, or one in which nothing is."""
        return self.instances.get(ref) or Instance()

    def keyed(self, key: int) -> Instance:
        """Return the instance with a key."""
        return self.instances[self.begun[key - 1]]

    def letters_of(self, ref: Ref) -> list[DeadLetter]:
        """Return the dead letters of an instance."""
        letters = (letter for letter, _ in self.dead.values())
        return [letter for letter in letters if (letter.workflow, letter.instance) == (ref.workflow, ref.id)]

    def put_output(self, key: OutputKey, output: Output) -> None:
        """Add an output."""
        self.outbox[key] = self.instances[output.ref].outbox[key] = output

    def drop_output(self, key: OutputKey) -> Output:
        """Remove an output, and return it."""
        output = self.outbox.pop(key)
        return self.instances[output.ref].outbox.pop(key)

    def drop_input(self, instance: Instance, position: int) -> None:
        """Remove an input that waits."""
        del self.inbox[position], instance.inbox[position]


def urgency(item: tuple[OutputKey, Output]) -> tuple[int, int, int, int]:
    """Return by what outputs are sorted for a claim."""
    key, output = item
    return -output.row.priority, output.due_us, key.instance, key.version


def matches(where: InstanceFilter, row: InstanceRow, attributes: tuple[AttributeRow, ...]) -> bool:
    """Tell whether an instance is to be listed; a tombstone never is."""
    return (
        row.purged_us is None
        and where.workflow in (None, row.workflow)
        and where.status in (None, row.status)
        and where.state in (None, row.state)
        and where.workflow_version in (None, row.definition_version)
        and row.id.startswith(where.id_prefix or "")
        and (where.error is None or where.error in (row.error or ""))
        and _within(row.created_us, where.created_from_us, where.created_to_us)
        and _within(row.updated_us, where.updated_from_us, where.updated_to_us)
        and all(any(wanted.finds(attribute) for attribute in attributes) for wanted in where.attributes)
    )


def searched(
    begun: Sequence[Ref],
    at: Callable[[Ref], Instance],
    where: InstanceFilter,
    limit: int,
    after: int | None,
    newest: bool,
) -> Found:
    """Return what one look finds among the instances that have begun; their keys count from 1."""
    last = len(begun)
    oldest_first = range(1 if after is None else after + 1, last + 1)
    keys = range(last if after is None else min(after - 1, last), 0, -1) if newest else oldest_first
    rows: list[InstanceRow] = []
    for key in keys[:SEARCHED]:
        instance = at(begun[key - 1])
        if instance.row is not None and matches(where, instance.row, instance.attributes):
            rows.append(instance.row)
            if len(rows) == limit:
                return Found(rows, key)
    return Found(rows, keys[SEARCHED - 1] if len(keys) > SEARCHED else None)


def attribute_names(instances: Iterable[Instance]) -> list[AttributeName]:
    """Return by what instances can be found."""
    names: set[AttributeName] = {(row.name, row.kind) for instance in instances for row in instance.attributes}
    return sorted(names)[:ATTRIBUTE_NAMES]


def tally_of(rows: Iterable[InstanceRow]) -> Tally:
    """Return how many instances there are by workflow and status; no tombstones, and none of the engine's own."""
    own = (row for row in rows if row.purged_us is None and not row.workflow.startswith(ENGINES_OWN))
    return dict(Counter((row.workflow, row.status) for row in own))


def waiting_of(rows: Iterable[InputRow]) -> list[Waiting]:
    """Return how many inputs of each type there are, and since when."""
    times: dict[tuple[str, str, int], list[int]] = {}
    for row in rows:
        times.setdefault((row.workflow, row.type, row.type_version), []).append(row.time_us)
    return [Waiting(*name, len(found), min(found)) for name, found in sorted(times.items())]


def stats_of(
    tally: Tally, outbox: Iterable[Output], now_us: int, *, inbox: int, dead_letters: int, workers: int
) -> Stats:
    """Return depths and ages."""
    outputs = list(outbox)
    timers = sum(output.row.kind == "timer" for output in outputs)
    oldest_due_us = min((output.due_us for output in outputs if output.due_us <= now_us), default=None)
    counts: Counter[str] = Counter()
    for (_, status), count in tally.items():
        counts[status] += count
    return Stats(dict(counts), inbox, len(outputs) - timers, timers, dead_letters, oldest_due_us, workers)


def outline(instance: int, event: EventRow) -> Outline:
    """Return an event without its bodies.

    >>> outline(7, EventRow(1, "Began", 0))[:4]
    (7, 1, 'Began', 0)
    """
    return (
        instance,
        event.version,
        event.event,
        event.time_us,
        event.type,
        event.kind,
        event.cause,
        event.state,
        event.attempt,
        event.duration_us,
        event.actor,
        sum(len(part) for part in (event.body, event.detail, event.context) if part is not None),
    )


def _within(time_us: int, from_us: int | None, to_us: int | None) -> bool:
    return (from_us is None or time_us >= from_us) and (to_us is None or time_us < to_us)
