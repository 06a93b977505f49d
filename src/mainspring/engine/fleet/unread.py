"""What waits because no worker that runs can read it.

One worker that can is enough, so the workers are asked together: for what each has said that it knows, and for the
instances that it leaves to others. Only what has waited for a minute counts: a deploy takes its time. As long as a
worker runs that has not said what it knows, nothing is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from mainspring.engine.fleet import knowledge, standing
from mainspring.engine.fleet.knowledge import Knowledge
from mainspring.port.records import InputRow, OutputClaim, Ref
from mainspring.port.store import Store
from mainspring.port.workers import WorkerRow

UNREAD_SECONDS: Final = 60.0
OUTPUTS_LOOKED_AT: Final = 1_000

Kind: TypeAlias = Literal["input", "output", "timer", "instance"]


class Unread(Struct, frozen=True):
    """So many messages of a type that wait, or instances of a workflow that wait for one reason, since a time.

    `workflow` is whose inputs, timers or instances they are. `example` is one of the instances.

    >>> Unread("output", "Ride", 1, "", 3, 0).label
    'Ride'
    """

    kind: Kind
    type: str
    version: int
    workflow: str
    count: int
    oldest_us: int
    example: str = ""
    why: str = ""

    @property
    def label(self) -> str:
        """The type, or the workflow of instances."""
        return self.type or self.workflow


class Fleet(Struct, frozen=True):
    """The workers that run: what each knows, and which instances each leaves to others, with the reasons."""

    known: list[Knowledge]
    left: list[dict[Ref, str]]
    now_us: int

    @property
    def before_us(self) -> int:
        """Since before this time something must have waited to count."""
        return self.now_us - int(UNREAD_SECONDS * 1e6)

    def takes(self, claim: OutputClaim) -> bool:
        """Return True if an output is carried out, or not due for long."""
        if claim.due_us >= self.before_us:
            return True
        return any(one.takes(claim.destination, claim.type, claim.type_version) for one in self.known)

    def steps(self, row: InputRow) -> bool:
        """Return True if an input is stepped if its instance can be read, or has not waited for long."""
        return row.time_us >= self.before_us or self.knows(row.workflow, row.type, row.type_version)

    def knows(self, workflow: str, type: str, version: int) -> bool:
        """Return True if any worker knows a type of inputs of a workflow."""
        return any(one.steps(workflow, type, version) for one in self.known)

    def leaves(self, ref: Ref) -> str | None:
        """Return why all workers that have its workflow leave an instance to others; None if one does not.

        A worker reports a few only: one that reports as many as it may is taken to leave the others too.
        """
        why: str | None = None
        for one, left in zip(self.known, self.left, strict=True):
            if ref in left:
                why = left[ref]
            elif ref.workflow in one.workflows and len(left) < standing.MOST_TOLD:
                return None
        return why


async def fleet_of(store: Store) -> Fleet | None:
    """Return the workers that run; None where none does, or where one has not said what it knows."""
    now_us = store.now_us()
    return _fleet([row for row in await store.workers() if row.ends_us > now_us], now_us)


def _fleet(workers: Sequence[WorkerRow], now_us: int) -> Fleet | None:
    known = [found for row in workers if (found := knowledge.read(row.knows)) is not None]
    if not workers or len(known) < len(workers):
        return None
    told = (standing.read(row.standing).left for row in workers)
    return Fleet(known, [{Ref(one.workflow, one.id): one.why for one in left} for left in told], now_us)


async def unread_of(store: Store) -> list[Unread]:
    """Return what no worker that runs can read and that has waited for a minute, by kind and type.

    Of outputs and timers the next due are looked at: what no worker takes comes to stand among them.
    """
    fleet = await fleet_of(store)
    if fleet is None:
        return []
    inputs = [
        Unread("input", one.type, one.type_version, one.workflow, one.count, one.oldest_us)
        for one in await store.waiting(fleet.before_us)
        if not fleet.knows(one.workflow, one.type, one.type_version)
    ]
    outputs = await store.outputs(None, timers=False, limit=OUTPUTS_LOOKED_AT)
    timers = await store.timers(OUTPUTS_LOOKED_AT)
    return [
        *inputs,
        *_counted("output", (claim for claim in outputs if not fleet.takes(claim))),
        *_counted("timer", (claim for claim in timers if not fleet.takes(claim))),
        *await _instances(store, fleet),
    ]


def _counted(kind: Kind, claims: Iterable[OutputClaim]) -> Iterable[Unread]:
    found: dict[tuple[str, int, str], list[int]] = {}
    for claim in claims:
        # A timer belongs to its workflow; a command may come from anywhere.
        workflow = claim.workflow if kind == "timer" else ""
        found.setdefault((claim.type, claim.type_version, workflow), []).append(claim.due_us)
    for (type, version, workflow), due in sorted(found.items()):
        yield Unread(kind, type, version, workflow, len(due), min(due))


async def _instances(store: Store, fleet: Fleet) -> list[Unread]:
    """Return those that are left to others and for which something waits, by workflow and reason."""
    found: dict[tuple[str, str], list[tuple[int, str]]] = {}
    refs = {ref: why for left in fleet.left for ref in left if (why := fleet.leaves(ref)) is not None}
    for ref, why in list(refs.items())[: standing.MOST_TOLD]:
        waiting = await store.inbox(ref, 1)
        if waiting and waiting[0].time_us < fleet.before_us:
            found.setdefault((ref.workflow, why), []).append((waiting[0].time_us, str(ref)))
    return [
        Unread("instance", "", 1, workflow, len(refs), min(refs)[0], min(refs)[1], why)
        for (workflow, why), refs in sorted(found.items())
    ]
