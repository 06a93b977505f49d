"""Memory stores with a bug each, of the kinds that a real store could have: the machine must find them all."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mainspring.port.purges import Purgeable, Purged
from mainspring.port.records import Outcome, Ref, Unit
from mainspring.stores.commit.facts import Name
from mainspring.stores.memory import MemoryStore
from mainspring.testing.clock import VirtualClock
from tests.proof.model.beds import MemoryBed


class OvertakesTheInbox(MemoryStore):
    """Lets a direct step pass inputs that wait."""

    def _commit(self, worker: int, unit: Unit, void: set[Name]) -> Outcome:
        return super()._commit(worker, replace(unit, direct=False), void)


class TakesTwice(MemoryStore):
    """Accepts an input that was stepped before."""

    def _commit(self, worker: int, unit: Unit, void: set[Name]) -> Outcome:
        for row in unit.accepts:
            self._tables.at(Ref(row.workflow, row.instance)).taken.pop(row.message_id, None)
        return super()._commit(worker, unit, void)


class PurgesWhatIsNeeded(MemoryStore):
    """Purges an instance that a dead letter is kept for."""

    def _is_done(self, ref: Ref) -> bool:
        return not (self._tables.at(ref).inbox or self._tables.at(ref).outbox)


class ForgetsHalf(MemoryStore):
    """Says that a unit is committed, and loses what it was to remember."""

    def _commit(self, worker: int, unit: Unit, void: set[Name]) -> Outcome:
        return super()._commit(worker, replace(unit, remembers=()), void)


class LeavesTheFeed(MemoryStore):
    """Shows events of a tombstone while some are left to be removed."""

    async def purge(self, found: Sequence[Purgeable], events: int) -> Purged:
        purged = await super().purge(found, events)
        for one in found:
            instance = self._tables.at(Ref(one.workflow, one.id))
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
