"""A clock that was set back while nobody worked: what was due is due, in its order, and no timer fires early."""

import asyncio
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mainspring import Mainspring, Retry
from mainspring.app.internals import internals_of
from mainspring.engine.runtime import Runtime
from mainspring.stores.sqlite.workers import fcntl
from mainspring.testing.clock import VirtualClock
from mainspring.testing.envelopes import EPOCH
from tests.engine.jobs import Done, Start, Work, job, look_for_work
from tests.engine.test_timers import Open, Opened, Ticket, pass_time
from tests.support.forking import fork_server
from tests.support.running import run
from tests.support.waiting import until

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def _app(folder: Path, clock: VirtualClock, called: list[str]) -> Mainspring:
    async def work(command: Work) -> Done:
        called.append(command.id)
        return Done(command.id, command.part)

    app = Mainspring(f"sqlite:///{folder / 'test.db'}", runtime=Runtime(clock))
    app.add(Ticket())
    return job(app, work, concurrency=1)


def test_what_was_due_does_not_wait_for_that_hour_and_keeps_its_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"j-{number}" for number in (3, 1, 2)]

    async def main() -> None:
        called: list[str] = []
        clock = VirtualClock(NOON)
        sender = _app(tmp_path, clock, called)
        await sender.start(work=False)
        for name in names:
            await sender.send(Start(name))
            clock.advance(1)
        await sender.stop()
        assert called == []
        async with _app(tmp_path, VirtualClock(NOON - HOUR), called) as app:
            for name in names:
                await app.instance_at(f"Job/{name}").result()
        assert called == names

    run(main)
    assert "the clock was set back by 3602 s; 3 commands that waited go on by the new time" in caplog.text


def crash(url: str) -> None:
    """Work until the handler is called, which ends the process as an OOM kill does."""

    async def work(command: Work) -> Done:
        os.kill(os.getpid(), signal.SIGKILL)
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(Mainspring(url, runtime=Runtime(VirtualClock(NOON))), work):
            await asyncio.Event().wait()

    asyncio.run(main())


@pytest.mark.skipif(fcntl is None, reason="without flock the lease alone decides")
def test_what_a_worker_held_that_crashed_does_not_wait_for_that_hour(tmp_path: Path) -> None:
    names = [f"j-{number}" for number in (3, 1, 2)]

    async def main() -> None:
        called: list[str] = []
        sender = _app(tmp_path, VirtualClock(NOON), called)
        await sender.start(work=False)
        await sender.send_many([Start(name) for name in names])
        await sender.stop()
        crashed = fork_server().Process(target=crash, args=(internals_of(sender).url,), daemon=True)
        crashed.start()
        await until(lambda: not crashed.is_alive())
        assert crashed.exitcode == -signal.SIGKILL

        looking = _app(tmp_path, VirtualClock(NOON - HOUR), called)
        await looking.start(work=False)
        (dead,) = await internals_of(looking).engine.store.workers()
        assert dead.ends_us > internals_of(looking).engine.store.now_us() + HOUR // timedelta(microseconds=1)
        await looking.stop()

        async with _app(tmp_path, VirtualClock(NOON - HOUR), called) as app:
            for name in names:
                await app.instance_at(f"Job/{name}").result()
        assert sorted(called) == sorted(names)

    run(main)


def test_one_who_sends_by_the_new_time_before_a_worker_starts_changes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        called: list[str] = []
        for name, clock in (("j-1", VirtualClock(NOON)), ("j-2", VirtualClock(NOON - HOUR))):
            sender = _app(tmp_path, clock, called)
            await sender.start(work=False)
            await sender.send(Start(name))
            await sender.stop()
        async with _app(tmp_path, VirtualClock(NOON - HOUR), called) as app:
            await app.instance_at("Job/j-1").result()
        assert sorted(called) == ["j-1", "j-2"]

    run(main)


def test_what_is_tried_again_later_is_brought_forward_once(tmp_path: Path) -> None:
    called: list[str] = []

    def failing(clock: VirtualClock) -> Mainspring:
        async def work(command: Work) -> Done:
            called.append(command.id)
            raise ConnectionError("down")

        retry = Retry(first=HOUR / 2, cap=HOUR / 2, jitter=False)
        return job(Mainspring(f"sqlite:///{tmp_path / 'test.db'}", runtime=Runtime(clock)), work, retry=retry)

    async def main() -> None:
        sender = failing(VirtualClock(NOON))
        await sender.start(work=False)
        await sender.send(Start("j-1"))
        await sender.stop()
        clock = VirtualClock(NOON - HOUR)
        for _ in range(4):
            async with failing(clock) as app:
                await until(
                    lambda: (
                        called
                        and internals_of(app).engine.committer.idle
                        and not internals_of(app).engine.dispatcher.in_hand
                    )
                )
                await look_for_work(app)
            clock.advance(1)
        assert called == ["j-1"]

    run(main)


def test_a_timer_fires_no_earlier_by_the_new_time(tmp_path: Path) -> None:
    async def main() -> None:
        async with _app(tmp_path, VirtualClock(EPOCH), []) as app:
            await app.send(Open("t-1"))
        clock = VirtualClock(EPOCH - timedelta(minutes=1))
        async with _app(tmp_path, clock, []) as app:
            ticket = app.instance(Ticket, "t-1")
            await pass_time(app, clock, 60 + 59)
            assert await ticket.state() == Opened()
            await pass_time(app, clock, 1)
            assert await ticket.state() == Opened((1,))

    run(main)
