"""What an app does when things go wrong around it: replies made elsewhere, stops cut short, ids that are none."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring, Reply
from mainspring.app.internals import internals_of
from mainspring.engine.inputs import intake
from mainspring.engine.runtime import Runtime
from mainspring.errors import (
    InstanceSuspendedError,
    InvalidIdError,
    NoSuchInstanceError,
    OperationError,
    StoreUnreachableError,
    WiringError,
)
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import Done, Job, Start, Work, job
from tests.engine.shop import AskTotal, Break, Charge, Note, PlaceOrder, Ship, Shop, Total
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

SOON = timedelta(seconds=60)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in ("committing.committer.PAUSE_AFTER_STORE_ERROR_SECONDS", "outputs.replies.PAUSE_SECONDS"):
        monkeypatch.setattr(f"mainspring.engine.{pause}", 0.02)


def closed_shop(app: Mainspring) -> Mainspring:
    app.add(Shop())
    app.external(Charge, Ship)
    return app


class Slow(Shop):
    """Answers a question only when it is told to, with a Note that holds the question's id."""

    name = "Slow"

    def decide(self, message: Any, state: Any) -> Any:
        match message:
            case AskTotal():
                return []
            case Note(_, asked):
                return [Reply(Total(7), to=asked)]
            case _:
                return super().decide(message, state)


def test_a_client_gets_the_reply_that_another_process_made(make_app: MakeApp) -> None:
    async def main() -> None:
        client = closed_shop(make_app())
        async with closed_shop(make_app()) as worker:
            await worker.send(PlaceOrder("o-1", 42))
            await client.start(work=False)
            assert await client.request(AskTotal("o-1"), timeout=SOON) == Total(42)
            await client.stop()

    run(main)


def test_two_requests_with_one_id_at_once_both_get_the_reply(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            await app.send(PlaceOrder("o-1", 42))
            both = [app.request(AskTotal("o-1"), id="r-1", timeout=SOON) for _ in range(2)]
            assert await asyncio.gather(*both) == [Total(42), Total(42)]

    run(main)


def test_a_request_that_no_instance_takes_fails_at_once(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            with pytest.raises(NoSuchInstanceError, match="There is no instance Shop/o-9"):
                await app.request(AskTotal("o-9"))

    run(main)


def test_a_request_that_waits_in_vain_tells_that_the_instance_is_suspended_and_why(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            await app.send(PlaceOrder("o-1"))
            with pytest.raises(InstanceSuspendedError, match=r"Shop/o-1 is suspended: .*broken on purpose"):
                await app.request(Break("o-1"))

    run(main)


def test_a_reply_outlives_a_commit_that_failed(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            await app.send(PlaceOrder("o-1", 42))
            store = internals_of(app).engine.store
            commit, broken = store.commit, []

            async def fail_the_reply(worker: int, units: Any) -> Any:
                if not broken and any(unit.remembers for unit in units):
                    broken.append(True)
                    raise StoreUnreachableError("test", "the disk is away")
                return await commit(worker, units)

            monkeypatch.setattr(store, "commit", fail_the_reply)
            assert await app.request(AskTotal("o-1"), timeout=SOON) == Total(42)
            assert broken

    run(main)


def test_a_reply_to_an_earlier_question_outlives_a_read_that_failed(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Slow())
        app.external(Charge, Ship)
        async with app:
            await app.send(PlaceOrder("o-1"))
            asked = asyncio.create_task(app.request(AskTotal("o-1"), id="q-1", timeout=SOON))
            await until(lambda: _is_recorded(app, "q-1"))
            store = internals_of(app).engine.store
            read, broken = store.stream, []

            async def fail_once(*args: Any) -> Any:
                if not broken:
                    broken.append(True)
                    raise StoreUnreachableError("test", "the disk is away")
                return await read(*args)

            monkeypatch.setattr(store, "stream", fail_once)
            await app.send(Note("o-1", "q-1"))
            assert await asked == Total(7)
            assert broken

    async def _is_recorded(app: Mainspring, id: str) -> bool:
        return any(entry.message_id == id for entry in await app.instance(Slow, "o-1").stream())

    run(main)


def test_a_handler_may_still_send_while_the_app_drains(make_app: MakeApp) -> None:
    async def main() -> None:
        app, running = make_app(), asyncio.Event()

        async def work(command: Work) -> Done:
            running.set()
            await until(lambda: internals_of(app).engine.worker.closing)
            await app.send(Start("j-2", 0))
            return Done(command.id, command.part)

        await job(app, work).start()
        await app.send(Start("j-1"))
        await running.wait()
        await app.stop()
        async with job(make_app(), work) as again:
            assert (await again.instance(Job, "j-2").row()).status == "running"
            assert (await again.instance(Job, "j-1").row()).status == "completed"

    run(main)


def test_an_app_stops_though_its_clock_stands_still(tmp_path: Path) -> None:
    async def main() -> None:
        running, ended = asyncio.Event(), list[str]()

        async def work(command: Work) -> Done:
            running.set()
            await until(lambda: internals_of(app).engine.worker.closing)
            ended.append(command.id)
            return Done(command.id, command.part)

        app = Mainspring(f"sqlite:///{tmp_path / 'test.db'}", runtime=Runtime(VirtualClock()))
        async with job(app, work):
            await app.send(Start("j-1"))
            await running.wait()
        assert ended == ["j-1"]

    run(main)


def test_a_stop_that_is_cancelled_closes_everything_all_the_same(make_app: MakeApp) -> None:
    async def main() -> None:
        app, running, closed = make_app(), asyncio.Event(), asyncio.Event()

        @app.resource("bank")
        @asynccontextmanager
        async def bank() -> AsyncGenerator[str]:
            yield "bank"
            closed.set()

        async def work(command: Work) -> Done:
            running.set()
            await asyncio.Event().wait()  # hangs, until it is cancelled
            return Done(command.id, command.part)

        await job(app, work).start()
        await app.send(Start("j-1"))
        await running.wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(app.stop(), 0.1)
        assert closed.is_set()
        with pytest.raises(WiringError, match="not running"):
            _ = internals_of(app).engine

    run(main)


def test_the_blocking_app_refuses_to_wait_for_itself(make_app: MakeApp) -> None:
    app, caught = make_app(), list[WiringError]()
    called: list[Any] = []

    async def work(command: Work) -> Done:
        try:
            called[0].send(Start("j-2", 0))
        except WiringError as error:
            caught.append(error)
        return Done(command.id, command.part)

    with job(app, work).blocking() as blocking:
        called.append(blocking)
        blocking.send(Start("j-1")).result()
    assert "cannot wait for itself" in str(caught[0])


def test_an_empty_id_is_refused_by_all_who_take_one(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            for call in (app.send, app.publish, app.request):
                with pytest.raises(InvalidIdError):
                    await call(PlaceOrder("o-1"), id="")

    run(main)


def test_ids_that_do_not_match_their_messages_are_refused(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            with pytest.raises(OperationError, match="got 2 messages and 1 ids"):
                await app.send_many([PlaceOrder("o-1"), PlaceOrder("o-2")], ids=["a"])
            assert await app.send_many([], ids=[]) == []

    run(main)


def test_a_dead_letter_whose_message_was_taken_meanwhile_goes_when_it_is_tried_again(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            await app.send(Note("o-1", "a"), id="m-1")
            await app.send(PlaceOrder("o-1"))
            assert (await app.send(Note("o-1", "a"), id="m-1")).status == "stepped"
            [letter] = await app.dead_letters()
            await app.retry_dead_letter(letter.id)
            assert await app.dead_letters() == []

    run(main)


def test_one_answer_wakes_one_who_waits_at_the_door(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "INPUTS_IN_FLIGHT", 10)

    async def main() -> None:
        async with closed_shop(make_app()) as app:
            await app.send(PlaceOrder("o-1"))
            door = internals_of(app).engine.intake
            for _ in range(10):
                await door.take_place()
            waiting = [asyncio.create_task(door.take_place()) for _ in range(5)]
            await asyncio.sleep(0)
            waiting[0].cancel()
            door.leave()
            await asyncio.sleep(0)
            assert [task.done() for task in waiting] == [True, True, False, False, False]
            for _ in range(3):
                door.leave()
            await asyncio.gather(*waiting[1:])

    run(main)
