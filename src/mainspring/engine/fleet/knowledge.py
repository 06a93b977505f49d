"""What a worker can read and carry out: written when it registers, so that what no worker knows can be found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct, json

from mainspring.engine.registry import Registry
from mainspring.errors import ERASED_TYPE
from mainspring.errors.reading import UNREADABLE

MOST_WRITTEN: Final = 200_000
"""The longest text. A worker that knows more says nothing, and is taken for one that may know all."""


class Knowledge(Struct, frozen=True):
    """Where the outputs go that a worker takes, the newest version of each type that it reads, and its workflows.

    >>> knowledge = Knowledge(frozenset({"Charge"}), {"Charge": 1}, frozenset({"Orders"}))
    >>> knowledge.takes("Charge", "Charge", 1), knowledge.takes("Charge@2", "Charge", 2)
    (True, False)
    """

    destinations: frozenset[str]
    types: dict[str, int]
    workflows: frozenset[str]

    def reads(self, type: str, version: int) -> bool:
        """Return True if a message can be read."""
        return self.types.get(type, 0) >= version or type.startswith(ERASED_TYPE)

    def takes(self, destination: str, type: str, version: int) -> bool:
        """Return True if an output can be carried out. The end of an instance may have no result, and so no type."""
        return destination in self.destinations and (not type or self.reads(type, version))

    def steps(self, workflow: str, type: str, version: int) -> bool:
        """Return True if an input can be stepped, if its instance can be read."""
        return workflow in self.workflows and self.reads(type, version)


def knowledge_of(registry: Registry, serves: Callable[[str], bool]) -> Knowledge:
    """Return what a worker knows that `serves` some of its queues."""
    places = (place for queue, places in registry.queues().items() if serves(queue) for place in places)
    return Knowledge(frozenset(places), registry.codec.versions(), frozenset(registry.workflows))


def written(knowledge: Knowledge) -> str:
    """Return it as it is kept."""
    text = json.encode(knowledge, order="deterministic").decode()
    return text if len(text) <= MOST_WRITTEN else ""


def read(text: str) -> Knowledge | None:
    """Return what was kept; None of a worker that has not said it, or says it as another release does.

    >>> read(written(Knowledge(frozenset({"Charge"}), {}, frozenset()))), read("")
    (Knowledge(destinations=frozenset({'Charge'}), types={}, workflows=frozenset()), None)
    """
    try:
        return json.decode(text, type=Knowledge) if text else None
    except UNREADABLE:
        return None
