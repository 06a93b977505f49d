"""A flow that uses all of asyncio that it may: tasks, timeouts, queues, groups.

expect: nothing
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from mainspring import Mainspring
from mainspring.flows import Undo, each, now, receive, rng, stage, uuid

app = Mainspring("memory://")


@dataclass(frozen=True)
class Start:
    id: str
    parts: tuple[int, ...] = ()


@dataclass(frozen=True)
class GoOn:
    id: str


@app.step
def fetch(id: str, part: int) -> int:
    return part


@app.step
def give_back(id: str) -> None: ...


async def patiently(id: str) -> int:
    found = await asyncio.wait_for(fetch(id, 1), 10)
    found += await asyncio.shield(asyncio.ensure_future(fetch(id, 2)))
    return found


@app.flow
async def thorough(start: Start) -> int:
    total, seen = 0, []
    queue: asyncio.Queue[int] = asyncio.Queue()
    total += await fetch(start.id, 0).undone_by(give_back(start.id))
    try:
        async with asyncio.timeout(60):
            await receive(GoOn)
    except TimeoutError:
        raise Undo("nobody went on") from None
    stage("going on")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(fetch(start.id, part)) for part in start.parts]
    for task in tasks:
        seen.append(task.result())
        queue.put_nowait(task.result())
    while not queue.empty():
        total += await queue.get()
    total += sum(await each(fetch(start.id, part) for part in start.parts))
    total += await patiently(start.id)
    await asyncio.sleep(rng().randrange(5))  # a timer of the flow
    assert now()
    assert uuid()
    return total
