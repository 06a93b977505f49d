"""Memory stores with a bug each, of the kinds that a real store could have: the machine must find them all."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mainspring.port.preconditions import Unmet
from mainspring.port.purging import Purgeable, Purged
from mainspring.port.records import Committed, Conflict, Duplicate, InputRow, Ref, Unit
from mainspring.port.tasks import Refused
from mainspring.stores.memory import MemoryStore
from mainspring.testing.clock import VirtualClock
from tests.proof.model.beds import MemoryBed


class OvertakesTheInbox(MemoryStore):
    """Lets a direct step pass inputs that wait."""

    def _refusal(self, worker: int, unit: Unit, void: set[Ref]) -> Conflict | Duplicate | Refused | Unmet | None:
        return super()._refusal(worker, replace(unit, direct=False), void)


class TakesTwice(MemoryStore):
    """Accepts an input that was stepped before."""

    def _accept(self, worker: int, row: InputRow, owned: set[Ref]) -> int:
        self._at(Ref(row.workflow, row.instance)).taken.pop(row.message_id, None)
        return super()._accept(worker, row, owned)


class PurgesWhatIsNeeded(MemoryStore):
    """Purges an instance that a dead letter is kept for."""

    def _is_done(self, ref: Ref) -> bool:
        return not (self._at(ref).inbox or self._at(ref).outbox)


class ForgetsHalf(MemoryStore):
    """Says that a unit is committed, and loses what it was to remember."""

    def _apply(self, worker: int, unit: Unit) -> Committed:
        return super()._apply(worker, replace(unit, remembers=()))


class LeavesTheFeed(MemoryStore):
    """Shows events of a tombstone while some are left to be removed."""

    async def purge(self, found: Sequence[Purgeable], events: int) -> Purged:
        purged = await super().purge(found, events)
        for one in found:
            instance = self._at(Ref(one.workflow, one.id))
            if one.key in purged.left and instance.row is not None:
                instance.row = replace(instance.row, purged_us=None)
        return purged


BUGS: tuple[type[MemoryStore], ...] = (
    OvertakesTheInbox,
    TakesTwice,
    PurgesWhatIsNeeded,
    ForgetsHalf,
    LeavesTheFeed,
)


class PlantedBed(MemoryBed):
    """A bed of stores with a bug."""

    def __init__(self, bug: type[MemoryStore]) -> None:
        self._bug = bug

    async def fresh(self, clock: VirtualClock) -> MemoryStore:
        return self._bug(clock)
