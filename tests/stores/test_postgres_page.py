"""What the page on PostgreSQL says is so: its program runs there, its grants are enough, a restart is survived."""

import asyncio
import re
import runpy
from collections.abc import Generator
from pathlib import Path
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]  it has none
import pytest

from mainspring.errors import StoreError, StoreUnreachableError
from mainspring.stores.postgres import PostgresStore
from tests.support.paths import ROOT
from tests.support.postgres.server import Server, Unavailable
from tests.support.running import run

PAGE = (ROOT / "docs/how-to/postgresql.md").read_text()
PROGRAM = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
OWNER, GRANTS = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def server() -> Generator[Server]:
    try:
        server = Server(settings={"fsync": "off"})
        server.start()
    except Unavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
    yield server
    server.remove()


def url(server: Server, user: str) -> str:
    return f"{server.url.replace('postgres@', f'{user}@')}?schema=orders"


async def as_superuser(server: Server, script: str) -> None:
    library: Any = asyncpg
    connection = await library.connect(server.url)
    await connection.execute(script)
    await connection.close()


def test_the_grants_of_the_page_are_enough_and_needed(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(as_superuser(server, OWNER))
    path = tmp_path / "page.py"
    # The whole program, to the end of an order: by the owner, who makes the tables, then by a worker's user.
    for user, then in (("shop", GRANTS), ("shop_worker", "SELECT 1")):
        path.write_text(PROGRAM.replace("o-1", f"o-{user}"))
        monkeypatch.setenv("SHOP_STORE", url(server, user))
        runpy.run_path(str(path))
        asyncio.run(as_superuser(server, then))

    async def missing() -> None:
        await as_superuser(server, "CREATE ROLE nobody_knows LOGIN; GRANT USAGE ON SCHEMA orders TO nobody_knows")
        with pytest.raises(StoreError, match="not allowed to this user"):
            await PostgresStore(url(server, "nobody_knows")).open()

    run(missing)


def test_a_server_that_is_away_refuses_and_comes_back(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Before it refuses it tries eight times, and waits longer each time.
    for module in ("commit", "session"):
        monkeypatch.setattr(f"mainspring.stores.postgres.{module}.LONGEST_PAUSE_SECONDS", 0.1)
    address = f"{server.url}?schema=away"
    path = tmp_path / "page.py"
    path.write_text(PROGRAM.replace("asyncio.run(main())", ""))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOP_STORE", address)
        page = runpy.run_path(str(path))

    async def body() -> None:
        async with page["app"] as app:
            server.stop()
            with pytest.raises(StoreUnreachableError):
                await app.send(page["PlaceOrder"]("o-1"), id="m-1")
            await asyncio.to_thread(server.start)
            while True:
                try:
                    receipt = await app.send(page["PlaceOrder"]("o-1"), id="m-1")
                    break
                except StoreUnreachableError:
                    await asyncio.sleep(0.05)  # it has been away: the pool waits before it connects again
            await receipt.result()

    run(body)
