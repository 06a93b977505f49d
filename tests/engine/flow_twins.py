"""Two styles of one process, as every test of tools takes them: begun, led on, on a database."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mainspring import Mainspring
from mainspring.flows import Flow
from mainspring.testing import World, simulate
from tests.engine import flow_orders
from tests.engine.flow_orders import (
    ByHand,
    Choose,
    ConfirmByHand,
    Confirmed,
    PlaceByHand,
    PlaceOrder,
    Release,
    ReleaseByHand,
    choose,
    fulfil,
    orders,
)
from tests.support.running import run
from tests.support.waiting import until
from tests.unit.analysis.command_line import Ran, command_line

APP = "tests.engine.flow_orders:app"


class Style(NamedTuple):
    """One of the twins."""

    workflow: Any
    name: str
    place: Any
    confirm: Any
    release: Any
    prefix: str
    second: str
    """The second state, or stage."""
    shift: int
    """How many events more the entering of a stage takes."""


FLOW = Style(fulfil, "fulfil", PlaceOrder, Confirmed, Release, "o", "confirmed", 1)
HAND = Style(ByHand, "ByHand", PlaceByHand, ConfirmByHand, ReleaseByHand, "h", "Accepted", 0)

both = pytest.mark.parametrize("style", [FLOW, HAND], ids=["flow", "by hand"])


async def released(app: Mainspring, style: Style, id: str) -> None:
    """Answer the task of an instance, once it was asked."""

    async def asked() -> Any:
        tasks = await app.tasks.list()
        return next((task for task in tasks if f"/{id}/" in task.id), None)

    task = await until(asked)
    await app.tasks.complete(task.id, style.release(id), actor="eve", roles=["lead"])


async def told(app: Mainspring, style: Style, id: str, *events: str) -> None:
    """Wait until an instance has recorded so many events."""
    instance = app.instance(style.workflow, id)

    async def recorded() -> bool:
        return [type(entry.event).__name__ for entry in await instance.stream()][-len(events) :] == [*events]

    await until(recorded)


# ---- in virtual time


@asynccontextmanager
async def world(**settings: Any) -> AsyncGenerator[World]:
    async with simulate(orders(**settings)) as simulated:
        yield simulated


async def placed(world: World, style: Style, id: str, *, until_stage: str = "") -> Any:
    """Begin an instance, and lead it on."""
    await world.send(style.place(id))
    await world.settle()
    if until_stage in ("confirmed", "released"):
        await world.send(style.confirm(id))
        await world.settle()
    if until_stage == "released":
        await released(world.app, style, id)
        await world.settle()
    return world.instance(style.workflow, id)


def kinds(stream: list[Any]) -> list[str]:
    return [type(entry.event).__name__ for entry in stream if type(entry.event).__name__ != "Became"]


# ---- on a database


async def fill(app: Mainspring) -> None:
    """Of each twin one that has completed, one that has failed, one at its timer, one at its task."""
    for style in (FLOW, HAND):
        ids = [f"{style.prefix}-{number}" for number in (1, 2, 3, 4)]
        for id in ids:
            await app.send(style.place(id, 13 if id == ids[1] else 500))
        await told(app, style, ids[1], "Compensating", "Failed")
        for id in (ids[0], ids[3]):
            await told(app, style, id, "Scheduled")
            await app.send(style.confirm(id))
            await told(app, style, id, "Asked")
        await told(app, style, ids[2], "Scheduled")
        await released(app, style, ids[0])
        await told(app, style, ids[0], "Completed")
    await app.send(Choose("q-1", 5))
    await until(lambda: finished(app, choose, "q-1"))


async def finished(app: Mainspring, flow: Flow[Any, Any], id: str) -> bool:
    return (await app.instance(flow, id).row()).status == "completed"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flows") / "orders.db"

    async def body() -> None:
        async with orders(f"sqlite:///{path}") as app:
            await fill(app)

    run(body)
    return path


@pytest.fixture
def url(filled: Path, tmp_path: Path) -> str:
    return f"sqlite:///{shutil.copy(filled, tmp_path)}"


@pytest.fixture
def cli(url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """The command line, on a copy of the database."""
    monkeypatch.setattr(flow_orders, "app", orders(url))
    return lambda *arguments: command_line(APP, *arguments)


Cli = Callable[..., Ran]


def served(url: str, use: Callable[[Mainspring], Awaitable[Any]], *flows: Flow[Any, Any]) -> Any:
    async def body() -> Any:
        app = orders(url, *flows)
        await app.start(work=False)
        try:
            return await use(app)
        finally:
            await app.stop()

    return run(body)
