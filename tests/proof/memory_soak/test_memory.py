"""A worker keeps nothing of the instances that came and went."""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.stepping.lanes import Lane
from tests.proof.memory_soak.census import census, grown, kinds
from tests.proof.memory_soak.figures import Sample, judge, plot
from tests.proof.memory_soak.load import Client, Start, jobs
from tests.support.paths import ROOT
from tests.support.postgres.server import postgres_url
from tests.support.running import run
from tests.support.soaking import some_of
from tests.support.waiting import until

JOBS = 80
PLANTED_JOBS = 20
APPS = 15
TEST_SECONDS = 300


def left_behind(url: str, count: int, plant: Callable[[Mainspring], Any] | None = None) -> dict[str, int]:
    """Return of which types there are more objects after a round of jobs than before it."""

    async def body() -> dict[str, int]:
        app = jobs(url)
        async with app:
            client = Client(app)
            planted = plant(app) if plant is not None else None
            await _round(client, count)
            before = census(app, planted)
            await _round(client, count)
            # All kinds of objects that a job makes are at least one for each.
            return grown(before, census(app, planted), count // 2)

    return run(body)


async def _round(client: Client, count: int) -> None:
    await client.start_many(count)
    await client.app.projections("running").caught_up()
    await until(lambda: _nothing_owed(client.app))


async def _nothing_owed(app: Mainspring) -> bool:
    """Tell whether the last publications have gone out, too: what is under way is not kept."""
    return (await app.stats()).outbox == 0


def keep_lanes(app: Mainspring) -> list[Lane]:
    """Plant a leak: the lane of every instance that has ended."""
    kept: list[Lane] = []
    lanes, drop = internals_of(app).engine.stepper.lanes, internals_of(app).engine.stepper.lanes.drop

    def keep(lane: Lane) -> None:
        kept.append(lane)
        drop(lane)

    lanes.drop = keep
    return kept


def left_by_apps(url: str) -> dict[str, int]:
    """Return of which types there are more objects, one for each app at least, after apps were opened and closed."""

    async def open_and_close() -> None:
        app = jobs(url)
        app.schedules.add("hourly", message=Start("hourly", "well"), every=timedelta(hours=1))
        async with app:
            pass

    async def body() -> dict[str, int]:
        for _ in range(APPS):
            await open_and_close()
        kinds()  # the first count makes some objects of its own
        before = kinds()
        for _ in range(APPS):
            await open_and_close()
        # asyncio keeps timers that were cancelled until there are a hundred: the limits of the server's answers.
        timers = ("asyncio.events.TimerHandle", "_contextvars.Context")
        return {name: more for name, more in grown(before, kinds(), APPS).items() if name not in timers}

    return run(body)


def elsewhere(url: str, call: str) -> dict[str, int]:
    """Call it in a process of its own: what other tests have left in this one can be reached, too, and takes long."""
    code = f"import json, sys, tests.proof.memory_soak.test_memory as t; print(json.dumps(t.{call}))"
    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-c", code, url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TEST_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout)


def test_nothing_is_kept_of_instances_that_came_and_went(tmp_path: Path) -> None:
    assert elsewhere(f"sqlite:///{tmp_path}/jobs.db", f"left_behind(sys.argv[1], {JOBS})") == {}


def test_what_is_kept_is_found(tmp_path: Path) -> None:
    found = elsewhere(f"sqlite:///{tmp_path}/jobs.db", f"left_behind(sys.argv[1], {PLANTED_JOBS}, t.keep_lanes)")

    assert found["mainspring.engine.stepping.lanes.Lane"] >= PLANTED_JOBS // 2


@pytest.mark.parametrize("store", some_of(["memory", "sqlite", "postgres"], ["sqlite", "postgres"]))
def test_nothing_is_kept_of_apps_that_were_closed(store: str, tmp_path: Path) -> None:
    urls = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/jobs.db"}

    assert elsewhere(urls.get(store) or postgres_url(tmp_path), "left_by_apps(sys.argv[1])") == {}


@pytest.mark.parametrize(
    ("rss", "stored", "violations"), [(0, 100, 0), (30, 100, 1), (0, 5_000, 1)], ids=["steady", "memory", "store"]
)
def test_a_drift_is_judged_behind_the_warm_up(rss: int, stored: int, violations: int) -> None:
    begun = [Sample(n, 100 + n, 0, n) for n in range(25)]
    rest = [Sample(n, 200 + rss * n // 100, stored * n, n) for n in range(25, 101)]

    assert len(judge(begun + rest).violations) == violations
    assert plot(begun + rest, "a run").count("polyline") == 2
