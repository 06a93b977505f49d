"""A breaker judges a destination and never a message; what it holds back is told."""

import asyncio
import errno
import logging
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Breaker, Mainspring, RateLimit, Retry
from mainspring.app.internals import internals_of
from mainspring.engine.handlers.gate import Gate
from mainspring.engine.handlers.handler import Handler, HandlerOptions
from mainspring.errors import (
    BrokerError,
    CallError,
    DoNotRetryError,
    InstanceFailedError,
    SettingError,
    StoreUnreachableError,
)
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import QUICK, Done, Job, Listening, Start, Work, has_status, job
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

ONCE = Retry(max_attempts=1)
OPEN = "its breaker is open; what is sent there waits until a call goes well; one is tried in 0:01:00"


async def resting(runner: Any) -> None:
    """Wait until a runner sleeps by the clock: its breaker lets nothing through."""
    await until(lambda: runner._waker is not None)  # noqa: SLF001  it tells nobody
    await asyncio.sleep(0)  # the sleeper's first turn


class PoisonError(Exception):
    """This message cannot be carried out by anybody."""


def test_there_is_none_unless_it_is_asked_for() -> None:
    assert HandlerOptions().breaker is None


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (PoisonError("this card is stolen"), {"retry": ONCE}),
        (DoNotRetryError("this card is stolen"), {}),
        (TimeoutError("it is useless to ask again"), {"retry": Retry(never=(TimeoutError,))}),
    ],
)
def test_messages_that_nobody_can_carry_out_hold_nobody_back(
    error: Exception, options: dict[str, Any], make_app: MakeApp
) -> None:
    async def work(command: Work) -> Done:
        if command.id.startswith("bad"):
            raise error
        return Done(command.id, command.part)

    async def main() -> None:
        async with job(make_app(), work, breaker=Breaker(failures=1), **options) as app:
            for number in range(8):
                await app.send(Start(f"bad-{number}"))
            for number in range(8):
                await until(lambda number=number: has_status(app, f"bad-{number}", "suspended"))
            await (await app.send(Start("good"))).result()

    run(main)


def test_poison_that_is_the_probe_is_followed_by_another_probe_at_once(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    """Fifty that fail by themselves wait before a good one when the breaker opens: it is closed by the good one."""
    away = True

    async def work(command: Work) -> Done:
        if away:
            raise ConnectionError("the bank is away")
        if command.id.startswith("bad"):
            raise PoisonError(command.id)
        return Done(command.id, command.part)

    async def main() -> None:
        nonlocal away
        clock, minute = VirtualClock(), timedelta(minutes=1)
        options = {"breaker": Breaker(failures=1, open_for=minute), "retry": Retry(max_attempts=3), "concurrency": 1}
        async with job(make_app(clock), work, **options) as app:
            await app.send(Start("first"))
            [runner] = internals_of(app).engine.dispatcher.runners
            await until(lambda: runner.gate.is_open)
            for number in range(50):
                await app.send(Start(f"bad-{number}"))
            await app.send(Start("good"))
            await until(lambda: runner.waiting >= 51)
            away = False
            await resting(runner)
            clock.advance(60)
            # Nobody moves the clock any more: whoever waits another minute waits for ever.
            await until(lambda: has_status(app, "good", "completed"))
            assert not runner.gate.is_open

    with caplog.at_level(logging.WARNING, "mainspring.engine"):
        run(main)
    told = [record.getMessage() for record in caplog.records if "breaker" in record.getMessage()]
    assert [line.partition(".work")[2] for line in told] == [
        f" failed 1 times in a row (ConnectionError: the bank is away): {OPEN}",
        ": its breaker is closed, the destination answers again",
    ]


def test_who_failed_before_is_not_the_probe_while_others_wait(make_app: MakeApp) -> None:
    called: list[str] = []

    async def work(command: Work) -> Done:
        called.append(command.id)
        if command.id == "slow":
            raise TimeoutError("this one takes for ever")
        return Done(command.id, command.part)

    async def main() -> None:
        clock = VirtualClock()
        # It is back before the breaker lets anybody through.
        retry = Retry(first=timedelta(seconds=1), cap=timedelta(seconds=1), jitter=False)
        options = {"breaker": Breaker(failures=1), "retry": retry, "concurrency": 1}
        async with job(make_app(clock), work, **options) as app:
            await app.send(Start("slow"))
            [runner] = internals_of(app).engine.dispatcher.runners
            await until(lambda: runner.gate.is_open and internals_of(app).engine.committer.idle)
            clock.advance(1)
            await until(lambda: runner.waiting == 1)
            await app.send(Start("good"))
            await until(lambda: runner.waiting == 2)
            await resting(runner)
            clock.advance(59)
            await until(lambda: has_status(app, "good", "completed"))
            assert called[:2] == ["slow", "good"]

    run(main)


def test_a_workflow_that_does_not_want_to_wait_is_told_at_once(make_app: MakeApp) -> None:
    calls = 0

    async def work(command: Work) -> Done:
        nonlocal calls
        calls += 1
        raise ConnectionError("down")

    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        app.add(Listening())
        app.handler(retry=ONCE, breaker=Breaker(failures=1, fail_fast=True))(work)
        async with app:
            with pytest.raises(InstanceFailedError, match=r"ConnectionError: down"):
                await (await app.send(Start("j-1"))).result()
            with pytest.raises(InstanceFailedError, match=r"work was not called: its breaker is open \(ConnectionErr"):
                await (await app.send(Start("j-2"))).result()
            assert calls == 1
            clock.advance(60)
            await app.send(Start("j-3"))
            await until(lambda: calls == 2)

    run(main)


def _caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (_caused(ValueError("of a client library"), ConnectionRefusedError()), True),
        (ExceptionGroup("several", [ValueError(), TimeoutError()]), True),
        (LookupError("named"), True),
        (KeyError("a kind of what is named"), True),
        (OSError(errno.EHOSTUNREACH, "no route"), True),
        (StoreUnreachableError("db", "away"), False),
        (_caused(StoreUnreachableError("db", "away"), ConnectionResetError()), False),
        (BrokerError("nats", "does not answer", "Look at it."), True),
        (BrokerError("rabbitmq", "has no queue for it", "Bind one.", of_message=True), False),
        (_caused(BrokerError("kafka", "has no such topic", "Create it.", of_message=True), TimeoutError()), False),
        (CallError("https://payments.example.com/", "answered 502", "Look at its log."), True),
        (CallError("https://payments.example.com/", "answered Paid", "Add it there.", of_message=True), False),
        (ValueError(), False),
        (FileNotFoundError(), False),
        (_caused(ValueError(), TypeError()), False),
    ],
)
def test_what_says_that_nobody_is_there_counts_and_what_is_named(error: Exception, counts: bool) -> None:
    assert Breaker(on=(LookupError,)).counts(error) is counts


def test_a_circle_of_causes_ends() -> None:
    error = ValueError()
    error.__cause__ = other = TypeError()
    other.__cause__ = error
    group = ExceptionGroup("its own member's cause", [error])
    error.__cause__ = group

    assert not Breaker().counts(other)
    assert not Breaker().counts(group)


def test_a_batch_of_which_nothing_came_through_counts_and_one_that_came_in_part_does_not(make_app: MakeApp) -> None:
    whole = False

    async def work(commands: list[Work]) -> list[Any]:
        lost: list[Any] = [ConnectionError("down") for _ in commands]
        return lost if whole else [*lost[1:], Done(commands[-1].id, commands[-1].part)]

    async def main() -> None:
        nonlocal whole
        clock = VirtualClock()
        retry = Retry(first=timedelta(hours=1), cap=timedelta(hours=1), jitter=False)
        async with job(make_app(clock), work, breaker=Breaker(failures=1), batch=10, retry=retry) as app:
            await app.send(Start("j-1", times=3))
            await until(
                lambda: internals_of(app).engine.committer.idle and not internals_of(app).engine.dispatcher.in_hand
            )
            [runner] = internals_of(app).engine.dispatcher.runners
            assert not runner.gate.is_open
            whole = True
            await app.send(Start("j-2", times=3))
            await until(lambda: runner.gate.is_open)

    run(main)


def test_a_probe_whose_instance_is_cancelled_is_followed_by_another_at_once(make_app: MakeApp) -> None:
    away, begun = True, asyncio.Event()

    async def work(command: Work) -> Done:
        if away:
            raise ConnectionError("down")
        if command.id == "slow":
            begun.set()
            await asyncio.Event().wait()
        return Done(command.id, command.part)

    async def main() -> None:
        nonlocal away
        clock = VirtualClock()
        options = {"breaker": Breaker(failures=1), "retry": Retry(), "concurrency": 1}
        async with job(make_app(clock), work, **options) as app:
            await app.send(Start("first"))
            [runner] = internals_of(app).engine.dispatcher.runners
            await until(lambda: runner.gate.is_open and internals_of(app).engine.committer.idle)
            await app.send(Start("slow"))
            await until(lambda: runner.waiting == 1)
            await app.send(Start("good"))
            await until(lambda: runner.waiting == 2)
            away = False
            await resting(runner)
            clock.advance(60)
            await until(begun.is_set)
            await app.instance(Job, "slow").cancel("nobody waits for it")
            # Nobody moves the clock any more.
            await until(lambda: has_status(app, "good", "completed"))

    run(main)


def test_a_call_from_before_the_breaker_opened_does_not_open_it_again_after_it_closed(make_app: MakeApp) -> None:
    away, calls, begun, ends = True, 0, asyncio.Event(), asyncio.Event()

    async def work(command: Work) -> Done:
        nonlocal calls
        if command.id == "slow":
            calls += 1
            if calls == 1:
                begun.set()
                await ends.wait()
                raise ConnectionError("down")
        elif away:
            raise ConnectionError("down")
        return Done(command.id, command.part)

    async def main() -> None:
        nonlocal away
        clock, breaker = VirtualClock(), Breaker(failures=1, open_for=timedelta(seconds=1))
        async with job(make_app(clock), work, breaker=breaker, retry=QUICK) as app:
            await app.send(Start("slow"))
            await until(begun.is_set)
            [runner] = internals_of(app).engine.dispatcher.runners
            await app.send(Start("quick"))
            await until(lambda: runner.gate.is_open and internals_of(app).engine.committer.idle)
            away = False
            clock.advance(1)
            await until(lambda: has_status(app, "quick", "completed"))
            assert not runner.gate.is_open
            ends.set()
            await until(lambda: calls == 2 or runner.gate.is_open or clock.advance(0.01))
            assert not runner.gate.is_open

    run(main)


@pytest.mark.parametrize("fail_fast", [False, True])
def test_a_call_that_the_rate_holds_back_is_no_probe_and_does_not_fail_fast(make_app: MakeApp, fail_fast: bool) -> None:
    calls = 0

    async def work(command: Work) -> Done:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ConnectionError("down")
        return Done(command.id, command.part)

    async def main() -> None:
        clock, breaker = VirtualClock(), Breaker(failures=1, open_for=timedelta(seconds=4), fail_fast=fail_fast)
        options = {"breaker": breaker, "rate": RateLimit(per_second=1 / 6)}
        async with job(make_app(clock), work, retry=ONCE, **options) as app:
            await app.send(Start("j-1"))
            [runner] = internals_of(app).engine.dispatcher.runners
            await until(lambda: runner.gate.state.phase == "open" and internals_of(app).engine.committer.idle)
            clock.advance(4)
            receipt = await app.send(Start("j-2"))
            await until(lambda: runner._waker is not None)  # noqa: SLF001  it was turned away, and comes back
            assert runner.gate.state.phase == "open"
            await until(lambda: _goes_on(app, clock))
            assert calls == 2
            await receipt.result()

    async def _goes_on(app: Mainspring, clock: VirtualClock) -> bool:
        clock.advance(0.1)
        return await has_status(app, "j-2", "completed")

    run(main)


def test_a_probe_that_succeeds_lets_all_go_at_once(make_app: MakeApp) -> None:
    broken, begun, together = True, 0, asyncio.Event()

    async def work(command: Work) -> Done:
        nonlocal begun
        if broken:
            raise ConnectionError("down")
        begun += 1
        if begun == 1:
            await asyncio.sleep(0.01)  # the probe: so that the others are turned away meanwhile
        elif begun == 6:
            together.set()
        if begun > 1:
            await together.wait()
        return Done(command.id, command.part)

    async def main() -> None:
        nonlocal broken
        clock, breaker = VirtualClock(), Breaker(failures=1, open_for=timedelta(seconds=5))
        async with job(make_app(clock), work, retry=QUICK, breaker=breaker) as app:
            await app.send(Start("j-1", times=20))
            [runner] = internals_of(app).engine.dispatcher.runners
            await until(lambda: runner.gate.state.phase == "open" and internals_of(app).engine.committer.idle)
            broken = False
            clock.advance(5)
            # Nobody moves the clock any more: none of them waits for the breaker once more.
            await until(lambda: begun == 20)

    run(main)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(SettingError, match=r"Breaker\.on"):
        Breaker(on=(ValueError, "TimeoutError"))  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"Breaker\.fail_fast"):
        Breaker(fail_fast=1)  # type: ignore[arg-type]


def test_only_a_command_that_was_never_tried_has_certainly_done_nothing() -> None:
    async def charge(command: Work) -> None: ...

    gate = Gate(Handler(charge, HandlerOptions(breaker=Breaker(fail_fast=True))), lambda: 0, lambda: None)

    assert [gate.refusal(attempts).definite for attempts in (0, 1)] == [True, False]
