import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from mainspring import (
    Context,
    Received,
    Retry,
)
from mainspring.app.internals import internals_of
from mainspring.errors import WiringError
from mainspring.port.records import Remembered, Unit
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import Done, Job, Start, Unexpected, Work, has_length, has_status, job, look_for_work
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


def test_a_business_key_of_mainsprings_own_form_is_kept_apart(make_app: MakeApp) -> None:
    calls: list[str] = []

    async def work(command: Work) -> Done:
        calls.append(command.id)
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, idempotency_key=lambda _: "source:orders:paused") as app:
            await (await app.send(Start("j-1"))).result()
            await (await app.send(Start("j-2"))).result()
            assert await internals_of(app).engine.store.remembered("source:orders:paused") is None

    run(main)
    assert calls == ["j-1"]


@pytest.mark.parametrize(
    ("key", "type", "body", "called"),
    [
        ("key:Other:j-1", "Done", b'{"id": "j-1", "part": 7}', True),
        ("j-1", "Unexpected", b'{"text": "of another"}', True),
        ("j-1", "Done", b'{"id": "j-1", "part": 7}', False),
        ("key:Work:j-1", "Done", b'{"id": "j-1", "part": 7}', False),
    ],
    ids=["of another command", "of another command, by an older release", "by an older release", "its own"],
)
def test_one_key_of_two_commands_remembers_two_results(
    make_app: MakeApp, key: str, type: str, body: bytes, called: bool
) -> None:
    calls: list[str] = []

    async def work(command: Work) -> Done:
        calls.append(command.id)
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, idempotency_key=lambda c: c.id) as app:
            internals_of(app).engine.registry.codec.register(Unexpected)
            kept = Remembered(key, type, 1, body, internals_of(app).engine.store.now_us() + 60_000_000)
            await internals_of(app).engine.dispatcher.settlements.remember(kept)
            await (await app.send(Start("j-1"))).result()

    run(main)
    assert bool(calls) == called


@pytest.mark.parametrize("id", ["key:Work:j-1", "Work:j-1"])
def test_no_key_that_somebody_chooses_is_that_of_another_command(make_app: MakeApp, id: str) -> None:
    calls: list[str] = []

    async def work(command: Work) -> Done:
        calls.append(command.id)
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, idempotency_key=lambda c: c.id) as app:
            for each in ("j-1", id):
                await (await app.send(Start(each))).result()

    run(main)
    assert calls == ["j-1", id]


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
    calls: list[list[str]] = []

    async def work(commands: list[Work]) -> list[Done]:
        calls.append([command.id for command in commands])
        return [Done(command.id, command.part) for command in commands]

    async def main() -> None:
        await _wait_together(make_app, work, JOBS)
        async with job(make_app(), work, batch=50) as app:
            for id in JOBS:
                await app.instance(Job, id).result()

    run(main)
    assert sorted(id for call in calls for id in call) == sorted(JOBS)
    # Full ones first; how much of the rest a worker has in hand by then is its pace's affair.
    assert len(calls[0]) == 50
    assert max(len(call) for call in calls) == 50


JOBS = [f"j-{n}" for n in range(100)]


async def _wait_together(make_app: MakeApp, work: Any, ids: list[str]) -> None:
    """Let jobs be sent while nobody works: all of their commands are due when a worker comes."""
    sender = job(make_app(), work, batch=50)
    await sender.start(work=False)
    await sender.send_many([Start(id) for id in ids])
    await sender.stop()


def test_one_failure_in_a_batch_fails_only_its_own_command(make_app: MakeApp) -> None:
    calls: list[list[str]] = []

    async def work(commands: list[Work]) -> list[Any]:
        calls.append(sorted(command.id for command in commands))
        return [ValueError("bad") if c.id == "j-1" else Done(c.id, c.part) for c in commands]

    async def main() -> None:
        await _wait_together(make_app, work, ["j-0", "j-1", "j-2"])
        async with job(make_app(), work, batch=10, retry=Retry(max_attempts=1)) as app:
            await until(lambda: has_status(app, "j-1", "suspended"))
            await app.instance(Job, "j-0").result()
            await app.instance(Job, "j-2").result()
            [letter] = await app.dead_letters()
            assert (letter.instance, letter.error) == ("Job/j-1", "ValueError: bad")

    run(main)
    assert calls == [["j-0", "j-1", "j-2"]]


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
    calls: list[str] = []

    async def work(command: Work) -> Done:
        calls.append(command.id)
        return Done(command.id, command.part)

    async def main() -> None:
        app = job(make_app(), work, pool="slow")
        await app.start(pools=["quick"])
        assert (await app.send(Start("j-1"))).status == "stepped"
        # Neither with the step itself nor by a claim behind it does it come into hand.
        await look_for_work(app)
        assert await internals_of(app).engine.store.holds(internals_of(app).engine.committer.worker) == []
        assert (internals_of(app).engine.dispatcher.in_hand, (await app.stats()).outbox, calls) == (0, 1, [])
        await app.stop()

        other = job(make_app(), work, pool="slow")
        await other.start(pools=["slow"])
        await other.instance(Job, "j-1").result()
        await other.stop()
        assert calls == ["j-1"]

    run(main)


def test_stopping_waits_for_what_runs_and_gives_back_the_rest(make_app: MakeApp) -> None:
    begun: list[int] = []
    finished: list[int] = []
    gate = asyncio.Event()

    async def work(command: Work) -> Done:
        begun.append(command.part)
        await gate.wait()
        finished.append(command.part)
        return Done(command.id, command.part)

    async def main() -> None:
        app = job(make_app(), work, concurrency=2)
        await app.start()
        await app.send(Start("j-1", times=6))
        await until(lambda: len(begun) == 2)
        stopping = asyncio.create_task(app.stop())
        await until(lambda: all(runner.closing for runner in internals_of(app).engine.dispatcher.runners))
        assert not stopping.done()
        gate.set()
        await stopping
        assert finished == begun == [0, 1]
        async with job(make_app(), work, concurrency=2) as again:
            await again.instance(Job, "j-1").result()
        assert sorted(finished) == [0, 1, 2, 3, 4, 5]

    run(main)


def test_a_command_that_nobody_takes_is_named_at_start(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Job())
        with pytest.raises(WiringError, match=r"Nothing takes Work \(sent by Job\)\. Register a handler"):
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
            await app.send(Start("j-1"))
            for attempts, wait_seconds in ((1, 10), (2, 30)):
                # The wait begins with the commit that records the failure.
                await until(lambda n=attempts: len(moments) == n and internals_of(app).engine.committer.idle)
                clock.advance(wait_seconds - 0.001)
                await look_for_work(app)
                assert len(moments) == attempts
                clock.advance(0.001)
            await app.instance(Job, "j-1").result()

    run(main)
    assert [(moment - moments[0]) / 1_000_000 for moment in moments] == [0, 10, 40]


def test_a_wait_without_jitter_is_exact_however_long_its_commit_takes(make_app: MakeApp) -> None:
    clock = VirtualClock()
    moments: list[int] = []

    async def work(command: Work, context: Context) -> Done:
        moments.append(clock.now_us())
        clock.advance(2)
        if context.attempt < 3:
            raise ConnectionError("refused")
        return Done(command.id, command.part)

    async def main() -> None:
        steady = Retry(first=timedelta(seconds=10), multiplier=1.1, jitter=False)
        async with job(make_app(clock), work, retry=steady) as app:
            store: Any = internals_of(app).engine.store
            commit = store.commit

            async def slow(worker: int, units: Sequence[Unit]) -> list[Any]:
                if any(unit.retries for unit in units):
                    clock.advance(3)
                return await commit(worker, units)

            store.commit = slow
            await app.send(Start("j-1"))
            for attempts, left_us in ((1, 7_000_000), (2, 8_000_000)):
                await until(lambda n=attempts: len(moments) == n and internals_of(app).engine.committer.idle)
                clock.advance_to(clock.now_us() + left_us - 1)
                await look_for_work(app)
                assert len(moments) == attempts
                clock.advance_to(clock.now_us() + 1)
            await app.instance(Job, "j-1").result()

    run(main)
    assert [moment - moments[0] for moment in moments] == [0, 12_000_000, 25_000_000]
