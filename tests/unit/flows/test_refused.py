"""What a flow cannot do, and what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mainspring.errors import FlowError
from mainspring.flows import again, call, each, receive
from tests.unit.flows.programs import Go, Ping, Told, work
from tests.unit.flows.running import run_in


class Never:
    def __await__(self) -> Any:
        yield 42


async def awaits_another_thing(go: Go) -> None:
    await Never()


async def awaits_another_loops_future(go: Go) -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    await asyncio.Future(loop=loop)


async def forgets_an_await(go: Go) -> None:
    work("forgotten")  # pyright: ignore[reportUnusedCoroutine]  the mistake that is meant


async def forgets_to_receive(go: Go) -> None:
    receive(Ping)  # pyright: ignore[reportUnusedCoroutine]  as above


async def spins(go: Go) -> None:
    while True:  # noqa: ASYNC110  the mistake that is meant
        # In a flow: it is recorded, and nobody waits.
        await asyncio.sleep(0)


async def waits_for_nothing(go: Go) -> None:
    await asyncio.Event().wait()


async def hides_an_error(go: Go) -> None:
    try:
        await asyncio.to_thread(print)
    except Exception:  # noqa: BLE001  as authors do
        await work("hidden")


async def sends_what_nobody_knows(go: Go) -> None:
    message = Told("x")
    await call(message, Go)


async def fans_out_what_is_no_call(go: Go) -> None:
    await each([1, 2])  # type: ignore[list-item]


async def gathers_a_generator(go: Go) -> None:
    await asyncio.gather(work(name) for name in ("a", "b"))  # type: ignore[call-overload]


async def sleeps_for_ever(go: Go) -> None:
    # In a flow: it is recorded, and nobody waits.
    await asyncio.sleep(1e300)


async def begins_again_in_a_task(go: Go) -> None:
    async def inner() -> None:
        again(go)

    async with asyncio.TaskGroup() as group:
        group.create_task(inner())


async def runs_a_process(go: Go) -> None:
    await asyncio.create_subprocess_exec("ls")


async def opens_a_socket(go: Go) -> None:
    await asyncio.open_connection("localhost", 1)


async def uses_an_executor(go: Go) -> None:
    await asyncio.get_running_loop().run_in_executor(None, print)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (awaits_another_thing, "bad yield: 42. Await a step, receive(…), ask(…)"),
        (awaits_another_loops_future, "attached to a different loop. Await a step"),
        (forgets_an_await, "was never awaited. Write `await` before it"),
        (forgets_to_receive, "receive(…) at"),
        (spins, "turns of its loop without waiting for anything. Await what ends the loop"),
        (waits_for_nothing, "for something that nothing recorded can bring about. Await a step"),
        (hides_an_error, "loop.run_in_executor, which reaches outside"),
        (sends_what_nobody_knows, "sends Told, and its code does not show that. Declare it: @app.flow(steps=(Told,))"),
        (fans_out_what_is_no_call, "each(…) takes calls of one step. Give it those"),
        (gathers_a_generator, "bad yield: work(name='a'). Await a step"),
        (sleeps_for_ever, "set a timer of 1e+300 seconds. Use None where there is no timeout"),
        (begins_again_in_a_task, "called again(…) in a task of its own. Let the flow's own function call it"),
        (runs_a_process, "loop.subprocess_exec, which reaches outside"),
        (opens_a_socket, "which reaches outside"),
        (uses_an_executor, "loop.run_in_executor, which reaches outside"),
    ],
)
def test_what_a_flow_cannot_do_says_what_to_do(
    function: Callable[[Go], Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.flows.loop.TURNS_MOST", 1_000)
    with pytest.raises(FlowError) as raised:
        run_in(function)
    assert says in str(raised.value)


def test_a_swallowed_cancellation_goes_on_the_same_live_and_anew() -> None:
    async def swallows(go: Go) -> str:
        async def deaf() -> str:
            while True:
                try:
                    return await work("long")
                except asyncio.CancelledError:
                    await work("deaf")

        task = asyncio.ensure_future(deaf())
        await work("short")
        task.cancel()
        return await task

    world = run_in(swallows)
    while not world.ended:
        world.come(("answer", max(world.open)))
    assert world.error is None


def test_errors_of_a_group_compensate() -> None:
    async def fails(go: Go) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(work("a"))
            group.create_task(work("b"))

    world = run_in(fails)
    assert "Failed" in str(world.come(("failure", 3))) or world.ended
