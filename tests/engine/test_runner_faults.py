"""Whatever a handler or the store does: every job comes to an end, and waiting costs nothing."""

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from mainspring import Breaker, Context, Mainspring, RateLimit
from mainspring.app.internals import internals_of
from mainspring.engine.runtime import HANDLER_THREADS
from mainspring.errors import WiringError
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import QUICK, Done, Start, Work, fail_once, has_status, job, look_for_work
from tests.support.apps import MakeApp
from tests.support.running import TEST_SECONDS, run
from tests.support.waiting import until


def _bad_key(command: Work) -> str:
    raise KeyError("boom")


async def _fine(command: Work) -> Done:
    return Done(command.id, command.part)


async def _no_list(commands: list[Work]) -> Any:
    return Done("j-1", 0)


async def _too_many(commands: list[Work]) -> Any:
    return [None, None, None]


async def _exits(command: Work) -> Done:
    sys.exit(3)


def _exits_in_its_thread(command: Work) -> Done:
    sys.exit(3)


def _stops_iterating(command: Work) -> Done:
    raise StopIteration


def _interrupts(command: Work) -> Done:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("work", "options", "error"),
    [
        (_fine, {"idempotency_key": _bad_key}, "KeyError"),
        (_no_list, {"batch": 5}, "must return a list"),
        (_too_many, {"batch": 5}, "returned 3 results"),
        (_exits, {}, "SystemExit"),
        (_exits_in_its_thread, {}, "SystemExit"),
        (_stops_iterating, {}, "StopIteration"),
        (_interrupts, {}, "KeyboardInterrupt"),
    ],
)
def test_an_attempt_that_goes_wrong_in_an_odd_way_is_a_failed_one(
    make_app: MakeApp, work: Callable[..., Any], options: dict[str, Any], error: str
) -> None:
    async def main() -> None:
        async with job(make_app(), work, retry=QUICK, **options) as app:
            await app.send(Start("j-1"))
            await until(lambda: has_status(app, "j-1", "suspended"))
            [letter] = await app.dead_letters()
            assert letter.attempts == 3
            assert error in (letter.error or "")

    run(main)


def test_a_store_error_at_the_look_up_of_a_business_key_is_tried_again(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with job(make_app(), _fine, retry=QUICK, idempotency_key=lambda command: command.id) as app:
            failed = fail_once(app, monkeypatch)
            await (await app.send(Start("j-1"))).result()
            assert failed == ["key:Work:j-1"]

    run(main)


@pytest.mark.parametrize(
    "options",
    [
        {"retry": 5},
        {"breaker": 5},
        {"rate": 10},
        {"timeout": 30},
        {"remember": 30},
        {"remember": timedelta(0)},
        {"concurrency": None},
        {"concurrency": True},
        {"batch": 0},
        {"priority": "high"},
        {"priority": 2**63},
        {"pool": None},
        {"idempotency_key": "id"},
    ],
)
def test_an_option_of_a_wrong_kind_is_refused_at_wiring(options: dict[str, Any]) -> None:
    [label] = options
    with pytest.raises(WiringError, match=rf"_fine has {label}=.*Use a"):
        job(Mainspring("memory://"), _fine, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"rate": RateLimit(per_second=0.01)},
        {"breaker": Breaker(failures=1, open_for=timedelta(seconds=30)), "retry": QUICK},
    ],
)
def test_waiting_for_a_breaker_or_a_rate_limit_costs_no_work(make_app: MakeApp, options: dict[str, Any]) -> None:
    async def work(command: Work) -> Done:
        if "breaker" in options:
            raise ConnectionError("down")
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, **options) as app:
            await app.send(Start("j-1", times=50))
            [runner] = internals_of(app).engine.dispatcher.runners
            await until(lambda: runner._waker is not None and not runner.active)  # noqa: SLF001  it tells nobody
            assert runner.waiting >= 48
            looks = 0
            admitted = runner._admitted  # noqa: SLF001  counted, to see that nobody asks in vain

            def counted() -> bool:
                nonlocal looks
                looks += 1
                return admitted()

            runner._admitted = counted  # type: ignore[method-assign]  # noqa: SLF001  as above
            for _ in range(100):
                await asyncio.sleep(0)  # a turn of the loop, in which somebody could ask
            assert looks == 0

    run(main)


def test_a_runner_that_closes_takes_nothing_in(make_app: MakeApp) -> None:
    async def main() -> None:
        async with job(make_app(), _fine) as app:
            await (await app.send(Start("j-1"))).result()
            [runner] = internals_of(app).engine.dispatcher.runners
            runner.closing = True
            await app.send(Start("j-2"))
            await look_for_work(app)
            assert runner.waiting == 0
            assert internals_of(app).engine.dispatcher.in_hand == 0

    run(main)


def test_a_plain_handler_is_timed_from_its_real_beginning(make_app: MakeApp) -> None:
    attempts: list[int] = []
    gates, numbers = [threading.Event() for _ in range(3)], count()

    def work(command: Work, context: Context) -> Done:
        attempts.append(context.attempt)
        gates[next(numbers) // HANDLER_THREADS].wait()
        return Done(command.id, command.part)

    async def main() -> None:
        clock = VirtualClock()
        async with job(make_app(clock), work, timeout=timedelta(seconds=1), retry=QUICK) as app:
            receipt = await app.send(Start("j-1", times=len(gates) * HANDLER_THREADS))
            [runner] = internals_of(app).engine.dispatcher.runners
            for number, gate in enumerate(gates, 1):
                await until(lambda number=number: len(attempts) == number * HANDLER_THREADS)
                assert runner.active <= HANDLER_THREADS
                clock.advance(0.6)
                await internals_of(app).engine.stop_overdue()
                gate.set()
            await receipt.result()

    run(main)
    assert attempts == [1] * len(gates) * HANDLER_THREADS


def test_a_plain_handler_that_waits_for_a_thread_of_others_is_not_timed_out(make_app: MakeApp) -> None:
    go_on = threading.Event()
    attempts: list[int] = []

    def work(command: Work, context: Context) -> Done:
        attempts.append(context.attempt)
        return Done(command.id, command.part)

    async def main() -> None:
        clock = VirtualClock()
        async with job(make_app(clock), work, timeout=timedelta(seconds=1), retry=QUICK) as app:
            others = [
                asyncio.ensure_future(internals_of(app).engine.runtime.in_thread(go_on.wait))
                for _ in range(HANDLER_THREADS)
            ]
            receipt = await app.send(Start("j-1"))
            [runner] = internals_of(app).engine.dispatcher.runners
            await until(lambda: bool(runner.running))
            clock.advance(5)
            await internals_of(app).engine.stop_overdue()
            go_on.set()
            await receipt.result()
            await asyncio.gather(*others)

    run(main)
    assert attempts == [1]


def test_a_cancellation_that_a_handler_swallows_does_not_reach_the_next_command(make_app: MakeApp) -> None:
    cancelling: list[int] = []

    async def work(command: Work) -> Done:
        task = asyncio.current_task()
        assert task is not None
        cancelling.append(task.cancelling())
        if command.part == 0:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()  # hangs, until it is cancelled
        async with asyncio.timeout(TEST_SECONDS):
            await asyncio.sleep(0)
        return Done(command.id, command.part)

    async def main() -> None:
        clock = VirtualClock()
        async with job(make_app(clock), work, timeout=timedelta(seconds=1), concurrency=1, retry=QUICK) as app:
            receipt = await app.send(Start("j-1", times=3))
            await until(lambda: bool(cancelling))
            clock.advance(1)
            await receipt.result()

    run(main)
    assert cancelling == [0, 0, 0]


HANGS = """
import asyncio, time
from datetime import timedelta
from tests.support.waiting import until
from tests.engine.jobs import Start, Work, job
from mainspring import Mainspring

begun = []

def work(command: Work) -> None:
    begun.append(command)
    time.sleep(600)  # hangs, as a thread that nobody can end

async def main() -> None:
    app = job(Mainspring("memory://"), work)
    await app.start()
    await app.send(Start("j-1"))
    await until(lambda: bool(begun))
    await app.stop(timedelta(milliseconds=10))

asyncio.run(main())
"""


def test_a_plain_handler_that_hangs_does_not_keep_the_process_from_ending() -> None:
    subprocess.run([sys.executable, "-c", HANGS], check=True, timeout=TEST_SECONDS)  # noqa: S603  our own program
