"""The shop in four frameworks: an order's row and its message are there together, and the order is confirmed."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Final

import httpx
import pytest
from click.testing import CliRunner

from examples.frameworks import fastapi_shop, flask_shop, orders, starlette_shop
from mainspring import Mainspring
from mainspring.cli.group import commands
from mainspring.frameworks.django.management.commands.mainspring import ADDRESS, Command
from tests.edges.frameworks.support import served
from tests.support.running import run
from tests.support.waiting import until

PATIENCE_SECONDS: Final = 120
ORDER: Final = {"order_id": "o-1", "product": "clock"}


DONE: Final = {"order_id": "o-1", "status": "completed"}


def test_fastapi(tmp_path: Path) -> None:
    async def main() -> None:
        web = fastapi_shop.make(orders.shop(f"sqlite:///{tmp_path / 'shop.db'}"))
        async with served(web) as client:
            assert (await client.get("/orders/o-1")).status_code == 404
            answer = await client.post("/orders", json=ORDER)
            assert (answer.status_code, answer.json()) == (202, {"instance": "OrderConfirmation/o-1"})
            await until(lambda: confirmed(client))
            assert (await client.post("/orders", json=ORDER)).status_code == 409

    run(main)


async def confirmed(client: httpx.AsyncClient) -> bool:
    return (await client.get("/orders/o-1")).text == '{"order_id":"o-1","status":"completed"}'


def test_starlette_with_a_worker_apart(database: str) -> None:
    async def main() -> None:
        app = orders.shop(f"{database}?schema=starlette")
        async with served(starlette_shop.make(app, database)) as client:
            assert (await client.post("/orders", json=ORDER)).json() == {"instances": ["OrderConfirmation/o-1"]}
            # The row is there: so there is no second message.
            assert (await client.post("/orders", json=ORDER)).status_code == 500
            async with orders.shop(f"{database}?schema=starlette") as worker:
                await until(lambda: confirmed(client))
                assert await worker.dead_letters() == []
                assert len(await worker.instances()) == 1

    run(main)


def test_flask(tmp_path: Path) -> None:
    web = flask_shop.make(orders.shop(f"sqlite:///{tmp_path / 'shop.db'}"))
    client = web.test_client()
    try:
        answer = client.post("/orders", json=ORDER)
        assert (answer.status_code, answer.json) == (202, {"instance": "OrderConfirmation/o-1"})
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := client.get("/orders/o-1").json) != DONE:
            assert time.monotonic() < deadline, found
            time.sleep(0.02)  # a test client of Flask blocks: there is no loop to wait in
        assert client.post("/orders", json=ORDER).status_code == 500
    finally:
        web.extensions["mainspring"].stop()


DJANGO = """
import django
django.setup()
from django.core.management import call_command, execute_from_command_line
call_command("migrate", "--run-syncdb", verbosity=0)
call_command("check")
from django.test import Client
from examples.frameworks.django_shop.models import Order
client = Client(raise_request_exception=False)
order = dict(order_id="o-1", product="clock")
print(client.post("/orders", order, content_type="application/json").json()["instances"])
print(client.post("/orders", order, content_type="application/json").status_code, Order.objects.count())
import time
while client.get("/orders/o-1").json()["status"] != "completed":
    time.sleep(0.02)  # another process carries it out: its end has to be looked for
print("confirmed", flush=True)
execute_from_command_line(["manage.py", "mainspring", "show", "o-1"])
"""


def test_django_with_its_own_command_for_a_worker(database: str) -> None:
    environment = {
        **os.environ,
        "SHOP_DATABASE": database,
        "DJANGO_SETTINGS_MODULE": "examples.frameworks.django_shop.settings",
        "PYTHONPATH": str(Path.cwd()),
    }
    asyncio.run(tables(database))
    command = [sys.executable, "-m", "django", "mainspring", "worker"]
    worker = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)  # noqa: S603  ours
    assert worker.stderr is not None
    try:
        done = subprocess.run(  # noqa: S603  ours
            [sys.executable, "-c", DJANGO],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert done.stdout.splitlines()[:1] == ["System check identified no issues (0 silenced)."]
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[1:4] == ["['OrderConfirmation/o-1']", "500 1", "confirmed"]
        assert "OrderConfirmation/o-1" in done.stdout.splitlines()[4]
        # It serves, for the order is confirmed: so it hears signals.
        worker.terminate()
        assert worker.wait(PATIENCE_SECONDS) == 0
        assert "OrderConfirmation, 1 handler" in worker.stderr.read()
    finally:
        worker.kill()
        worker.wait()
        worker.stderr.close()


@pytest.mark.parametrize("words", [["ls"], ["show", "o-1"], ["tasks", "list"]])
def test_every_command_goes_through_djangos_behind_the_app(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    became: list[list[str]] = []
    monkeypatch.setattr(os, "execve", lambda _program, arguments, _environment: became.append(arguments))
    app = orders.shop(f"sqlite:///{tmp_path / 'shop.db'}")
    monkeypatch.setitem(sys.modules, "made", Made("made", app))

    Command().run_from_argv(["manage.py", "mainspring", *words])

    assert became == [[sys.executable, "-m", "mainspring.cli", "--app", ADDRESS, *words]]
    asyncio.run(placed(app))
    ran = CliRunner().invoke(commands, ["--app", "made:app", *became[0][5:]])
    assert ran.exit_code == 0, ran.output
    assert ("o-1" in ran.output) == (words[0] != "tasks")


class Made(ModuleType):
    """A module that has an app."""

    def __init__(self, name: str, app: Mainspring) -> None:
        super().__init__(name)
        self.app = app


async def placed(app: Mainspring) -> None:
    async with app:
        await app.send(orders.PlaceOrder("o-1", "clock"))


async def tables(database: str) -> None:
    """Make mainspring's tables, as the first worker does: the worker of the test may need a while to start."""
    app = orders.shop(database)
    await app.start(work=False)
    await app.stop()
