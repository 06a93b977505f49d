"""Whatever a subscriber or the store does: a publication comes to its end, and no subscriber's fault is another's."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Breaker, Context, DoNotRetryError, Mainspring, RateLimit, Retry
from mainspring.app.internals import internals_of
from mainspring.engine.outputs.subscriptions import PUBLICATIONS_AT_ONCE
from mainspring.errors import WiringError
from mainspring.port.records import Ref
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import QUICK, fail_once
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class News:
    id: str


async def idle(app: Mainspring) -> bool:
    held = await internals_of(app).engine.store.holds(internals_of(app).engine.committer.worker)
    return not held and (await app.stats()).outbox == 0


def test_a_store_error_between_two_subscribers_is_tried_again(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []

    async def main() -> None:
        app = make_app()

        @app.subscribe(retry=QUICK)
        async def first(event: News) -> None:
            heard.append("first")

        @app.subscribe(retry=QUICK)
        async def second(event: News) -> None:
            heard.append("second")

        async with app:
            failed = fail_once(app, monkeypatch)
            await app.publish(News("n-1"))
            await until(lambda: idle(app))
            assert failed

    run(main)
    assert sorted(heard) == ["first", "second"]


@pytest.mark.parametrize(
    "option",
    [
        {"rate": RateLimit(per_second=1)},
        {"breaker": Breaker()},
        {"concurrency": 1},
        {"batch": 2},
        {"idempotency_key": repr},
        {"pool": "slow"},
        {"priority": 5},
    ],
    ids=str,
)
def test_an_option_that_means_nothing_to_a_subscriber_is_refused(option: dict[str, Any]) -> None:
    app = Mainspring("memory://")

    async def hear(event: News) -> None: ...

    async def hear_many(events: list[News]) -> None: ...

    (name,) = option
    with pytest.raises(WiringError, match=f"subscribes, and {name} is for handlers alone"):
        app.subscribe(retry=QUICK, **option)(hear_many if name == "batch" else hear)


class Alarm(BaseException):
    """What some libraries raise past every `except Exception`."""


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(3), Alarm("fire"), ConnectionError("down")])
def test_a_subscriber_that_ends_in_an_odd_way_is_tried_again_and_buried(
    make_app: MakeApp, error: BaseException
) -> None:
    async def main() -> None:
        app = make_app()

        @app.subscribe(retry=QUICK)
        async def odd(event: News) -> None:
            raise error

        async with app:
            await app.publish(News("n-1"))
            await until(lambda: idle(app))
            [letter] = await app.dead_letters()
            assert "gave up" in letter.reason

    run(main)


def test_attempts_at_a_publication_that_failed_are_kept(make_app: MakeApp) -> None:
    clock = VirtualClock()

    async def main() -> None:
        app = make_app(clock)

        @app.subscribe(retry=Retry(max_attempts=2, first=timedelta(0), cap=timedelta(0)), name="deaf")
        async def deaf(event: News) -> None:
            clock.advance(3)
            raise ConnectionError("down")

        async with app:
            await app.publish(News("n-1"))
            await until(lambda: idle(app))
            store = internals_of(app).engine.store
            [letter] = await store.dead_letters(10)
            made = await store.attempts(Ref(letter.workflow, letter.instance), 10)
            assert [(one.number, one.duration_us, one.error) for one in made] == [
                (number, 3_000_000, "deaf: ConnectionError: down") for number in (1, 2)
            ]

    run(main)


def test_a_subscriber_that_gave_up_does_not_end_the_attempts_of_another(make_app: MakeApp) -> None:
    attempts: list[int] = []

    async def main() -> None:
        app = make_app()

        @app.subscribe
        async def hopeless(event: News) -> None:
            raise DoNotRetryError("no such address")

        @app.subscribe(retry=QUICK)
        async def patient(event: News, context: Context) -> None:
            attempts.append(context.attempt)
            if context.attempt < 3:
                raise ConnectionError("down")

        async with app:
            await app.publish(News("n-1"))
            await until(lambda: idle(app))
            [letter] = await app.dead_letters()
            assert "hopeless gave up" in letter.reason

    run(main)
    assert attempts == [1, 2, 3]


def test_a_subscriber_over_its_time_is_tried_again(make_app: MakeApp) -> None:
    attempts: list[tuple[int, bool]] = []

    async def main() -> None:
        clock, begun = VirtualClock(), asyncio.Event()
        app = make_app(clock)

        @app.subscribe(retry=QUICK, timeout=timedelta(seconds=1))
        async def slow(event: News, context: Context) -> None:
            begun.set()
            try:
                if context.attempt == 1:
                    await asyncio.Event().wait()  # hangs, until it is cancelled
            finally:
                attempts.append((context.attempt, context.cancelled))

        async def is_heard() -> bool:
            clock.advance(0.001)
            return await idle(app)

        async with app:
            await app.publish(News("n-1"))
            await begun.wait()
            clock.advance(1)
            await until(lambda: bool(attempts))
            await until(is_heard)

    run(main)
    assert attempts == [(1, True), (2, False)]


def test_slow_subscribers_are_called_for_a_bounded_number_of_publications_in_order(make_app: MakeApp) -> None:
    begun: list[int] = []
    count = PUBLICATIONS_AT_ONCE + 50

    async def main() -> None:
        app = make_app()
        go_on = asyncio.Event()

        @app.subscribe
        async def slow(event: News) -> None:
            begun.append(int(event.id))
            await go_on.wait()

        async with app:
            for n in range(count):
                await app.publish(News(str(n)))
            subscriptions = internals_of(app).engine.dispatcher.subscriptions
            await until(lambda: subscriptions.waiting == 50)
            assert subscriptions.running == len(begun) == PUBLICATIONS_AT_ONCE
            go_on.set()
            await until(lambda: idle(app))

    run(main)
    assert begun == list(range(count))


def test_a_stop_ends_subscribers_that_hang_and_another_worker_calls_them_again(make_app: MakeApp) -> None:
    ended: list[str] = []

    async def main() -> None:
        first, second = make_app(), make_app()
        begun = asyncio.Event()

        @first.subscribe
        async def hang(event: News) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()  # hangs, until it is cancelled
            finally:
                ended.append("cancelled")

        @second.subscribe
        async def hear(event: News) -> None:
            ended.append("heard")

        await first.start()
        await first.publish(News("n-1"))
        await begun.wait()
        await first.stop(timedelta(milliseconds=20))
        assert ended == ["cancelled"]
        async with second:
            await until(lambda: idle(second))

    run(main)
    assert ended == ["cancelled", "heard"]
