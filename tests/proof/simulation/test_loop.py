import asyncio
import inspect

from tests.proof.simulation.loop import VirtualLoop
from tests.proof.simulation.trace import Trace


def test_what_a_buried_task_begins_at_its_end_is_buried_too() -> None:
    loop = VirtualLoop(Trace(kept=False))
    begun: list[asyncio.Task[None]] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            begun.append(asyncio.ensure_future(asyncio.sleep(1)))

    async def story() -> None:
        waiting = loop.begin(loop.world, wait(), "waits")
        await asyncio.sleep(1)
        assert not waiting.done()

    loop.run_until_complete(loop.begin(loop.world, story(), "story"))
    loop.bury()

    assert [task.get_loop() for task in begun] == [loop]
    coroutine = begun[0].get_coro()
    assert inspect.iscoroutine(coroutine)
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
