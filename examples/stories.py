"""What a story is: a workflow, and the messages that come to one instance of it, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mainspring import Envelope, Kind, Workflow
from mainspring.testing import Rehearsal


@dataclass(frozen=True)
class Taken:
    """One message of a story, with what its envelope is to say; None leaves it to the rehearsal."""

    message: Any
    kind: Kind | None = None
    actor: str | None = None


@dataclass(frozen=True)
class Story:
    """One telling of a process, for `python -m examples stories`. A package's `story` module lists its own as STORIES.

    A bare message counts as a command, or as a timer if the workflow scheduled it before. Anything else says what it
    is: `(CardCharged("o-1"), Kind.RESULT)` came back from a handler, `(ApproveDocument("d-1", 1), "bob")` is bob's.
    What needs both comes in an envelope.
    """

    title: str
    workflow: Workflow[Any, Any, Any]
    messages: tuple[Any, ...]

    def inputs(self) -> list[Taken]:
        """Return the messages, each with what is known of its envelope."""
        return [_taken(item) for item in self.messages]

    def rehearse(self) -> Rehearsal[Any, Any, Any]:
        """Take all messages, and return the rehearsal with the stream that they made."""
        rehearsal = Rehearsal(self.workflow)
        for taken in self.inputs():
            rehearsal.take(taken.message, kind=taken.kind, actor=taken.actor)
        return rehearsal


def _taken(item: Any) -> Taken:
    if isinstance(item, Envelope):
        enveloped: Envelope[Any] = item  # pyright: ignore[reportUnknownVariableType]  to mypy a cast is redundant
        return Taken(enveloped.message, enveloped.kind, enveloped.actor)
    match item:
        case (message, Kind() as kind):
            return Taken(message, kind)
        case (message, str() as actor):
            return Taken(message, actor=actor)
        case message:
            return Taken(message)
