"""What is counted: one set of instruments in plain numbers, which Prometheus and OpenTelemetry read through outlets.

Labels are names that code has (workflows, handlers, message types, outcomes), never those of instances: so many series
there are, and no more. What is beyond a limit all the same is counted together, under `other`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from mainspring.logs import logger

SERIES: Final = 1_000
"""How many label sets of one instrument are kept apart."""
OTHER: Final = "other"
SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
LAG_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3_600.0)
UNITS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0)

log = logger("mainspring.telemetry")

Labels: TypeAlias = tuple[str, ...]
Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Record: TypeAlias = Callable[[float, Mapping[str, str]], None]


class Definition(Struct, frozen=True):
    """What an instrument reports: its name as OpenTelemetry writes it, its unit (UCUM), its labels, and what it means.

    >>> Definition("mainspring.step.duration", "histogram", "s", ("workflow",), "…").prometheus
    'mainspring_step_duration_seconds'
    >>> Definition("mainspring.steps", "counter", "{step}", ("workflow",), "…").prometheus
    'mainspring_steps_total'
    """

    name: str
    kind: Kind
    unit: str
    labels: Labels
    help: str

    @property
    def family(self) -> str:
        """Its name for Prometheus, with the unit, and without what its samples add to it."""
        return self.name.replace(".", "_") + ("_seconds" if self.unit == "s" else "")

    @property
    def prometheus(self) -> str:
        """Its name in a query."""
        return f"{self.family}_total" if self.kind == "counter" else self.family


class Counter:
    """Counts up.

    >>> steps = Counter(Definition("mainspring.steps", "counter", "{step}", ("workflow",), "…"))
    >>> steps.add(("Orders",))
    >>> list(steps.read())
    [(('Orders',), 1)]
    """

    __slots__ = ("definition", "values")

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.values: dict[Labels, int] = {}

    def add(self, labels: Labels = (), count: int = 1) -> None:
        """Add to the count."""
        known = self.values.get(labels)
        if known is None:
            labels = within_series(labels, len(self.values))
            known = self.values.get(labels, 0)
        self.values[labels] = known + count

    def read(self) -> list[tuple[Labels, float]]:
        """Return its values; from any thread."""
        return list(self.values.items())


class Gauge:
    """Says how much there is; a reader has it measured first.

    >>> inbox = Gauge(Definition("mainspring.inbox", "gauge", "{message}", (), "…"))
    >>> inbox.set({(): 3})
    >>> inbox.read()
    [((), 3)]
    """

    __slots__ = ("_values", "definition")

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self._values: dict[Labels, float] = {}

    def set(self, values: Mapping[Labels, float]) -> None:
        """Set all series; those that are not named are removed."""
        bounded: dict[Labels, float] = {}
        for labels, value in values.items():
            kept = within_series(labels, len(bounded))
            bounded[kept] = value if kept is labels else bounded.get(kept, 0) + value
        self._values = bounded

    def read(self) -> list[tuple[Labels, float]]:
        """Return its values; from any thread."""
        return list(self._values.items())


class Cell:
    """One series of a histogram: how many values were up to each bound, and their sum.

    >>> Cell(2, {}).counts
    [0, 0, 0]
    """

    __slots__ = ("attributes", "counts", "sum")

    def __init__(self, bounds: int, attributes: Mapping[str, str]) -> None:
        self.counts = [0] * (bounds + 1)
        self.sum = 0.0
        self.attributes = attributes


class Histogram:
    """Says how values are spread.

    >>> took = Histogram(Definition("mainspring.step.duration", "histogram", "s", ("workflow",), "…"), (0.1, 1.0))
    >>> took.observe(0.25, ("Orders",))
    >>> [(labels, cell.counts, cell.sum) for labels, cell in took.read()]
    [(('Orders',), [0, 1, 0], 0.25)]
    """

    __slots__ = ("bounds", "cells", "definition", "record")

    def __init__(self, definition: Definition, bounds: tuple[float, ...]) -> None:
        self.definition = definition
        self.bounds = bounds
        self.cells: dict[Labels, Cell] = {}
        # OpenTelemetry has no observable histogram: each value is pushed to its listeners.
        self.record: Record | None = None

    def observe(self, value: float, labels: Labels = ()) -> None:
        """Record a value."""
        cell = self.cells.get(labels) or self._cell(labels)
        cell.counts[bisect_left(self.bounds, value)] += 1
        cell.sum += value
        if self.record is not None:
            try:
                self.record(value, cell.attributes)
            except Exception:  # a meter that fails must not stop what it measures
                log.exception("%s is not told to the meter any more", self.definition.name)
                self.record = None

    def _cell(self, labels: Labels) -> Cell:
        labels = within_series(labels, len(self.cells))
        cell = self.cells.get(labels)
        if cell is None:
            cell = self.cells[labels] = Cell(len(self.bounds), named(self.definition, labels))
        return cell

    def read(self) -> list[tuple[Labels, Cell]]:
        """Return its series; from any thread."""
        return list(self.cells.items())


Instrument: TypeAlias = Counter | Gauge | Histogram


def named(definition: Definition, labels: Labels) -> dict[str, str]:
    """Return labels with their names.

    >>> named(Definition("mainspring.steps", "counter", "{step}", ("workflow",), "…"), ("Orders",))
    {'workflow': 'Orders'}
    """
    return dict(zip(definition.labels, labels, strict=True))


def within_series(labels: Labels, known: int) -> Labels:
    """Return the labels of a new series, which are those of all others where there are too many already.

    >>> within_series(("Orders",), 3), within_series(("Orders",), SERIES)
    (('Orders',), ('other',))
    """
    return labels if known < SERIES else (OTHER,) * len(labels)


class Instruments:
    """All of them. Counters and histograms are of this process, most gauges of the whole database.

    >>> Instruments().steps.definition.prometheus
    'mainspring_steps_total'
    """

    def __init__(self) -> None:
        self._all: list[Instrument] = []
        self._of_this_process()
        self._of_the_database()

    def __iter__(self) -> Iterator[Instrument]:
        return iter(self._all)

    def _of_this_process(self) -> None:
        counter, seconds, gauge = self._counter, self._histogram, self._gauge
        self.inputs = counter(
            "inputs", "{message}", "workflow outcome", "Messages from outside, by what became of them."
        )
        self.steps = counter("steps", "{step}", "workflow outcome", "Inputs taken, by what became of them.")
        self.step_duration = seconds("step.duration", "s", "workflow", "From taking an input to its commit.")
        self.began = counter("instances.began", "{instance}", "workflow", "Instances that began.")
        self.ended = counter("instances.ended", "{instance}", "workflow status", "Instances that ended, by how.")
        self.suspensions = counter("instances.suspended", "{instance}", "workflow", "Instances that were suspended.")
        self.attempts = counter("handler.attempts", "{attempt}", "handler outcome", "Attempts of handlers.")
        self.handler_duration = seconds("handler.duration", "s", "handler", "How long attempts of handlers took.")
        self.retries = counter("handler.retries", "{attempt}", "handler", "Failed attempts that are made again.")
        self.handler_in_hand = gauge("handler.in_hand", "{message}", "handler", "Commands that wait or run here.")
        self.breaker_open = gauge("breaker.open", "1", "handler", "1 while a handler's breaker lets nothing through.")
        self.paused = gauge("paused", "1", "what", "1 while a handler or a workflow is paused for all workers.")
        self.handler_hung = gauge("handler.hung", "{call}", "handler", "Calls that were given up and still run here.")
        self.threads_taken = gauge("threads.taken", "s", "", "How long no thread for plain functions has become free.")
        self.commit_units = self._histogram(
            "commit.units", "{unit}", "", "How many steps and other units one commit had.", UNITS
        )
        self.commit_duration = seconds("commit.duration", "s", "", "How long commits took.")
        self.refusals = counter("commit.refusals", "{unit}", "reason", "Units that a commit did not take.")
        self.buried = counter("dead_letters.made", "{message}", "workflow", "Messages that became dead letters.")
        self.handled = counter("failures.handled", "{message}", "workflow", "Failed commands that a workflow took.")
        self.timer_lag = self._histogram(
            "timer.lag", "s", "workflow", "From when a timer was due to when it fired.", LAG_SECONDS
        )
        self.takeovers = counter("lease.takeovers", "{worker}", "", "Dead workers whose work this one gave back.")
        self.strangers = counter("strangers", "{message}", "type", "Inputs left to others: their type is unknown here.")
        self.in_hand = gauge("worker.in_hand", "{message}", "what", "What this worker holds: commands, inputs.")
        self.source_lag = gauge("source.lag", "{message}", "source", "Messages that a broker holds for a source.")
        self.source_messages = counter(
            "source.messages", "{message}", "source outcome", "Messages of a source, by what became of them."
        )
        self.source_failing = gauge("source.failing", "1", "source", "1 while a source cannot reach its broker.")
        self.requests = counter("http.requests", "{request}", "method route status", "Requests to the HTTP API.")
        self.request_duration = seconds("http.request.duration", "s", "method route", "How long requests took.")

    def _of_the_database(self) -> None:
        gauge = self._gauge
        self.instances = gauge("instances", "{instance}", "workflow status", "Instances there are.")
        self.inbox = gauge("inbox", "{message}", "", "Inputs accepted and not yet taken.")
        self.outbox = gauge("outbox", "{message}", "", "Outputs recorded and not yet carried out, without timers.")
        self.timers = gauge("timers", "{timer}", "", "Timers that wait.")
        self.dead_letters = gauge("dead_letters", "{message}", "", "Dead letters there are.")
        self.workers = gauge("workers", "{worker}", "", "Workers that are registered.")
        self.oldest_due = gauge("oldest_due.age", "s", "", "Since when the oldest due output or timer has been due.")
        self.overdue = gauge(
            "instances.overdue", "{instance}", "workflow", "Instances that run longer than their workflow expects."
        )
        self.orphans = gauge("orphans", "{message}", "type", "Outputs that wait and that nothing in this app takes.")
        self.unread = gauge(
            "unread", "{message}", "type", "What has waited for a minute and no worker that runs can read."
        )
        self.depths_age = gauge("depths.age", "s", "", "How old the figures of the database are.")

    def _counter(self, name: str, unit: str, labels: str, help: str) -> Counter:
        made = Counter(_definition(name, "counter", unit, labels, help))
        self._all.append(made)
        return made

    def _gauge(self, name: str, unit: str, labels: str, help: str) -> Gauge:
        made = Gauge(_definition(name, "gauge", unit, labels, help))
        self._all.append(made)
        return made

    def _histogram(
        self, name: str, unit: str, labels: str, help: str, bounds: tuple[float, ...] = SECONDS
    ) -> Histogram:
        made = Histogram(_definition(name, "histogram", unit, labels, help), bounds)
        self._all.append(made)
        return made


def _definition(name: str, kind: Any, unit: str, labels: str, help: str) -> Definition:
    return Definition(f"mainspring.{name}", kind, unit, tuple(labels.split()), help)
