"""Units of a commit, and what becomes of them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from mainspring.port.attempts import Attempt
from mainspring.port.attributes import AttributeRow
from mainspring.port.preconditions import Precondition, Unmet
from mainspring.port.records.events import EventRow, Snapshot
from mainspring.port.records.instances import Status
from mainspring.port.records.work import DeadLetter, InputRow, OutputRow, Remembered, Retry
from mainspring.port.refs import OutputKey
from mainspring.port.tasks import Refused, TaskWork

CancelAll: TypeAlias = Literal["timers", "unclaimed", "forward"]
ConflictReason: TypeAlias = Literal["version", "inbox", "lost"]


class Unit(Struct, frozen=True, gc=False):
    """One all-or-nothing piece of a batch: a step, an acceptance, a settlement, or several of these together.

    With `expected_version` the unit moves its instance: it appends `events` and sets status, state and error. 0 without
    a `key` means that there is no such instance at all; with one, that it has no events yet. Without `expected_version`
    the instance is not touched.

    `renews` sets the context and the definition version of an instance that is there already; else they stay as they
    were when it began.

    `dedupe` is the message id of the input being stepped, unique in the instance's life. `direct` asks that nothing
    waits in the instance's inbox. `consumes` is the inbox position that the step takes: the first that waits by then.
    `releases` are positions that this worker held and releases, in their old order; the input that fails in its step is
    released by a unit that moves its instance, and must be the first that waits, too. `settles` are outputs that must
    still be this worker's, and so must those of `retries`. `cancels` are keys of timers, both waiting and fired but not
    stepped; `cancel_all` is all timers, or all unclaimed outputs, or what goes no further when an instance is
    compensated: all timers, and the unclaimed sends with the key ARMED. `accepts` go into the inbox; a duplicate is
    skipped (its position is 0), and a unit of nothing but one such is a Duplicate; so is a unit that buries its own
    input where that is a dead letter already. `discards` are ids of dead letters to remove, `handles` versions of the
    instance's outputs whose dead letters go, where there are any. `tasks` is what becomes of its tasks, `attributes`
    all that it has from now on, or None. What it `requires` and is not so: Unmet. `era` is that in which its instance
    was read, where that is kept in memory (see `Upkeep.era`).

    `trims` removes events up to `expected_version`, as far back as `trim_after` says: all but those with a message id
    (a redelivery is still known) or an actor, those that an output or a dead letter points to, the inputs that these
    were decided for, and, while an answer waits, what asked or closed tasks. Its snapshot has an empty fingerprint.

    >>> Unit("W", "i").expected_version is None
    True
    """

    workflow: str
    instance: str
    key: int | None = None
    expected_version: int | None = None
    events: tuple[EventRow, ...] = ()
    status: Status = "running"
    state: str | None = None
    error: str | None = None
    definition_version: int = 1
    context: bytes | None = None
    renews: bool = False
    outputs: tuple[OutputRow, ...] = ()
    cancels: tuple[str, ...] = ()
    cancel_all: CancelAll | None = None
    dedupe: str | None = None
    direct: bool = False
    consumes: int | None = None
    releases: tuple[int, ...] = ()
    settles: tuple[OutputKey, ...] = ()
    retries: tuple[Retry, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    accepts: tuple[InputRow, ...] = ()
    dead_letters: tuple[DeadLetter, ...] = ()
    discards: tuple[int, ...] = ()
    handles: tuple[int, ...] = ()
    remembers: tuple[Remembered, ...] = ()
    snapshot: Snapshot | None = None
    tasks: TaskWork | None = None
    attributes: tuple[AttributeRow, ...] | None = None
    trims: bool = False
    requires: Precondition | None = None
    era: int | None = None

    @property
    def takes(self) -> int | None:
        """The inbox position whose turn it must be, if any."""
        if self.consumes is None and self.releases and self.expected_version is not None:
            return self.releases[0]
        return self.consumes


class Committed(Struct, frozen=True, gc=False):
    """The unit is durable. `key` is the store's key of the instance (0 if untouched), `positions` those of `accepts`.

    `unclaimed` are those positions that were to be claimed and are not: inputs that this worker does not hold wait
    before them, or it is known no longer. Stepping them now would be out of order.
    """

    key: int
    positions: tuple[int, ...] = ()
    unclaimed: tuple[int, ...] = ()


class Conflict(Struct, frozen=True, gc=False):
    """The unit was not applied, because another process was first.

    `version`: the instance has another version. `inbox`: inputs wait before this one, or the input was consumed.
    `lost`: an output to be settled is not (or no longer) this worker's.
    """

    reason: ConflictReason


class Duplicate(Struct, frozen=True, gc=False):
    """The unit was not applied, because its input is there already. `same` is True if type and body are equal."""

    same: bool


Outcome: TypeAlias = Committed | Conflict | Duplicate | Refused | Unmet
