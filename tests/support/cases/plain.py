"""Figures of cases computed plainly: every value kept, nothing shared with what is tested."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import groupby, pairwise

from tests.support.cases.logs import Case, Taken

Steps = tuple[tuple[str, str], ...]


class Plain:
    """What some cases did. Stays that have not ended last until `as_of_us`, the last event unless it is given."""

    def __init__(self, cases: Iterable[Case], as_of_us: int | None = None) -> None:
        self.cases = list(cases)
        self.last_us = max(case.events[-1].time_us for case in self.cases)
        self.as_of_us = self.last_us if as_of_us is None else as_of_us
        self.statuses = Counter(case.status for case in self.cases)
        self.states = Counter(case.state for case in self.cases)
        self.inputs = Counter(taken.input for case in self.cases for taken in case.taken)
        self.moves = Counter((t.source, t.input, t.target) for case in self.cases for t in case.taken)
        self.visits: Counter[str] = Counter()
        self.ended_paths: Counter[Steps] = Counter()
        self.open_paths: Counter[Steps] = Counter()
        self.ended_stays: defaultdict[str, list[int]] = defaultdict(list)
        self.open_stays: defaultdict[str, list[int]] = defaultdict(list)
        self.durations: defaultdict[str, list[int]] = defaultdict(list)
        self.ages: list[int] = []
        for case in self.cases:
            self._take(case)

    def _take(self, case: Case) -> None:
        stays = [next(group) for _, group in groupby(case.taken, key=lambda taken: taken.target)]
        for stay in stays:
            self.visits[stay.target] += 1
        for one, after in pairwise(stays):
            self.ended_stays[one.target].append(after.time_us - one.time_us)
        begun_us = case.taken[0].time_us
        if case.status == "running":
            self.open_stays[case.state].append(self.as_of_us - stays[-1].time_us)
            self.ages.append(self.as_of_us - begun_us)
            self.open_paths[path(case.taken)] += 1
        else:
            self.durations[case.status].append(case.taken[-1].time_us - begun_us)
            self.ended_paths[path(case.taken)] += 1


def path(taken: Iterable[Taken]) -> Steps:
    """Return the steps of a case; those that follow themselves once."""
    return tuple(step for step, _ in groupby((each.input, each.target) for each in taken))
