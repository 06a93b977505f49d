"""The PostgreSQL store keeps the port's contract, on a real server."""

from pathlib import Path

from mainspring.stores.postgres import PostgresStore
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract import StoreContract
from tests.postgres.server import postgres_url


class TestPostgresStore(StoreContract):
    def make_store(self, clock: VirtualClock, tmp_path: Path) -> PostgresStore:
        return PostgresStore(postgres_url(tmp_path), clock)
