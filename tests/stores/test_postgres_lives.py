"""A server that begins another life has no sessions of the one before: that makes nobody dead who lives."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine import engine
from mainspring.stores.postgres import PostgresStore
from mainspring.testing.clock import VirtualClock
from tests.engine.jobs import Done, Job, Start, Work, job
from tests.proof.postgres_faults.stage import connected
from tests.proof.postgres_faults.standby import Pair, paired
from tests.stores.postgres_support import inside, opened
from tests.support.running import run
from tests.support.soaking import some_of
from tests.support.waiting import until

LEASE_US = 30_000_000


def anns(pair: Pair) -> str:
    return pair.url("postgres").replace("postgres@", "ann@")


async def promote(pair: Pair) -> None:
    await pair.caught_up()  # or the workers that a test has registered may be unknown to the server that takes over
    await asyncio.to_thread(pair.primary.stop, kill=True)
    await pair.take_over()


async def restart(pair: Pair) -> None:
    await asyncio.to_thread(pair.primary.stop)
    await asyncio.to_thread(pair.primary.start)


async def crash_one_process(pair: Pair) -> None:
    """Let one of the server's processes be killed, as by a machine that is out of memory: all sessions end with it."""
    async with connected(pair.primary.url) as victim:
        os.kill(victim.get_server_pid(), signal.SIGKILL)
        await until(victim.is_closed)
    await until(lambda: asyncio.to_thread(pair.primary.is_ready))


@asynccontextmanager
async def kept_away(store: PostgresStore) -> AsyncGenerator[None]:
    """Keep the session that says that a process lives from coming back."""
    presence = inside(store).presence
    assert presence is not None
    async with presence._alone:  # noqa: SLF001
        yield


async def patiently(call: Callable[[], Awaitable[int]]) -> int:
    """Return what a call returns when the server is back."""
    for _ in range(1_000):
        try:
            return await call()
        except Exception:  # noqa: BLE001  it is on its way
            await asyncio.sleep(0.02)  # between two askings
    return await call()


@pytest.mark.parametrize("trouble", some_of([promote, restart, crash_one_process], [promote, crash_one_process]))
def test_the_first_worker_back_relieves_nobody_who_is_on_the_way(
    trouble: Callable[[Pair], Awaitable[None]], tmp_path: Path
) -> None:
    async def body() -> None:
        clock = VirtualClock()
        async with paired() as pair:
            url = anns(pair)
            async with opened(tmp_path, clock, url) as first, opened(tmp_path, clock, url) as second:
                await first.register_worker("first", LEASE_US)
                late = await second.register_worker("second", LEASE_US)
                async with kept_away(second):
                    await trouble(pair)
                    assert await patiently(first.relieve) == 0
                    # It is heard of before its session is back: that session's absence says nothing yet.
                    assert await patiently(lambda: second.heartbeat(late))
                    assert await first.relieve() == 0
                presence = inside(second).presence
                await until(lambda: presence and presence.session and not presence.session.closed)
                assert await second.heartbeat(late)
                assert await first.relieve() == 0
                # Seen in this life: from now on its absence counts again.
                await second.close()
                await until(first.relieve)
                assert [row.name for row in await first.workers()] == ["first"]

    run(body)


def test_a_worker_that_is_never_seen_again_is_relieved_when_its_lease_ends(tmp_path: Path) -> None:
    async def body() -> None:
        clock = VirtualClock()
        async with paired() as pair, opened(tmp_path, clock, anns(pair)) as store:
            async with opened(tmp_path, clock, anns(pair)) as gone:
                await gone.register_worker("gone", LEASE_US)
                async with kept_away(gone):
                    await promote(pair)
                    assert await patiently(store.relieve) == 0
            assert await store.relieve() == 0
            clock.advance(LEASE_US / 1e6)
            assert await store.relieve() == 1

    run(body)


def test_workers_at_work_carry_on_after_a_promotion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second comes back late, when the first has looked for the dead: nothing is taken from it, or done twice."""
    monkeypatch.setattr(engine, "RELIEVE_SECONDS", 0.1)
    ran: Counter[Work] = Counter()
    parts, go_on, looked = 20, asyncio.Event(), asyncio.Event()

    async def handle(command: Work) -> Done:
        ran[command] += 1
        await go_on.wait()
        return Done(command.id, command.part)

    async def worker_keys(app: Mainspring) -> list[int]:
        return [row.key for row in await internals_of(app).engine.store.workers()]

    async def body() -> None:
        async with paired() as pair, AsyncExitStack() as stack:
            apps = [job(Mainspring(anns(pair)), handle, concurrency=parts) for _ in range(2)]
            for app in apps:
                await stack.enter_async_context(app)
            for number, app in enumerate(apps):
                await app.send(Start(f"j-{number}", parts))
            await until(lambda: ran.total() == 2 * parts)
            keys = await worker_keys(apps[0])
            late: Any = internals_of(apps[1]).engine.store
            async with kept_away(late):
                await promote(pair)
                _when_relieved(apps[0], looked)
                await looked.wait()
            go_on.set()
            for number in range(2):
                await apps[0].instance(Job, f"j-{number}").result()
            assert await worker_keys(apps[0]) == keys
            assert [row.status for row in await apps[0].instances()] == ["completed"] * 2
        assert set(ran.values()) == {1}
        assert ran.total() == 2 * parts

    run(body)


def _when_relieved(app: Mainspring, looked: asyncio.Event) -> None:
    """Tell when a worker has looked for the dead on the server that answers now."""
    store: Any = internals_of(app).engine.store
    relieve = store.relieve

    async def seen() -> int:
        count = await relieve()
        looked.set()
        return count

    store.relieve = seen
