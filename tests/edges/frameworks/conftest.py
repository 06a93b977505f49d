"""A schema of mainspring's own for each test, and a table of the shop's beside it."""

import asyncio
import os
from collections.abc import Generator
from urllib.parse import urlsplit

import pytest

from tests.edges.frameworks.support import dsn_of, execute, table_of
from tests.support.postgres.schemas import clean_schema
from tests.support.postgres.server import server_url


@pytest.fixture(scope="session")
def shop_table() -> Generator[str]:
    """Have the shop's table as long as the tests run."""
    server = server_url()
    table = table_of(server)
    asyncio.run(execute(server, f"CREATE TABLE {table} (id text PRIMARY KEY)"))
    yield table
    asyncio.run(execute(server, f"DROP TABLE {table}"))


@pytest.fixture
def url(shop_table: str) -> Generator[str]:
    """Give the URL of an empty schema, with an empty table of the shop's in the same database."""
    with clean_schema() as url:
        asyncio.run(execute(url, f"TRUNCATE {shop_table}"))
        yield url


@pytest.fixture(scope="session")
def database() -> Generator[str]:
    """Give the URL of a database of the tests' own: a shop's tables and mainspring's, both under their usual names."""
    server = server_url()
    name = f"shop_{os.getpid()}"
    asyncio.run(execute(server, f"CREATE DATABASE {name}"))
    yield urlsplit(dsn_of(server))._replace(path=f"/{name}").geturl()
    asyncio.run(execute(server, f"DROP DATABASE {name} WITH (FORCE)"))
