import asyncio
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
import pytest

from mainspring import Mainspring
from mainspring.stores.postgres.address import Address
from tests.engine.jobs import Job, Start, Work
from tests.support.postgres.schemas import Schemas
from tests.support.postgres.server import server_url


@pytest.fixture
def schemas() -> Schemas:
    return Schemas(server_url())


async def begun(url: str) -> int:
    """Begin an instance, and return its key."""
    app = Mainspring(url)
    app.add(Job())
    app.external(Work)
    async with app:
        receipt = await app.send(Start("j-1", 1))
        assert receipt.status == "stepped"
        return (await receipt.row()).key


async def execute(url: str, statement: str) -> None:
    library: Any = asyncpg
    connection = await library.connect(Address(url).dsn)
    await connection.execute(statement.format(schema=Address(url).schema))
    await connection.close()


def test_what_a_test_left_is_not_there_for_the_next(schemas: Schemas) -> None:
    first = schemas.take()
    assert asyncio.run(begun(first)) == 1
    schemas.free.append(first)

    assert schemas.take() == first
    assert asyncio.run(begun(first)) == 1


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE {schema}.own (id bigint)",
        "ALTER TABLE {schema}.events ADD COLUMN own bigint",
        "DROP INDEX {schema}.results_by_expiry",
        "INSERT INTO {schema}.schema_migrations (version, applied_us, name) VALUES (99, 0, 'later')",
        "DROP SCHEMA {schema} CASCADE",
    ],
)
def test_a_schema_that_was_changed_is_used_no_more(change: str, schemas: Schemas) -> None:
    changed = schemas.take()
    asyncio.run(execute(changed, change))
    schemas.free.append(changed)

    assert schemas.take() != changed


def test_a_schema_that_somebody_still_uses_is_not_for_others(schemas: Schemas) -> None:
    used = schemas.take()

    async def main() -> None:
        async with Mainspring(used):
            schemas.free.append(used)
            assert await asyncio.to_thread(schemas.take) != used

    asyncio.run(main())
