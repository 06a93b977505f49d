"""The verbs of the port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

from mainspring.port.attempts import Attempt
from mainspring.port.attributes import AttributeRow
from mainspring.port.leaving import NOTHING, Leaves, Waiting
from mainspring.port.lending import Loan
from mainspring.port.outlines import Outline, OutlineSpot
from mainspring.port.projections import Advance, Behind, Checkpoint, Document
from mainspring.port.purging import Purgeable, PurgeCursor, Purged, PurgePage
from mainspring.port.records import (
    Claims,
    DeadLetter,
    EventRow,
    InputRow,
    InstanceFilter,
    InstanceRow,
    Loaded,
    Outcome,
    OutputClaim,
    OutputKey,
    Ref,
    Relayed,
    Remembered,
    Stats,
    Status,
    Unit,
)
from mainspring.port.searching import AttributeName, Found
from mainspring.port.suspects import Alone, Suspect
from mainspring.port.tasks import Hand, Refused, TaskFilter, TaskRow
from mainspring.port.workers import WorkerRow

SOON_US: Final = 1_000_000

TaskSpot: TypeAlias = tuple[Ref, int]
Tally: TypeAlias = dict[tuple[str, Status], int]
"""How many instances there are, by workflow and status."""


class Store(Protocol):
    """A database that keeps streams and work. See `mainspring.stores.memory` for what each verb means, in few lines.

    >>> from mainspring.stores.memory import MemoryStore
    >>> from mainspring.testing.clock import VirtualClock
    >>> store: Store = MemoryStore(VirtualClock())
    """

    async def open(self) -> None:
        """Connect, and bring the schema up to date."""
        ...

    async def close(self) -> None:
        """Disconnect. What was committed stays."""
        ...

    def now_us(self) -> int:
        """Return the store's own time, by which leases and due times are judged."""
        ...

    async def register_worker(self, name: str, lease_us: int, knows: str = "") -> int:
        """Return a key for a new worker: its epoch. It holds what it claims while it is alive or its lease runs.

        `knows` says what it can read, and what every heartbeat says it holds back; `workers` returns both as they are.
        """
        ...

    async def heartbeat(self, worker: int, held: str = "") -> bool:
        """Extend a worker's lease. False means that it was relieved: its key is worth nothing any more."""
        ...

    async def release_worker(self, worker: int) -> None:
        """Give back all that a worker holds, for others to claim at once, and forget the worker."""
        ...

    async def relieve(self) -> int:
        """Give back what dead workers hold, and forget them. Return how many were found dead or out of their lease.

        What they held is counted as lost, but for those that tried something alone: then that alone. What was lost
        `SUSPECT` times is set aside. A retry, and the resumption of its instance, begin the count anew.
        """
        ...

    async def suspects(self, limit: int) -> list[Suspect]:
        """Return what was lost `SUSPECT` times or more with its workers, what was lost most first.

        No inputs of suspended instances: these wait for a person.
        """
        ...

    async def claim_alone(self, worker: int, suspect: Suspect | None) -> Alone | None:
        """Take something that is set aside, if it still is; an input only where it is the first that waits.

        From then on it is blamed alone if the worker is lost. None ends that: what the worker holds is counted again.
        """
        ...

    async def commit(self, worker: int, units: Sequence[Unit]) -> list[Outcome]:
        """Apply units in order in one transaction, and return one outcome each. A refused one leaves no trace.

        After a refused unit that moves an instance, those behind it that move the same instance are Conflicts: they
        were built on it.
        """
        ...

    @property
    def lends(self) -> bool:
        """Whether a handler can write in the transaction of its result here."""
        ...

    async def lend(self, worker: int, limit_seconds: float) -> Loan:
        """Open a transaction of its own for a handler, which is rolled back if it is not over within its limit."""
        ...

    async def claim(
        self, worker: int, destinations: Sequence[str], workflows: Sequence[str], limit: int, leaves: Leaves = NOTHING
    ) -> Claims:
        """Take due outputs for these destinations, and inputs of these workflows' instances that are not suspended.

        Outputs come by priority, then due time, at most `limit`. Inputs come in the order of their acceptance, `limit`
        at most; of one instance only ever a beginning of its queue. What another live worker holds is left alone, and
        so is what the worker `leaves` to others, and what waits behind it.
        """
        ...

    async def relay(self, limit: int) -> Relayed:
        """Move the first messages that programs posted into the inboxes, in one transaction and in their order.

        One that is an input already is dropped; one that cannot be an input, as when its id was used for another
        message, becomes a dead letter. A store in which nobody can post has none.
        """
        ...

    async def load(self, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
        """Return what is needed to fold each instance, or None where there is none.

        With `most`, only so many events of each, the first behind its snapshot: the others can be read by `stream`.
        """
        ...

    async def remembered(self, key: str) -> Remembered | None:
        """Return the result kept under a business key, unless it has expired."""
        ...

    async def wait_for_work(self, timeout_seconds: float) -> None:
        """Return when there may be new work from outside this process, or after the timeout. A hint, no promise.

        What is due later than `SOON_US` needs none: whoever waits looks by itself until then.
        """
        ...

    async def instances(self, where: InstanceFilter, limit: int, after: int = 0) -> list[InstanceRow]:
        """Return instances in the order of their beginning, behind the key `after`; no tombstones."""
        ...

    async def search(self, where: InstanceFilter, limit: int, after: int | None = None, newest: bool = False) -> Found:
        """Return instances by their beginning, the oldest or the newest first, behind the key `after`; no tombstones.

        It looks at `SEARCHED` of them at most, or finds few by an index: there may be more behind a page that is short.
        """
        ...

    async def stream(self, ref: Ref, after: int, limit: int) -> list[EventRow]:
        """Return the events of an instance behind the version `after`."""
        ...

    async def feed(self, after: int, limit: int) -> list[tuple[int, Ref, EventRow]]:
        """Return events of all instances behind a position, in an order in which none can still appear before."""
        ...

    async def outlines(self, spots: Sequence[OutlineSpot], limit: int) -> list[Outline]:
        """Return events of instances without their bodies: in the order of the spots, then of their versions.

        Instances are named by their keys, each once. No checksum is looked at, for it covers the bodies.
        """
        ...

    async def inbox(self, ref: Ref, limit: int) -> list[InputRow]:
        """Return the inputs that wait for an instance, in order."""
        ...

    async def attempts(self, ref: Ref, limit: int) -> list[Attempt]:
        """Return attempts at what an instance sent that failed, by the positions of what was sent, then by time.

        Of one command the latest `ATTEMPTS_KEPT` are kept, of an instance the latest `ATTEMPTS_OF_INSTANCE`.
        """
        ...

    async def waiting(self, before_us: int) -> list[Waiting]:
        """Return how many inputs have waited since before a time, in nobody's hands; none of suspended instances.

        It looks at all that wait.
        """
        ...

    async def outputs(self, ref: Ref | None, timers: bool, limit: int) -> list[OutputClaim]:
        """Return recorded outputs that are not carried out yet: timers, or all but timers; the next due first."""
        ...

    async def timers(self, limit: int) -> list[OutputClaim]:
        """Return the timers of all instances that no worker holds, the next due first. A damaged one is left out."""
        ...

    async def dead_letters(self, limit: int, after: int = 0, ids: Sequence[int] | None = None) -> list[DeadLetter]:
        """Return dead letters in the order of their arrival."""
        ...

    async def restore_output(self, dead_letter: int, expected_version: int | None = None) -> bool:
        """Put a dead letter that came from an outbox back there, due now, with no attempts made.

        False: it is gone, or its instance is at another version than the expected one.
        """
        ...

    async def tasks(self, where: TaskFilter, limit: int, after: TaskSpot | None = None) -> list[TaskRow]:
        """Return open tasks, the next due first, then those of older instances; behind the task `after`."""
        ...

    async def task(self, ref: Ref, version: int) -> TaskRow | None:
        """Return the task that an instance asked at a version, whatever became of it."""
        ...

    async def hand(self, ref: Ref, version: int, hand: Hand) -> TaskRow | Refused:
        """Let a task change hands, in a transaction, and return it as it is then."""
        ...

    async def pick(self, role: str, actor: str, limit: int) -> list[TaskRow]:
        """Claim the next tasks of a role that nobody holds and that do not exclude the actor; the next due first.

        Of many who pick at once, no two get the same task, and none waits for another.
        """
        ...

    async def stats(self) -> Stats:
        """Return depths and ages. Of instances, what `tally` counts."""
        ...

    async def tally(self) -> Tally:
        """Return how many instances there are by workflow and status; no tombstones, and none of `ENGINES_OWN`.

        It looks at all of them.
        """
        ...

    async def workers(self) -> list[WorkerRow]:
        """Return the workers that are registered, by their keys; one whose lease is over may be gone."""
        ...

    async def holds(self, worker: int) -> list[OutputKey]:
        """Return the outputs that a worker holds."""
        ...

    async def holds_inputs(self, worker: int) -> list[tuple[Ref, int]]:
        """Return the inputs that a worker holds: for which instance, and at which position, in their order."""
        ...

    async def attributes(self, ref: Ref) -> list[AttributeRow]:
        """Return the attributes of an instance, by name."""
        ...

    async def attribute_names(self) -> list[AttributeName]:
        """Return by which names and kinds instances can be found, sorted; `ATTRIBUTE_NAMES` at most."""
        ...

    async def checkpoints(self, projection: str | None = None) -> list[Checkpoint]:
        """Return how far projections are, all or one: every generation that is not cleared away, by name and number."""
        ...

    async def advance(self, move: Advance) -> bool:
        """Move a checkpoint and write its documents in one transaction. False: somebody else moved it before."""
        ...

    async def documents(self, projection: str, keys: Sequence[str], generation: int | None = None) -> list[Document]:
        """Return those documents of a generation, or of the live one, that there are."""
        ...

    async def list_documents(self, projection: str, prefix: str, after: str, limit: int) -> list[Document]:
        """Return documents of the live generation whose keys begin so, in the order of their keys behind `after`."""
        ...

    async def clear_documents(self, projection: str, generation: int, limit: int) -> int:
        """Remove so many documents of a retired generation; if there are fewer, its checkpoint too. Return how many."""
        ...

    async def behind(self, position: int, limit: int) -> Behind:
        """Return how many events the feed has behind a position, `limit` at most, and when the first happened."""
        ...

    async def purgeable(self, workflow: str, before_us: int, limit: int, after: PurgeCursor | None = None) -> PurgePage:
        """Return instances of a workflow that ended before a time and may be purged, in the order of their ends.

        Looks at `limit` ends at most. Left out are those that inputs, outputs or dead letters are kept for, and those
        that moved since that time: an ended instance may still be told of late results.
        """
        ...

    async def purge(self, found: Sequence[Purgeable], events: int) -> Purged:
        """Make tombstones of instances, and remove so many of their events at most, in one transaction.

        A tombstone keeps identity, version, status and times, and shows no events from that moment on, even while some
        are left to be removed by the next call. An instance that may not be purged any more is left alone, and so is
        one that somebody else is at. Inputs that come later find an ended instance.
        """
        ...
