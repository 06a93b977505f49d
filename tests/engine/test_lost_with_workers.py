"""What ends the process of whoever takes it is tried alone after a while, and given up at last; the others go on."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.claiming.lone_trials import LOOKS, MAX_LOST
from mainspring.port.records import Unit
from mainspring.port.suspects import SUSPECT
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract.rig import input_row
from tests.engine.fatal_process import Begin, fragile, main
from tests.engine.jobs import Done, Start, Work, job
from tests.support.apps import MakeApp
from tests.support.postgres.schemas import clean_schema
from tests.support.restarted import Restarted
from tests.support.running import run
from tests.support.waiting import until

WORKERS = 2
NEIGHBOURS = 20


@contextmanager
def a_store(kind: str, tmp_path: Path) -> Generator[str]:
    with clean_schema() if kind == "postgres" else nullcontext(f"sqlite:///{tmp_path / 'test.db'}") as url:
        yield url


async def suspended(app: Mainspring, fleet: Restarted) -> str:
    """Wait for the one instance that is suspended, and all its neighbours, and return its error."""

    async def over() -> str | None:
        fleet.mend()
        errors = [row.error or "" for row in await app.instances(status="suspended")]
        done = (await app.stats()).instances.get("completed", 0) == NEIGHBOURS
        return errors[0] if done and errors else None

    return await until(over)


def test_what_a_worker_cannot_read_is_set_aside_for_others_and_keeps_it_from_nothing(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        sender = job(make_app(clock), _work)
        await sender.start(work=False)
        store = internals_of(sender).engine.store
        newer = input_row("n-1", "j-0", workflow="Job", type="NewerStill")
        await internals_of(sender).engine.committer.commit(Unit("Job", "j-0", accepts=(newer,)))
        for _ in range(SUSPECT):
            worker = await store.register_worker("doomed", 1_000_000)
            assert (await store.claim(worker, [], ["Job"], 10)).inputs
            clock.advance(2)
            assert await store.relieve() == 1
        async with job(make_app(clock), _work) as app:
            for _ in range(LOOKS + 1):
                await internals_of(app).engine.lone_trials.look(relieved=False)
            await (await app.send(Start("j-1"))).result()
            assert not internals_of(app).engine.dispatcher.resting
            assert [(suspect.type, suspect.aside) for suspect in await store.suspects(10)] == [("NewerStill", True)]
        await sender.stop()

    run(main)


async def _work(command: Work) -> Done:
    return Done(command.id, command.part)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize(
    ("what", "kind"),
    [
        *((what, "sqlite") for what in ("fatal", "poked", "timer", "evolve")),
        ("fatal", "postgres"),
        *(pytest.param(what, "postgres", marks=pytest.mark.soak) for what in ("poked", "timer", "evolve")),
    ],
)
def test_what_takes_workers_down_is_given_up_and_its_neighbours_go_on(what: str, kind: str, tmp_path: Path) -> None:
    async def body(url: str) -> None:
        app = fragile(Mainspring(url))
        await app.start(work=False)
        try:
            await app.send(Begin(f"{what}-1"))
            if what in ("poked", "evolve"):
                # Not sent: that would be stepped here.
                id = f"{what}-1"
                poke = input_row("p-1", id, workflow="Fragile", type="Poke", body=f'{{"id":"{id}"}}'.encode())
                await internals_of(app).engine.committer.commit(Unit("Fragile", id, accepts=(poke,)))
            await app.send_many([Begin(f"n-{n}") for n in range(NEIGHBOURS)])
            fleet = Restarted(main, url, WORKERS)
            try:
                error = await suspended(app, fleet)
            finally:
                fleet.stop()
            letters = await app.dead_letters()
            assert f"was lost with {SUSPECT + MAX_LOST} workers" in error
            assert fleet.deaths == SUSPECT + MAX_LOST
            assert [(letter.type, letter.reason) for letter in letters] == (
                [("Do", "it was lost with its workers")] if what == "fatal" else []
            )
            assert await internals_of(app).engine.store.suspects(10) == []
        finally:
            await app.stop()

    with a_store(kind, tmp_path) as url:
        run(lambda: body(url))
