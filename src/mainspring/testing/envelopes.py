"""Envelopes for tests, with fixed values where a real one would have a clock and random ids."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from msgspec import json

from mainspring.codec import Codec
from mainspring.core.changes import fields_of
from mainspring.core.messages import Envelope, InstanceId, Kind

T = TypeVar("T")

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)


def envelope(
    message: T,
    *,
    id: str = "message-1",
    time: datetime = EPOCH,
    kind: Kind = Kind.COMMAND,
    actor: str | None = None,
    reply_to: str | None = None,
    sender: InstanceId | None = None,
    correlation_id: str | None = None,
    causation_id: str | None = None,
    task: str | None = None,
    command: object = None,
) -> Envelope[T]:
    """Return a message in an envelope, for a workflow that asks for one. A message correlates with itself by default.

    `command` is what the message answers: the message that was sent, or its data.

    >>> from mainspring.testing.samples import Count
    >>> envelope(Count("c-1"), actor="ann").actor
    'ann'
    """
    return Envelope(
        message,
        id=id,
        time=time,
        correlation_id=id if correlation_id is None else correlation_id,
        kind=kind,
        causation_id=causation_id,
        sender=sender,
        reply_to=reply_to,
        actor=actor,
        task=task,
        command=data_of(command),
    )


def data_of(message: object) -> Any:
    """Return the data of a message, as it is stored: JSON. What is data already is returned as it is.

    >>> from mainspring.testing.samples import Count
    >>> data_of(Count("c-1"))
    {'counter': 'c-1'}
    """
    if fields_of(message) is None:
        return message
    codec = Codec()
    codec.register(type(message))
    return json.decode(codec.encode(message).body)
