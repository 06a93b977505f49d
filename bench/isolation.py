"""Isolation: how long neighbours wait beside a poisoned, a hot and an enormous instance."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from itertools import count

from bench.checks import NotDoneError
from bench.isolation_cases import (
    ENTRIES_PER_STEP,
    LINES,
    Cases,
    Grow,
    Job,
    Note,
    Open,
    Poisoned,
    Poke,
    Stretch,
    Taint,
    isolation_app,
    lines,
)
from bench.measure import Figures, Meter, median, percentiles, rss_mb
from bench.progress import Progress
from bench.settings import Settings
from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.errors import OperationError
from mainspring.port.records import Ref

RATIO_TARGET = 2.0
PASSES = 5
SECONDS = 4.0
# Far below what a worker can do: neighbours wait for the disturbers, and not for each other.
PER_SECOND = 250
# As in n neighbours: so many events has the long stream for each.
EVENTS_EACH = 10
BURST = 3_000
SECONDS_BETWEEN_BURSTS = 1.0
SECONDS_BETWEEN_POKES = 0.01
SECONDS_BETWEEN_INPUTS = 0.02
# Twice a second what is known of a large state is lost, as if 10,000 others had pushed it out of memory.
INPUTS_PER_COLD_STATE = 25
# Of whoever looks whether a job was given up: seldom, for looking is not what disturbs.
POLL_SECONDS = 0.1
WAIT_SECONDS = 600.0

KINDS = ("step", "result")
_Latencies = dict[str, list[float]]


def run(settings: Settings) -> Figures:
    """Send to n neighbours at a steady rate, alone and beside each disturber in turns: the others' p50 and p99."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> Figures:
    app = isolation_app(settings.url)
    with _logged(settings):
        async with app:
            neighbours = Neighbours(app, settings.n)
            disturbers = Disturbers(app, settings.n)
            await neighbours.begin()
            await disturbers.begin()
            with Meter(settings.server_pid) as meter:
                passes = await _passes(neighbours, disturbers)
            await neighbours.check()
            disturbers.check()
    figures = _figures(passes)
    return {**figures, **disturbers.done, **meter.figures(), "rss_mb": rss_mb()}


async def _passes(neighbours: Neighbours, disturbers: Disturbers) -> list[dict[str, tuple[_Latencies, _Latencies]]]:
    """Return the latencies of each pass: for each disturber those without it, and then those beside it."""
    passes: list[dict[str, tuple[_Latencies, _Latencies]]] = []
    progress = Progress("isolation, disturbers met", PASSES * len(disturbers.by_name))
    for number in range(PASSES):
        met: dict[str, tuple[_Latencies, _Latencies]] = {}
        for at, (name, disturber) in enumerate(disturbers.by_name.items()):
            progress.at(number * len(disturbers.by_name) + at)
            alone = await neighbours.latencies()
            async with disturber():
                beside = await neighbours.latencies()
            met[name] = alone, beside
        passes.append(met)
    progress.end()
    return passes


def _figures(passes: list[dict[str, tuple[_Latencies, _Latencies]]]) -> Figures:
    figures: Figures = {}
    for kind in KINDS:
        alone = [percentiles(pair[0][kind]) for met in passes for pair in met.values()]
        figures |= {f"undisturbed_{kind}_{p}": median([found[p] for found in alone]) for p in ("p50_ms", "p99_ms")}
    for name in passes[0]:
        for kind in KINDS:
            pairs = [[percentiles(found[kind]) for found in met[name]] for met in passes]
            for p in ("p50_ms", "p99_ms"):
                figures[f"{name}_{kind}_{p}"] = median([beside[p] for _, beside in pairs])
            ratio = median([beside["p99_ms"] / alone["p99_ms"] for alone, beside in pairs])
            figures[f"{name}_{kind}_p99_ratio"] = round(ratio, 2)
    worst = max(figure for name, figure in figures.items() if name.endswith("_ratio"))
    return {**figures, "worst_p99_ratio": worst, "p99_ratio_target": RATIO_TARGET}


class Neighbours:
    """Instances that are noted and jobs that are done, at a steady rate whatever becomes of those sent before."""

    def __init__(self, app: Mainspring, n: int) -> None:
        self._app = app
        self._n = n
        self._notes = self._jobs = 0

    async def begin(self) -> None:
        """Let there be all of them."""
        progress = Progress("isolation, neighbours", self._n)
        for first in range(0, self._n, 1_000):
            progress.at(first)
            await self._app.send_many([Open(_case(number)) for number in range(first, min(self._n, first + 1_000))])
        progress.end()

    async def latencies(self) -> _Latencies:
        """Return how long each took that was sent in a few seconds: a note to its step, a job to its result."""
        found: _Latencies = {kind: [] for kind in KINDS}
        begun = time.perf_counter()
        async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as sent:
            for number in range(round(SECONDS * PER_SECOND)):
                due = begun + number / PER_SECOND
                await asyncio.sleep(max(0.0, due - time.perf_counter()))  # the rate that is measured at
                sent.create_task(self._job(due, found["result"]) if number % 2 else self._note(due, found["step"]))
        return found

    # From the moment at which it was to be sent: a loop that is held up sends late, and that counts.

    async def _note(self, due: float, found: list[float]) -> None:
        self._notes += 1
        # A step that has no factor in common with n comes to all of them.
        await self._app.send(Note(_case(self._notes * 7_919 % self._n), "leave it at the door"))
        found.append(time.perf_counter() - due)

    async def _job(self, due: float, found: list[float]) -> None:
        self._jobs += 1
        receipt = await self._app.send(Job(f"job-{self._jobs}"))
        await receipt.result()
        found.append(time.perf_counter() - due)

    async def check(self) -> None:
        """Check that each note was stepped once, and each job done."""
        noted = 0
        for number in range(min(self._n, 100)):
            noted += (await self._app.instance(Cases, _case(number)).state()).times
        expected = Counter(sent * 7_919 % self._n for sent in range(1, self._notes + 1))
        if noted != sum(expected[number] for number in range(min(self._n, 100))):
            raise NotDoneError(f"{noted} notes were stepped of those that were sent")
        completed = (await self._app.stats()).instances.get("completed", 0)
        if completed != self._jobs:
            raise NotDoneError(f"{self._jobs} jobs were sent, and {completed} are done")


class Disturbers:
    """What a few instances do to the worker, each for as long as its context lasts. `done` counts it."""

    def __init__(self, app: Mainspring, n: int) -> None:
        self._app = app
        self._n = n
        self._numbers = count()
        self.done: Counter[str] = Counter()
        self.by_name = {"poisoned": self._poisoned, "hot": self._hot, "enormous": self._enormous, "all": self._all}

    async def begin(self) -> None:
        """Make the enormous ones enormous."""
        await self._app.send(Open("hot"))
        await self._app.send(Taint("poisoned"))
        await self._app.send(Poke("poisoned"))
        large = lines(min(LINES, self._n))
        await self._app.send(Stretch("enormous", large))
        events, most = EVENTS_EACH * self._n, ENTRIES_PER_STEP + 1
        progress = Progress("isolation, events", events)
        for first in range(0, events, most):
            progress.at(first)
            await self._app.send(Grow("enormous", large if first == 0 else (), min(most, events - first) - 1))
        progress.end()

    def check(self) -> None:
        """Check that each of them did disturb."""
        missing = {"faults", "poisoned_jobs", "bursts", "cold_folds", "cold_states", "large_steps"} - self.done.keys()
        if missing:
            raise NotDoneError(f"there were no {', '.join(sorted(missing))}")

    @asynccontextmanager
    async def _poisoned(self) -> AsyncGenerator[None]:
        async with _again(self._fault, SECONDS_BETWEEN_POKES), _again(self._failing_job, SECONDS_BETWEEN_POKES):
            yield

    @asynccontextmanager
    async def _hot(self) -> AsyncGenerator[None]:
        async with _again(self._burst, SECONDS_BETWEEN_BURSTS):
            yield

    @asynccontextmanager
    async def _enormous(self) -> AsyncGenerator[None]:
        async with _again(self._cold_fold, SECONDS_BETWEEN_INPUTS), _again(self._large_step, SECONDS_BETWEEN_INPUTS):
            yield

    @asynccontextmanager
    async def _all(self) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for disturber in (self._poisoned, self._hot, self._enormous):
                await stack.enter_async_context(disturber())
            yield

    async def _fault(self) -> None:
        """Let an input fault once more."""
        try:
            await self._app.instance(Poisoned, "poisoned").resume()
        except OperationError:
            return  # it has not come to its fault again yet
        self.done["faults"] += 1

    async def _failing_job(self) -> None:
        """Let a handler fail until its job is given up."""
        job = f"poisoned-{next(self._numbers)}"
        await self._app.send(Job(job))
        while (await self._app.instance_at(f"Jobs/{job}").row()).status == "running":  # noqa: ASYNC110  rows are asked
            await asyncio.sleep(POLL_SECONDS)
        self.done["poisoned_jobs"] += 1

    async def _burst(self) -> None:
        await self._app.send_many([Note("hot", "now!") for _ in range(BURST)])
        self.done["bursts"] += 1

    async def _cold_fold(self) -> None:
        """Take an input in an instance of which only the stream is known."""
        internals_of(self._app).engine.stepper.lanes.forget(Ref("LongStreams", "enormous"))
        await self._app.send(Grow("enormous"))
        self.done["cold_folds"] += 1

    async def _large_step(self) -> None:
        """Take an input in an instance with a large state, of which now and then only a snapshot is known."""
        if self.done["large_steps"] % INPUTS_PER_COLD_STATE == 0:
            internals_of(self._app).engine.stepper.lanes.forget(Ref("LargeStates", "enormous"))
            self.done["cold_states"] += 1
        await self._app.send(Stretch("enormous"))
        self.done["large_steps"] += 1


@asynccontextmanager
async def _again(work: Callable[[], Awaitable[None]], pause_seconds: float) -> AsyncGenerator[None]:
    """Do something again and again while the context lasts, and to its end."""
    over = asyncio.Event()

    async def repeat() -> None:
        while not over.is_set():
            await work()
            await asyncio.sleep(pause_seconds)  # so often, and no more, others are disturbed

    async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as group:
        group.create_task(repeat())
        yield
        over.set()


@contextmanager
def _logged(settings: Settings) -> Generator[None]:
    """Write faults where a worker would, and not between the figures."""
    log = logging.getLogger("mainspring")
    handler = logging.FileHandler(settings.path / "log")
    log.addHandler(handler)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = True
        handler.close()


def section(figures: Figures) -> str:
    """Return a result as a few lines for a report."""
    head = f"## Isolation on {figures['store']}, {figures['n']:,} neighbours"
    table = ["| beside | step p50, p99 ms | ratio of p99 | job p50, p99 ms | ratio of p99 |", "|---|---|---|---|---|"]
    for name in ("undisturbed", "poisoned", "hot", "enormous", "all"):
        cells = [name]
        for kind in KINDS:
            ratio = figures.get(f"{name}_{kind}_p99_ratio")
            cells.append(f"{figures[f'{name}_{kind}_p50_ms']:.1f}, {figures[f'{name}_{kind}_p99_ms']:.1f}")
            cells.append("1" if ratio is None else f"{ratio:.2f}")
        table.append(f"| {' | '.join(cells)} |")
    worst = figures["worst_p99_ratio"]
    end = f"Worst ratio {worst:.2f}, at most {RATIO_TARGET:g} wanted; medians of {PASSES} passes in turns."
    return "\n".join([head, "", *table, "", end])


def _case(number: int) -> str:
    return f"case-{number}"
