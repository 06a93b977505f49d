"""The SQLite store keeps the port's contract, on a real file."""

from pathlib import Path

from mainspring.stores.sqlite import SqliteStore
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract import StoreContract


class TestSqliteStore(StoreContract):
    def make_store(self, clock: VirtualClock, tmp_path: Path) -> SqliteStore:
        return SqliteStore(tmp_path / "mainspring.db", clock)
