"""`python -m tests.engine.worker_process URL LEASE_SECONDS`: a worker to be killed or stopped in its work.

It says `working` when its handler has begun, and `worked` when the handler is told on a line that it may return.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mainspring import Mainspring
from mainspring.engine import engine
from tests.engine.jobs import Done, Work, job


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


async def main(url: str, lease_seconds: float) -> None:
    module: Any = engine
    module.LEASE_SECONDS, module.HEARTBEAT_SECONDS = lease_seconds, lease_seconds / 4

    async def work(command: Work) -> Done:
        say("working")
        await asyncio.to_thread(sys.stdin.readline)
        say("worked")
        return Done(command.id, command.part)

    async with job(Mainspring(url), work):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
