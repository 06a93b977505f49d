"""An instance in memory: what is known of it, and when that is known at all."""

from __future__ import annotations

from typing import Any, cast

from msgspec import Struct

from mainspring.core.saga import Ledger
from mainspring.engine.registry import WorkflowEntry
from mainspring.port.attributes import AttributeRow
from mainspring.port.records import ENDED, Ref, Status


class Elsewhere(Struct, frozen=True):
    """Why an instance can be stepped by other processes only, and the name of the state that it is in.

    >>> Elsewhere("version 2 of its definition", "Waiting").state
    'Waiting'
    """

    why: str
    state: str | None


class KnownInstance:
    """What is known of an instance. `version` and `state` are those of the last step, committed yet or not.

    `loaded` tells whether they are known at all, `asked` whether it may have open tasks, `children` that it has ever
    started one. `abandoned` are the versions that do not count any more, because the instance was reset or began anew.
    `ledger` is that of a saga, valid at its own version only; where it `wants_ledger`, the whole stream is loaded.
    `elsewhere` says why only other processes can step the instance: newer code has written what this one does not know.
    `trims` says that its history is not kept.
    """

    __slots__ = (
        "abandoned",
        "asked",
        "attributes",
        "children",
        "context",
        "elsewhere",
        "entry",
        "error",
        "fold_error",
        "key",
        "ledger",
        "loaded",
        "purged_us",
        "recorded_state",
        "ref",
        "result",
        "snapshot_version",
        "state",
        "status",
        "trims",
        "version",
        "wants_ledger",
    )

    def __init__(self, ref: Ref, entry: WorkflowEntry) -> None:
        self.ref = ref
        self.entry = entry
        self.forget()

    def forget(self) -> None:
        """Know nothing of the instance any more, not even under which version of its workflow it runs."""
        self.entry = self.entry.newest
        self.loaded = False
        self.wants_ledger = False
        self.ledger: Ledger | None = None
        self.key: int | None = None
        self.version = 0
        self.snapshot_version = 0
        self.state: Any = self.entry.workflow.initial_state
        self.recorded_state: str | None = None
        self.status: Status = "running"
        self.error: str | None = None
        self.attributes: tuple[AttributeRow, ...] | None = None
        self.result: Any = None
        self.context: bytes | None = None
        self.fold_error: Exception | None = None
        self.purged_us: int | None = None
        self.abandoned: frozenset[int] | range = frozenset()
        self.asked = False
        self.children = False
        self.elsewhere: Elsewhere | None = None
        self.trims = False

    def assume_new(self) -> None:
        """Take it that there is no such instance yet: the commit will tell if that is wrong."""
        self.forget()
        self.loaded = True

    def leave(self, why: str) -> None:
        """Leave the instance to other processes."""
        self.elsewhere = Elsewhere(why, self.entry.definition.states.get(cast("type[Any]", type(self.state))))

    @property
    def left(self) -> bool:
        """Whether what comes waits for another process, and not for an operator."""
        return self.elsewhere is not None and self.status != "suspended"

    @property
    def ended(self) -> bool:
        """Whether the instance has ended."""
        return self.status in ENDED
