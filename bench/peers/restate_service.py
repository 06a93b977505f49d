"""The workloads as handlers of a Restate service, as its documentation writes them."""

from __future__ import annotations

import asyncio
import os
import time
from datetime import timedelta
from importlib import import_module
from typing import Any

from bench.peers.shared import STEPS, Work

# Any: it is installed in an environment of its own, where no type checker looks.
restate: Any = import_module("restate")

LEDGER = "MAINSPRING_BENCH_LEDGER"
BIND = "MAINSPRING_BENCH_BIND"

work = Work(os.environ.get(LEDGER))
orders = restate.Service("Orders")


async def fulfil(ctx: Any, order: dict[str, Any]) -> dict[str, Any]:
    """W1, W2, W5."""
    for step in STEPS:
        await ctx.run_typed(step, work.do_async, step=step, placed=order)
    return {"id": order["id"], "ok": True}


async def chain(ctx: Any, asked: dict[str, Any]) -> int:
    """W3."""
    for number in range(asked["n"]):
        await ctx.run_typed(f"call-{number}", work.do_async, step="validate", placed=asked["order"])
    return asked["n"]


async def fan_out(ctx: Any, asked: dict[str, Any]) -> int:
    """W4: steps that run side by side."""
    runs = [
        ctx.run_typed(f"branch-{number}", work.do_async, step="validate", placed=asked["order"])
        for number in range(asked["n"])
    ]
    await restate.gather(*runs)
    return sum([(await run)["ok"] for run in runs])


async def sleeper(ctx: Any, due: float) -> float:
    """W6."""
    await ctx.sleep(timedelta(seconds=max(0.001, due - time.time())))
    return due


for handler in (fulfil, chain, fan_out, sleeper):
    orders.handler()(handler)

app = restate.app(services=[orders])


def main() -> None:
    """Serve as the quickstart does: Hypercorn in this process."""
    config: Any = import_module("hypercorn").Config()
    config.bind = [os.environ[BIND]]
    asyncio.run(import_module("hypercorn.asyncio").serve(app, config))


if __name__ == "__main__":
    main()
