"""What comes of mining: states, kinds of steps, and notes."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

BEGIN: Final = "(begin)"
"""Stands for the initial state, where the code that knows it is not there."""


class MinedStep(Struct, frozen=True):
    """A kind of step: in which state, which message led to which state, and how often. `ends` as in a Transition.

    >>> MinedStep("New", "PlaceOrder", "Waiting", 3).ends is None
    True
    """

    source: str
    message: str
    target: str
    count: int
    ends: str | None = None
    outputs: tuple[str, ...] = ()


class MinedState(Struct, frozen=True):
    """A state that was seen: how many came, how many are in it now, and the median time of those who left.

    >>> MinedState("Waiting", visits=3).dwell_seconds is None
    True
    """

    name: str
    visits: int
    now: int = 0
    dwell_seconds: float | None = None


class Mined(Struct, frozen=True):
    """What the instances of a workflow did. The most frequent comes first.

    >>> Mined("Orders").instances
    0
    """

    workflow: str
    initial: str | None = None
    instances: int = 0
    states: tuple[MinedState, ...] = ()
    steps: tuple[MinedStep, ...] = ()
    notes: tuple[str, ...] = ()
