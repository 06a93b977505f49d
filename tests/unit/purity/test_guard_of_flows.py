"""The guard and a flow: the flow's own loop is let through, what reaches outside is not."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.errors import ImpureCallError
from mainspring.flows import receive, rng, uuid
from mainspring.testing import given

app = Mainspring("memory://")


@dataclass(frozen=True)
class Start:
    id: str


@dataclass(frozen=True)
class GoOn:
    id: str


@app.step
def work(id: str, number: int) -> int:
    return number


@app.flow
async def busy(start: Start) -> list[int]:
    numbers = rng()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work(start.id, number)) for number in range(2)]
        group.create_task(asyncio.sleep(5))  # a timer of the flow
    await asyncio.wait_for(receive(GoOn), 10)
    first: asyncio.Queue[int] = asyncio.Queue()
    await first.put(numbers.randrange(6))
    await asyncio.gather(work(start.id, await first.get()), work(start.id, numbers.randrange(6)))
    assert uuid()
    return [task.result() for task in tasks]


IMPURE: dict[str, tuple[Callable[[], Any], str]] = {
    "time": (time.time, "time.time"),
    "now": (datetime.now, "datetime.now"),
    "random": (random.random, "Random.random"),
    "socket": (socket.socket, "socket.socket.__init__"),
}
chosen = list[str]()


@app.flow
async def peeping(start: Start) -> None:
    IMPURE[chosen[-1]][0]()
    await receive(GoOn)


def test_tasks_timers_and_recorded_randomness_are_let_through() -> None:
    scenario = given(busy, Start("a"), work.returned(0), work.returned(1))

    scenario.when(GoOn("a")).then()


@pytest.mark.parametrize("what", IMPURE)
def test_what_reaches_outside_is_refused_and_named(what: str) -> None:
    chosen.append(what)

    given(peeping).when(Start("a")).then_raises(ImpureCallError, match=IMPURE[what][1])
