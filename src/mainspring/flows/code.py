"""What a run asks of the flow whose code it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from mainspring.core.decisions import Decision

Drift: TypeAlias = Literal["refuse", "adopt"]


class Code(Protocol):
    """A flow, as a run of it sees it.

    >>> from mainspring.flows import Flow
    >>> Flow.drift
    'refuse'
    """

    name: str | None
    function: Callable[[Any], Any]
    takes: type[Any]
    answer_types: frozenset[type[Any]]
    again_type: type[Any]
    receives: frozenset[type[Any]]
    drift: ClassVar[Drift]

    def completed(self, result: Any) -> Any:
        """Return the message that carries a result."""
        ...

    def can_answer(self, message: Any, decision: Decision[Any, Any]) -> bool:
        """Return True if a message may be the answer to what was sent."""
        ...

    def step_of(self, command: type[Any]) -> Any:
        """Return the step whose commands are of a type."""
        ...

    def check_asked(self, decision: Decision[Any, Any]) -> None:
        """Refuse what is not among its outputs."""
        ...

    def check_received(self, types: Sequence[type[Any]]) -> None:
        """Refuse to wait for what is not among its inputs."""
        ...

    def check_answers(self, types: Sequence[type[Any]]) -> None:
        """Refuse to ask a person for what anyone may send past the task."""
        ...

    def check_stage(self, name: str) -> None:
        """Refuse a stage that cannot be known before it comes."""
        ...

    def seed_of(self, argument: Any) -> str:
        """Return what makes an instance's random numbers its own."""
        ...

    def line_of(self, task: Any) -> str:
        """Return the author's line at which a task waits."""
        ...

    def note_resisting(self, tasks: Sequence[str]) -> None:
        """Say once that code of this flow does not end when it is put away."""
        ...
