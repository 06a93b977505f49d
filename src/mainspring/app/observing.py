"""What an app reports about itself: turned on by code or by the environment, and measured when it is read."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from mainspring.app.services import Source
from mainspring.engine.fleet.unread import unread_of
from mainspring.engine.handlers.runner import Runner
from mainspring.engine.observer import Observer
from mainspring.engine.runtime import Runtime
from mainspring.errors import SettingError, told
from mainspring.logs import Quoted, logger
from mainspring.port.records import EDGE, InstanceFilter, Stats
from mainspring.telemetry.instruments import Instruments
from mainspring.telemetry.telemetry import PARTS, Telemetry

if TYPE_CHECKING:
    from mainspring.app.internals import Internals

VARIABLE: Final = "MAINSPRING_TELEMETRY"
LOOK_SECONDS: Final = 5.0
"""For so long the last look at the database is reused, or for so many times as long as the look took."""
LOOK_SHARE: Final = 20
METER_SECONDS: Final = 15.0
SELDOM_SECONDS: Final = 60.0
OUTPUTS_LOOKED_AT: Final = 1_000
OVERDUE_LOOKED_AT: Final = 1_000
SOURCE_OUTCOMES: Final = ("accepted", "duplicates", "skipped", "undelivered")
_MICROSECOND: Final = timedelta(microseconds=1)

log = logger("mainspring.telemetry")


def telemetry_of_environment() -> Telemetry | None:
    """Return what MAINSPRING_TELEMETRY asks for: some of traces, metrics, meter and logs, separated by commas."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if unknown := [part for part in parts if part not in PARTS]:
        raise SettingError(VARIABLE, text, f"It knows no {unknown[0]}: name some of {', '.join(PARTS)}, with commas.")
    return Telemetry(**dict.fromkeys(parts, True))  # pyright: ignore[reportArgumentType]  PARTS names only these


class Looks:
    """Looks at how much there is of everything, when it is read and not more often than is cheap."""

    def __init__(self, internals: Internals) -> None:
        self._internals = internals
        self._looking: asyncio.Task[None] | None = None
        self._next_us = 0
        self._seldom_us = 0
        self._seen_us: int | None = None

    @property
    def _instruments(self) -> Instruments:
        telemetry = self._internals.telemetry
        assert telemetry is not None and telemetry.instruments is not None  # noqa: PT018, S101  only asked for with instruments
        return telemetry.instruments

    def begin(self) -> None:
        """Begin to count; and look now and then for OpenTelemetry's meter, which cannot wait when it reads."""
        self._next_us = self._seldom_us = 0
        self._looking = None
        telemetry, runtime = self._internals.telemetry, self._internals.engine.runtime
        if telemetry is not None and telemetry.instruments is not None:
            # From nothing, a counter has no increase: alerts would miss the first.
            telemetry.instruments.takeovers.add((), 0)
            for workflow in (*self._internals.registry.workflows, EDGE):
                telemetry.instruments.buried.add((workflow,), 0)
        # A simulation of the app has a runtime of its own, which is not observed.
        if telemetry is not None and telemetry.meters and runtime.observer is not None:
            runtime.every(METER_SECONDS, self.look, "mainspring-meter")

    async def look(self) -> None:
        """Let the gauges be as new as they can be. Many readers at once share one look."""
        self._look_at_this_process()
        if self._now_us() >= self._next_us:
            if self._looking is None or self._looking.done():
                self._looking = self._internals.engine.runtime.spawn(self._look_at_the_database(), "mainspring-look")
            await asyncio.shield(self._looking)
        if self._seen_us is not None:
            self._instruments.depths_age.set({(): (self._now_us() - self._seen_us) / 1e6})

    async def _look_at_the_database(self) -> None:
        begun_us = self._now_us()
        try:
            self._take(await self._internals.engine.store.stats())
            self._instruments.instances.set(await self._internals.engine.store.tally())
            if begun_us >= self._seldom_us:
                self._seldom_us = begun_us + int(SELDOM_SECONDS * 1e6)
                await self._look_for_what_is_wrong()
            self._seen_us = begun_us
        except Exception as error:  # noqa: BLE001  the database may be away: what was seen last is reported, and its age
            log.warning("the database cannot be looked at for metrics: %s", Quoted(told(error)))
        took_us = self._now_us() - begun_us
        self._next_us = begun_us + max(int(LOOK_SECONDS * 1e6), LOOK_SHARE * took_us)
        self._instruments.source_lag.set(await self._lags())

    def _take(self, stats: Stats) -> None:
        told, now_us = self._instruments, self._internals.engine.store.now_us()
        told.inbox.set({(): stats.inbox})
        told.outbox.set({(): stats.outbox})
        told.timers.set({(): stats.timers})
        told.dead_letters.set({(): stats.dead_letters})
        told.workers.set({(): stats.workers})
        late_us = 0 if stats.oldest_due_us is None else max(0, now_us - stats.oldest_due_us)
        told.oldest_due.set({(): late_us / 1e6})

    async def _look_for_what_is_wrong(self) -> None:
        """Count what waits for code that this app or no worker has, and what runs longer than its workflow expects."""
        orphans, overdue = await orphans_of(self._internals), await overdue_of(self._internals)
        self._instruments.orphans.set({(type,): count for type, count in orphans.items()})
        self._instruments.overdue.set({(name,): count for name, count in overdue.items()})
        unread: Counter[tuple[str, ...]] = Counter()
        for one in await unread_of(self._internals.engine.store):
            unread[one.label,] += one.count
        self._instruments.unread.set(unread)

    async def _lags(self) -> dict[tuple[str, ...], float]:
        sources = self._internals.services.sources
        # All at once: each may take its time where its broker is away, and the reader waits for all of them.
        lags = await asyncio.gather(*(self._lag(name, source) for name, source in sources.items()))
        return {(name,): lag for name, lag in zip(sources, lags, strict=True) if lag is not None}

    async def _lag(self, name: str, source: Source) -> int | None:
        try:
            return await source.lag()
        except Exception as error:  # noqa: BLE001  a broker that is away does not hide the others
            log.warning("how much waits for the source %s is not known: %s", name, Quoted(told(error)))
            return None

    def _look_at_this_process(self) -> None:
        engine, told = self._internals.engine, self._instruments
        runners = engine.dispatcher.runners
        told.in_hand.set({("commands",): engine.dispatcher.in_hand, ("inputs",): engine.stepper.in_hand})
        told.handler_in_hand.set(_by_handler(runners, lambda runner: runner.in_hand))
        told.breaker_open.set(_by_handler(runners, lambda runner: runner.gate.is_open))
        told.paused.set({(pause.what,): 1 for pause in engine.pauses.pauses})
        hung = engine.runtime.hung
        told.handler_hung.set({(name,): hung.count(name) for name in hung.names()})
        threads = engine.dispatcher.runners.threads_taken
        since_us = None if threads is None else threads.taken_since_us
        told.threads_taken.set({(): 0 if since_us is None else (self._now_us() - since_us) / 1e6})
        figures = [source.figures for source in self._internals.services.sources.values()]
        told.source_messages.values = {
            (each.name, outcome): getattr(each, outcome) for each in figures for outcome in SOURCE_OUTCOMES
        }
        told.source_failing.set({(each.name,): each.state == "failing" for each in figures})

    def _now_us(self) -> int:
        return self._internals.engine.runtime.clock.now_us()


async def orphans_of(internals: Internals) -> dict[str, int]:
    """Return how many commands wait that nothing in this app takes, by their types; among the first thousand."""
    registry, found = internals.registry, dict[str, int]()
    for claim in await internals.engine.store.outputs(None, timers=False, limit=OUTPUTS_LOOKED_AT):
        if not registry.knows(claim.destination) and claim.type not in registry.external:
            found[claim.type] = found.get(claim.type, 0) + 1
    return found


async def overdue_of(internals: Internals) -> dict[str, int]:
    """Return how many instances run longer than their workflow expects, of each that says so; a thousand at most."""
    store, found = internals.engine.store, dict[str, int]()
    for name, entry in internals.registry.workflows.items():
        within = entry.definition.expected_within
        # Where an instance may begin anew its row does not say when it did; `stuck` reads the stream.
        if within is not None and entry.definition.again != "anew":
            before_us = store.now_us() - within // _MICROSECOND
            where = InstanceFilter(workflow=name, status="running", created_to_us=before_us)
            found[name] = len(await store.instances(where, OVERDUE_LOOKED_AT))
    return found


def _by_handler(runners: Iterable[Runner], read: Callable[[Runner], int]) -> dict[tuple[str, ...], float]:
    values: dict[tuple[str, ...], float] = {}
    for runner in runners:  # one function may carry out several types
        name = (runner.handler.name,)
        values[name] = max(values.get(name, 0), read(runner))
    return values


def observing(runtime: Runtime, telemetry: Telemetry | None) -> Telemetry | None:
    """Give a runtime its observer, if something is to be reported. Return what that is.

    >>> observing(Runtime(), None) is None
    True
    """
    if telemetry is not None:
        runtime.observe(Observer(telemetry, runtime.clock.now_us))
    return telemetry
