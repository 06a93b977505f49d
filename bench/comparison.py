"""What the comparison has found: every run's figures, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from bench.contenders import Contender
from bench.measure import Figures, median


class Sample(Struct, frozen=True):
    """One run: its figures, or why it has none."""

    contender: Contender
    workload: str
    round: int
    n: int
    figures: Figures = field(default_factory=dict[str, Any])
    failure: str = ""


class Found(Struct, frozen=True):
    """The median of a figure over the rounds, and the least and the most."""

    middle: float
    least: float
    most: float
    rounds: int

    @classmethod
    def of(cls, figures: Sequence[float]) -> Found | None:
        """Return what figures come to; None of none.

        >>> Found.of([3.0, 1.0, 2.0])
        Found(middle=2.0, least=1.0, most=3.0, rounds=3)
        >>> Found.of([])
        """
        return cls(median(figures), min(figures), max(figures), len(figures)) if figures else None


class Comparison(Struct, frozen=True):
    """All runs. `absent` has the engines that could not take part, with the reason; `facts` are the machine's."""

    facts: Figures
    samples: list[Sample]
    absent: dict[str, str] = field(default_factory=dict[str, str])
    quick: bool = False

    def figures(self, contender: Contender, workload: str, figure: str) -> dict[int, float]:
        """Return a figure of each round that has it."""
        return {
            sample.round: sample.figures[figure]
            for sample in self.samples
            if (sample.contender, sample.workload) == (contender, workload) and figure in sample.figures
        }

    def found(self, contender: Contender, workload: str, figure: str) -> Found | None:
        return Found.of(list(self.figures(contender, workload, figure).values()))

    def ratio(self, ours: tuple[Contender, str], theirs: tuple[Contender, str], figure: str) -> Found | None:
        """Return how many times theirs ours is, round by round: both have met the same machine."""
        above, below = self.figures(*ours, figure), self.figures(*theirs, figure)
        return Found.of([above[round] / below[round] for round in above if below.get(round)])

    @property
    def rounds(self) -> int:
        return 1 + max((sample.round for sample in self.samples), default=-1)

    @property
    def failures(self) -> list[Sample]:
        return [sample for sample in self.samples if sample.failure]

    def others_busy(self) -> Found | None:
        """How much of the machine others had, over all runs."""
        return Found.of([sample.figures["others_busy"] for sample in self.samples if "others_busy" in sample.figures])

    def versions(self) -> dict[str, str]:
        """Return the version of each peer, as its runs have told."""
        return {
            sample.contender.engine: sample.figures["version"] for sample in self.samples if "version" in sample.figures
        }
