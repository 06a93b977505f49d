"""A worker keeps nothing of the instances that came and went."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.engine.lanes import Lane
from tests.proof.memory_soak.census import census, grown
from tests.proof.memory_soak.figures import Sample, judge, plot
from tests.proof.memory_soak.load import Client, jobs

JOBS = 160
TEST_SECONDS = 300


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    # pytest keeps all that is logged, and dead letters are.
    caplog.set_level(logging.CRITICAL, "mainspring.engine")


def left_behind(url: str, plant: Callable[[Mainspring], Any] | None = None) -> dict[str, int]:
    """Return of which types there are more objects after a round of jobs than before it."""

    async def body() -> dict[str, int]:
        app = jobs(url)
        async with asyncio.timeout(TEST_SECONDS), app:
            client = Client(app)
            planted = plant(app) if plant is not None else None
            await _round(client)
            before = census(app, planted)
            await _round(client)
            # All kinds of objects that a job makes are at least one for each.
            return grown(before, census(app, planted), JOBS // 2)

    return asyncio.run(body())


async def _round(client: Client) -> None:
    await client.start_many(JOBS)
    await client.app.projections("running").caught_up()


def test_nothing_is_kept_of_instances_that_came_and_went(tmp_path: Path) -> None:
    # In a process of its own: what other tests have left in this one can be reached, too.
    call = "import sys, tests.proof.memory_soak.test_memory as t; print(t.left_behind(sys.argv[1]))"
    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-c", call, f"sqlite:///{tmp_path}/jobs.db"],
        capture_output=True,
        text=True,
        timeout=TEST_SECONDS,
        check=False,
    )
    assert done.stdout == "{}\n", done.stderr[-2_000:]


def test_what_is_kept_is_found(tmp_path: Path) -> None:
    def keep_lanes(app: Mainspring) -> list[Lane]:
        kept: list[Lane] = []
        ended = app.engine.ended

        def hear(lane: Lane) -> None:
            kept.append(lane)
            ended(lane)

        app.engine.ended = hear
        return kept

    found = left_behind(f"sqlite:///{tmp_path}/jobs.db", keep_lanes)

    assert found["mainspring.engine.lanes.Lane"] >= JOBS // 2


@pytest.mark.parametrize(
    ("rss", "stored", "violations"), [(0, 100, 0), (30, 100, 1), (0, 5_000, 1)], ids=["steady", "memory", "store"]
)
def test_a_drift_is_judged_behind_the_warm_up(rss: int, stored: int, violations: int) -> None:
    begun = [Sample(n, 100 + n, 0, n) for n in range(25)]
    rest = [Sample(n, 200 + rss * n // 100, stored * n, n) for n in range(25, 101)]

    assert len(judge(begun + rest).violations) == violations
    assert plot(begun + rest, "a run").count("polyline") == 2
