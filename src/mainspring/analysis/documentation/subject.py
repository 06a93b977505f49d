"""All that is known of a workflow, in one place: its machine, its wiring in the app, and what instances did."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct

from mainspring.analysis.diagram.diagram import Diagram
from mainspring.analysis.documentation.stories import Told
from mainspring.analysis.reading.model import Machine
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.core.messages import type_of
from mainspring.core.story import duration
from mainspring.core.workflow import SNAPSHOT_EVERY_EVENTS
from mainspring.engine.handlers.handler import Handler, HandlerOptions
from mainspring.engine.registry import Registry, WorkflowEntry, is_internal
from mainspring.flows.flow import flow_of

_DEFAULTS: Final = HandlerOptions()


class HandlerFacts(Struct, frozen=True):
    """A function that carries a message out, with its policies in words; `usual` where none differs from the rest."""

    name: str
    message: str
    results: tuple[str, ...]
    doc: str
    policies: tuple[str, ...]
    subscribes: bool = False


class ScheduleFacts(Struct, frozen=True):
    """What sends a message again and again."""

    name: str
    calendar: str
    message: str
    catch_up: str


class Subject(Struct, frozen=True):
    """A workflow, ready to be written about.

    `takers` are the workflows that take an output of this one, by the output's name; `senders` the workflows one of
    whose outputs this one takes, by the input's name.
    """

    machine: Machine
    diagram: Diagram
    settings: tuple[tuple[str, str], ...]
    handlers: tuple[HandlerFacts, ...]
    schedules: tuple[ScheduleFacts, ...]
    takers: dict[str, tuple[str, ...]]
    senders: dict[str, tuple[str, ...]]
    external: frozenset[str]
    stories: tuple[Told, ...] = ()


def subject_of(
    app: Mainspring, entry: WorkflowEntry, machine: Machine, diagram: Diagram, stories: Sequence[Told] = ()
) -> Subject:
    """Collect what the app knows of a workflow."""
    inside = internals_of(app)
    registry, outputs = inside.registry, frozenset(entry.definition.outputs.values())
    inputs = frozenset(entry.definition.inputs.values())
    return Subject(
        machine,
        diagram,
        tuple(_settings(entry)),
        tuple(_handlers(registry, outputs)),
        tuple(
            ScheduleFacts(name, each.calendar.text, type_of(each.message_type).name, each.calendar.catch_up)
            for name, each in inside.schedules.items()
            if type_of(each.message_type).name in inputs
        ),
        _takers(registry, entry),
        _senders(registry, entry),
        frozenset(registry.external & outputs),
        tuple(stories),
    )


def _takers(registry: Registry, entry: WorkflowEntry) -> dict[str, tuple[str, ...]]:
    found = {
        name: tuple(taker.name for taker in registry.takers_of(cls) if not is_internal(taker.name))
        for cls, name in entry.definition.outputs.items()
    }
    return {name: takers for name, takers in found.items() if takers}


def _senders(registry: Registry, entry: WorkflowEntry) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for cls, name in entry.definition.inputs.items():
        own = (other for other in registry.workflows.values() if not is_internal(other.name))
        others = [other.name for other in own if cls in other.definition.outputs]
        if others:
            found[name] = tuple(others)
    return found


def _settings(entry: WorkflowEntry) -> list[tuple[str, str]]:
    """Return what the class says of itself, each with what it means."""
    workflow, definition = entry.workflow, entry.definition
    unknown = {"fail": "suspends the instance", "ignore": "is recorded and ignored"}
    again = {
        "join": "is an input like any other",
        "refuse": "is a dead letter",
        "anew": "begins the instance anew, if it has ended",
    }
    versions = ", ".join(str(each.version) for each in entry.versions)
    settings = [
        ("Version", versions if len(entry.versions) == 1 else f"{versions}; new instances begin under {entry.version}"),
        (
            ("A message that is not awaited", "is kept until the code receives it")
            if flow_of(workflow) is not None
            else ("A message without a case", unknown[definition.unknown_transition])
        ),
        ("A second beginning", again[definition.again]),
    ]
    if definition.history == "state":
        settings.append(("History", "not kept: the state alone is stored"))
    if definition.retention is not None:
        kept = definition.retention
        settings.append(("Retention", "kept for ever" if kept == timedelta.max else duration(kept)))
    if definition.through_inbox:
        names = ", ".join(sorted(definition.inputs[cls] for cls in definition.through_inbox))
        settings.append(("Through the inbox", names))
    if workflow.snapshot_every != SNAPSHOT_EVERY_EVENTS:
        every = workflow.snapshot_every
        settings.append(("Snapshots", "none" if every is None else f"every {every:,} events"))
    return settings


# ---- handlers


def _handlers(registry: Registry, outputs: frozenset[str]) -> list[HandlerFacts]:
    found = [facts_of(handler) for name, handler in registry.handlers.items() if name in outputs]
    for name, subscribers in registry.subscribers.items():
        if name in outputs:
            found += [facts_of(handler, subscribes=True) for handler in subscribers]
    return found


def facts_of(handler: Handler, *, subscribes: bool = False) -> HandlerFacts:
    """Return a handler as a page shows it.

    >>> def ring(command: Told) -> None:
    ...     "Ring the bell."
    >>> facts_of(Handler(ring, HandlerOptions())).doc
    'Ring the bell.'
    """
    return HandlerFacts(
        handler.name,
        type_of(handler.message_type).name,
        tuple(type_of(cls).name for cls in handler.result_types),
        inspect.getdoc(inspect.unwrap(handler.function)) or "",
        tuple(_policies(handler)),
        subscribes,
    )


def _policies(handler: Handler) -> list[str]:
    """Return how a handler is run, in words. What it always is comes first; the rest only where it was asked for."""
    options = handler.options
    retry, breaker = options.retry, options.breaker
    least = f", at least {duration(retry.minimum)}" if retry.minimum else ""
    pauses = f"{duration(retry.first)}, ×{retry.multiplier:g} up to {duration(retry.cap)}{least}"
    told = [
        f"{retry.max_attempts} attempts, pauses of {pauses}{' with jitter' if retry.jitter else ''}",
        f"timeout {duration(options.transaction or options.timeout)}",
    ]
    if breaker is not None:
        told.append(f"breaker opens after {breaker.failures} failures for {duration(breaker.open_for)}")
    if retry.never:
        told.append(f"no retry after {', '.join(error.__name__ for error in retry.never)}")
    if options.rate is not None:
        told.append(f"at most {options.rate.per_second:g} a second, bursts of {options.rate.burst}")
    told += [f"{label} {value}" for label, value in _unusual(options)]
    if options.idempotency_key is not None:
        told.append(f"idempotency key by business, remembered for {duration(options.remember)}")
    if options.transaction is not None:
        told.append("writes in the transaction of its result")
    return told


def _unusual(options: HandlerOptions) -> list[tuple[str, Any]]:
    """Return the plain options that are not what they usually are."""
    labels = {
        "concurrency": "at most at once:",
        "batch": "in batches of",
        "priority": "priority",
        "pool": "pool",
        "executor": "runs in a",
    }
    return [
        (label, getattr(options, name))
        for name, label in labels.items()
        if getattr(options, name) != getattr(_DEFAULTS, name)
    ]
