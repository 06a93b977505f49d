"""The state-returning style: decide returns the next state together with its decisions, and there is no evolve.

The new state is recorded whole, as a Became event. So a replay never runs decide again, and old code's states stay what
they were. The price is a stream with whole states in it: choose it for small states.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from mainspring.core.decisions import Become, Decisions
from mainspring.core.events import Became, Event
from mainspring.core.messages import In, Out
from mainspring.core.workflow import Result_co, State, Workflow
from mainspring.errors import InvalidDecisionError, shown

Returned: TypeAlias = tuple[State, Decisions[In, Out]]


class StateReturningWorkflow(Workflow[In, State, Out, Result_co]):
    """A workflow whose decide returns `(state, decisions)`.

    >>> from dataclasses import dataclass
    >>> from mainspring import Complete, Decisions
    >>> from mainspring.testing import given
    >>> @dataclass(frozen=True)
    ... class Knock:
    ...     door: str
    >>> @dataclass(frozen=True)
    ... class Knocked:
    ...     times: int
    >>> class Door(StateReturningWorkflow[Knock, Knocked, Knock]):
    ...     initial_state = Knocked(0)
    ...
    ...     def route(self, message: Knock) -> str | None:
    ...         return message.door
    ...
    ...     def decide(self, message: Knock, state: Knocked) -> tuple[Knocked, Decisions[Knock, Knock]] | None:
    ...         return Knocked(state.times + 1), [Complete()] if state.times else []
    >>> _ = given(Door(), Knock("front")).when(Knock("front")).then_state(Knocked(2))
    """

    def decide(self, message: Any, state: State, /) -> Returned[State, In, Out] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the next state and what is to be done. None means: no such transition."""
        raise NotImplementedError

    def decide_on(self, asked: Any, state: State, /) -> Decisions[In, Out] | None:
        returned = self.decide(asked, state)
        if returned is None:
            return None
        pair: Any = returned
        if not isinstance(pair, tuple) or len(returned) != 2 or not isinstance(returned[1], (list, tuple)):
            raise InvalidDecisionError(
                f"{type(self).__name__} decided {shown(returned)}, which is no state with a list of decisions",
                "Return a pair, as in `return Waiting(), [Send(…)]`.",
            )
        after, decisions = returned
        return decisions if after is state else [Become(after), *decisions]

    def evolve(self, state: State, event: Event[In, Out], /) -> State | None:
        """Return the recorded state; nothing else moves it."""
        return event.state if isinstance(event, Became) else None
