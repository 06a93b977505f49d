"""Where the time of a W1 step goes: the CPU time of each stage, apart from what it calls."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from bench.apps import orders
from bench.measure import Figures
from bench.settings import Settings
from bench.w1 import STEPS, start_and_finish
from mainspring.codec import Codec
from mainspring.core import step as core_step
from mainspring.engine.committing.committer import Committer
from mainspring.engine.handlers.runner import Runner
from mainspring.engine.inputs.intake import Envelopes
from mainspring.engine.outputs.dispatcher import Dispatcher
from mainspring.engine.outputs.settlements import Settlements
from mainspring.engine.recording.recorder import Recorder
from mainspring.engine.stepping import stepper as stepping
from mainspring.engine.stepping.step_unit import StepUnits
from mainspring.engine.stepping.stepper import Stepper
from mainspring.stores.sqlite import changes, facts, writer

CALIBRATIONS = 20_000

# Who does it, what it is, and the functions that do it. What a function calls counts where that belongs.
STAGES: tuple[tuple[str, str, tuple[tuple[Any, str], ...]], ...] = (
    ("loop", "route and envelope", ((Envelopes, "envelop"),)),
    ("loop", "lane, cache and queue", ((Stepper, "submit"),)),
    ("loop", "decide", ((core_step, "_decide"),)),
    ("loop", "check and translate", ((core_step, "_check_decisions"), (core_step, "translate"), (stepping, "step"))),
    ("loop", "fold", ((core_step, "evolved"),)),
    ("loop", "encode", ((Codec, "encode"),)),
    ("loop", "rows of events and outputs", ((StepUnits, "_written"), (Recorder, "step_rows"))),
    ("loop", "unit", ((StepUnits, "stepped"),)),
    ("loop", "batch", ((Stepper, "_commit"), (Committer, "_take"))),
    ("loop", "way back", ((Committer, "_report"),)),
    ("loop", "dispatch", ((Dispatcher, "begin"), (Dispatcher, "promise"), (Dispatcher, "capacity"))),
    ("loop", "attempt and result", ((Runner, "_begin"), (Runner, "_report_success"), (Settlements, "result"))),
    ("writer", "check and judge", ((writer, "commit_units"),)),
    ("writer", "rows with checksums", ((changes, "event_values"), (changes, "output_checksum"))),
    ("writer", "SQL", ((facts, "rows"), (changes, "change"), (changes.Ladder, "insert"))),
    ("writer", "COMMIT and fsync", ((writer, "execute"),)),
)


class Stages:
    """Adds up the CPU time of wrapped functions, each without what was wrapped inside of it."""

    def __init__(self) -> None:
        self.own_ns: defaultdict[str, int] = defaultdict(int)
        self.calls: defaultdict[str, int] = defaultdict(int)
        # How many measured functions they called themselves.
        self.called: defaultdict[str, int] = defaultdict(int)
        self._inside = threading.local()

    def wrapped(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        """Return a function that does the same and is measured."""
        clock, inside = time.thread_time_ns, self._inside
        own_ns, calls, called = self.own_ns, self.calls, self.called

        def measured(*values: Any, **named: Any) -> Any:
            outer_ns, outer_calls = getattr(inside, "ns", 0), getattr(inside, "calls", 0)
            inside.ns = inside.calls = 0
            begun = clock()
            try:
                return function(*values, **named)
            finally:
                took = clock() - begun
                own_ns[stage] += took - inside.ns
                calls[stage] += 1
                called[stage] += inside.calls
                inside.ns, inside.calls = outer_ns + took, outer_calls + 1

        return measured

    @contextmanager
    def on(self) -> Generator[None]:
        """Measure the functions of all stages while the context lasts."""
        kept: list[tuple[Any, str, Any]] = []
        for who, stage, functions in STAGES:
            for owner, name in functions:
                function = getattr(owner, name)
                kept.append((owner, name, function))
                setattr(owner, name, self.wrapped(function, f"{who}: {stage}"))
        try:
            yield
        finally:
            for owner, name, function in kept:
                setattr(owner, name, function)


def run(settings: Settings) -> Figures:
    """Run W1 on SQLite as it is and once more with all stages measured, and tell what each costs a step."""
    if settings.store != "sqlite":
        raise SystemExit("profile knows the stages of SQLite's writer only: leave --store out.")
    plain = asyncio.run(_seconds(settings, "plain"))
    stages = Stages()
    with stages.on():
        asyncio.run(_seconds(settings, "measured"))
    steps = STEPS * settings.n
    within_ns, around_ns = _cost_of_measuring()
    figures: Figures = {f"{name.replace(' ', '_')}_us": value for name, value in plain.items()}
    for name, own_ns in stages.own_ns.items():
        cost_ns = within_ns * stages.calls[name] + around_ns * stages.called[name]
        figures[name] = round(max(0.0, own_ns - cost_ns) / steps / 1e3, 2)
    for who in ("loop", "writer"):
        known = sum(value for name, value in figures.items() if name.startswith(f"{who}: "))
        figures[f"{who}: rest"] = round(max(0.0, figures[f"{who}_us"] - known), 2)
    return figures


async def _seconds(settings: Settings, name: str) -> dict[str, float]:
    """Return the microseconds per step of wall time, and of CPU time in the event loop and in all other threads."""
    app = orders(f"sqlite:///{settings.path.absolute() / name}.db")
    async with app:
        wall, loop, all_threads = time.perf_counter(), time.thread_time(), time.process_time()
        await start_and_finish(app, settings)
        wall, loop = time.perf_counter() - wall, time.thread_time() - loop
        all_threads = time.process_time() - all_threads
    each = 1e6 / (STEPS * settings.n)
    return {
        "wall": round(wall * each, 2),
        "loop": round(loop * each, 2),
        "writer": round((all_threads - loop) * each, 2),
    }


def _cost_of_measuring() -> tuple[float, float]:
    """Return how many nanoseconds measuring adds to a function, and to whoever calls it."""
    stages = Stages()
    nothing = stages.wrapped(lambda: None, "nothing")
    begun = time.thread_time_ns()
    for _ in range(CALIBRATIONS):
        nothing()
    took = time.thread_time_ns() - begun
    within = stages.own_ns["nothing"]
    return within / CALIBRATIONS, (took - within) / CALIBRATIONS


def section(figures: Figures) -> str:
    """Return a result as a table for a report."""
    lines = ["| thread | stage | µs per step | of its thread |", "|---|---|---|---|"]
    for who in ("loop", "writer"):
        whole = figures[f"{who}_us"]
        order = [f"{who}: {stage}" for thread, stage, _ in STAGES if thread == who]
        lines += [
            f"| {who} | {name.partition(': ')[2]} | {figures[name]:.1f} | {figures[name] / whole:.0%} |"
            for name in (*order, f"{who}: rest")
        ]
        lines.append(f"| {who} | **all** | **{whole:.1f}** | |")
    head = f"## A step of W1 on SQLite, n = {figures['n']:,}: {figures['wall_us']:.1f} µs of wall time"
    return "\n".join([head, "", *lines])
