"""The app of a worker: handlers that write down what they do."""

from __future__ import annotations

import asyncio
import logging
import random
import signal
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

from mainspring import Context, Mainspring, Retry
from mainspring.errors import StoreBusyError, StoreUnreachableError
from mainspring.stores.postgres.clock import DatabaseClock
from tests.proof.crash.files import Lines, Place, read_on
from tests.proof.crash.journey import (
    CAPS,
    WOBBLE_BACKOFF,
    WORKFLOWS,
    Despair,
    Leg,
    LegDone,
    Paid,
    Pay,
    Steadied,
    Wave,
    Wobble,
)

AWAY_SECONDS = 0.1
PAY_SECONDS = 5
PAY_RETRY = Retry(max_attempts=CAPS["Pay"], first=timedelta(milliseconds=20), cap=timedelta(milliseconds=200))

log = logging.getLogger(__name__)


class World:
    """What handlers change: a file of effects. They honour their key: an effect that is there is not made again.

    Each call is written down too, so that calls can be held against effects and against each other.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = Lines(path)
        self._done: set[str] = set()
        self._read = 0

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

    def make(self, context: Context, what: str | None = None) -> None:
        key = context.idempotency_key
        # A worker that was relieved may be at the same command as the one that took over: who is second sees the first.
        with self._lines.alone():
            self._read, news = read_on(self._path, self._read)
            self._done |= {line["effect"] for line in news if "effect" in line}
            if key not in self._done:
                self._lines.add(effect=key, what=what)


class WobblyError(Exception):
    """As expected."""


def app_of(place: Place, generation: int = 0) -> Mainspring:
    """Return the app, with handlers that write down what they do."""
    app = Mainspring(place.url)
    app.add(*WORKFLOWS.values())
    world = World(place.effects)

    @app.handler
    async def walk(command: Leg, context: Context) -> LegDone:
        world.called(context, generation)
        # For so long a kill finds it before its effect, and behind it for half as long.
        await asyncio.sleep(random.random() * 0.01)  # noqa: S311  no secret
        world.make(context)
        await asyncio.sleep(random.random() * 0.005)  # noqa: S311  no secret  # as above
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

    # Its evidence is its table. It keeps no key: that each is paid once is the transaction's doing alone.
    @app.handler(transaction=timedelta(seconds=PAY_SECONDS), retry=PAY_RETRY, breaker=None)
    async def pay(command: Pay, context: Context) -> Paid:
        await context.connection.execute("INSERT INTO payments (command) VALUES ($1)", context.idempotency_key)
        # For so long a kill finds it unfinished.
        await asyncio.sleep(random.random() * 0.002)  # noqa: S311  no secret
        return Paid(command.journey)

    return app


@contextmanager
def clock_watched(place: Place) -> Generator[None]:
    """Write down how far this process may be wrong about the time of its server, for the judge."""
    lines, measured = Lines(place.clocks), DatabaseClock.measured

    def watched(clock: DatabaseClock, database_us: int, sent_us: int, came_us: int) -> None:
        measured(clock, database_us, sent_us, came_us)
        lines.add(sync=False, clock_error_us=round(clock._error_us or 0))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  nobody else needs it

    with patch.object(DatabaseClock, "measured", watched):
        yield


async def started(app: Mainspring, *, work: bool) -> None:
    """Start an app, as often as it takes: a server may be away just now, a file locked by one who was stopped."""
    while True:
        try:
            await app.start(work=work)
        except (StoreUnreachableError, StoreBusyError) as error:
            log.warning("not started yet: %s", error)
            await asyncio.sleep(AWAY_SECONDS)  # until it is tried again
        else:
            return


async def work(place: Place, generation: int, app: Mainspring | None = None) -> None:
    """Work until asked to stop."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    app = app or app_of(place, generation)
    with clock_watched(place):
        await started(app, work=True)
        place.serving(generation).touch()
        await stop.wait()
        await app.stop()
