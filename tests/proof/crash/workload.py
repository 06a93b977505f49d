"""What a workload is made of, as far as the judge has to know it: the checks know no workflow by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import convert, json

from mainspring import Workflow
from tests.proof.crash.evidence import Recorded

Workflows = Mapping[str, Workflow[Any, Any, Any]]


@dataclass(frozen=True)
class Workload:
    """The workflows of a workload, and who does what with their messages.

    What is sent goes to the workflows that take its type, or else to a handler. A handler's command is tried at most
    `caps` times; it has a result where it is `answered`.
    """

    workflows: Workflows
    messages: Mapping[str, type[Any]]
    takers: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    answered: frozenset[str] = frozenset()
    caps: Mapping[str, int] = field(default_factory=dict[str, int])
    hopeless: frozenset[str] = frozenset()
    """Commands that never work: each ends as a dead letter."""
    paying: frozenset[str] = frozenset()
    """Commands whose handler writes to the table `payments`, in the transaction of their result."""
    come_to_rest: frozenset[str] = frozenset()
    """Workflows whose every instance has completed when all is quiet."""
    versions: Mapping[tuple[str, int], Workflow[Any, Any, Any]] = field(
        default_factory=dict[tuple[str, int], Workflow[Any, Any, Any]]
    )
    """Workflows by name and version, where instances migrate."""

    def message(self, row: Recorded) -> Any:
        """Return the message of an event; None where it has none."""
        return None if row.type is None else json.decode(row.body or b"", type=self.messages[row.type])

    def packed(self, message: dict[str, Any] | None) -> Any:
        """Return a second message of an event, from its detail; None where it has none."""
        return None if message is None else convert(message["body"], self.messages[message["type"]])

    def workflow(self, ref: str) -> Workflow[Any, Any, Any]:
        """Return the workflow of an instance."""
        return self.workflows[ref.partition("/")[0]]

    def takes(self, output: Recorded) -> Iterable[str]:
        """Return the instances that an output goes to."""
        message = self.message(output)
        return [f"{taker}/{self.workflows[taker].route(message)}" for taker in self.takers[output.type or ""]]
