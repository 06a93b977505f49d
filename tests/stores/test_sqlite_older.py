"""A worker of an older release goes on for a while after an upgrade: what it writes is believed."""

import asyncio
from pathlib import Path
from typing import Any

import apsw
import pytest

from mainspring.port.records import OutputKey, Retry, Unit
from mainspring.testing.store_contract.rig import order, send, step
from tests.stores.sqlite_support import NAME, elsewhere, opened

# As releases before the checksums of these rows have written them, and what is read of it.
OLDER: dict[str, tuple[str, dict[str, Any]]] = {
    "a step": (
        "UPDATE instances SET version = 3, status = 'running', state = 'Old', error = NULL, updated_us = 5",
        {"version": 3, "status": "running", "state": "Old", "updated_us": 5},
    ),
    "a renewal": (
        "UPDATE instances SET definition_version = 2, context = CAST('{}' AS BLOB)",
        {"definition_version": 2, "context": b"{}"},
    ),
    "a retry": (
        "UPDATE outbox SET owner = NULL, due_us = 7, attempts = 3, last_error = 'refused'",
        {"due_us": 7, "attempts": 3, "error": "refused"},
    ),
    "a purge": (
        "UPDATE instances SET purged_us = 9, state = NULL, error = NULL, context = CAST('{}' AS BLOB)",
        {"state": None, "error": None, "context": b"{}"},
    ),
}


@pytest.mark.parametrize(("statement", "written"), OLDER.values(), ids=OLDER.keys())
def test_what_an_older_release_writes_is_no_damage(statement: str, written: dict[str, Any], tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            await store.commit(0, [step("m-1", send())])
            elsewhere(tmp_path, f"connection.execute({statement!r})", triggers=True)
            (loaded,) = await store.load([order()])
            (output,) = await store.outputs(None, timers=False, limit=10)
            assert loaded is not None
            read = output if "outbox" in statement else loaded.row
            assert {name: getattr(read, name) for name in written} == written

    asyncio.run(body())


def test_what_this_release_writes_keeps_its_checksums(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path) as store:
            worker = await store.register_worker("first", 30_000_000)
            await store.commit(worker, [step("m-1", send(claimed=True))])
            key = OutputKey(1, 3)
            retry = Retry(key, attempts=1, after_us=5, error="refused")
            await store.commit(worker, [Unit(order().workflow, order().id, retries=(retry,))])
            await store.commit(worker, [step("m-2", after=3)])

    asyncio.run(body())
    connection = apsw.Connection(str(tmp_path / NAME))
    assert connection.execute("SELECT count(*) FROM instances WHERE born IS NULL OR moved IS NULL").get == 0
    assert connection.execute("SELECT count(*), sum(attempts) FROM outbox WHERE checksum IS NOT NULL").get == (1, 1)
