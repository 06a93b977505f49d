"""What a store answers to a batch's questions, and what is known of each instance while its units are judged."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any, Final, TypeAlias

from msgspec import Struct

from mainspring.port.records import InputRow, Status, Unit
from mainspring.stores.commit.task_book import TaskBook

Name: TypeAlias = tuple[str, str]
Spot: TypeAlias = tuple[int, int]
"""An output: its instance's key, and the version at which it was decided."""
Message: TypeAlias = tuple[str | None, bytes | None]
Owned: TypeAlias = tuple[int, Unit]
"""A unit, and the worker that commits it."""
NONE: Final[frozenset[Any]] = frozenset()


class Known(Struct, eq=False):
    """What is known of an instance: as the store has it, and then as the units so far have changed it.

    There is one for every instance of a batch, so it is a Struct: no other class makes twenty fields as cheaply.
    """

    workflow: str
    id: str
    name: Any
    """What facts know it by: the pair of both, or what a store has that is shorter."""
    key: int = 0
    version: int = 0
    status: Status = "running"
    state: str | None = None
    error: str | None = None
    definition_version: int = 1
    context: bytes = b"{}"
    context_version: int | None = None
    # What the units of this batch did to it.
    moved: bool = False
    since: int = 0
    # How many events the batch had when the last of this instance was among them.
    place: int = 0
    cancelled_keys: frozenset[str] = NONE
    cancelled_timers: bool = False
    consumed: tuple[int, ...] = ()
    released: frozenset[int] = NONE
    accepted: dict[str, tuple[int, InputRow, int | None]] | None = None

    def cancelled_fired(self, timer_key: str | None) -> bool:
        """Return True if an input that waited before this batch was a timer, and is cancelled."""
        return timer_key is not None and (self.cancelled_timers or timer_key in self.cancelled_keys)


class OutputFact(Struct, gc=False):
    """An outbox row, as far as it matters; one without kind is not there.

    >>> OutputFact(None, None, None, None, None).kind is None
    True
    """

    owner: int | None
    priority: int | None
    kind: str | None
    destination: str | None
    key: str | None
    damaged: bool = False


class Facts:
    """The answers. Instances are known by their `name`, inputs that wait by their position in the inbox.

    Where a store can find misfits cheaply, it returns only those: an output that is not in `outputs` is its worker's.
    """

    def __init__(self) -> None:
        self.workers: AbstractSet[int] = frozenset()
        """Those of the batch's workers that are registered: no other may hold anything."""
        self.taken: dict[tuple[Any, str], Message] = {}
        """Inputs that are in their stream already, by message id."""
        self.waiting: dict[tuple[Any, str], tuple[int, str | None, Message]] = {}
        """Inputs that wait, by message id: position, timer key, message."""
        self.consumable: dict[tuple[int, Any], str | None] = {}
        """Of the inputs to be taken or released those that are there, with their timer keys."""
        self.holders: dict[tuple[int, Any], int | None] = {}
        self.turns: dict[Any, deque[int]] = {}
        """The same in their order."""
        self.left: dict[Any, list[tuple[str | None, int]]] = {}
        """By timer key, the first of other inputs that wait before the last of those."""
        self.queued: dict[Any, list[tuple[str | None, int]]] = {}
        """By timer key, how many inputs wait for an instance."""
        self.others: dict[tuple[Any, int], list[tuple[str | None, int]]] = {}
        """By timer key, how many of them a worker does not hold."""
        self.outputs: dict[Spot, OutputFact] = {}
        self.letters: dict[tuple[str, str, str], list[tuple[int, Message]]] = {}
        self.tasks = TaskBook()
        self.positions: Iterator[int] = iter(())
        """New positions in the inbox."""
        self.keys: Iterator[int] = iter(())
        """New keys of instances."""

    def set_turns(self) -> None:
        """Put the inputs to be taken or released in their order."""
        for position, name in sorted(self.consumable):
            self.turns.setdefault(name, deque()).append(position)
