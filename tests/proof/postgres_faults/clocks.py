"""Workers on machines with the wrong time: leases and timers go by the server's."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import Process
from collections import Counter
from typing import Final

from tests.proof.crash.files import read_lines
from tests.proof.crash.loop import ROOT
from tests.proof.postgres_faults.stage import WORKERS, Stage
from tests.support.waiting import until

BETWEEN: Final = 40
HOUR: Final = 3_600


async def wrong(stage: Stage, rounds: int) -> Counter[str]:
    """Let two more work, one an hour ahead and one an hour behind; one of them is killed, the other stops in order."""
    happened: Counter[str] = Counter()
    for round in range(rounds):
        generations = [WORKERS + 2 * round + 1, WORKERS + 2 * round + 2]
        skewed = [
            await _worker(stage, generation, seconds)
            for generation, seconds in zip(generations, (HOUR, -HOUR), strict=True)
        ]
        try:
            await until(lambda: _all_work(stage, generations))  # noqa: B023  it is awaited here
            await stage.client.more(BETWEEN)
        finally:
            stage.chance.shuffle(skewed)
            skewed[0].kill()
            skewed[1].send_signal(signal.SIGTERM)
            codes = [await process.wait() for process in skewed]
        happened["workers that stopped in order"] += codes[1] == 0
        happened["workers that were killed"] += codes[0] == -signal.SIGKILL
        calls = [line for line in read_lines(stage.place.effects) if line.get("generation") in generations]
        happened["calls of handlers there"] += len(calls)
    return happened


async def _worker(stage: Stage, generation: int, seconds: int) -> Process:
    with stage.place.log.open("ab") as log:
        arguments = ("-m", "tests.proof.postgres_faults.skewed", str(stage.folder), str(generation), str(seconds))
        return await asyncio.create_subprocess_exec(sys.executable, *arguments, cwd=ROOT, stdout=log, stderr=log)


def _all_work(stage: Stage, generations: list[int]) -> bool:
    working = {line.get("generation") for line in read_lines(stage.place.effects)}
    return working.issuperset(generations)
