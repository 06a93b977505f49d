"""A sealed store keeps the same contract, on bodies that nobody else can read."""

from pathlib import Path

from msgspec.structs import replace

from mainspring.port.records import InstanceFilter
from mainspring.port.store import Store
from mainspring.sealing import Compressed, Encrypted, Seals, StaticKeys
from mainspring.stores.memory import MemoryStore
from mainspring.stores.sealed import sealed
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract import StoreContract
from mainspring.testing.store_contract.rig import Rig, behaviour, step


class TestSealedStore(StoreContract):
    durable = False
    second_handle = False

    def make_store(self, clock: VirtualClock, tmp_path: Path) -> Store:
        seal = Seals([Compressed(least_bytes=1), Encrypted(StaticKeys({"test": bytes(range(32))}))])
        return sealed(MemoryStore(clock), seal)

    @behaviour
    async def test_instances_are_found_by_a_part_of_their_error_and_by_time(self, rig: Rig) -> None:
        """By its kind: what it says is sealed, but read as it was."""
        await rig.done(step("m-1", on="a"))
        await rig.done(replace(step("m-1", on="b"), status="suspended", error="ValueError: card%refused"))
        for part, expected in (("ValueErr", ["b"]), ("card", []), ("refused", [])):
            assert [row.id for row in await rig.store.instances(InstanceFilter(error=part), 10)] == expected
            assert [row.id for row in (await rig.store.search(InstanceFilter(error=part), 10)).rows] == expected
        assert [row.error for row in await rig.store.instances(InstanceFilter(error="ValueError"), 10)] == [
            "ValueError: card%refused"
        ]
