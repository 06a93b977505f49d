"""The figures are those that a plain computation finds, of thousands of generated instances in a real file."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mainspring.analysis.diagram.mining import Mined, Miner, mine
from mainspring.analysis.figures import account, samples, tally
from mainspring.analysis.figures.figures import Figures, figures_of
from mainspring.analysis.processes import Sharing, shared
from mainspring.app import Mainspring
from mainspring.engine.runtime import SystemClock
from mainspring.errors import OperationError
from mainspring.port.records import InstanceFilter
from mainspring.port.store import Store
from mainspring.stores.sqlite.store import SqliteStore
from tests.unit.analysis.comparison import check, of
from tests.unit.analysis.generated import FIRST_US, SECOND_US, WORKFLOWS, Stream, fill, streams
from tests.unit.analysis.plain_figures import Naive

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
    monkeypatch.setattr(tally, "PATHS_KEPT", 20)
    found = of(read(database), "Orders").variants
    naive = Naive(generated, "Orders").paths
    assert found.uncertain > 0
    assert sum(variant.count for variant in found.top) + found.others == naive.total()
    for variant in found.top:
        assert variant.count <= naive[variant.steps] <= variant.count + found.uncertain


def test_several_processes_find_what_one_finds(
    database: Path, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "OUTLINED_INSTANCES_PER_PAGE", 300)
    monkeypatch.setattr(account, "PAGES_ALONE", 1)
    told: list[int] = []

    async def ask() -> Figures:
        async with opened(database) as store:
            sharing = Sharing(functools.partial(Mainspring, f"sqlite:///{database}"), 2)
            return await figures_of(store, InstanceFilter(), None, None, ALL_PATHS, sharing, told.append)

    found = asyncio.run(ask())
    assert found.workflows == figures.workflows
    assert (sum(told), len(told)) == (COUNT, 7)


@pytest.mark.parametrize("per_page", [7, 100, 999, 5_000])
def test_stretches_hold_every_instance_once(database: Path, monkeypatch: pytest.MonkeyPatch, per_page: int) -> None:
    monkeypatch.setattr(account, "OUTLINED_INSTANCES_PER_PAGE", per_page)

    async def ask(first: int, most: int) -> list[int]:
        async with opened(database) as store:
            found: list[int] = []
            async for stretch in account.stretches(store, first, most):
                async for page in account.pages_within(store, InstanceFilter(workflow="Orders"), *stretch):
                    found += [row.key for row in page]
            wanted = [row.key for row in await store.instances(InstanceFilter(workflow="Orders"), 10_000, first)]
            assert found == wanted
            return found

    assert all(asyncio.run(ask(first, most)) for first in (0, 1, 777) for most in (3, 64))
    assert asyncio.run(ask(10**9, 5)) == []


def test_a_helper_that_fails_says_why_though_it_never_read_its_part() -> None:
    async def ask() -> None:
        async def parts() -> AsyncGenerator[bytes]:
            yield b"x" * 1_000_000

        async for _ in shared(parts(), nothing, Sharing(broken, 1)):
            raise AssertionError

    with pytest.raises(OperationError, match=r"has failed: .*there is no app here.*--processes 1"):
        asyncio.run(ask())


async def nothing(_app: Mainspring, _part: bytes) -> None: ...


def broken() -> Mainspring:
    raise LookupError("there is no app here")


def test_a_diagram_tells_the_same_times_as_the_figures(database: Path, figures: Figures) -> None:
    async def ask(workflow: str) -> Mined:
        async with opened(database) as store:
            return await mine(store, InstanceFilter(workflow=workflow), Miner(workflow, "New"))

    for workflow in WORKFLOWS:
        drawn = {state.name: (state.dwell_seconds, state.now) for state in asyncio.run(ask(workflow)).states}
        told = {
            state.state: (state.dwell.p50 if state.dwell else None, state.waiting)
            for state in of(figures, workflow).states
        }
        assert drawn == told
