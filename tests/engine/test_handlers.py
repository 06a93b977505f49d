import asyncio
import threading
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from mainspring import (
    Breaker,
    Context,
    DoNotRetryError,
    Mainspring,
    RateLimit,
    Retry,
)
from mainspring.app.internals import internals_of
from mainspring.engine.engine import RELIEVE_SECONDS
from mainspring.engine.runtime import Runtime
from mainspring.port.records import Loaded, Ref
from mainspring.port.store import Store
from mainspring.stores.memory import MemoryStore
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import QUICK, Done, Job, Listening, Start, Work, has_status, job
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


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
        # Nobody is done before many run: one after the other, they would wait for ever.
        await until(lambda: most == 25)
        running -= 1
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work) as app:
            await (await app.send(Start("j-1", times=50))).result()

    run(main)


def test_what_a_handler_is_asked_is_recorded_before_it_is_called(make_app: MakeApp) -> None:
    seen: list[list[str]] = []
    client = make_app()
    client.add(Job())
    client.external(Work)

    async def work(command: Work) -> Done:
        seen.append([type(entry.event).__name__ for entry in await client.instance(Job, command.id).stream()])
        return Done(command.id, command.part)

    async def main() -> None:
        await client.start(work=False)
        async with job(make_app(), work) as app:
            await (await app.send(Start("j-1"))).result()
        await client.stop()

    run(main)
    assert seen == [["Began", "InitiatedBy", "Sent"]]


def test_no_transaction_is_open_while_a_handler_waits(make_app: MakeApp) -> None:
    """Else nobody else could write to its instance meanwhile, nor on SQLite to any."""
    began, go_on = asyncio.Event(), asyncio.Event()

    async def work(command: Work) -> Done:
        began.set()
        await go_on.wait()
        return Done(command.id, command.part)

    async def main() -> None:
        other = job(make_app(), work)
        async with job(make_app(), work) as app:
            receipt = await app.send(Start("j-1"))
            await began.wait()
            await other.start(work=False)
            await other.instance(Job, "j-1").suspend("to look at it")
            await other.instance(Job, "j-1").resume()
            await other.stop()
            go_on.set()
            await receipt.result()

    run(main)


def test_concurrency_is_bounded_where_the_handler_says_so(make_app: MakeApp) -> None:
    running = most = 0

    async def work(command: Work) -> Done:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await until(lambda: most >= 3)
        for _ in range(10):
            await asyncio.sleep(0)  # a turn of the loop, in which a fourth could begin
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
        clock, patient = VirtualClock(), Retry(first=timedelta(seconds=5), jitter=False)
        async with job(make_app(clock), work, retry=patient) as app:
            await app.send(Start("j-1"))
            await until(lambda: bool(attempts))
        assert attempts == [1]
        async with job(make_app(clock), work, retry=patient) as app:
            clock.advance(5)
            await until(lambda: has_status(app, "j-1", "completed"))
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
            await until(lambda: has_status(app, "j-1", "suspended"))
            assert len(tries) == 3
            [letter] = await app.dead_letters()
            assert (letter.message_id, letter.type, letter.attempts) == ("Job/j-1/3", "Work", 3)
            assert (letter.reason, letter.error) == ("its handler gave up", "ConnectionError: refused")
            assert letter.message == Work("j-1", 0)

            broken = False
            await receipt.resume()
            await app.retry_dead_letter(letter.id)
            await receipt.result()
            assert await app.dead_letters() == []

    run(main)


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
            assert await app.dead_letters() == []

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
            await until(lambda: has_status(app, "j-1", "suspended"))

    run(main)
    assert tries == ["j-1"]


def test_an_attempt_over_its_time_is_cancelled_and_made_again(make_app: MakeApp) -> None:
    cancelled: list[int] = []

    async def work(command: Work, context: Context) -> Done:
        if context.attempt == 1:
            try:
                await asyncio.Event().wait()  # hangs, until it is cancelled
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
    clock = VirtualClock()

    async def main() -> None:
        async def work(command: Work, context: Context) -> Done:
            attempts.append(context.attempt)
            for _ in range(8):
                clock.advance(0.6)
                await internals_of(app).engine.stop_overdue()
                await asyncio.sleep(0)
                context.heartbeat()
            return Done(command.id, command.part)

        async with job(make_app(clock), work, timeout=timedelta(seconds=1), retry=QUICK) as app:
            await (await app.send(Start("j-1"))).result()

    run(main)
    assert attempts == [1]


def test_many_heartbeats_at_once_give_no_more_time_than_one() -> None:
    clock, seen = VirtualClock(), list[str]()

    async def main() -> None:
        async def work(command: Work, context: Context) -> None:
            for _ in range(3):
                context.heartbeat()
            clock.advance(1.5)
            await internals_of(app).engine.stop_overdue()
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                seen.append("overdue")
                raise
            seen.append("in time")

        app = job(Mainspring("memory://", runtime=Runtime(clock)), work, timeout=timedelta(seconds=1))
        async with app:
            await app.send(Start("j-1"))
            await until(lambda: bool(seen))

    run(main)
    assert seen == ["overdue"]


def test_a_long_attempt_is_told_when_another_process_terminates_its_instance() -> None:
    clock, told = VirtualClock(), list[bool]()
    store = MemoryStore(clock)

    def working(begun: asyncio.Event) -> Mainspring:
        async def work(command: Work, context: Context) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                told.append(context.cancelled)

        return job(Mainspring("memory://", runtime=Runtime(clock), store=store), work)

    async def main() -> None:
        begun = asyncio.Event()
        other = working(begun)
        async with working(begun) as app:
            await app.send(Start("j-1"))
            await begun.wait()
            await other.start(work=False)
            await other.instance(Job, "j-1").terminate("a test")
            clock.advance(RELIEVE_SECONDS + 1)
            await until(lambda: bool(told))
            await other.stop()

    run(main)
    assert told == [True]


@pytest.mark.parametrize("by_another_process", [False, True])
def test_a_cancelled_instance_tells_its_running_handler_and_drops_what_waits(
    make_app: MakeApp, by_another_process: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.engine.engine.RELIEVE_SECONDS", 0.05)
    begun = asyncio.Event()
    told: list[tuple[int, bool]] = []

    async def work(command: Work, context: Context) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()  # hangs, until it is cancelled
        finally:
            told.append((command.part, context.cancelled))

    async def main() -> None:
        async with job(make_app(), work, retry=QUICK, concurrency=1) as app:
            await app.send(Start("j-1", times=3))
            await begun.wait()
            if by_another_process:
                other = job(make_app(), work)
                await other.start(work=False)
                await other.instance(Job, "j-1").cancel()
                await other.stop()
            else:
                await app.instance(Job, "j-1").cancel()
            await until(lambda: _nothing_left(app))
            await until(lambda: bool(told))

    async def _nothing_left(app: Mainspring) -> bool:
        return (await app.stats()).outbox == 0

    run(main)
    assert told == [(0, True)]


def test_who_looks_for_cancelled_instances_reads_no_streams(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mainspring.engine.engine.RELIEVE_SECONDS", 0.01)
    begun, gate, asked = asyncio.Event(), asyncio.Event(), list[int | None]()

    async def work(command: Work) -> None:
        begun.set()
        await gate.wait()

    class Watched:
        """A store, and how many events of each instance its engine asks for."""

        def __init__(self, store: Store) -> None:
            self._store = store

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

        async def load(self, refs: Sequence[Ref], most: int | None = None) -> list[Loaded | None]:
            asked.append(most)
            return await self._store.load(refs, most)

    async def main() -> None:
        async with job(make_app(), work) as app:
            await app.send(Start("j-1"))
            await begun.wait()
            monkeypatch.setattr(internals_of(app).engine, "store", Watched(internals_of(app).engine.store))
            await until(lambda: len(asked) >= 2)
            gate.set()

    run(main)
    assert set(asked) == {0}


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
        clock, breaker = VirtualClock(), Breaker(failures=2, open_for=timedelta(seconds=10))
        many = Retry(max_attempts=50, first=timedelta(milliseconds=1), cap=timedelta(milliseconds=1))
        async with job(make_app(clock), work, retry=many, breaker=breaker) as app:
            receipt = await app.send(Start("j-1"))
            [runner] = internals_of(app).engine.dispatcher.runners

            async def waits_for_the_breaker() -> bool:
                clock.advance(0.001)  # the time of its backoff, and little of the breaker's
                return runner.gate.state.phase == "open" and runner.waiting == 1

            await until(waits_for_the_breaker)
            broken = False
            for _ in range(100):
                await asyncio.sleep(0)
            assert attempts == [1, 2]
            clock.advance(10)
            await receipt.result()
            assert attempts == [1, 2, 3]

    run(main)


def test_a_rate_limit_spreads_calls(make_app: MakeApp) -> None:
    moments: list[int] = []
    clock = VirtualClock()

    async def work(command: Work) -> Done:
        moments.append(clock.now_us())
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(clock), work, rate=RateLimit(per_second=50, burst=1)) as app:
            await app.send(Start("j-1", times=6))

            async def all_are_called() -> bool:
                clock.advance(0.005)
                return len(moments) == 6

            await until(all_are_called)

    run(main)
    assert all(later - earlier >= 1_000_000 / 50 for earlier, later in pairwise(moments))


def test_a_handler_that_cancels_itself_has_failed(make_app: MakeApp) -> None:
    attempts: list[int] = []

    async def work(command: Work, context: Context) -> Done:
        attempts.append(context.attempt)
        if context.attempt == 1:
            raise asyncio.CancelledError
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, retry=QUICK) as app:
            await (await app.send(Start("j-1"))).result()

    run(main)
    assert attempts == [1, 2]
