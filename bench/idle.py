"""Idle: what a store full of waiting instances costs a worker with nothing to do, and those who work beside them."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

from msgspec import structs

from bench import apps
from bench.checks import NotDoneError, all_completed
from bench.fill import fill
from bench.measure import Figures, cpu_seconds, median, rss_mb
from bench.processes import Workers
from bench.servers import drop_schema
from bench.settings import Settings
from bench.stored import stored_bytes
from bench.w1 import start_and_finish
from bench.workflows import Asleep, Sleeper, order_id
from mainspring import Mainspring

ASLEEP = timedelta(days=30)
ORDERS = 10_000
PAIRS = 3
SETTLE_SECONDS = 3.0
IDLE_SECONDS = 20.0
# What the figures are to stay below: a worker's CPU, and how much longer W1 may take.
IDLE_CPU_PERCENT = 1.0
W1_TIMES_LONGER = 1.5


def run(settings: Settings) -> Figures:
    """Let n instances wait for a timer far ahead: an idle worker's CPU, and W1 beside them and in an empty store."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> Figures:
    begun = time.perf_counter()
    last_key = await fill(settings, datetime.now(UTC) + ASLEEP)
    fill_seconds = time.perf_counter() - begun
    bytes_each = await stored_bytes(settings) / settings.n
    await check(settings)
    return {
        **await _idle(settings),
        "idle_cpu_percent_target": IDLE_CPU_PERCENT,
        **await _beside(settings, last_key),
        "w1_times_longer_target": W1_TIMES_LONGER,
        "fill_seconds": round(fill_seconds, 1),
        "disk_bytes_per_instance": round(bytes_each),
        "rss_mb": rss_mb(),
    }


async def check(settings: Settings) -> None:
    """Check that the engine reads those that wait as its own."""
    app = apps.everything(settings.url)
    await app.start(work=False)
    try:
        await all_completed(app, 0, waiting=settings.n)
        for number in (0, settings.n // 2, settings.n - 1):
            state = await app.instance(Sleeper, order_id(number)).state()
            if state != Asleep(order_id(number)):
                raise NotDoneError(f"{order_id(number)} is {state}")
    finally:
        await app.stop()


async def _idle(settings: Settings) -> Figures:
    """Return the CPU that a worker takes, and its server, while nothing is due."""
    app = apps.everything(settings.url)
    await app.start(work=False)
    try:
        with Workers(settings, "everything", 1) as workers:
            await workers.ready(app)
            await app.stop()  # nobody but the worker is there
            await asyncio.sleep(SETTLE_SECONDS)  # what is done once at the start is no idling
            watched = {"idle_cpu_percent": workers.pids[0]}
            if settings.server_pid is not None:
                watched["idle_server_cpu_percent"] = settings.server_pid
            before = {name: cpu_seconds(pid) for name, pid in watched.items()}
            begun = time.perf_counter()
            await asyncio.sleep(IDLE_SECONDS)  # what is measured
            seconds = time.perf_counter() - begun
            return {name: round(100 * (cpu_seconds(watched[name]) - before[name]) / seconds, 2) for name in watched}
    finally:
        await app.stop()


async def _beside(settings: Settings, last_key: int) -> Figures:
    """Run W1 in an empty store and beside those that wait, in turns."""
    orders = min(ORDERS, settings.n)
    beside = structs.replace(settings, n=orders)
    alone: list[float] = []
    with_them: list[float] = []
    for number in range(PAIRS):
        alone.append(await _in_empty_store(beside, number))
        with_them.append(await _w1(beside, number * orders, last_key))
        await _check_orders(settings, (number + 1) * orders)
    return {
        "w1_empty_instances_per_s": round(orders / median(alone), 1),
        "w1_beside_instances_per_s": round(orders / median(with_them), 1),
        "w1_times_longer": round(median([b / a for a, b in zip(alone, with_them, strict=True)]), 3),
    }


async def _in_empty_store(settings: Settings, number: int) -> float:
    empty = settings.path / f"empty-{number}"
    empty.mkdir()
    own = structs.replace(settings, folder=str(empty), schema=f"{settings.schema}_{number}")
    try:
        return await _w1(own, 0, 0)
    finally:
        if own.store == "postgres":
            await drop_schema(own)


async def _w1(settings: Settings, first: int, after_key: int) -> float:
    async with apps.everything(settings.url) as app:
        begun = time.perf_counter()
        await start_and_finish(app, settings, first, after_key)
        return time.perf_counter() - begun


async def _check_orders(settings: Settings, orders: int) -> None:
    app: Mainspring = apps.everything(settings.url)
    await app.start(work=False)
    try:
        await all_completed(app, orders, waiting=settings.n)
    finally:
        await app.stop()
