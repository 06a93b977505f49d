"""Workers of the release before beside new ones: they leave alone what the history style means otherwise since."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.styles.history_words import StartWorkflow, TaskCompleted
from tests.engine.history_releases import Trip, history_release, words_of_before
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


@asynccontextmanager
async def before(make_app: MakeApp, *, work: bool = True) -> AsyncGenerator[Mainspring]:
    """Open an app of the release before."""
    with pytest.MonkeyPatch.context() as older:
        words_of_before(older)
        app = history_release(make_app(), "history before")
        await app.start(work=work)
        yield app
        await app.stop()


@asynccontextmanager
async def newer(make_app: MakeApp, *, work: bool = True) -> AsyncGenerator[Mainspring]:
    """Open an app of the new release."""
    app = history_release(make_app(), "history")
    await app.start(work=work)
    yield app
    await app.stop()


async def is_left(app: Mainspring) -> bool:
    """Return True if a worker leaves the only instance to others, and nothing is wrong."""
    assert [row.status for row in await app.instances()] == ["running"]
    assert await app.dead_letters() == []
    return bool(internals_of(app).engine.claimer.strangers.leaves().instances)


def test_what_a_new_worker_began_is_left_alone_by_an_old_one(make_app: MakeApp) -> None:
    async def main() -> None:
        async with newer(make_app, work=False) as new:
            await new.send(StartWorkflow("new-1", None))
        async with before(make_app) as old:
            rounds = internals_of(old).engine.claimer.rounds
            internals_of(old).engine.wakeups.due_at(0)
            await until(
                lambda: internals_of(old).engine.claimer.rounds > rounds and internals_of(old).engine.claimer.idle
            )
            assert not await is_left(old)  # its task was not even claimed
        async with newer(make_app) as new:
            assert await new.instance(Trip, "new-1").result() == ["ValueError: it rains"]

    run(main)


def test_an_end_from_outside_is_left_to_new_workers(make_app: MakeApp) -> None:
    async def main() -> None:
        async with before(make_app, work=False) as old:
            await old.send(StartWorkflow("old-1", None))
        async with newer(make_app, work=False) as new:
            for result in ("done elsewhere", "once more"):
                await new.send(TaskCompleted("t-1", result, workflow_id="old-1"))
        async with before(make_app) as old:
            await until(lambda: is_left(old))  # its own task is done there, and what comes of that waits
        async with newer(make_app) as new:
            assert await new.instance(Trip, "old-1").result() == []

    run(main)


def test_what_an_old_worker_began_goes_on_in_a_new_one(make_app: MakeApp) -> None:
    async def main() -> None:
        async with before(make_app, work=False) as old:
            await old.send(StartWorkflow("old-1", None))
        async with newer(make_app) as new:
            assert await new.instance(Trip, "old-1").result() == []

    run(main)
