"""The worker that W5 kills: handlers that take 20 ms and leave a line in a file when they have done their work.

`python -m bench.w5_worker URL FILE N send` sends N orders first. It ends when its input does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path

from bench.workflows import Charge, Charged, Order, Orders, Ship, Shipped, Validate, Validated, order
from mainspring import Context, Mainspring

HANDLER_SECONDS = 0.02
# Without it all orders would go through their handlers side by side and complete in one commit: no third to wait for.
CONCURRENCY = 100


def app(url: str, effects: Path) -> Mainspring:
    made = Mainspring(url)
    made.add(Orders())
    file = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def work(placed: Order, step: str, context: Context) -> None:
        await asyncio.sleep(HANDLER_SECONDS)  # a handler that takes a while
        # One write to a file opened for appending: it is there whole, or not at all, when the process is killed.
        os.write(file, f"{placed.id} {step} {context.idempotency_key}\n".encode())

    @made.handler(concurrency=CONCURRENCY)
    async def validate(command: Validate, context: Context) -> Validated:  # pyright: ignore[reportUnusedFunction]  the app calls it
        await work(command.order, "validate", context)
        return Validated(command.order.id, "validate", ok=True)

    @made.handler(concurrency=CONCURRENCY)
    async def charge(command: Charge, context: Context) -> Charged:  # pyright: ignore[reportUnusedFunction]  the app calls it
        await work(command.order, "charge", context)
        return Charged(command.order.id, "charge", ok=True)

    @made.handler(concurrency=CONCURRENCY)
    async def ship(command: Ship, context: Context) -> Shipped:  # pyright: ignore[reportUnusedFunction]  the app calls it
        await work(command.order, "ship", context)
        return Shipped(command.order.id, "ship", ok=True)

    return made


async def main(url: str, effects: str, n: str, what: str) -> None:
    made = app(url, Path(effects))
    async with made:
        sent = len(await made.send_many([order(number) for number in range(int(n))])) if what == "send" else 0
        sys.stdout.write(f"{sent}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    # That the store is away, or a worker dead, is no news here.
    logging.basicConfig(level=logging.ERROR)
    asyncio.run(main(*sys.argv[1:]))
