"""The workloads as DBOS workflows: plain functions, their steps decorated, as its documentation writes them."""

from __future__ import annotations

import asyncio
import os
import time
from importlib import import_module
from typing import Any

from bench.peers.shared import Work

# Any: it is installed in an environment of its own, where no type checker looks.
DBOS: Any = import_module("dbos").DBOS

LEDGER = "MAINSPRING_BENCH_LEDGER"

Order = dict[str, Any]

work = Work(os.environ.get(LEDGER))


@DBOS.step()
def validate(order: Order) -> Order:
    return work.do("validate", order)


@DBOS.step()
def charge(order: Order) -> Order:
    return work.do("charge", order)


@DBOS.step()
def ship(order: Order) -> Order:
    return work.do("ship", order)


@DBOS.workflow()
def fulfil(order: Order) -> Order:
    """W1, W2, W5."""
    validate(order)
    charge(order)
    return ship(order)


@DBOS.step()
async def validate_async(order: Order) -> Order:
    return await work.do_async("validate", order)


@DBOS.workflow()
def chain(order: Order, calls: int) -> int:
    """W3."""
    for _ in range(calls):
        validate(order)
    return calls


@DBOS.workflow()
async def fan_out(order: Order, width: int) -> int:
    """W4: steps that run side by side."""
    return len(await asyncio.gather(*[validate_async(order) for _ in range(width)]))


@DBOS.workflow()
async def sleeper(due: float) -> float:
    """W6."""
    await DBOS.sleep_async(max(0.001, due - time.time()))
    return due
