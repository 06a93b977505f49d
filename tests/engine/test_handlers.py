import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from mainspring import (
    Breaker,
    Complete,
    Context,
    Decisions,
    DoNotRetryError,
    Event,
    Fail,
    Mainspring,
    RateLimit,
    Received,
    Retry,
    Send,
    SendFailed,
    Workflow,
)
from mainspring.errors import WiringError
from mainspring.testing.clock import VirtualClock
from tests.engine.conftest import MakeApp, run, until


@dataclass(frozen=True)
class Start:
    id: str
    times: int = 1


@dataclass(frozen=True)
class Work:
    id: str
    part: int


@dataclass(frozen=True)
class Done:
    id: str
    part: int


@dataclass(frozen=True)
class Unexpected:
    text: str


@dataclass(frozen=True)
class Working:
    left: int = 0


class Job(Workflow[Start | Done, Working, Work]):
    """Sends some commands and completes when all are done."""

    begins = Start
    initial_state = Working()

    def route(self, message: Start | Done) -> str | None:
        return message.id

    def evolve(self, state: Working, event: Event[Start | Done, Work]) -> Working | None:
        match event:
            case Received(Start(_, times)):
                return Working(times)
            case Received(Done()):
                return Working(state.left - 1)

    def decide(self, message: Start | Done, state: Working) -> Decisions[Start | Done, Work] | None:
        match message:
            case Start(id, times):
                return [Send(Work(id, part)) for part in range(times)]
            case Done():
                return [Complete()] if state.left == 1 else []


class Listening(Workflow[Start | Done | SendFailed, Working, Work]):
    """Is told when a command failed for good."""

    begins = Start
    initial_state = Working()

    def route(self, message: Start | Done | SendFailed) -> str | None:
        return message.id if isinstance(message, Start) else None

    def evolve(self, state: Working, event: Event[Start | Done | SendFailed, Work]) -> Working | None:
        return None

    def decide(
        self, message: Start | Done | SendFailed, state: Working
    ) -> Decisions[Start | Done | SendFailed, Work] | None:
        match message:
            case Start(id):
                return [Send(Work(id, 0))]
            case Done():
                return [Complete()]
            case SendFailed(type, _, error, attempts):
                return [Fail(f"{type} failed {attempts} times: {error}")]


QUICK = Retry(max_attempts=3, first=timedelta(milliseconds=1), cap=timedelta(milliseconds=2))


def job(app: Mainspring, handle: Callable[..., Any], **options: Any) -> Mainspring:
    app.add(Job())
    app.handler(**options)(handle) if options else app.handler(handle)
    return app


def test_a_plain_function_runs_in_a_thread(make_app: MakeApp) -> None:
    threads: list[str] = []

    def work(command: Work) -> Done:
        threads.append(threading.current_thread().name)
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work) as app:
            await (await app.send(Start("j-1"))).result()

    run(main)
    assert threads[0].startswith("mainspring-handler")


def test_many_commands_of_one_step_run_side_by_side(make_app: MakeApp) -> None:
    running = most = 0

    async def work(command: Work) -> Done:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work) as app:
            await (await app.send(Start("j-1", times=100))).result()

    run(main)
    assert most > 20


def test_concurrency_is_bounded_where_the_handler_says_so(make_app: MakeApp) -> None:
    running = most = 0

    async def work(command: Work) -> Done:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, concurrency=3) as app:
            await (await app.send(Start("j-1", times=30))).result()

    run(main)
    assert most == 3


def test_every_attempt_has_the_same_key_and_counts(make_app: MakeApp) -> None:
    seen: list[tuple[str, int]] = []

    async def work(command: Work, context: Context) -> Done:
        seen.append((context.idempotency_key, context.attempt))
        if context.attempt < 3:
            raise ConnectionError("refused")
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, retry=QUICK) as app:
            await (await app.send(Start("j-1"))).result()

    run(main)
    assert seen == [("Job/j-1/3", 1), ("Job/j-1/3", 2), ("Job/j-1/3", 3)]


def test_a_retry_survives_a_restart(make_app: MakeApp) -> None:
    attempts: list[int] = []

    async def work(command: Work, context: Context) -> Done:
        attempts.append(context.attempt)
        if context.attempt == 1:
            raise ConnectionError("refused")
        return Done(command.id, command.part)

    async def main() -> None:
        patient = Retry(first=timedelta(milliseconds=300), jitter=False)
        async with job(make_app(), work, retry=patient) as app:
            await app.send(Start("j-1"))
            await until(lambda: bool(attempts))
        assert attempts == [1]
        async with job(make_app(), work, retry=patient) as app:
            await app.instance(Job, "j-1").result()
        assert attempts == [1, 2]

    run(main)


def test_a_command_that_fails_for_good_is_a_dead_letter_and_suspends_its_instance(make_app: MakeApp) -> None:
    tries: list[str] = []
    broken = True

    async def work(command: Work) -> Done:
        tries.append(command.id)
        if broken:
            raise ConnectionError("refused")
        return Done(command.id, command.part)

    async def main() -> None:
        nonlocal broken
        async with job(make_app(), work, retry=QUICK) as app:
            receipt = await app.send(Start("j-1"))
            await until(lambda: _has_status(app, "j-1", "suspended"))
            assert len(tries) == 3
            [letter] = await app.dead_letters()
            assert (letter.message_id, letter.type, letter.attempts) == ("Job/j-1/3", "Work", 3)
            assert (letter.reason, letter.error) == ("its handler gave up", "ConnectionError: refused")
            assert letter.body == b'{"id":"j-1","part":0}'

            broken = False
            await receipt.resume()
            await app.retry_dead_letter(letter.id)
            await receipt.result()
            assert await app.dead_letters() == []

    run(main)


async def _has_status(app: Mainspring, id: str, status: str) -> bool:
    return (await app.instance(Job, id).row()).status == status


def test_a_workflow_that_listens_is_told_of_the_failure(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Listening())

        @app.handler(retry=QUICK)
        async def work(command: Work) -> Done:
            raise ConnectionError("refused")

        async with app:
            receipt = await app.send(Start("j-1"))
            await until(lambda: _failed(app))
            row = await receipt.row()
            assert row.status == "failed"
            last = (await receipt.stream())[-1].event
            assert last == _failure("Work failed 3 times: ConnectionError: refused")
            assert len(await app.dead_letters()) == 1

    async def _failed(app: Mainspring) -> bool:
        return (await app.instance(Listening, "j-1").row()).status == "failed"

    run(main)


def _failure(reason: str) -> Any:
    from mainspring import Failed  # noqa: PLC0415  only here

    return Failed(reason)


@pytest.mark.parametrize(
    ("error", "options"), [(DoNotRetryError("no such card"), {}), (KeyError("k"), {"never": (KeyError,)})]
)
def test_an_error_that_cannot_heal_is_not_tried_again(make_app: MakeApp, error: Exception, options: Any) -> None:
    tries: list[str] = []

    async def work(command: Work) -> Done:
        tries.append(command.id)
        raise error

    async def main() -> None:
        async with job(make_app(), work, retry=Retry(**options)) as app:
            await app.send(Start("j-1"))
            await until(lambda: _has_status(app, "j-1", "suspended"))

    run(main)
    assert tries == ["j-1"]


def test_an_attempt_over_its_time_is_cancelled_and_made_again(make_app: MakeApp) -> None:
    cancelled: list[int] = []

    async def work(command: Work, context: Context) -> Done:
        if context.attempt == 1:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.append(context.attempt)
                assert context.cancelled
                raise
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, timeout=timedelta(milliseconds=50), retry=QUICK) as app:
            await (await app.send(Start("j-1"))).result()

    run(main)
    assert cancelled == [1]


def test_a_heartbeat_keeps_long_work_alive(make_app: MakeApp) -> None:
    attempts: list[int] = []

    async def work(command: Work, context: Context) -> Done:
        attempts.append(context.attempt)
        for _ in range(8):
            await asyncio.sleep(0.05)
            context.heartbeat()
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, timeout=timedelta(milliseconds=200), retry=QUICK) as app:
            await (await app.send(Start("j-1"))).result()

    run(main)
    assert attempts == [1]


def test_a_cancelled_instance_tells_its_running_handler(make_app: MakeApp) -> None:
    begun = asyncio.Event()
    told: list[bool] = []

    async def work(command: Work, context: Context) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            told.append(context.cancelled)

    async def main() -> None:
        async with job(make_app(), work, retry=QUICK) as app:
            receipt = await app.send(Start("j-1"))
            await begun.wait()
            await receipt.cancel()
            await until(lambda: bool(told))

    run(main)
    assert told == [True]


def test_an_open_breaker_lets_nothing_through_and_costs_no_attempt(make_app: MakeApp) -> None:
    attempts: list[int] = []
    broken = True

    async def work(command: Work, context: Context) -> Done:
        attempts.append(context.attempt)
        if broken:
            raise ConnectionError("down")
        return Done(command.id, command.part)

    async def main() -> None:
        nonlocal broken
        breaker = Breaker(failures=2, open_for=timedelta(milliseconds=300))
        many = Retry(max_attempts=50, first=timedelta(milliseconds=1), cap=timedelta(milliseconds=1))
        async with job(make_app(), work, retry=many, breaker=breaker) as app:
            receipt = await app.send(Start("j-1"))
            await until(lambda: len(attempts) == 2)
            await asyncio.sleep(0.1)
            assert attempts == [1, 2]
            broken = False
            await receipt.result()
            assert attempts == [1, 2, 3]

    run(main)


def test_a_rate_limit_spreads_calls(make_app: MakeApp) -> None:
    moments: list[float] = []

    async def work(command: Work) -> Done:
        moments.append(asyncio.get_running_loop().time())
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, rate=RateLimit(per_second=50, burst=1)) as app:
            await (await app.send(Start("j-1", times=6))).result()

    run(main)
    assert moments[-1] - moments[0] > 5 / 50 * 0.9


def test_a_business_key_answers_a_repeated_command_from_memory(make_app: MakeApp) -> None:
    calls: list[str] = []

    async def work(command: Work) -> Done:
        calls.append(command.id)
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, idempotency_key=lambda c: f"work:{c.part}") as app:
            await (await app.send(Start("j-1"))).result()
            receipt = await app.send(Start("j-2"))
            await receipt.result()
            assert (await receipt.stream())[3].event == Received(Done("j-1", 0))

    run(main)
    assert calls == ["j-1"]


async def _stream_length(app: Mainspring, id: str, least: int) -> bool:
    return len(await app.instance(Job, id).stream()) >= least


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
            await until(lambda: _has_status(app, "j-1", "suspended"))
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
            await until(lambda: _stream_length(app, "j-1", 4))
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
            await until(lambda: _has_status(app, "j-1", "suspended"))
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
        async def pool() -> AsyncIterator[str]:
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
