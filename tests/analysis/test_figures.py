"""The figures are those that a plain computation finds, of thousands of generated instances in a real file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mainspring.analysis import samples, variants
from mainspring.analysis.figures import Figures, WorkflowFigures, figures_of
from mainspring.analysis.samples import RELATIVE_ERROR, Spread
from mainspring.engine.runtime import SystemClock
from mainspring.port.records import InstanceFilter
from mainspring.port.store import Store
from mainspring.stores.sqlite.store import SqliteStore
from tests.analysis.generated import FIRST_US, SECOND_US, WORKFLOWS, Stream, fill, streams
from tests.analysis.naive import Naive, percentile

COUNT = 2_000
DAY_US = 86_400 * SECOND_US
WINDOW = (FIRST_US + 10 * DAY_US, FIRST_US + 25 * DAY_US)
ALL_PATHS = 1_000_000


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[Store]:
    store = SqliteStore(path, SystemClock())
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the generated instances."""
    path = tmp_path_factory.mktemp("generated") / "many.db"

    async def write() -> None:
        async with opened(path) as store:
            await fill(store, COUNT)

    asyncio.run(write())
    return path


@pytest.fixture(scope="session")
def generated() -> list[Stream]:
    return list(streams(COUNT))


def read(path: Path, since_us: int | None = None, until_us: int | None = None, workflow: str | None = None) -> Figures:
    async def ask() -> Figures:
        async with opened(path) as store:
            return await figures_of(store, InstanceFilter(workflow=workflow), since_us, until_us, ALL_PATHS)

    return asyncio.run(ask())


@pytest.fixture(scope="session")
def figures(database: Path) -> Figures:
    return read(database)


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
    assert {variant.steps: variant.count for variant in found.variants.top} == naive.paths
    assert sum(interval.begun for interval in found.throughput.intervals) == naive.begun


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_the_figures_are_those_of_a_plain_computation(figures: Figures, generated: list[Stream], workflow: str) -> None:
    check(of(figures, workflow), Naive(generated, workflow))


def test_a_window_counts_what_happened_in_it_whenever_the_instance_began(
    database: Path, generated: list[Stream]
) -> None:
    found = read(database, *WINDOW)
    for workflow in WORKFLOWS:
        check(of(found, workflow), Naive(generated, workflow, *WINDOW))


def test_one_workflow_alone_has_the_same_figures(database: Path, figures: Figures) -> None:
    alone = read(database, workflow="Orders")
    assert [one.workflow for one in alone.workflows] == ["Orders"]
    assert alone.workflows[0] == of(figures, "Orders")


def test_many_values_are_told_within_the_error_that_is_stated(
    database: Path, generated: list[Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "EXACT_VALUES", 10)
    found = read(database)
    assert not any(spread.exact for spread in of(found, "Orders").durations.values())
    for workflow in WORKFLOWS:
        check(of(found, workflow), Naive(generated, workflow))


def test_with_too_many_paths_the_rest_is_counted_and_the_doubt_is_stated(
    database: Path, generated: list[Stream], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variants, "PATHS_KEPT", 20)
    found = of(read(database), "Orders").variants
    naive = Naive(generated, "Orders").paths
    assert found.uncertain > 0
    assert sum(variant.count for variant in found.top) + found.others == naive.total()
    for variant in found.top:
        assert variant.count <= naive[variant.steps] <= variant.count + found.uncertain
