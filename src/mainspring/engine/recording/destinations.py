"""Destinations: what the outbox calls what has to be carried out, so that no worker claims what it cannot read.

    Charge  Charge@2            a command, or what begins a child, of the first version of its type and of the second
    publish:Paid                an event
    timer:Orders:PaymentLate    a timer that Orders set for itself
    reply:Orders                a reply to Orders, or the end of what it began

A queue is what these have in common whatever their version: one handler, or one workflow's timers, with one limit. Its
own name is a destination too: releases before this one wrote all of a queue there.
"""

from __future__ import annotations

from mainspring.core.messages import MessageType
from mainspring.port.records import EventRow


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


def places_of(declared: MessageType) -> list[str]:
    """Return a type's names, former ones too, each at all the versions that can be read."""
    names = (declared.name, *declared.aliases)
    return [placed(name, version) for name in names for version in range(1, declared.version + 1)]
