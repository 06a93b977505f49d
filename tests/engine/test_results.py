import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from mainspring import (
    Context,
    Mainspring,
    Received,
    Retry,
)
from mainspring.errors import WiringError
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import Done, Job, Start, Unexpected, Work, has_length, has_status, job
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


@pytest.mark.parametrize("options", [{}, {"remember": timedelta.max}], ids=["for a day", "for ever"])
def test_a_business_key_answers_a_repeated_command_from_memory(make_app: MakeApp, options: dict[str, Any]) -> None:
    calls: list[str] = []

    async def work(command: Work) -> Done:
        calls.append(command.id)
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, idempotency_key=lambda c: f"work:{c.part}", **options) as app:
            await (await app.send(Start("j-1"))).result()
            receipt = await app.send(Start("j-2"))
            await receipt.result()
            assert (await receipt.stream())[3].event == Received(Done("j-1", 0))

    run(main)
    assert calls == ["j-1"]


def test_a_remembered_result_is_forgotten_when_its_time_is_over(make_app: MakeApp) -> None:
    calls: list[str] = []

    async def work(command: Work) -> Done:
        calls.append(command.id)
        return Done(command.id, command.part)

    async def main() -> None:
        clock = VirtualClock()
        key = {"idempotency_key": lambda command: f"work:{command.part}", "remember": timedelta(seconds=10)}
        async with job(make_app(clock), work, **key) as app:
            for id, later_seconds in (("j-1", 9), ("j-2", 2), ("j-3", 0)):
                await (await app.send(Start(id))).result()
                clock.advance(later_seconds)

    run(main)
    assert calls == ["j-1", "j-3"]


def test_a_batch_handler_takes_commands_of_many_instances_in_one_call(make_app: MakeApp) -> None:
    sizes: list[int] = []

    async def work(commands: list[Work]) -> list[Done]:
        sizes.append(len(commands))
        return [Done(command.id, command.part) for command in commands]

    async def main() -> None:
        async with job(make_app(), work, batch=50) as app:
            receipts = await app.send_many([Start(f"j-{n}") for n in range(100)])
            for receipt in receipts:
                await receipt.result()

    run(main)
    assert sum(sizes) == 100
    assert max(sizes) <= 50
    assert len(sizes) < 30


def test_one_failure_in_a_batch_fails_only_its_own_command(make_app: MakeApp) -> None:
    async def work(commands: list[Work]) -> list[Any]:
        return [ValueError("bad") if c.id == "j-1" else Done(c.id, c.part) for c in commands]

    async def main() -> None:
        async with job(make_app(), work, batch=10, retry=Retry(max_attempts=1)) as app:
            await app.send_many([Start(f"j-{n}") for n in range(3)])
            await until(lambda: has_status(app, "j-1", "suspended"))
            await app.instance(Job, "j-0").result()
            await app.instance(Job, "j-2").result()

    run(main)


def test_a_handler_may_return_nothing_or_several(make_app: MakeApp) -> None:
    async def work(command: Work) -> list[Done] | None:
        return None if command.part else [Done(command.id, 0), Done(command.id, 1)]

    async def main() -> None:
        async with job(make_app(), work) as app:
            receipt = await app.send(Start("j-1", times=2))
            await receipt.result()
            ids = [e.message_id for e in await receipt.stream() if isinstance(e.event, Received)]
            assert ids[1:] == ["Job/j-1/3/1", "Job/j-1/3/2"]
            assert (await app.stats()).outbox == 0

    run(main)


def test_a_result_that_is_no_declared_input_is_kept_and_not_stepped(make_app: MakeApp) -> None:
    async def work(command: Work) -> Unexpected:
        return Unexpected("surprise")

    async def main() -> None:
        async with job(make_app(), work) as app:
            receipt = await app.send(Start("j-1"))
            await until(lambda: has_length(app, "j-1", 4))
            last = (await receipt.stream())[-1].event
            assert type(last).__name__ == "Kept"
            assert last.message == Unexpected("surprise")  # pyright: ignore[reportAttributeAccessIssue]
            assert (await receipt.row()).status == "running"

    run(main)


def test_a_result_that_cannot_be_stored_is_a_dead_letter_with_the_reason(make_app: MakeApp) -> None:
    async def work(command: Work) -> Any:
        return object()

    async def main() -> None:
        async with job(make_app(), work) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))
            [letter] = await app.dead_letters()
            assert "object" in (letter.error or "")

    run(main)


def test_resources_are_opened_and_closed_with_the_app(make_app: MakeApp) -> None:
    life: list[str] = []

    async def work(command: Work, context: Context) -> Done:
        life.append(f"uses {context.resources['pool']}")
        return Done(command.id, command.part)

    async def main() -> None:
        app = job(make_app(), work)

        @app.resource("pool")
        @asynccontextmanager
        async def pool() -> AsyncGenerator[str, None]:
            life.append("opened")
            yield "a pool"
            life.append("closed")

        async with app:
            await (await app.send(Start("j-1"))).result()

    run(main)
    assert life == ["opened", "uses a pool", "closed"]


def test_a_worker_may_serve_some_pools_only(make_app: MakeApp) -> None:
    async def work(command: Work) -> Done:
        return Done(command.id, command.part)

    async def main() -> None:
        app = job(make_app(), work, pool="slow")
        await app.start(pools=["quick"])
        receipt = await app.send(Start("j-1"))
        await asyncio.sleep(0.05)
        assert (await app.stats()).outbox == 1
        await app.stop()

        other = job(make_app(), work, pool="slow")
        await other.start(pools=["slow"])
        await other.instance(Job, "j-1").result()
        await other.stop()
        assert receipt.status == "stepped"

    run(main)


def test_stopping_waits_for_what_runs_and_gives_back_the_rest(make_app: MakeApp) -> None:
    finished: list[int] = []

    async def work(command: Work) -> Done:
        await asyncio.sleep(0.05)
        finished.append(command.part)
        return Done(command.id, command.part)

    async def main() -> None:
        app = job(make_app(), work, concurrency=2)
        async with app:
            await app.send(Start("j-1", times=6))
            await until(lambda: app.engine.dispatcher.in_hand > 0)
        assert 0 < len(finished) < 6
        async with job(make_app(), work, concurrency=2) as again:
            await again.instance(Job, "j-1").result()
        assert sorted(finished) == [0, 1, 2, 3, 4, 5]

    run(main)


def test_a_command_that_nobody_takes_is_named_at_start(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Job())
        with pytest.raises(WiringError, match=r"Nobody takes Work \(sent by Job\)\. Register a handler"):
            await app.start()

    run(main)


def test_two_handlers_for_one_command_are_named(make_app: MakeApp) -> None:
    async def work(command: Work) -> None: ...
    async def toil(command: Work) -> None: ...

    app = job(make_app(), work)
    with pytest.raises(WiringError, match=r"Two handlers take Work: .*work and .*toil"):
        app.handler(toil)


def test_backoff_is_by_the_stores_clock_and_never_early(make_app: MakeApp) -> None:
    clock = VirtualClock()
    moments: list[int] = []

    async def work(command: Work, context: Context) -> Done:
        moments.append(clock.now_us())
        if context.attempt < 3:
            raise ConnectionError("refused")
        return Done(command.id, command.part)

    async def main() -> None:
        steady = Retry(first=timedelta(seconds=10), multiplier=3, jitter=False)
        async with job(make_app(clock), work, retry=steady) as app:
            receipt = await app.send(Start("j-1"))
            for _ in range(60):
                await _settled(app)
                clock.advance(1)
            await _settled(app)
            assert (await receipt.row()).status == "completed"

    run(main)
    assert [(moment - moments[0]) // 1_000_000 for moment in moments] == [0, 10, 40]


async def _settled(app: Mainspring) -> None:
    for _ in range(10):
        await asyncio.sleep(0.001)
        await app.engine.committer.drained()
        await until(lambda: app.engine.claimer.idle)
