"""What a story is: a workflow, and the messages that come to one instance of it, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mainspring import Kind, Workflow


@dataclass(frozen=True)
class Story:
    """One telling of a process, for `python -m examples`. A package's `story` module lists its own as `STORIES`.

    A bare message counts as a command, or as a timer if the workflow scheduled it before. Anything else says what it
    is: `(CardCharged("o-1"), Kind.RESULT)` came back from a handler.
    """

    title: str
    workflow: Workflow[Any, Any, Any]
    messages: tuple[Any, ...]

    def inputs(self) -> list[tuple[Any, Kind | None]]:
        """Return each message with its kind, or None where the rehearsal is to tell."""
        return [_with_kind(item) for item in self.messages]


def _with_kind(item: Any) -> tuple[Any, Kind | None]:
    match item:
        case (message, Kind() as kind):
            return message, kind
        case message:
            return message, None
