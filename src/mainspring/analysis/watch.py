"""Decide and evolve can do nothing but decide and evolve: the guard sees to it, as often as it can be afforded.

The purity guard makes a call some fifty times slower. So it watches the first steps in which a message meets a state;
and all of them, once one was caught.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Final

from mainspring.purity import purity_guard

STEPS_WATCHED: Final = 3
"""Of each message in each state."""
PAIRS: Final = 10_000


class Watch:
    """Says which steps are to be guarded, for as long as one process checks.

    >>> watch = Watch()
    >>> [watch.guard("Orders", int, str) is None for _ in range(STEPS_WATCHED + 1)]
    [False, False, False, True]
    """

    def __init__(self) -> None:
        self._left: dict[tuple[str, type[Any], type[Any]], int] = {}

    def guard(self, workflow: str, message: type[Any], state: type[Any]) -> AbstractContextManager[None] | None:
        """Return what the next step is to run under, if it is one of those that are watched."""
        pair = (workflow, message, state)
        left = self._left.get(pair, STEPS_WATCHED)
        if not left:
            return None
        if pair in self._left or len(self._left) < PAIRS:
            self._left[pair] = left - 1
        return purity_guard(workflow)

    def caught(self, workflow: str, message: type[Any], state: type[Any]) -> None:
        """Guard such steps from now on, every one."""
        self._left[workflow, message, state] = -1
