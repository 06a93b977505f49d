"""A worker that dies right after one of its commits."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from tests.support.waiting import until

Story = Callable[[Mainspring], Awaitable[Any]]


async def dies_after(commits: int, app: Mainspring, story: Story) -> None:
    """Let a worker make so many commits and never hear of the last, nor do anything more."""
    await app.start()
    store, dead = internals_of(app).engine.store, asyncio.Event()
    commit, left = store.commit, iter(range(commits))

    async def mortal(*values: Any) -> Any:
        last = next(left, None)
        if last is None:
            await asyncio.Event().wait()
        outcomes = await commit(*values)
        if last == commits - 1:
            dead.set()
            await asyncio.Event().wait()
        return outcomes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "commit", mortal)
        told = asyncio.ensure_future(story(app))
        death = asyncio.ensure_future(dead.wait())
        await asyncio.wait((death, asyncio.ensure_future(_quiet_for_long(app, told))), return_when="FIRST_COMPLETED")
        for task in (told, death):
            task.cancel()
        await internals_of(app).engine.runtime.cancel_tasks()
    await store.release_worker(internals_of(app).engine.committer.worker)
    internals_of(app).engine.committer.close()
    exits = internals_of(app).exits
    assert exits is not None
    await exits.aclose()  # a stop would drain what a crash leaves
    internals_of(app).engine.runtime.close()


async def _quiet_for_long(app: Mainspring, told: asyncio.Future[Any]) -> None:
    """Return when the story is over without the crash: it took fewer commits."""
    await told
    engine = internals_of(app).engine
    # What is being committed may be in nobody's hands, and bring more.
    await until(lambda: engine.committer.idle and not engine.dispatcher.in_hand and not engine.stepper.lanes.busy())
