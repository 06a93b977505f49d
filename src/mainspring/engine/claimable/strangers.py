"""Strangers: what other code wrote and this worker cannot read. It leaves them to workers that can, and says so once.

A type stays unknown for as long as the worker runs. An instance may be reset or end, so it is looked at again after a
while. What has more strangers than are remembered is left alone as a whole, for a short while.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mainspring.errors import NewerTypeError
from mainspring.logs import logger
from mainspring.port.records import NO_LEAVES, Leaves, Ref

TYPES_LEFT: Final = 100
INSTANCES_LEFT: Final = 1_000
INSTANCE_LEFT_SECONDS: Final = 30.0
WORKFLOW_LEFT_SECONDS: Final = 2.0
OUTPUT_LEFT_SECONDS: Final = 2.0
TOLD_ON_SECONDS: Final = 15.0
"""So much longer an instance is reported as left: in between it is looked at again."""

log = logger("mainspring.engine")


class Strangers:
    """What a worker has met and could not read.

    >>> strangers = Strangers(lambda: 0)
    >>> strangers.meet_type("Orders", "Charged", 2)
    >>> strangers.leaves().types
    (('Charged', 2),)
    """

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._types: dict[tuple[str, int], None] = {}
        # Until when, the next first, and why.
        self._instances: dict[Ref, tuple[int, str]] = {}
        self._told_until: dict[Ref, tuple[int, str]] = {}
        self._workflows: dict[str, int] = {}
        self._told: set[str] = set()
        self._leaves: Leaves | None = NO_LEAVES

    def meet_type(self, workflow: str, type: str, version: int) -> None:
        """Leave inputs of a type to others."""
        self.tell(type, f"this worker does not know {type} at version {version}: it waits for one that does")
        if len(self._types) < TYPES_LEFT:
            self._types[type, version] = None
            self._leaves = None
        elif (type, version) not in self._types:
            self._leave_workflow(workflow)

    def meet_instance(self, ref: Ref, why: str) -> None:
        """Leave an instance to others for a while."""
        self.tell(why, f"this worker leaves {ref} to others: {why}")
        self._forget_old()
        if len(self._instances) < INSTANCES_LEFT or ref in self._instances:
            self._instances.pop(ref, None)
            until_us = self._now_us() + int(INSTANCE_LEFT_SECONDS * 1e6)
            self._instances[ref] = (until_us, why)
            self._told_until.pop(ref, None)
            self._told_until[ref] = (until_us + int(TOLD_ON_SECONDS * 1e6), why)
            self._leaves = None
        else:
            self._leave_workflow(ref.workflow)

    def _leave_workflow(self, workflow: str) -> None:
        self._workflows[workflow] = self._now_us() + int(WORKFLOW_LEFT_SECONDS * 1e6)

    def tell(self, what: str, text: str) -> None:
        """Say once that something is left to others."""
        if what not in self._told and len(self._told) < TYPES_LEFT + INSTANCES_LEFT:
            self._told.add(what)
            log.info(text)

    def leaves_workflow(self, workflow: str) -> bool:
        """Return True if all of a workflow is left to others now."""
        return self._workflows.get(workflow, 0) > self._now_us()

    def leaves(self) -> Leaves:
        """Return what is not to be claimed now."""
        if self._instances:
            self._forget_old()
        if self._leaves is None:
            self._leaves = Leaves(tuple(self._types), tuple(self._instances))
        return self._leaves

    def _forget_old(self) -> None:
        now_us = self._now_us()
        while self._instances and next(iter(self._instances.values()))[0] <= now_us:
            del self._instances[next(iter(self._instances))]
            self._leaves = None

    def instances_left(self) -> dict[Ref, str]:
        """Return the instances that are left to others, or were a moment ago, each with the reason."""
        now_us = self._now_us()
        while self._told_until and next(iter(self._told_until.values()))[0] <= now_us:
            del self._told_until[next(iter(self._told_until))]
        return {ref: why for ref, (_, why) in self._told_until.items()}


def told_why(error: NewerTypeError) -> str:
    """Return what is not known, in short.

    >>> told_why(NewerTypeError("Audit", "no type of that name is registered", "Register it."))
    'Audit: no type of that name is registered'
    """
    return f"{error.type_name}: {error.problem}"
