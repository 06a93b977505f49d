"""A small shop: rows of its own beside the messages that it sends."""
# ruff: noqa: S608  the tables' names are the test's own

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
import httpx

from mainspring import Complete, Decisions, Event, Mainspring, Workflow
from mainspring.stores.postgres.address import Address


@dataclass(frozen=True)
class Place:
    order: str
    amount: int = 1


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class Placed:
    order: str


class Orders(Workflow[Place, New, Placed]):
    """Every order is an instance that ends with its only message."""

    initial_state = New()

    def route(self, message: Place) -> str | None:
        return message.order or None

    def decide(self, message: Place, state: New) -> Decisions[Place, Placed] | None:
        return [Complete(Placed(message.order))]

    def evolve(self, state: New, event: Event[Place, Placed]) -> New | None:
        return None


class Other(Orders):
    """One more that takes the same message, for what is published."""

    name = "Other"


def shop(url: str, **options: Any) -> Mainspring:
    app = Mainspring(url, **options)
    app.add(Orders())
    return app


def table_of(url: str) -> str:
    """Return the name of the shop's own table: of this process, for a server may have those of others."""
    return f"shop_orders_{os.getpid()}" if url.startswith("postgresql") else "shop_orders"


def dsn_of(url: str) -> str:
    return Address(url).dsn


@asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Any]:
    """Give a connection of the test's own."""
    library: Any = asyncpg
    connection = await library.connect(dsn_of(url))
    try:
        yield connection
    finally:
        await connection.close()


async def execute(url: str, statement: str) -> None:
    async with connected(url) as connection:
        await connection.execute(statement)


async def rows_of(url: str) -> set[str]:
    async with connected(url) as connection:
        return {row["id"] for row in await connection.fetch(f"SELECT id FROM {table_of(url)}")}


async def left_of(url: str) -> int:
    """How much is posted and not taken in."""
    async with connected(url) as connection:
        return await connection.fetchval(f'SELECT count(*) FROM "{Address(url).schema}".posted')


async def orders_of(app: Mainspring) -> set[str]:
    """Return the orders that have completed."""
    found: set[str] = set()
    after = 0
    while page := await app.instances(workflow="Orders", limit=1_000, after=after):
        found |= {row.id for row in page if row.status == "completed"}
        after = page[-1].key
    return found


@asynccontextmanager
async def served(web: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """Run a web app's lifespan, and give a client that asks it in this process, as a server would."""
    async with web.router.lifespan_context(web) as state:

        async def asgi(scope: Any, receive: Any, send: Any) -> None:
            await web({**scope, "state": dict(state or {})}, receive, send)

        transport = httpx.ASGITransport(app=asgi, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client
