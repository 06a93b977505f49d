"""Real processes, killed: rows of the shop and orders that were carried out are compared afterwards."""
# ruff: noqa: S603  our own processes and tables

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from examples.frameworks.orders import OrderConfirmation, shop
from mainspring import Mainspring
from tests.edges.frameworks.support import connected
from tests.support.paths import ROOT
from tests.support.ports import free_port
from tests.support.waiting import until

PATIENCE_SECONDS: Final = 120
PAUSE_SECONDS: Final = 0.02
"""Between two orders of one caller: the test needs some under way, not many."""
TABLE: Final = "CREATE TABLE IF NOT EXISTS posted_orders (id text PRIMARY KEY, product text)"

POSTING: Final = """
import asyncio, sys, asyncpg
from examples.frameworks.orders import PlaceOrder, shop

async def main(database, name):
    app = shop(f"{database}?schema=crash")
    connection = await asyncpg.connect(database)
    for number in range(10_000):
        async with connection.transaction():
            await connection.execute("INSERT INTO posted_orders VALUES ($1, 'clock')", f"{name}-{number}")
            await app.post(PlaceOrder(f"{name}-{number}", "clock"), connection)

asyncio.run(main(*sys.argv[1:]))
"""
WORKING: Final = """
import asyncio, sys
from examples.frameworks.orders import shop

async def main(database):
    async with shop(f"{database}?schema=crash"):
        await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


def started(code: str, *arguments: str, log: Any = None, **variables: str) -> subprocess.Popen[bytes]:
    """Run a script, or a module, in a group of processes of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, "-c" if "\n" in code else "-m", code, *arguments]
    return subprocess.Popen(command, env=environment, stderr=log, start_new_session=True)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it has started, without a word."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


async def confirmed(app: Mainspring) -> set[str]:
    found = await app.instances(workflow=OrderConfirmation.__name__, limit=20_000)
    return {row.id for row in found if row.status == "completed"}


async def killed_posters(database: str, wanted: int) -> str:
    """Kill programs that post and the worker that takes in: the next worker finds every order, and no other."""
    url = f"{database}?schema=crash"
    async with shop(url) as app, connected(database) as connection:
        await connection.execute(TABLE)
        before = await confirmed(app)
    processes = [started(POSTING, database, f"{len(before)}-{caller}") for caller in "ab"]
    processes.append(started(WORKING, database))
    reader = shop(url)
    await reader.start(work=False)
    try:
        await until(lambda: many(reader, len(before) + wanted), PATIENCE_SECONDS)
    finally:
        for process in processes:
            kill(process)
        await reader.stop()
    async with shop(url) as app, connected(database) as connection:
        rows = {row["id"] for row in await connection.fetch("SELECT id FROM posted_orders")}
        await until(lambda: many(app, len(rows)), PATIENCE_SECONDS)
        assert await confirmed(app) == rows
        assert await app.dead_letters() == []
    return f"{len(rows) - len(before)} orders"


async def many(app: Mainspring, count: int) -> bool:
    return len(await confirmed(app)) >= count


# ---- a real server


@asynccontextmanager
async def serving(folder: Path, *options: str) -> AsyncGenerator[tuple[subprocess.Popen[bytes], httpx.AsyncClient]]:
    """Run the shop in a server of its own, whose log is in a file."""
    port = free_port()
    given = ("examples.frameworks.fastapi_shop:web", "--port", str(port), "--no-access-log", *options)
    with (folder / "log").open("wb") as log:
        process = started("uvicorn", *given, log=log, SHOP_URL=f"sqlite:///{folder / 'shop.db'}")
    try:
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=PATIENCE_SECONDS
        ) as client:
            await until(lambda: answers(client), PATIENCE_SECONDS)
            yield process, client
    finally:
        kill(process)


async def answers(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/openapi.json")).status_code == 200
    except httpx.TransportError:
        return False


async def place(client: httpx.AsyncClient, order: str) -> bool | None:
    """Tell whether an order was taken; None: nobody knows."""
    try:
        answer = await client.post("/orders", json={"order_id": order, "product": "clock"})
    except httpx.TransportError:
        return None
    return answer.status_code == 202


class Load:
    """Places orders, one after the other from each of a few callers, until they are told to stop or meet nobody."""

    def __init__(self, client: httpx.AsyncClient, told: dict[str, bool | None]) -> None:
        self._client = client
        self._told = told
        self._stopped = False
        self._tasks = [asyncio.create_task(self._run(caller)) for caller in range(4)]

    async def _run(self, caller: int) -> None:
        for number in range(len(self._told), 1_000_000):
            order = f"{number}-{caller}"
            self._told[order] = await place(self._client, order)
            if self._stopped or self._told[order] is not True:
                return
            await asyncio.sleep(PAUSE_SECONDS)  # a caller's own pause: nothing is waited for

    async def more(self, count: int) -> None:
        """Wait for so many answers from now on."""
        wanted = len(self._told) + count
        await until(lambda: self._has(wanted), PATIENCE_SECONDS)

    async def _has(self, wanted: int) -> bool:
        return len(self._told) >= wanted or all(task.done() for task in self._tasks)

    async def stop(self) -> None:
        """Place no more orders."""
        self._stopped = True
        await self.over()

    async def over(self) -> None:
        """Wait until nobody places orders any more."""
        await asyncio.gather(*self._tasks)


async def killed_server(folder: Path, wanted: int, *, reload: bool) -> str:
    """Stop a server under load and kill the next one: what was acknowledged is confirmed in the end.

    With `reload` the first one is a server for development, and is loaded anew before it is stopped.
    """
    told: dict[str, bool | None] = {}
    changed = folder / "changed.py"
    changed.write_text("")
    os.utime(changed, (1, 1))
    options = ("--reload", "--reload-dir", str(folder)) if reload else ()
    async with serving(folder, *options) as (process, client):
        load = Load(client, told)
        await load.more(wanted)
        if reload:
            changed.touch()
            await until(lambda: reloaded(folder / "log"), PATIENCE_SECONDS)
            await load.stop()
            # Whoever was cut off has gone; the server that was loaded anew takes more.
            load = Load(client, told)
            await load.more(wanted)
        process.terminate()
        await load.over()
        assert await asyncio.to_thread(process.wait, PATIENCE_SECONDS) in (0, -signal.SIGTERM)
    async with serving(folder) as (process, client):
        load = Load(client, told)
        await load.more(wanted)
        kill(process)
        await load.over()
    return await compare(f"sqlite:///{folder / 'shop.db'}", told)


async def reloaded(log: Path) -> bool:
    return log.read_text().count("Application startup complete") == 2  # noqa: ASYNC240  a few lines


async def compare(url: str, told: dict[str, bool | None]) -> str:
    """Let what is left be done, and see that rows, orders and what callers were told go together."""
    async with shop(url) as app:
        async with app.transaction() as transaction:
            rows = {row["id"] for row in await transaction.fetch("SELECT id FROM shop_orders")}
        await until(lambda: many(app, len(rows)), PATIENCE_SECONDS)
        assert await confirmed(app) == rows
    taken = {order for order, taken in told.items() if taken}
    assert taken <= rows <= {order for order, taken in told.items() if taken is not False}
    return f"{len(taken)} orders acknowledged, {len(told) - len(taken)} cut off"
