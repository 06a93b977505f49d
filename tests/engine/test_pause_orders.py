"""Orders to pause and to resume: they have their effect when they return, and one that cannot be read stops nobody."""

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.operations import pause_orders as orders
from mainspring.engine.operations.known_pauses import LOOK_SECONDS, LOOKS_PER_READING, unread_pauses
from mainspring.engine.operations.pauses import FLEET
from mainspring.errors import DamagedRecordError, OperationError, StoreUnreachableError
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import Done, Job, Start, Work, has_status, job
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

CLIENTS = 12


async def done(command: Work) -> Done:
    return Done(command.id, command.part)


class Damage:
    """Lets no process read the orders up to a version, as where their key is gone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.up_to = 0

    def befalls(self, app: Mainspring) -> Mainspring:
        store = internals_of(app).engine.store
        stream, load = store.stream, store.load

        async def read(ref: Any, after: int, limit: int) -> Any:
            rows = await stream(ref, after, limit)
            if ref == FLEET and any(row.body is not None and row.version <= self.up_to for row in rows):
                raise DamagedRecordError("bodies", "its key is not here")
            return rows

        async def loaded(refs: Any, most: int | None = None) -> Any:
            found = await load(refs, most)
            if FLEET in refs and most != 0 and self.up_to:
                raise DamagedRecordError("bodies", "its key is not here")
            return found

        self._monkeypatch.setattr(store, "stream", read)
        self._monkeypatch.setattr(store, "load", loaded)
        return app


@pytest.fixture
def damage(monkeypatch: pytest.MonkeyPatch) -> Damage:
    return Damage(monkeypatch)


# ---- what cannot be read


def test_a_process_starts_and_works_though_the_orders_cannot_be_read(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def unreadable(*_: Any) -> Any:
        raise DamagedRecordError("bodies", "its key is not here")

    async def main() -> None:
        async with job(make_app(), done) as before:
            await before.pauses.pause(Work)
        monkeypatch.setattr(orders, "_counting", unreadable)
        with caplog.at_level(logging.ERROR, "mainspring.engine"):
            async with job(make_app(), done) as app:
                await app.send(Start("j-1"))
                await until(lambda: has_status(app, "j-1", "completed"))
                assert await app.pauses.list() == []
                assert "its key is not here" in (await unread_pauses(internals_of(app).engine.store) or "")
        (record,) = (record for record in caplog.records if record.levelno == logging.ERROR)
        assert "what is paused cannot be read, and nothing is paused here" in record.getMessage()

    run(main)


def test_what_was_known_last_holds_while_the_orders_cannot_be_read(make_app: MakeApp, damage: Damage) -> None:
    async def main() -> None:
        clock = VirtualClock()
        first, second = job(make_app(clock), done), job(make_app(clock), done)
        async with first, second:
            await first.pauses.pause(Work)
            await internals_of(second).engine.look_at_pauses()
            await first.pauses.pause(Job)
            damage.befalls(second)
            damage.up_to = 100
            await internals_of(second).engine.look_at_pauses()
            assert [pause.what for pause in internals_of(second).engine.pauses.pauses] == ["handler:Work"]
            # And as soon as they can be read, they count.
            damage.up_to = 0
            clock.advance(LOOK_SECONDS)
            for _ in range(LOOKS_PER_READING):
                await internals_of(second).engine.look_at_pauses()
            assert len(internals_of(second).engine.pauses.pauses) == 2

    run(main)


def test_ending_the_instance_is_the_way_out_of_orders_that_cannot_be_read(make_app: MakeApp, damage: Damage) -> None:
    async def main() -> None:
        async with job(make_app(), done) as app:
            await app.pauses.pause(Work)
            damage.befalls(app)
            damage.up_to = 2
            for act in (app.pauses.pause, app.pauses.resume):
                with pytest.raises(OperationError, match=r"mainspring terminate mainspring\.Pauses/fleet"):
                    await act("workflow:Job")
            await app.instance_at(str(FLEET)).terminate()
            await app.pauses.pause(Job, actor="ann")
            assert [pause.what for pause in await app.pauses.list()] == ["workflow:Job"]
            await app.pauses.pause(Work)
            assert await app.pauses.resume(Job)
            assert [pause.what for pause in internals_of(app).engine.pauses.pauses] == ["handler:Work"]

    run(main)


def test_orders_of_old_are_not_read_once_nothing_is_paused(make_app: MakeApp, damage: Damage) -> None:
    async def main() -> None:
        async with job(make_app(), done) as app:
            await app.pauses.pause(Work)
            await app.pauses.resume(Work)
            damage.befalls(app)
            damage.up_to = (await app.instance_at(str(FLEET)).row()).position
            assert await unread_pauses(internals_of(app).engine.store) is None
            await app.pauses.pause(Job)
            assert [pause.what for pause in await app.pauses.list()] == ["workflow:Job"]

    run(main)


def test_a_store_in_trouble_is_not_taken_for_orders_that_cannot_be_read(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with job(make_app(), done) as app:
            await app.pauses.pause(Work)

            async def away(*_: Any) -> Any:
                raise StoreUnreachableError("the store", "it is away")

            monkeypatch.setattr(internals_of(app).engine.store, "stream", away)
            with pytest.raises(StoreUnreachableError):
                await app.pauses.list()

    run(main)


# ---- what has its effect


def test_clients_who_pause_at_once_without_a_worker_all_have_their_effect(make_app: MakeApp) -> None:
    async def main() -> None:
        clients = [job(make_app(), done) for _ in range(CLIENTS)]
        async with AsyncExitStack() as exits:
            for client in clients:
                await client.start(work=False)
                exits.push_async_callback(client.stop)
            whats = ["handler:Work", "workflow:Job"]
            orders_given = [client.pauses.pause(whats[place % 2]) for place, client in enumerate(clients)]
            await asyncio.gather(*orders_given)
            for place, client in enumerate(clients):
                assert whats[place % 2] in {pause.what for pause in internals_of(client).engine.pauses.pauses}
            fleet = clients[0].instance_at(str(FLEET))
            assert sorted(pause.what for pause in await clients[0].pauses.list()) == whats
            assert await fleet.waiting() == []
            took = await asyncio.gather(*(client.pauses.resume(Work) for client in clients))
            assert took.count(True) == 1
            assert [pause.what for pause in await clients[0].pauses.list()] == ["workflow:Job"]

    run(main)


def test_an_order_that_was_refused_leaves_nothing_behind(make_app: MakeApp) -> None:
    async def main() -> None:
        app = job(make_app(), done)
        async with AsyncExitStack() as exits:
            await app.start(work=False)
            exits.push_async_callback(app.stop)
            await app.pauses.pause(Work)
            fleet = app.instance_at(str(FLEET))
            await fleet.suspend("x")
            with pytest.raises(OperationError, match="is suspended, and takes no orders"):
                await app.pauses.pause(Job)
            assert await fleet.waiting() == []
            await fleet.resume()
            assert [pause.what for pause in await app.pauses.list()] == ["handler:Work"]
            await app.pauses.pause(Job)
            assert (await app.send(Start("j-1"))).status == "accepted"

    run(main)


def test_an_order_that_finds_no_turn_is_told_after_a_while(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with job(make_app(), done) as app:
            monkeypatch.setattr(orders, "ORDER_SECONDS", 0.0)
            with pytest.raises(OperationError, match="did not take the order within"):
                await app.pauses.pause(Work)
            assert await app.pauses.list() == []

    run(main)
