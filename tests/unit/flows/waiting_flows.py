"""Flows that wait in every way there is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from mainspring import Mainspring
from mainspring.flows import again, ask, child, each, race, receive

app = Mainspring("memory://")


@dataclass(frozen=True)
class Begin:
    id: str
    card: str = "4111"


@dataclass(frozen=True)
class Confirmed:
    id: str


@dataclass(frozen=True)
class Refused:
    id: str


@dataclass(frozen=True)
class Parcel:
    id: str


@app.step
async def charge(id: str) -> int:
    return len(id)


@app.step
async def pack(number: int) -> int:
    return number


@app.flow(id="id")
async def deep(begin: Begin) -> None:
    price = await charge(begin.id)
    await outer(price)


async def outer(price: int) -> None:
    doubled = 2 * price
    await inner(doubled)


async def inner(doubled: int) -> None:
    text = f"{doubled} cents"
    await receive(Confirmed, Refused)
    assert text


@app.flow(id="id")
async def gathered(begin: Begin) -> None:
    await asyncio.gather(named("a"), named("b"), charge("c"))


async def named(name: str) -> None:
    await charge(name)


@app.flow(id="id")
async def grouped(begin: Begin) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(charge("a"))
        group.create_task(receive(Confirmed))
        group.create_task(named("b"))


@app.flow(id="id")
async def limited(begin: Begin) -> None:
    try:
        async with asyncio.timeout(300):
            await receive(Confirmed)
    except TimeoutError:
        await asyncio.sleep(60)  # a timer of the flow: nothing is slept for


@app.flow(id="id")
async def parcel(parcel: Parcel) -> None:
    await receive(Confirmed)


@app.flow(id="id")
async def shipping(begin: Begin) -> None:
    await child(Parcel(begin.id + "-parcel"), None)


@app.flow(id="id")
async def packing(begin: Begin) -> list[int]:
    return await each(pack(number) for number in range(3))


@app.flow(id="id")
async def asking(begin: Begin) -> None:
    await ask("Release it?", Confirmed, role="lead")


@app.flow(id="id")
async def racing(begin: Begin) -> None:
    await race(charge(begin.id), receive(Confirmed))


@app.flow(id="id")
async def queued(begin: Begin) -> None:
    queue: asyncio.Queue[int] = asyncio.Queue()
    filling = asyncio.create_task(fill(queue))
    await queue.get()
    await filling


async def fill(queue: asyncio.Queue[int]) -> None:
    await queue.put(await charge("a"))


@app.flow(id="id")
async def generating(begin: Begin) -> None:
    async for price in prices():
        assert price


async def prices() -> AsyncGenerator[int]:
    first = "a"
    yield await charge(first)
    second = "bb"
    yield await charge(second)


@dataclass(frozen=True)
class Round:
    id: str
    number: int = 1


@app.flow(id="id")
async def rounds(round: Round) -> None:
    await receive(Confirmed)
    again(Round(round.id, round.number + 1))


class Loud:
    def __repr__(self) -> str:
        return "loud " * 1_000


class Broken:
    def __repr__(self) -> str:
        raise ValueError("not shown")


@app.flow(id="id")
async def holding(begin: Begin) -> None:
    loud, broken, lone = Loud(), Broken(), "\ud800"
    await charge(begin.id)
    assert loud is not broken is not lone


@app.flow(id="id")
async def recursing(begin: Begin) -> None:
    await nested(100)


async def nested(depth: int) -> None:
    await (nested(depth - 1) if depth else charge("deep"))


@app.flow(id="id")
async def crowded(begin: Begin) -> None:
    await asyncio.gather(*(named(str(number)) for number in range(100)))


VERSION = ["charge"]


@app.flow(id="id")
async def drifting(begin: Begin) -> None:
    await (charge(begin.id) if VERSION == ["charge"] else pack(7))
