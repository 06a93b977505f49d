"""HTTP: how long each question takes in a full store, and how many messages come in beside a worker."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from msgspec import json

from bench import http_parts
from bench.checks import NotDoneError
from bench.http_parts import CUSTOMERS, LONG, Connection, Served, connected, fill_all, serving
from bench.measure import Figures, Meter, percentiles
from bench.processes import Workers
from bench.settings import Settings
from bench.workflows import order, order_id
from mainspring.port.searches import SEARCHED

P99_MS_TARGET = 50.0
RATE_TARGET = 1_000
SAMPLES = 200
WARM = 5
CONNECTIONS = 32
SECONDS = 10.0
STARTED_SECONDS = 60.0

# What is asked: `{n}` is how many instances there are, `{id}`, `{key}` and `{number}` change with every sample.
READS = {
    "instances, newest first": "instances?newest=true",
    "instances, 1,000 somewhere": "instances?limit=1000&after={key}",
    "by workflow": "instances?workflow=Sleeper&newest=true",
    "by a workflow that has few": "instances?workflow=Ticks",
    "by status": "instances?status=suspended",
    "by a status that few have": "instances?status=completed&newest=true",
    "by id prefix": "instances?prefix={id}",
    "by a prefix that all have": "instances?prefix=order-&newest=true",
    "by a text attribute": "instances?attribute=customer=c-{number}",
    "by a number, few": "instances?attribute=amount%3E={few}",
    "by a number, nearly all": "instances?attribute=amount%3E=10&newest=true",
    "by state": "instances?state=Awake",
    "by error": "instances?error=no+price&newest=true",
    "by time, moved": "instances?since=2999-01-01T00:00:00Z",
    "by time, began": "instances?began_until=1999-01-01T00:00:00Z&newest=true",
    "by several": "instances?workflow=Sleeper&status=running&state=Asleep&attribute=customer=c-{number}",
    "instance": "instances/Sleeper/{id}",
    "stream": "streams/Sleeper/{id}",
    "state": "states/Sleeper/{id}",
    "state at a version": "states/Sleeper/{id}?at=2",
    "waiting": "waiting/Sleeper/{id}",
    "attributes": "attributes/Sleeper/{id}",
    "names of attributes": "attributes",
    "stats": "stats",
    "stuck, of a hundred": "stuck?prefix=order-00001",
    "dead letters": "dead-letters?after={number}",
    "tasks": "tasks",
    "tasks of a role": "tasks?role=boss",
    "timers": "timers",
    "workers": "workers",
}
# In a long stream: what the page of an instance asks first, and while somebody moves through it.
LONG_READS = {
    "long: stream, 200 somewhere": f"streams/{LONG}?limit=200&after={{version}}",
    "long: state": f"states/{LONG}",
    "long: state at a version": f"states/{LONG}?at={{version}}",
    "long: 200 moments at the end": f"moments/{LONG}?limit=200&after={{end}}",
    "long: 200 moments somewhere": f"moments/{LONG}?limit=200&after={{version}}",
    "long: explanation of the last": f"explanations/{LONG}",
}
LONG_SAMPLES = 10
# What is remembered for a while, and takes longer when it is not.
FIRST = ("stats", "stuck, of a hundred")


def run(settings: Settings) -> Figures:
    """Ask each question over HTTP beside n instances, p50 and p99; then send 1,000 messages/s beside a worker."""
    if settings.store != "sqlite":
        raise SystemExit("http measures SQLite: leave --store out.")
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> Figures:
    begun = time.perf_counter()
    await fill_all(settings)
    filled = time.perf_counter() - begun
    with serving(settings) as served:
        figures = await _reads(served, settings.n)
        with Workers(settings, "everything", 1) as workers:
            figures |= await _sends(served, workers)
    return {**figures, "fill_seconds": round(filled, 1)}


# ---- reading


async def _reads(served: Served, n: int) -> Figures:
    figures: Figures = {}
    async with connected(served, 1) as [connection]:
        with Meter(served.pid) as meter:
            for name in FIRST:
                figures[f"first {name} s"] = round((await _timed(connection, READS[name]))[0], 2)
            for name, path in READS.items():
                figures |= await _asked(connection, name, path, n, SAMPLES)
            for name, path in LONG_READS.items():
                figures |= await _asked(connection, name, path, n, LONG_SAMPLES)
            figures["search of all s"] = await _searched(connection, n)
    worst = max(figures[f"{name} p99 ms"] for name in READS)
    return {
        "worst_p99_ms": worst,
        "worst_p99_ms_target": P99_MS_TARGET,
        **figures,
        "reads_others_busy": meter.figures()["others_busy"],
    }


async def _asked(connection: Connection, name: str, path: str, n: int, samples: int) -> Figures:
    for sample in range(WARM):
        await _timed(connection, _path(path, n, samples + sample))
    took = [(await _timed(connection, _path(path, n, sample)))[0] for sample in range(samples)]
    found = percentiles(took)
    return {f"{name} p50 ms": found["p50_ms"], f"{name} p99 ms": found["p99_ms"]}


def _path(path: str, n: int, sample: int) -> str:
    key = sample * 7_919 % n
    long = http_parts.LONG_STREAM
    places = {"version": sample * 971 % long + 1, "end": max(0, long - 240)}
    return path.format(id=order_id(key), key=key, number=sample % CUSTOMERS, few=max(1, n - 50), **places)


async def _timed(connection: Connection, path: str) -> tuple[float, Any]:
    begun = time.perf_counter()
    status, body = await connection.ask("GET", f"/api/{path}")
    took = time.perf_counter() - begun
    if status != 200:
        raise NotDoneError(f"{path} was answered with {status}: {body[:300]!r}")
    return took, body


async def _searched(connection: Connection, n: int) -> float:
    """Return how long it takes to look at all instances, look by look, for what none of them is."""
    begun, after, looks = time.perf_counter(), "", 0
    while True:
        _, body = await _timed(connection, f"instances?state=Nowhere{after}")
        looks += 1
        place = json.decode(body)["next"]
        if place is None:
            break
        after = f"&after={place}"
    if looks <= n // SEARCHED:
        raise NotDoneError(f"{looks} looks cannot have seen {n:,} instances")
    return round(time.perf_counter() - begun, 3)


# ---- sending


async def _sends(served: Served, workers: Workers) -> Figures:
    count = round(RATE_TARGET * SECONDS)
    bodies = [json.encode(order(10_000_000 + number)) for number in range(count)]
    async with connected(served, CONNECTIONS) as connections:
        await _worker_is_there(connections[0], workers.pids[0])
        await asyncio.gather(
            *(_send(each, b"", json.encode(order(20_000_000 + n))) for n, each in enumerate(connections))
        )
        late: list[float] = []
        numbers = iter(range(count))
        begun = time.perf_counter() + 0.1

        async def one_by_one(connection: Connection) -> None:
            for number in numbers:
                due = begun + number / RATE_TARGET
                await asyncio.sleep(max(0.0, due - time.perf_counter()))  # the rate that is measured at
                await _send(connection, f"m-{number}".encode(), bodies[number])
                # From when it was to be sent: one that waits for its turn is late too.
                late.append(time.perf_counter() - due)

        with Meter(served.pid, workers.pids) as meter:
            await asyncio.gather(*(one_by_one(connection) for connection in connections))
    spent = meter.figures(count)
    return {
        "sends_per_s": round(count / (meter.seconds - 0.1), 1),
        "sends_per_s_target": RATE_TARGET,
        **{f"send_{name}": value for name, value in percentiles(late).items()},
        "send_server_cpu_us_each": spent["server_cpu_us_each"],
        "send_worker_cpu_us_each": spent["workers_cpu_us_each"],
        "sends_others_busy": spent["others_busy"],
    }


async def _send(connection: Connection, id: bytes, body: bytes) -> None:
    path = f"/api/messages/Order?id={id.decode()}" if id else "/api/messages/Order"
    status, answer = await connection.ask("POST", path, body)
    if status != 200 or b'"status":"stepped"' not in answer:
        raise NotDoneError(f"a message was answered with {status}: {answer[:300]!r}")


async def _worker_is_there(connection: Connection, pid: int) -> None:
    deadline = time.monotonic() + STARTED_SECONDS
    while True:
        _, body = await _timed(connection, "workers")
        if any(worker["name"].endswith(f":{pid}") for worker in json.decode(body)):
            return
        if time.monotonic() > deadline:
            raise NotDoneError("the worker did not register")
        await asyncio.sleep(0.1)  # another process: it is asked


# ---- the report


def section(figures: Figures) -> str:
    """Return a result as a section for a report."""
    head = f"## HTTP on {figures['store']}, {figures['n']:,} instances"
    table = ["| question | p50 ms | p99 ms |", "|---|---|---|"]
    table += [
        f"| {name} | {figures[f'{name} p50 ms']:.1f} | {figures[f'{name} p99 ms']:.1f} |"
        for name in (*READS, *LONG_READS)
    ]
    first = ", ".join(f"{name} {figures[f'first {name} s']:.1f} s" for name in FIRST)
    end = (
        f"Worst p99 but of the long stream {figures['worst_p99_ms']:.1f} ms, at most {P99_MS_TARGET:g} wanted; "
        f"{SAMPLES} samples each, {LONG_SAMPLES} of the stream of {http_parts.LONG_STREAM:,} events. Asked for the "
        f"first time, where nothing is remembered: {first}. A search through all of them, look by look: "
        f"{figures['search of all s']:.2f} s. Others took {figures['reads_others_busy']:.0%} of the machine meanwhile."
    )
    sent = (
        f"Messages sent through one process beside a worker: {figures['sends_per_s']:,.0f}/s of {RATE_TARGET:,} "
        f"offered, p50 {figures['send_p50_ms']:.1f} ms, p99 {figures['send_p99_ms']:.1f} ms from when each was due; "
        f"{figures['send_server_cpu_us_each']:.0f} µs of CPU each. Others took {figures['sends_others_busy']:.0%}."
    )
    return "\n".join([head, "", *table, "", end, "", sent])
