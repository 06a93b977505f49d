"""What a worker claims, and what it leaves to others."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from mainspring.port.records.work import DeadLetter, InputRow, OutputKind
from mainspring.port.refs import OutputKey, Ref


class Cause(Struct, frozen=True, gc=False):
    """Which input an output was decided for, as its event says: its id, or else the output that it answered."""

    message_id: str | None
    kind: str | None
    cause: int | None


class OutputClaim(Struct, frozen=True, gc=False):
    """An output claimed by a worker, with the message to carry out.

    `cause` is the input that it was decided for, where its event names one; `context` that of the last input up to it
    that has one of its own; `error` that of its last attempt, if that failed.
    """

    output: OutputKey
    workflow: str
    instance: str
    kind: OutputKind
    destination: str
    attempts: int
    due_us: int
    priority: int
    type: str
    type_version: int
    body: bytes
    detail: bytes | None
    context: bytes
    cause: Cause | None = None
    error: str | None = None


class Claims(Struct, frozen=True, gc=False):
    """What a claim brought: outputs to carry out, inputs to step, and when the next thing is due, if any is known.

    `posted` says that messages wait which programs have written in transactions of their own, for `relay`.

    >>> Claims([], [], None).next_due_us is None
    True
    """

    outputs: list[OutputClaim]
    inputs: list[InputRow]
    next_due_us: int | None
    posted: bool = False


class Leaves(Struct, frozen=True, gc=False):
    """Inputs of types and versions that a worker cannot read, with all that stands behind them; and whole instances."""

    types: tuple[tuple[str, int], ...] = ()
    instances: tuple[Ref, ...] = ()


NO_LEAVES: Final = Leaves()


class Relayed(Struct, frozen=True, gc=False):
    """How many posted messages were moved into inboxes, and those of them that became dead letters instead."""

    count: int
    letters: tuple[DeadLetter, ...] = ()
