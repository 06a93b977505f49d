"""A sealed store keeps the same contract, on bodies that nobody else can read."""

from pathlib import Path

from mainspring.port.store import Store
from mainspring.sealing import Compressed, Encrypted, Seals, StaticKeys
from mainspring.stores.memory import MemoryStore
from mainspring.stores.sealed import sealed
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract import StoreContract


class TestSealedStore(StoreContract):
    durable = False
    second_handle = False

    def make_store(self, clock: VirtualClock, tmp_path: Path) -> Store:
        seal = Seals([Compressed(least_bytes=1), Encrypted(StaticKeys({"test": bytes(range(32))}))])
        return sealed(MemoryStore(clock), seal)
