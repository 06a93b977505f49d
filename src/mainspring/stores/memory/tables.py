"""The memory store's tables: what it keeps of an instance, of work and of workers, and small questions about them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from msgspec.structs import replace

from mainspring.port.attempts import ATTEMPTS_KEPT, ATTEMPTS_OF_INSTANCE, Attempt
from mainspring.port.attributes import AttributeRow
from mainspring.port.clock import Clock
from mainspring.port.records import (
    ENDED,
    Cause,
    DeadLetter,
    EventRow,
    InputRow,
    InstanceRow,
    OutputClaim,
    OutputKey,
    OutputRow,
    Ref,
    Remembered,
    Snapshot,
)
from mainspring.port.suspects import SUSPECT
from mainspring.stores.memory.task_table import TaskTable

ASIDE: Final = -2
"""The owner of what is to be tried alone."""


@dataclass
class Work:
    """Who holds something, and how often it was lost with its worker."""

    owner: int | None = field(default=None, kw_only=True)
    lost: int = field(default=0, kw_only=True)

    @property
    def free(self) -> bool:
        """Whether it is unclaimed."""
        return self.owner in (None, ASIDE)

    def give_back(self) -> None:
        """Release its claim; if it is suspected, set it aside."""
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
        if any(waiting.row.kind == "answer" for waiting in self.inbox.values()):
            # Refused, it opens its task again if that is asked still.
            needed |= {version for version, event in self.events.items() if event.event in ("Asked", "TaskClosed")}
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
        """Take over a row, and note when the instance ended; later inputs do not change that."""
        self.row = row
        if row.status not in ENDED:
            self.ended_us = None
        elif self.ended_us is None:
            self.ended_us = row.updated_us

    def is_at(self, version: int | None) -> bool:
        """Return True if it is there, and at this version, if one is expected."""
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
    standing: str = ""


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
        self.tasks = TaskTable()
        self.remembered: dict[str, Remembered] = {}
        self.workers: dict[int, Worker] = {}
        self.alone: dict[int, OutputKey | int] = {}
        """What a worker tries alone: the position of an input, or an output."""
        self.inputs_accepted = self.letters_died = self.events_fed = self.workers_registered = 0

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

    def claim_of(self, key: OutputKey, output: Output) -> OutputClaim:
        """Return an output with its message, as a claim has it."""
        instance, row = self.at(output.ref), output.row
        event = instance.events[key.version]
        cause = instance.events[event.cause] if event.cause is not None else None
        before = (e.context for v in range(key.version, 0, -1) if (e := instance.events.get(v)))
        context = next((c for c in before if c is not None), instance.row.context if instance.row else b"{}")
        return OutputClaim(
            key,
            output.ref.workflow,
            output.ref.id,
            row.kind,
            row.destination,
            output.attempts,
            output.due_us,
            row.priority,
            event.type or "",
            event.type_version,
            event.body or b"",
            event.detail,
            context,
            Cause(cause.message_id, cause.kind, cause.cause) if cause is not None else None,
            output.error,
        )

    def type_of(self, output: OutputKey) -> str:
        """Return the type of an output's message."""
        return self.at(self.outbox[output].ref).events[output.version].type or ""

    def is_parked(self, waiting: Input) -> bool:
        """Return True if an input waits for the resumption of its instance."""
        return waiting.free and self.at(Ref(waiting.row.workflow, waiting.row.instance)).suspended


class Verbs:
    """What all verbs have: tables, a clock, and a signal that there is unclaimed work."""

    def __init__(self, clock: Clock) -> None:
        self._tables = Tables()
        self._clock = clock
        self._news = asyncio.Event()

    def now_us(self) -> int:
        """Return the store's time."""
        return self._clock.now_us()
