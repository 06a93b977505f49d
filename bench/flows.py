"""Flows beside their twins as decide and evolve: W1, W3, a re-run, and what an idle one weighs.

    python -m bench.flows sqlite

They run in turns, so that both see the same machine.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import apps
from bench.measure import rss_mb
from bench.workflows import BeginChain, Charged, Order, Shipped, Validated, order
from mainspring import Mainspring
from mainspring.core.events import InitiatedBy, Occurrence, Received, Sent
from mainspring.core.fold import fold
from mainspring.flows import receive
from mainspring.flows.flow import run_of
from mainspring.testing.envelopes import EPOCH

ROUNDS = 3
ORDERS = 1_000
CALLS = 1_000
AWAITS = 1_000
IDLE = 1_000


@dataclass(frozen=True)
class Chained:
    id: str
    calls: int


@dataclass(frozen=True)
class Nudge:
    id: str


def flows(url: str) -> Mainspring:
    """Return an app with the twins as flows: fulfil and chain, and idle that waits."""
    app = Mainspring(url)

    @app.step
    async def validate(order: Order) -> Validated:
        return Validated(order.id, "validate", ok=True)

    @app.step
    async def charge(order: Order) -> Charged:
        return Charged(order.id, "charge", ok=True)

    @app.step
    async def ship(order: Order) -> Shipped:
        return Shipped(order.id, "ship", ok=True)

    @app.step
    async def call(number: int, chain: str) -> int:
        return number

    @app.flow(id="id")
    async def fulfil(order: Order) -> None:  # pyright: ignore[reportUnusedFunction]  the app runs it
        await validate(order)
        await charge(order)
        await ship(order)

    @app.flow(id="id")
    async def chain(begin: Chained) -> int:  # pyright: ignore[reportUnusedFunction]  as above
        for number in range(begin.calls):
            await call(number, begin.id)
        return begin.calls

    return app


async def orders_a_second(app: Mainspring, n: int) -> float:
    """Start n orders at once, and wait for all of them."""
    async with app:
        began = time.perf_counter()
        receipts = [
            receipt
            for first in range(0, n, 1_000)
            for receipt in await app.send_many([order(number) for number in range(first, min(n, first + 1_000))])
        ]
        for receipt in receipts:
            await receipt.result()
        return n / (time.perf_counter() - began)


async def calls_a_second(app: Mainspring, begin: BeginChain | Chained, n: int) -> float:
    """Let one instance make n calls, one after the other."""
    async with app:
        began = time.perf_counter()
        await (await app.send(begin)).result()
        return n / (time.perf_counter() - began)


def rerun_ms(awaits: int) -> float:
    """Return how long it takes to run a flow's code again on so many answered awaits."""
    app = Mainspring("memory://")

    @app.step
    async def call(number: int, chain: str) -> int:
        return number

    @app.flow(id="id")
    async def chain(begin: Chained) -> int:
        for number in range(begin.calls):
            await call(number, begin.id)
        return begin.calls

    began: Any = InitiatedBy(Chained("c", awaits + 1))
    stream: list[Occurrence[Any]] = [Occurrence(began, EPOCH, 1, None)]
    for number in range(awaits):
        position = len(stream) + 1
        stream.append(Occurrence(Sent(call.command(number=number, chain="c")), EPOCH, position, None))
        stream.append(Occurrence(Received(call.done(number)), EPOCH, position + 1, position))
    waiting = Sent(call.command(number=awaits, chain="c"))
    stream.append(Occurrence(waiting, EPOCH, len(stream) + 1, None))
    chain.own_type_parameters()
    state = fold(chain, chain.initial_state, stream)
    took = list[float]()
    for _ in range(2 * ROUNDS):
        began = time.perf_counter()
        run = run_of(chain, state)
        took.append(1_000 * (time.perf_counter() - began))
        run.close()
    return statistics.median(took)


def idle_bytes(count: int) -> float:
    """Return what a waiting flow weighs in the cache, beyond its journal."""
    app = Mainspring("memory://")

    @app.flow(id="id")
    async def waits(begin: Chained) -> None:
        await receive(Nudge)

    waits.own_type_parameters()
    states = [
        fold(waits, waits.initial_state, [Occurrence(InitiatedBy(Chained(f"c{number}", 1)), EPOCH, 1, None)])
        for number in range(count)
    ]
    gc.collect()
    before = rss_mb("VmRSS")
    runs = [run_of(waits, state) for state in states]
    after = rss_mb("VmRSS")
    for run in runs:
        run.close()
    return (after - before) * 2**20 / count


def main(store: str) -> None:
    """Print the figures."""
    idle = idle_bytes(IDLE)  # first: later, what others have let go is used again, and nothing seems to grow
    figures: dict[str, list[float]] = {"w1": [], "w1 flow": [], "w3": [], "w3 flow": []}
    for round in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            urls = ["memory://"] * 4 if store == "memory" else [f"sqlite:///{Path(folder)}/{n}.db" for n in range(4)]
            figures["w1"].append(asyncio.run(orders_a_second(apps.orders(urls[0]), ORDERS)))
            figures["w1 flow"].append(asyncio.run(orders_a_second(flows(urls[1]), ORDERS)))
            begin = BeginChain(apps.CHAIN_ID, CALLS)
            figures["w3"].append(asyncio.run(calls_a_second(apps.chain(urls[2])[0], begin, CALLS)))
            figures["w3 flow"].append(asyncio.run(calls_a_second(flows(urls[3]), Chained("c", CALLS), CALLS)))
        print(f"round {round + 1}:", {name: round_[-1].__round__() for name, round_ in figures.items()}, flush=True)  # noqa: T201  it is a command
    for name in ("w1", "w3"):
        plain, flow = statistics.median(figures[name]), statistics.median(figures[f"{name} flow"])
        print(f"{name}: {plain:,.0f} a second, as a flow {flow:,.0f}: {flow / plain:.2f}")  # noqa: T201  it is a command
    print(f"a re-run of {AWAITS:,} awaits: {rerun_ms(AWAITS):.2f} ms")  # noqa: T201  it is a command
    print(f"a cached flow that waits: {idle:,.0f} bytes")  # noqa: T201  it is a command


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "sqlite")
