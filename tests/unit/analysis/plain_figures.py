"""The same figures computed plainly: all streams in memory, every value kept, nothing shared with what is tested."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise

from mainspring.port.records import EventRow
from tests.unit.analysis.generated import FAILED, Stream

ENDS = {"Completed": "completed", "Failed": "failed", "Cancelled": "cancelled", "Terminated": "terminated"}
BY_OTHERS = ("Cancelled", "Terminated")


class Naive:
    """What happened in one workflow, from a moment to another."""

    def __init__(self, streams: Iterable[Stream], workflow: str, since_us: int = 0, until_us: int = 2**62) -> None:
        self.own = [stream for stream in streams if stream.workflow == workflow]
        self.events = [e for stream in self.own for e in stream.events if since_us <= e.time_us < until_us]
        self.durations: defaultdict[str, list[int]] = defaultdict(list)
        self.dwell: defaultdict[str, list[int]] = defaultdict(list)
        self.again: Counter[str] = Counter()
        self.steps: Counter[tuple[str | None, str, str]] = Counter()
        self.paths: Counter[tuple[tuple[str, str], ...]] = Counter()
        self.answers: defaultdict[str, list[tuple[EventRow, EventRow]]] = defaultdict(list)
        self.sent = Counter(event.type or "" for event in self.events if event.event == "Sent")
        self.begun = sum(event.event == "Began" for event in self.events)
        self.waiting: Counter[str] = Counter()
        self.statuses = Counter(
            stream.status for stream in self.own if any(since_us <= e.time_us < until_us for e in stream.events)
        )
        self._window = (since_us, until_us)
        for stream in self.own:
            for run in lives(stream.events):
                self._take(run, waits=run[-1] is stream.events[-1] and any(map(self._in, stream.events)))

    def _in(self, event: EventRow) -> bool:
        return self._window[0] <= event.time_us < self._window[1]

    def _take(self, run: list[EventRow], *, waits: bool) -> None:
        inputs = [event for event in run if event.state is not None]
        end = next((event for event in run if event.event in ENDS), None)
        changes = [inputs[0], *(b for a, b in pairwise(inputs) if a.state != b.state)]
        for before, one in pairwise((None, *inputs)):
            if one is not None and self._in(one):
                self.steps[None if before is None else before.state, one.type or "", one.state or ""] += 1
        for a, b in pairwise(changes):
            if self._in(b):
                self.dwell[a.state or ""].append(b.time_us - a.time_us)
        for place, change in enumerate(changes):
            if self._in(change) and change.state in [earlier.state for earlier in changes[:place]]:
                self.again[change.state or ""] += 1
        if end is None:
            if waits:
                self.waiting[inputs[-1].state or ""] += 1
        elif self._in(end):
            self.durations[ENDS[end.event]].append(end.time_us - run[0].time_us)
            steps = [(event.type or "", event.state or "") for event in inputs]
            self.paths[(steps[0], *(b for a, b in pairwise(steps) if a != b))] += 1
            if end.event in BY_OTHERS or changes[-1] is not inputs[-1]:
                self.dwell[changes[-1].state or ""].append(end.time_us - changes[-1].time_us)
        for event in run:
            if event.kind == "result" and self._in(event):
                (sent,) = [other for other in run if other.version == event.cause]
                self.answers[sent.type or ""].append((sent, event))

    @property
    def bytes(self) -> int:
        return sum(len(event.body or b"") for event in self.events)

    def failed(self, command: str) -> int:
        return sum(answer.type == FAILED for _, answer in self.answers[command])

    def attempts(self, command: str) -> list[int]:
        return [answer.attempt or 0 for _, answer in self.answers[command]]

    def handling(self, command: str) -> list[int]:
        return [answer.duration_us or 0 for _, answer in self.answers[command]]

    def until_answer(self, command: str) -> list[int]:
        return [answer.time_us - sent.time_us for sent, answer in self.answers[command]]


def lives(events: Iterable[EventRow]) -> list[list[EventRow]]:
    """Cut a stream where its instance began anew."""
    runs: list[list[EventRow]] = []
    for event in events:
        if event.event == "Began":
            runs.append([])
        runs[-1].append(event)
    return runs


def percentile(values: list[int], percent: int) -> float:
    """The least value that so many percent do not exceed, in seconds."""
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1] / 1e6
