"""Restate on the workloads: `python -m bench.peers.restate_runs JSON`, in Restate's own environment. See README.md."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from bench.peers.http import Connection
from bench.peers.restate_server import Restate
from bench.peers.shared import (
    REHEARSED,
    STEPS,
    Asked,
    Figures,
    NotDoneError,
    asked,
    disk_bytes,
    effects_of,
    emit,
    end_on_sigterm,
    lead_seconds,
    must,
    order,
    percentiles,
    throughput,
    until,
)

CALLERS = 1_000
SENDERS = 64
LEDGER_POLL_SECONDS = 0.002
# Invoked before the clock runs, in W1 to W4: the service's processes have connected, and the server has its pages.
WARM_UP = 200
FULFIL, CHAIN, FAN_OUT, SLEEPER = ("/Orders/" + name for name in ("fulfil", "chain", "fan_out", "sleeper"))


async def invoke(restate: Restate, path: str, bodies: Sequence[Any], at_once: int) -> list[bytes]:
    """Invoke a handler with each body over so many connections; return the answers, of which none may be a refusal."""
    waiting = list(enumerate(bodies))[::-1]
    answers: list[bytes] = [b""] * len(bodies)
    connections = [await Connection.to(restate.ingress) for _ in range(min(at_once, len(bodies)))]

    async def call(connection: Connection) -> None:
        while waiting:
            number, body = waiting.pop()
            status, answers[number] = await connection.request(path, json.dumps(body).encode())
            if status not in (200, 202):
                raise NotDoneError(f"{path} was answered with {status}: {answers[number][:200]!r}")

    await asyncio.gather(*map(call, connections))
    for connection in connections:
        connection.close()
    return answers


async def warm_up(restate: Restate, n: int) -> int:
    """Let the service do a little, and return how much."""
    count = min(n, WARM_UP)
    await invoke(restate, FULFIL, [order(10**6 + number) for number in range(count)], SENDERS)
    return count


async def w1(run: Asked, restate: Restate) -> Figures:
    n, warm = run.n, await warm_up(restate, run.n)
    orders, empty = [order(number) for number in range(n)], disk_bytes(restate.data)
    begun = time.perf_counter()
    answers = await invoke(restate, FULFIL, orders, CALLERS)
    seconds = time.perf_counter() - begun
    must("answers", [json.loads(answer)["id"] for answer in answers], [placed["id"] for placed in orders])
    _check_done(run, restate, n + warm)
    size = round((disk_bytes(restate.data) - empty) / n)
    return {**throughput(n, seconds), "disk_bytes_per_instance": size, "rss_mb": restate.rss_mb}


async def w2(run: Asked, restate: Restate) -> Figures:
    warm = await warm_up(restate, run.n)
    connection = await Connection.to(restate.ingress)
    took: list[float] = []
    for number in range(run.n):
        body = json.dumps(order(number)).encode()
        begun = time.perf_counter()
        status, _ = await connection.request(FULFIL, body)
        took.append(time.perf_counter() - begun)
        must("status", status, 200)
    connection.close()
    _check_done(run, restate, run.n + warm)
    return {**percentiles(took), "rss_mb": restate.rss_mb}


async def w3(run: Asked, restate: Restate) -> Figures:
    return await _one(run, restate, CHAIN)


async def w4(run: Asked, restate: Restate) -> Figures:
    return await _one(run, restate, FAN_OUT)


async def _one(run: Asked, restate: Restate, path: str) -> Figures:
    warm = await warm_up(restate, run.n)
    begun = time.perf_counter()
    (answer,) = await invoke(restate, path, [{"order": order(0), "n": run.n}], 1)
    seconds = time.perf_counter() - begun
    must("done", json.loads(answer), run.n)
    _check_done(run, restate, warm + 1)
    return {"seconds": round(seconds, 4), "rss_mb": restate.rss_mb}


async def w5(run: Asked, restate: Restate) -> Figures:
    n, ledger = run.n, _ledger(run)
    # Nobody works yet, so that all have been accepted at the kill.
    restate.hold_service()
    await invoke(restate, f"{FULFIL}/send", [order(number) for number in range(n)], SENDERS)
    restate.let_service_go()
    # All are under way together and end soon after each other, so the file is asked often.
    at_kill = await asyncio.to_thread(until, lambda: _shipped(ledger), n // 3, poll_seconds=LEDGER_POLL_SECONDS)
    restate.kill_service()
    if at_kill == n:
        raise NotDoneError("all had completed before the kill")
    begun = time.perf_counter()
    restate.start_service()
    await asyncio.to_thread(until, lambda: _shipped(ledger), n)
    # The server knows of the last results, too.
    await asyncio.to_thread(restate.until_finished)
    seconds = time.perf_counter() - begun
    _check_done(run, restate, n)
    return {
        "seconds": round(seconds, 3),
        "completed_at_kill": at_kill,
        **effects_of(ledger, n),
        "rss_mb": restate.rss_mb,
    }


def _ledger(run: Asked) -> Path:
    return run.path / "effects"


def _shipped(ledger: Path) -> int:
    """Return how many orders have got through their last handler."""
    lines = ledger.read_text().rpartition("\n")[0].splitlines() if ledger.exists() else []
    return len({line for line in lines if line.endswith(STEPS[-1])})


async def w6(run: Asked, restate: Restate) -> Figures:
    n, begun = run.n, time.perf_counter()
    await invoke(restate, f"{SLEEPER}/send", [time.time()] * REHEARSED, SENDERS)
    await asyncio.to_thread(restate.until_finished)
    due = time.time() + lead_seconds(n, time.perf_counter() - begun)
    await invoke(restate, f"{SLEEPER}/send", [due] * n, SENDERS)
    if time.time() >= due:
        raise NotDoneError("they were due before all had been put to sleep")
    must("asleep", restate.unfinished(), n)
    await asyncio.sleep(due - time.time())  # what is measured begins when they are due
    asleep = restate.rss_mb
    await asyncio.to_thread(restate.until_finished)
    late = time.time() - due
    _check_done(run, restate, n + REHEARSED)
    return {"late_s": round(late, 4), "asleep_rss_mb": asleep, "rss_mb": restate.rss_mb}


def _check_done(run: Asked, restate: Restate, n: int) -> None:
    """Check that the server has completed all, and by its own account; without retention it keeps no account."""
    restate.until_finished()
    must("invocations that failed", restate.count("completion_result = 'failure'"), 0)
    if not run.best:
        must("invocations that succeeded", restate.count("completion_result = 'success'"), n)


RUNS: dict[str, Callable[[Asked, Restate], Coroutine[Any, Any, Figures]]] = {
    "w1": w1, "w2": w2, "w3": w3, "w4": w4, "w5": w5, "w6": w6,
}  # fmt: skip


def main(text: str) -> None:
    run = asked(text)
    ledger = _ledger(run) if run.workload == "w5" else None
    with Restate(run, ledger) as restate:
        figures = asyncio.run(RUNS[run.workload](run, restate))
        emit({**figures, "version": restate.version})


if __name__ == "__main__":
    end_on_sigterm()
    try:
        main(sys.argv[1])
    except NotDoneError as reason:
        sys.exit(f"no figure: {reason}")
