"""A flow that looks at the clock, draws numbers, blocks, and walks through a set.

expect: MS401 MS401 MS401 MS401 MS401 MS401
"""

# Planted bugs.
# ruff: noqa: ASYNC251, S311

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from mainspring import Mainspring
from mainspring.flows import receive

app = Mainspring("memory://")


@dataclass(frozen=True)
class Start:
    id: str
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class GoOn:
    id: str


@app.step
def note(id: str, what: str) -> None: ...


@app.flow
async def impure(start: Start) -> None:
    await note(start.id, datetime.now(UTC).isoformat())
    await note(start.id, str(random.random()))
    time.sleep(0)  # planted
    for tag in start.tags:
        await note(start.id, tag)
    await asyncio.to_thread(print, "hello")
    await receive(GoOn)
