"""Judges histories, instance by instance: linearizability of the whole is that of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.proof.histories.calls import Call
from tests.proof.histories.claims import claims
from tests.proof.histories.model import Instance, Standing
from tests.proof.histories.search import MOST_CONFIGURATIONS, Answer, Operation, search

SHOWN = 12
TEXT_CHARACTERS = 300


@dataclass
class Judged:
    """How it went: what was looked at, and what was found. An undecided history is neither good nor bad."""

    calls: int = 0
    operations: int = 0
    reads: int = 0
    never_told: int = 0
    instances: int = 0
    decided: int = 0
    configurations: int = 0
    undecided: list[str] = field(default_factory=list[str])
    violations: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def __str__(self) -> str:
        return (
            f"{self.operations:,} operations of {self.calls:,} calls ({self.reads:,} reads, {self.never_told:,} never "
            f"answered) on {self.instances:,} instances: {self.decided:,} decided, {len(self.undecided):,} undecided, "
            f"{len(self.violations):,} violated; {self.configurations:,} configurations"
        )


def judge(calls: Iterable[Call], models: Mapping[str, Instance], most: int = MOST_CONFIGURATIONS) -> Judged:
    """Judge the calls to all instances of the workflows that have a model."""
    judged = Judged()
    histories: defaultdict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if call.to.partition("/")[0] in models:
            histories[call.to].append(call)
    for to, history in sorted(histories.items()):
        judged.calls += len(history)
        judged.instances += 1
        judged.never_told += sum(call.outcome == "unknown" for call in history)
        _judge_one(judged, to, history, models[to.partition("/")[0]], most)
    return judged


def _judge_one(judged: Judged, to: str, history: list[Call], model: Instance, most: int) -> None:
    claimed = claims(history)
    judged.operations += len(claimed.operations)
    judged.reads += sum(not operation.writes for operation in claimed.operations)
    if claimed.contradictions:
        judged.decided += 1
        judged.violations += [(to, text) for text in claimed.contradictions]
        return
    answer = search(model, claimed.operations, most)
    judged.configurations += answer.configurations
    if answer.verdict == "undecided":
        judged.undecided.append(to)
        return
    judged.decided += 1
    if answer.verdict == "violated":
        judged.violations.append((to, explained(answer)))


def explained(answer: Answer[Standing]) -> str:
    """Return how far an order got, and what it could not place: the first of those that had to be next."""
    start = min(each.began for each in (*answer.placed, *answer.left))
    left = sorted((each for each in answer.left if each.needed), key=lambda each: min(each.by, each.known))
    maybe = [each for each in answer.left if not each.needed]
    lines = [
        f"no order explains its history. After {len(answer.placed)} operations, as {_short(answer.standing)},",
        *(f"    no place for {_line(operation, start)}" for operation in left[:SHOWN]),
        *(f"    maybe later: {_line(operation, start)}" for operation in maybe[:SHOWN]),
    ]
    return "\n".join(lines)


def _line(operation: Operation, start: float) -> str:
    began, by, known = ((at - start) / 1e6 for at in (operation.began, operation.by, operation.known))
    return (
        f"{operation.name}, begun at {began:.1f} ms, known at {known:.1f}, done by {by:.1f}: {_short(operation.what)}"
    )


def _short(what: Any) -> str:
    text = repr(what)
    return text if len(text) <= TEXT_CHARACTERS else f"{text[:TEXT_CHARACTERS]}…"
