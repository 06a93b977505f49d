"""What crosses the port. Times are microseconds since 1970 (UTC); bodies are the exact JSON bytes that were written."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from mainspring.port.attempts import Attempt
from mainspring.port.attributes import AttributeFilter, AttributeRow
from mainspring.port.preconditions import Precondition, Unmet
from mainspring.port.tasks import Refused, TaskWork

Status: TypeAlias = Literal["running", "suspended", "compensating", "completed", "failed", "cancelled", "terminated"]
CancelAll: TypeAlias = Literal["timers", "unclaimed", "forward"]
OutputKind: TypeAlias = Literal["send", "publish", "reply", "timer", "child", "end"]
ConflictReason: TypeAlias = Literal["version", "inbox", "lost"]

ENDED: frozenset[Status] = frozenset({"completed", "failed", "cancelled", "terminated"})

# The key of sends that have a compensation. No author can write it, so that no CancelSchedule means it.
ARMED = ""
ENGINES_OWN = "mainspring."  # so begin the names of the engine's own workflows, which no list or count has
# The workflow whose instances hold the joins of fan-outs. Each has the id of the output that asked for it.
FAN_OUT = "mainspring.FanOut"
# Where dead letters stand that no instance was found for: instead of an instance they have the edge they came through.
EDGE = "mainspring.Edge"


class Ref(Struct, frozen=True, gc=False):
    """An instance's identity.

    >>> str(Ref("OrderFulfilment", "o-1"))
    'OrderFulfilment/o-1'
    """

    workflow: str
    id: str

    def __str__(self) -> str:
        return f"{self.workflow}/{self.id}"


class OutputKey(Struct, frozen=True, gc=False):
    """Where an output stands: the store's key of its instance, and the version. Never used twice.

    >>> OutputKey(7, 3)
    OutputKey(instance=7, version=3)
    """

    instance: int
    version: int


class Context(Struct, frozen=True, gc=False, omit_defaults=True):
    """What an envelope says beside message, id, kind, time and actor; stored as one JSON object.

    `parent` is the id of the output that begins an instance as somebody's child. `outside` says that the message came
    from outside the app: it may be no answer to an open task.

    >>> Context(correlation_id="c-1").reply_to is None
    True
    """

    correlation_id: str
    causation_id: str | None = None
    sender: str | None = None
    reply_to: str | None = None
    trace: str | None = None
    task: str | None = None
    parent: str | None = None
    outside: bool = False


class EventRow(Struct, frozen=True, gc=False):
    """One event of a stream.

    `event` is the event's class name. `detail` is JSON of what it says beside its message (after, at, key, to, reason).
    Inputs carry `message_id` (None where it follows from `cause`), `kind`, `context`, `actor`, and the name of the
    state after their step. `cause` is the version of the output that a result or timer answers; of an output, the
    version of the input for which it was decided; of a suspension, the version of the output that failed, if one did.

    >>> EventRow(1, "Began", 0).type is None
    True
    """

    version: int
    event: str
    time_us: int
    type: str | None = None
    type_version: int = 1
    body: bytes | None = None
    detail: bytes | None = None
    kind: str | None = None
    message_id: str | None = None
    cause: int | None = None
    context: bytes | None = None
    actor: str | None = None
    state: str | None = None
    attempt: int | None = None
    duration_us: int | None = None


class OutputRow(Struct, frozen=True, gc=False):
    """An output to be carried out; its body stands in the event of the same version.

    It is due `after_us` from the commit by the store's clock, or at `at_us`. `claimed` says that the committing worker
    takes it at once. `key` names a timer for cancelling; of a send that has a compensation it is ARMED.

    >>> OutputRow(3, "send", "ChargeCard").claimed
    False
    """

    version: int
    kind: OutputKind
    destination: str
    after_us: int = 0
    at_us: int | None = None
    key: str | None = None
    priority: int = 0
    claimed: bool = False


class InputRow(Struct, frozen=True, gc=False):
    """An accepted input that is not stepped yet. `position` is its place in the inbox, 0 before it has one.

    A timer that fired and waits here keeps its `timer_key`, so that it can still be cancelled. `claimed` says that the
    committing worker steps it at once.

    >>> InputRow("W", "i", "m-1", "command", "Go", 1, b"{}", 0, b"{}").position
    0
    """

    workflow: str
    instance: str
    message_id: str
    kind: str
    type: str
    type_version: int
    body: bytes
    time_us: int
    context: bytes
    actor: str | None = None
    cause: int | None = None
    timer_key: str | None = None
    claimed: bool = False
    position: int = 0


class Retry(Struct, frozen=True, gc=False):
    """A failed attempt at an output, which becomes due again after a while, for any worker.

    `attempts` counts those made. Waiting for a breaker or a limit is a Retry too, with `attempts` unchanged. It is due
    `after_us` from `ended_us`, the end of the attempt, or from the commit where nobody says.

    >>> Retry(OutputKey(7, 3), attempts=2, after_us=1_000_000, error="refused", ended_us=5_000_000).due_us(5_000_700)
    6000000
    """

    output: OutputKey
    attempts: int
    after_us: int
    error: str | None
    ended_us: int | None = None

    def due_us(self, now_us: int) -> int:
        """Return when it is due, where the commit's time is `now_us`."""
        return (now_us if self.ended_us is None else self.ended_us) + self.after_us


class DeadLetter(Struct, frozen=True, gc=False):
    """A message that could not be carried out, whole, with its reason.

    `output` is set where it came from an outbox (retrying it keeps its id), `id` once the store has it.

    >>> DeadLetter("W", "i", "m-1", "command", "Go", 1, b"{}", 0, b"{}", reason="no instance").id
    0
    """

    workflow: str
    instance: str
    message_id: str
    kind: str
    type: str
    type_version: int
    body: bytes
    time_us: int
    context: bytes
    reason: str
    error: str | None = None
    attempts: int = 0
    actor: str | None = None
    output: OutputKey | None = None
    id: int = 0


class Snapshot(Struct, frozen=True, gc=False):
    """A state at a version, with a fingerprint of the code that made it. An optimisation only.

    One with an empty fingerprint is more: the events up to its version were trimmed, and it is all that is left.

    >>> Snapshot(100, "f", "Waiting", 1, b"{}").version
    100
    """

    version: int
    fingerprint: str
    type: str
    type_version: int
    body: bytes

    @property
    def is_all(self) -> bool:
        """Whether it is all that is left."""
        return not self.fingerprint


class Remembered(Struct, frozen=True, gc=False):
    """A result kept under a business key until it expires.

    >>> Remembered("charge:o-1", "CardCharged", 1, b"{}", 0).key
    'charge:o-1'
    """

    key: str
    type: str | None
    type_version: int
    body: bytes
    expires_us: int


class Unit(Struct, frozen=True, gc=False):
    """One all-or-nothing piece of a batch: a step, an acceptance, a settlement, or several of these together.

    With `expected_version` the unit moves its instance: it appends `events` and sets status, state and error. 0 without
    a `key` means that there is no such instance at all; with one, that it has no events yet. Without `expected_version`
    the instance is not touched.

    `renews` sets the context and the definition version of an instance that is there already; else they stay as they
    were when it began.

    `dedupe` is the message id of the input being stepped, unique in the instance's life. `direct` asks that nothing
    waits in the instance's inbox. `consumes` is the inbox position that the step takes: the first that waits by then.
    `releases` are positions that this worker held and gives back, in their old order; the input that fails in its step
    is given back by a unit that moves its instance, and must be the first that waits, too. `settles` are outputs that
    must still be this worker's, and so must those of `retries`. `cancels` are keys of timers, both waiting and fired
    but not stepped; `cancel_all` is all timers, or all outputs that no worker holds, or what goes no further when an
    instance is compensated: all timers, and the sends with the key ARMED that no worker holds. `accepts` go into the
    inbox; one that is there already is skipped (its position is 0), and a unit of nothing but one such is a Duplicate;
    so is a unit that buries its own input where that is a dead letter already. `discards` are ids of dead letters to
    remove, `handles` versions of the instance's outputs whose dead letters go, where there are any. `tasks` is what
    becomes of its tasks, `attributes` all that it has from now on, or None. What it `requires` and is not so: Unmet.

    `trims` removes events up to `expected_version`, as far back as `trim_after` says: all but those with a message id
    (a redelivery is still known) or an actor, those that an output or a dead letter points to, and the inputs that
    these were decided for. Its snapshot has an empty fingerprint.

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

    @property
    def takes(self) -> int | None:
        """The inbox position whose turn it must be, if any."""
        if self.consumes is None and self.releases and self.expected_version is not None:
            return self.releases[0]
        return self.consumes


class Committed(Struct, frozen=True, gc=False):
    """The unit is durable. `key` is the store's key of the instance (0 if untouched), `positions` those of `accepts`.

    `unclaimed` are those positions that were to be claimed and are not: inputs that this worker does not hold wait
    before them, or it is known no longer. Whoever steps them now would step them before their turn.

    >>> Committed(7).positions
    ()
    """

    key: int
    positions: tuple[int, ...] = ()
    unclaimed: tuple[int, ...] = ()


class Conflict(Struct, frozen=True, gc=False):
    """The unit was not applied, because somebody else was first.

    `version`: the instance has another version. `inbox`: inputs wait before this one, or the input was consumed.
    `lost`: an output to be settled is not (or no longer) this worker's.

    >>> Conflict("version").reason
    'version'
    """

    reason: ConflictReason


class Duplicate(Struct, frozen=True, gc=False):
    """The unit was not applied, because its input is there already. `same` tells whether type and body are equal.

    >>> Duplicate(same=True).same
    True
    """

    same: bool


Outcome: TypeAlias = Committed | Conflict | Duplicate | Refused | Unmet


class InstanceRow(Struct, frozen=True, gc=False):
    """The row of an instance. `context` is that of the input that began it.

    With `purged_us` it is a tombstone: the stream is gone, and nothing can move the instance or begin it anew.

    >>> InstanceRow(7, "W", "i", 3, "running", "Waiting", None, 1, b"{}", 0, 0).version
    3
    """

    key: int
    workflow: str
    id: str
    version: int
    status: Status
    state: str | None
    error: str | None
    definition_version: int
    context: bytes
    created_us: int
    updated_us: int
    purged_us: int | None = None

    @property
    def position(self) -> int:
        """That of the last event in its stream."""
        return self.version

    @property
    def workflow_version(self) -> int:
        """The version of its workflow under which it runs."""
        return self.definition_version


class Loaded(Struct, frozen=True, gc=False):
    """All that is needed to fold an instance: its row, a snapshot perhaps, and the events behind it.

    >>> Loaded(InstanceRow(7, "W", "i", 0, "running", None, None, 1, b"{}", 0, 0), None, []).events
    []
    """

    row: InstanceRow
    snapshot: Snapshot | None
    events: list[EventRow]


class Cause(Struct, frozen=True, gc=False):
    """Which input an output was decided for, as its event says: its id, or else the output that it answered.

    >>> Cause("m-1", "command", None).message_id
    'm-1'
    """

    message_id: str | None
    kind: str | None
    cause: int | None


class OutputClaim(Struct, frozen=True, gc=False):
    """An output in a worker's hands, with the message to carry out.

    `cause` is the input that it was decided for, where its event names one; `context` that of the last input up to it
    that has one of its own; `error` that of its last attempt, if that failed.

    >>> OutputClaim(OutputKey(7, 3), "W", "i", "send", "Charge", 0, 0, 0, "Charge", 1, b"{}", None, b"{}").attempts
    0
    """

    output: OutputKey
    workflow: str
    instance: str
    kind: OutputKind
    destination: str
    attempts: int
    due_us: int
    priority: int
    type: str
    type_version: int
    body: bytes
    detail: bytes | None
    context: bytes
    cause: Cause | None = None
    error: str | None = None


class Claims(Struct, frozen=True, gc=False):
    """What a claim brought: outputs to carry out, inputs to step, and when the next thing is due, if any is known.

    `posted` says that messages wait which programs have written in transactions of their own, for `relay`.

    >>> Claims([], [], None).next_due_us is None
    True
    """

    outputs: list[OutputClaim]
    inputs: list[InputRow]
    next_due_us: int | None
    posted: bool = False


class Relayed(Struct, frozen=True, gc=False):
    """How many posted messages were moved into inboxes, and those of them that became dead letters instead.

    >>> Relayed(0).letters
    ()
    """

    count: int
    letters: tuple[DeadLetter, ...] = ()


class Stats(Struct, frozen=True, gc=False):
    """Depths and ages, for people and for scaling.

    >>> Stats({}, 0, 0, 0, 0, None, 0).inbox
    0
    """

    instances: dict[str, int]
    inbox: int
    outbox: int
    timers: int
    dead_letters: int
    oldest_due_us: int | None
    workers: int


class InstanceFilter(Struct, frozen=True, gc=False):
    """Which instances to list; every field narrows.

    `error` is a part of the error's text as it is stored: where that is sealed, of its kind. Times begin with `from`
    and end before `to`.

    >>> InstanceFilter(status="suspended").workflow is None
    True
    """

    workflow: str | None = None
    status: Status | None = None
    state: str | None = None
    id_prefix: str | None = None
    error: str | None = None
    created_from_us: int | None = None
    created_to_us: int | None = None
    updated_from_us: int | None = None
    updated_to_us: int | None = None
    attributes: tuple[AttributeFilter, ...] = ()
    workflow_version: int | None = None
