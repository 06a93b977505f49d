"""Fan-out: how long n children take to start, to end, and to be joined into one input of their parent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from bench.checks import NotDoneError, all_completed
from bench.measure import Figures, Meter, rss_mb
from bench.settings import Settings
from mainspring import ChildFailed, Complete, Decisions, Event, FanOut, Mainspring, Workflow
from mainspring.app.internals import internals_of

WAIT_SECONDS = 600.0
POLL_SECONDS = 0.005


@dataclass(frozen=True)
class SumSquares:
    id: str
    count: int


@dataclass(frozen=True)
class Square:
    id: str
    number: int


@dataclass(frozen=True)
class Squared:
    number: int


@dataclass(frozen=True)
class AllSquared:
    results: tuple[Squared, ...]
    failures: tuple[ChildFailed, ...]


@dataclass(frozen=True)
class Summed:
    total: int


@dataclass(frozen=True)
class Working:
    pass


class Summing(Workflow[SumSquares | AllSquared, Working, Square | Summed]):
    """The parent: fans out, and sums up what comes back."""

    begins = SumSquares
    initial_state = Working()

    def route(self, message: SumSquares | AllSquared) -> str | None:
        return message.id if isinstance(message, SumSquares) else None

    def evolve(self, state: Working, event: Event[Any, Any]) -> Working | None:
        return None

    def decide(
        self, message: SumSquares | AllSquared, state: Working
    ) -> Decisions[SumSquares | AllSquared, Square | Summed] | None:
        match message:
            case SumSquares(id, count):
                return [FanOut([Square(f"{id}-{n}", n) for n in range(count)], into=AllSquared)]
            case AllSquared(results):
                return [Complete(Summed(sum(result.number for result in results)))]


class Squaring(Workflow[Square, Working, Squared]):
    """The child: one step from its beginning to its end."""

    initial_state = Working()

    def route(self, message: Square) -> str | None:
        return message.id

    def evolve(self, state: Working, event: Event[Any, Any]) -> Working | None:
        return None

    def decide(self, message: Square, state: Working) -> Decisions[Square, Squared] | None:
        return [Complete(Squared(message.number * message.number))]


def run(settings: Settings) -> Figures:
    """Start n children by one FanOut, and wait until their parent has summed up all results."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> Figures:
    app = Mainspring(settings.url)
    app.add(Summing(), Squaring())
    async with app:
        with Meter() as meter:
            receipt = await app.send(SumSquares("s", settings.n))
            async with asyncio.timeout(WAIT_SECONDS):
                summed = await app.instance(Summing, "s").result()
        expected = Summed(sum(n * n for n in range(settings.n)))
        if summed != expected:
            raise NotDoneError(f"{expected} was to come out of {receipt}, and it is {summed}")
        while (await app.stats()).outbox:  # noqa: ASYNC110  nobody signals this: rows are asked
            await asyncio.sleep(POLL_SECONDS)
        await all_completed(app, settings.n + 1)
        committed = {
            "units": internals_of(app).engine.committer.committed,
            "batches": internals_of(app).engine.committer.batches,
        }
    return {**meter.figures(settings.n), **committed, "rss_mb": rss_mb()}
