"""Instances: their rows, and which of them to list."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from mainspring.port.attributes import AttributeFilter

Status: TypeAlias = Literal["running", "suspended", "compensating", "completed", "failed", "cancelled", "terminated"]
ENDED: frozenset[Status] = frozenset({"completed", "failed", "cancelled", "terminated"})
ENGINES_OWN = "mainspring."  # so begin the names of the engine's own workflows, which no list or count has
# The workflow whose instances hold the joins of fan-outs. Each has the id of the output that asked for it.
FAN_OUT = "mainspring.FanOut"


class InstanceRow(Struct, frozen=True, gc=False):
    """The row of an instance. `context` is that of the input that began it.

    With `purged_us` it is a tombstone: the stream is gone, and nothing can move the instance or begin it anew.
    """

    key: int
    workflow: str
    id: str
    version: int
    status: Status
    state: str | None
    error: str | None
    definition_version: int
    context: bytes
    created_us: int
    updated_us: int
    purged_us: int | None = None

    @property
    def position(self) -> int:
        """That of the last event in its stream."""
        return self.version

    @property
    def workflow_version(self) -> int:
        """The version of its workflow under which it runs."""
        return self.definition_version


class InstanceFilter(Struct, frozen=True, gc=False):
    """Which instances to list; every field narrows.

    `error` is a part of the error's text as it is stored: where that is sealed, of its kind. Times begin with `from`
    and end before `to`.

    >>> InstanceFilter(status="suspended").workflow is None
    True
    """

    workflow: str | None = None
    status: Status | None = None
    state: str | None = None
    id_prefix: str | None = None
    error: str | None = None
    created_from_us: int | None = None
    created_to_us: int | None = None
    updated_from_us: int | None = None
    updated_to_us: int | None = None
    attributes: tuple[AttributeFilter, ...] = ()
    workflow_version: int | None = None


Tally: TypeAlias = dict[tuple[str, Status], int]
"""How many instances there are, by workflow and status."""
