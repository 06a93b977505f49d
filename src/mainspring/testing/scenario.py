"""given / when / then: a whole test of a workflow, with no runtime and no mocks."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from mainspring.core.decisions import Decision
from mainspring.core.events import Event, Recorded
from mainspring.core.messages import Kind
from mainspring.core.translate import recorded
from mainspring.core.workflow import Workflow
from mainspring.testing.rehearsal import Rehearsal

In = TypeVar("In")
State = TypeVar("State")
Out = TypeVar("Out")


def given(workflow: Workflow[In, State, Out], *past: In | Event[In, Out]) -> Given[In, State, Out]:
    """Begin a scenario: a workflow, and what happened before. Inputs are stepped for real; events are taken as is.

    >>> from mainspring import Complete
    >>> from mainspring.testing.samples import Count, Counted, CountedThrice, Counter
    >>> scenario = given(Counter(), Count("c-1"), Count("c-1")).when(Count("c-1"))
    >>> _ = scenario.then(Complete(CountedThrice("c-1"))).then_state(Counted(3))
    """
    rehearsal = Rehearsal(workflow)
    for item in past:
        if isinstance(item, Recorded):
            rehearsal.record(item)
        else:
            rehearsal.take(item)
    return Given(rehearsal)


class Given(Generic[In, State, Out]):
    """A workflow with a past, waiting for a message."""

    def __init__(self, rehearsal: Rehearsal[In, State, Out]) -> None:
        self._rehearsal = rehearsal

    def when(self, message: In, *, kind: Kind | None = None, actor: str | None = None) -> When[In, State, Out]:
        """Let a message come."""
        try:
            taken = self._rehearsal.take(message, kind=kind, actor=actor)
        except Exception as error:
            return When([], self._rehearsal.state, error)
        return When([e for e in taken.events if e.direction != "input"], taken.state, None)


class When(Generic[In, State, Out]):
    """What a message led to, ready to be compared."""

    def __init__(self, decided: list[Event[In, Out]], state: State, error: Exception | None) -> None:
        self._decided = decided
        self._state = state
        self._error = error

    def then(self, *decisions: Decision[In, Out]) -> When[In, State, Out]:
        """Expect exactly these decisions, in this order. None at all: expect that nothing was decided."""
        if self._error is not None:
            raise self._error
        assert [recorded(d) for d in decisions] == [e for e in self._decided if type(e).__name__ != "Began"]
        return self

    def then_state(self, state: State) -> When[In, State, Out]:
        """Expect this state afterwards."""
        if self._error is not None:
            raise self._error
        assert self._state == state
        return self

    def then_raises(self, error: type[Exception], match: str | None = None) -> Any:
        """Expect an error of this type, with a message in which `match` occurs."""
        assert isinstance(self._error, error)
        assert match is None or match in str(self._error)
