"""What is told of generated instances, held against what a plain computation finds."""

from __future__ import annotations

import pytest

from mainspring.analysis.figures.figures import Figures, WorkflowFigures
from mainspring.analysis.figures.samples import RELATIVE_ERROR, Spread
from tests.unit.analysis.plain_figures import Naive, percentile


def of(figures: Figures, workflow: str) -> WorkflowFigures:
    (found,) = [one for one in figures.workflows if one.workflow == workflow]
    return found


def same(spread: Spread | None, values: list[int]) -> None:
    """Compare what is told of durations with all of them."""
    if not values:
        assert spread is None
        return
    assert spread is not None
    assert spread.count == len(values)
    assert spread.total == pytest.approx(sum(values) / 1e6)
    assert spread.longest == max(values) / 1e6
    tolerance = 0 if spread.exact else RELATIVE_ERROR * 1.000_001
    for told, percent in ((spread.p50, 50), (spread.p90, 90), (spread.p99, 99)):
        assert told == pytest.approx(percentile(values, percent), rel=tolerance, abs=0)


def check(found: WorkflowFigures, naive: Naive) -> None:
    """Compare everything that is told of a workflow."""
    assert found.events == len(naive.events)
    assert found.bytes == naive.bytes
    assert found.begun == naive.begun
    assert found.statuses == naive.statuses
    assert found.ended == {status: len(values) for status, values in sorted(naive.durations.items())}
    assert {**dict.fromkeys(naive.durations), **found.durations}.keys() == found.durations.keys()
    for status, spread in found.durations.items():
        same(spread, naive.durations[status])
    assert {state.state for state in found.states} == {*naive.dwell, *naive.waiting, *naive.again}
    total = sum(sum(values) for values in naive.dwell.values())
    for state in found.states:
        same(state.dwell, naive.dwell[state.state])
        assert state.share == pytest.approx(sum(naive.dwell[state.state]) / total)
        assert (state.waiting, state.again) == (naive.waiting[state.state], naive.again[state.state])
    for command in found.commands:
        attempts = naive.attempts(command.type)
        assert (command.sent, command.answered) == (naive.sent[command.type], len(naive.answers[command.type]))
        assert (command.failed, command.attempts) == (naive.failed(command.type), sum(attempts))
        assert command.retried == sum(attempt > 1 for attempt in attempts)
        same(command.handling, naive.handling(command.type))
        same(command.until_answer, naive.until_answer(command.type))
    assert {(step.source, step.message, step.target): step.count for step in found.steps} == naive.steps
    for variant in found.variants.top:
        assert variant.count <= naive.paths[variant.steps] <= variant.count + found.variants.uncertain
    assert sum(variant.count for variant in found.variants.top) + found.variants.others == naive.paths.total()
    if not found.variants.uncertain:
        assert len(found.variants.top) == len(naive.paths)
    assert sum(interval.begun for interval in found.throughput.intervals) == naive.begun
