"""The world around a workflow, as its app has wired it: who takes what it gives, and what comes back."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from mainspring.analysis.reading.machine import read_machine
from mainspring.analysis.reading.model import Machine
from mainspring.analysis.reading.records import NO_DEFAULT, return_hint
from mainspring.app import Mainspring
from mainspring.app.internals import internals_of
from mainspring.core.messages import type_of
from mainspring.engine.registry import WorkflowEntry, is_internal

Taker: TypeAlias = Literal["handler", "workflow", "external", "nothing"]


class Destination(Struct, frozen=True):
    """Who takes a message, and the types that come back; None where that cannot be known."""

    taker: Taker
    name: str
    results: tuple[str, ...] | None = None


class World:
    """The workflows of an app as machines, and where their messages go."""

    def __init__(self, app: Mainspring) -> None:
        self._registry = internals_of(app).registry
        self.entries = {name: entry for name, entry in self._registry.workflows.items() if not is_internal(name)}
        self.machines = {name: read_machine(entry.workflow, by_status=True) for name, entry in self.entries.items()}
        self._classes: dict[str, type[Any]] = {}
        for entry in self.entries.values():
            self._classes |= {name: cls for cls, name in entry.definition.outputs.items()}

    def destination(self, message: str) -> Destination:
        """Return who takes a message that is sent."""
        handler = self._registry.handlers.get(message)
        if handler is not None:
            known = return_hint(handler.function) is not NO_DEFAULT
            return Destination(
                "handler", handler.name, tuple(type_of(cls).name for cls in handler.result_types) if known else None
            )
        takers = self._takers(message)
        if takers:
            replies = {name for taker in takers for name in self._replies(taker, message)}
            return Destination("workflow", takers[0].name, tuple(sorted(replies)))
        if message in self._registry.external:
            return Destination("external", "another process")
        return Destination("nothing", "nothing")

    def children(self, message: str) -> tuple[str, ...] | None:
        """Return the results of the workflow that a message begins as a child; None if there is no such workflow."""
        takers = self._takers(message)
        if not takers:
            return None
        machine = self.machines[takers[0].name]
        results = {
            output.message
            for transition in machine.transitions
            for output in transition.outputs
            if output.decision == "Complete" and output.message is not None
        }
        return tuple(sorted(results))

    def gives(self, workflow: str) -> set[str]:
        """Return what the other workflows of the app send or publish."""
        return {
            output.message
            for name, machine in self.machines.items()
            if name != workflow
            for transition in machine.transitions
            for output in transition.outputs
            if output.decision in ("Send", "Publish") and output.message is not None
        }

    def _takers(self, message: str) -> list[WorkflowEntry]:
        cls = self._classes.get(message)
        return [] if cls is None else self._registry.takers_of(cls)

    def _replies(self, entry: WorkflowEntry, message: str) -> set[str]:
        """Return the replies to a message. One that begins an instance may be replied to by any later step."""
        machine: Machine | None = self.machines.get(entry.name)
        if machine is None:
            return set()
        later = machine.input(message).begins
        return {
            output.message
            for transition in machine.transitions
            if later or transition.message == message
            for output in transition.outputs
            if output.decision == "Reply" and output.message is not None
        }
