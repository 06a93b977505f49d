"""`python -m tests.crash.worker FOLDER`: a worker that expects to be killed."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import sys
from datetime import timedelta
from pathlib import Path

from mainspring import Context, Mainspring, Retry
from tests.crash.files import Lines, Place, read_lines
from tests.crash.journey import (
    CAPS,
    WOBBLE_BACKOFF,
    WORKFLOWS,
    Despair,
    Leg,
    LegDone,
    Steadied,
    Wave,
    Wobble,
)


class World:
    """What handlers change: a file of effects. They honour their key: an effect that is there is not made again.

    Each call is written down too, so that calls can be held against effects and against each other.
    """

    def __init__(self, path: Path) -> None:
        self._done = {line["effect"] for line in read_lines(path) if "effect" in line}
        self._lines = Lines(path)

    def called(self, context: Context, generation: int) -> None:
        self._lines.add(
            sync=False,
            call=context.idempotency_key,
            attempt=context.attempt,
            type=type(context.envelope.message).__name__,
            causation=context.envelope.causation_id,
            generation=generation,
        )

    def failed(self, context: Context) -> None:
        self._lines.add(sync=False, failed=context.idempotency_key, attempt=context.attempt)

    def make(self, context: Context) -> None:
        key = context.idempotency_key
        if key not in self._done:
            self._done.add(key)
            self._lines.add(effect=key)


class WobblyError(Exception):
    """As expected."""


def app_of(place: Place, generation: int = 0) -> Mainspring:
    """Return the app, with handlers that write down what they do."""
    app = Mainspring(f"sqlite:///{place.database}")
    app.add(*WORKFLOWS.values())
    world = World(place.effects)

    @app.handler
    async def walk(command: Leg, context: Context) -> LegDone:
        world.called(context, generation)
        await asyncio.sleep(random.random() * 0.01)  # noqa: S311  no secret
        world.make(context)
        await asyncio.sleep(random.random() * 0.005)  # noqa: S311  no secret
        return LegDone(command.journey, command.leg)

    @app.handler(retry=Retry(max_attempts=CAPS["Wobble"], first=WOBBLE_BACKOFF), breaker=None)
    async def wobble(command: Wobble, context: Context) -> Steadied:
        world.called(context, generation)
        if context.attempt == 1:
            world.failed(context)
            raise WobblyError
        world.make(context)
        return Steadied(command.journey)

    @app.handler(retry=Retry(max_attempts=CAPS["Despair"], first=timedelta(milliseconds=5)), breaker=None)
    async def despair(command: Despair, context: Context) -> None:
        world.called(context, generation)
        world.failed(context)
        raise WobblyError

    @app.handler
    def wave(command: Wave, context: Context) -> None:
        world.called(context, generation)
        world.make(context)

    return app


async def work(place: Place, generation: int) -> None:
    """Work until asked to stop."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with app_of(place, generation):
        await stop.wait()


if __name__ == "__main__":
    # What is expected (a despair that gives up) is logged as an error; what is not comes as a traceback.
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s worker %(levelname)s %(message)s")
    asyncio.run(work(Place(Path(sys.argv[1])), int(sys.argv[2])))
