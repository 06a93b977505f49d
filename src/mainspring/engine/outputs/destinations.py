"""Destinations: what the outbox calls what has to be carried out, so that no worker claims what it cannot read.

    Charge  Charge@2            a command, or what begins a child, of the first version of its type and of the second
    publish:Paid                an event
    timer:Orders:PaymentLate    a timer that Orders set for itself
    reply:Orders                a reply to Orders, or the end of what it began

A queue is what these have in common whatever their version: one handler, or one workflow's timers, with one limit. Its
own name is a destination too: releases before this one wrote all of a queue there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mainspring.core.failures import DeadlinePassed
from mainspring.core.messages import MessageType, type_of
from mainspring.engine.outputs.fan_out_parts import Parts
from mainspring.port.records import FAN_OUT, EventRow

if TYPE_CHECKING:
    from mainspring.engine.registry import Registry


def placed(queue: str, version: int) -> str:
    """Return where an output of a version of its type goes.

    >>> placed("Charge", 1), placed("publish:Paid", 2)
    ('Charge', 'publish:Paid@2')
    """
    return queue if version == 1 else f"{queue}@{version}"


def command(row: EventRow) -> str:
    """Return where a command goes.

    >>> command(EventRow(3, "Sent", 0, "Charge", 2, b"{}"))
    'Charge@2'
    """
    return placed(row.type or "", row.type_version)


def timer(workflow: str, row: EventRow) -> str:
    """Return where a timer goes.

    >>> timer("Orders", EventRow(3, "Scheduled", 0, "PaymentLate", 1, b"{}"))
    'timer:Orders:PaymentLate'
    """
    return placed(f"timer:{workflow}:{row.type}", row.type_version)


def queues_of(registry: Registry) -> dict[str, tuple[str, ...]]:
    """Return all that a process can carry out: its queues, sorted, each with the destinations of what it can read."""
    found: dict[str, dict[str, None]] = {}

    def add(queue: str, types: Iterable[type[Any]], prefix: str = "") -> None:
        places = (f"{prefix}{place}" for cls in types for place in _places(type_of(cls)))
        found.setdefault(queue, {queue: None}).update(dict.fromkeys(places))

    for name, handler in registry.handlers.items():
        add(name, [handler.message_type])
    for cls in registry.taken():
        add(type_of(cls).name, [cls])
    for name, known in registry.subscribers.items():
        add(f"publish:{name}", [known[0].message_type], "publish:")
    if FAN_OUT in registry.workflows:
        add(type_of(Parts).name, [Parts])
    for entry in registry.entries():
        # A deadline comes also where the code has none any more: it is recorded, and nothing follows.
        add(f"timer:{entry.name}", (*entry.definition.inputs, DeadlinePassed), f"timer:{entry.name}:")
        add(f"reply:{entry.name}", ())
        for cls, name in entry.definition.outputs.items():
            add(f"publish:{name}", [cls], "publish:")
    return {queue: tuple(found[queue]) for queue in sorted(found)}


def _places(declared: MessageType) -> list[str]:
    """Return a type's names, former ones too, each at all the versions that can be read."""
    names = (declared.name, *declared.aliases)
    return [placed(name, version) for name in names for version in range(1, declared.version + 1)]
