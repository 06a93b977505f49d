"""Databases of the examples, the same every time: their scenes, played on a virtual clock, then written to a file.

The simulator keeps everything in memory. Each of its commits is made once more on a SQLite file, at the same moment by
the same clock, so that streams, times and rows of instances are those of a real database. What still waited at the end
(timers, tasks) is in the streams, but not in the tables of what waits.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from examples.demo.app import HANDLERS
from examples.demo.drive import open_task
from examples.demo.scenes import Answer, Line, Scene, openings, scenes
from mainspring.app.internals import internals_of
from mainspring.engine.handlers.handler import Handler, HandlerOptions
from mainspring.port.records import Committed, InstanceFilter, InstanceRow, Ref, Unit
from mainspring.port.store import Store
from mainspring.stores.sqlite import SqliteStore
from mainspring.testing import simulate
from mainspring.testing.clock import VirtualClock
from mainspring.testing.simulation.world import World
from tests.unit.analysis.example_apps import APPS

SCENES = 160
BETWEEN = timedelta(minutes=7)
EVENTS = 100_000


async def fill(example: str, path: Path) -> None:
    """Play the scenes of an example, and write what came of it to a file."""
    app = APPS[example]
    async with simulate(app) as world:
        _slow_down(world, example)
        for scene in [*openings(), *scenes(SCENES)]:
            if scene.example == example:
                await _play(world, scene)
        await world.advance(days=3)
        await _copy(internals_of(app).engine.store, path)


def _slow_down(world: World, example: str) -> None:
    """Let each handler take its own time: a second for each letter of its name."""
    for function in HANDLERS[example]:
        handler = Handler(function, HandlerOptions())
        world.stub(handler.message_type, function, takes=timedelta(seconds=len(handler.name)))


async def _play(world: World, scene: Scene) -> None:
    instance = ""
    for line in scene.lines:
        match line:
            case Line(message, actor, True):
                instance = str((await world.publish(message, actor=actor))[0])
            case Line(message, actor):
                instance = str(await world.send(message, actor=actor))
            case Answer(message, people, role, refused) if not refused:
                task = await open_task(world.app, instance, line)
                await world.app.tasks.complete(task.id, message, actor=people[0], roles=() if role is None else (role,))
                await world.settle()
        await world.advance(BETWEEN)


async def _copy(memory: Store, path: Path) -> None:
    """Make the commits once more, in the order in which they were made."""
    last = {Ref(row.workflow, row.id): row for row in await memory.instances(InstanceFilter(), EVENTS)}
    feed = await memory.feed(0, EVENTS)
    clock = VirtualClock()
    file = SqliteStore(str(path), clock)
    await file.open()
    keys: dict[Ref, int] = {}
    worker = await file.register_worker("copy", 60_000_000)
    for (ref, time_us), group in groupby(feed, key=lambda fed: (fed[1], fed[2].time_us)):
        rows = tuple(row for _, _, row in group)
        clock.advance_to(time_us)
        unit = _unit(ref, last[ref], rows, keys.get(ref))
        (outcome,) = await file.commit(worker, [unit])
        assert isinstance(outcome, Committed), outcome
        keys[ref] = outcome.key
    await file.release_worker(worker)
    await file.close()


def _unit(ref: Ref, row: InstanceRow, rows: tuple[Any, ...], key: int | None) -> Unit:
    over = rows[-1].version == row.version
    states = [event.state for event in rows if event.state is not None]
    return Unit(
        ref.workflow,
        ref.id,
        key,
        rows[0].version - 1,
        rows,
        row.status if over else "running",
        row.state if over or not states else states[-1],
        row.error if over else None,
        row.definition_version,
        row.context,
    )
