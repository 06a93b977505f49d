"""What a flow promises, on the pure core."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Complete, Schedule, Send
from mainspring.core.events import (
    Became,
    Completed,
    Occurrence,
    Received,
    ScheduleCancelled,
    Scheduled,
    Sent,
    TaskClosed,
)
from mainspring.core.messages import Kind
from mainspring.errors import FlowError
from mainspring.flows import TimerDue, again, ask, live, now, publish, race, receive, rng, stage, uuid
from mainspring.flows.journal import log_of
from mainspring.testing import given
from tests.unit.flows.programs import Go, Ping, Pong, Told, World, Yes, work
from tests.unit.flows.running import flow_of, run_in

ROOT = __file__.partition("/tests/")[0]


def messages(events: list[Any]) -> list[Any]:
    return [getattr(event, "message", event) for event in events]


# ---- the order of things


def test_the_same_stream_comes_of_every_seed_of_hashes() -> None:
    code = (
        "from tests.unit.flows.programs import *\n"
        "late = ('timeout', 3, ('receive', 'ping'))\n"
        "inner = ('gather', ('call', 'a'), late, ('race', ('sleep', 5), ('call', 'b')))\n"
        "world = World()\n"
        "world.take(Go('p', ('sequence', ('group', inner, ('queue', ('seen',)), ('each', 3)), inner)))\n"
        "turn = 0\n"
        "while not world.ended and turn < 60:\n"
        "    choices = [each for each in world.choices() if each[0] == 'answer'] or [('ping', 0)]\n"
        "    world.come(choices[turn * 7 % len(choices)]); turn += 1\n"
        "assert world.ended and world.error is None, world.error\n"
        "print([(entry.event, entry.cause) for entry in world.stream])\n"
    )
    streams = {
        subprocess.run(  # noqa: S603  the code above
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in (0, 1, 2, 3, 1_000, 4_294_967_295)
    }
    assert len(streams) == 1
    assert len(streams.pop()) > 1_000


def test_random_numbers_are_others_in_each_instance() -> None:
    async def draws(go: Go) -> str:
        return f"{uuid()} {rng().random()}"

    flow = flow_of(draws)
    results = set[str]()
    for name in ("a", "b", "a"):
        world = World(flow)
        results.add(world.take(Go(name, ()))[-1].result.value)
    assert len(results) == 2


# ---- timers and messages


async def confirmed(go: Go) -> str:
    try:
        async with asyncio.timeout(300):
            return f"ping {(await receive(Ping)).number}"
    except TimeoutError:
        await work("late")
        return "late"


def test_a_message_before_its_timeout_cancels_the_timer() -> None:
    world = run_in(confirmed)
    events = world.come(("ping", 0))
    assert ScheduleCancelled("300s") in events
    assert world.ended


def test_a_timer_that_goes_off_first_is_a_timeout_and_the_late_message_is_kept() -> None:
    world = run_in(confirmed)
    events = world.come(("answer", 3))
    assert messages(events) == [TimerDue("300s"), work.command(name="late")]
    assert len(world.come(("ping", 0))) == 1
    world.come(("answer", 5))
    assert world.ended


def test_a_timer_that_comes_although_it_was_cancelled_changes_nothing() -> None:
    async def goes_on(go: Go) -> str:
        async with asyncio.timeout(300):
            await receive(Ping)
        return await work("on")

    world = run_in(goes_on)
    world.come(("ping", 0))
    assert len(world.take(TimerDue("300s"), 3, Kind.TIMER)) == 1
    assert not world.ended


def test_timers_of_nearly_the_same_length_have_keys_of_their_own() -> None:
    async def sleeps(go: Go) -> None:
        # In a flow: it is recorded, and nobody waits.
        await asyncio.gather(asyncio.sleep(1_234_567), asyncio.sleep(1_234_568), asyncio.sleep(0.1), asyncio.sleep(0.1))

    world = run_in(sleeps)
    keys = [entry.event.key for entry in world.stream if type(entry.event) is Scheduled]
    assert keys == ["1234567s", "1234568s", "0.1s", "0.1s#2"]


def test_messages_that_come_early_are_received_in_their_order() -> None:
    async def slow(go: Go) -> str:
        await work("first")
        return str([(await receive(Ping)).number, (await receive(Pong)).number, (await receive(Ping)).number])

    world = run_in(slow)
    for kind in ("pong", "ping", "ping"):
        world.come((kind, 0))
    events = world.come(("answer", 3))
    assert events[-1].result.value == "[4, 3, 5]"


def test_equal_calls_side_by_side_get_their_own_answers() -> None:
    async def twins(go: Go) -> str:
        return str(await asyncio.gather(work("same"), work("same")))

    world = run_in(twins)
    world.take(work.done("second"), 4, Kind.RESULT)
    events = world.take(work.done("first"), 3, Kind.RESULT)
    assert events[-1].result.value == "['first', 'second']"


# ---- again


async def counts(go: Go) -> str:
    if len(go.program) == 2:
        stage("second")
        await receive(Ping)
        return "done"
    # In a flow: it is recorded, and nobody waits.
    sleeping = asyncio.create_task(asyncio.sleep(300))
    await work(f"round {len(go.program)}")
    assert not sleeping.done()
    return again(Go(go.id, (*go.program, "x")))


def test_again_bounds_the_journal_and_keeps_what_was_not_received() -> None:
    world = run_in(counts)
    world.come(("ping", 0))
    first = world.come(("answer", 3))
    assert world.state.recorded == 4  # what is kept, where it began again, and what it asked for
    assert ScheduleCancelled("300s") in first
    assert [event.key for event in first if type(event) is Scheduled] == ["300s"]
    position = next(p for p, event in world.open.items() if type(event) is Sent and event.message.name == "round 1")
    events = world.come(("answer", position))
    assert type(world.state).__name__ == "second"
    assert events[-1] == Completed(world.flow.completed("done"))  # with the message that came early


def test_beginning_again_without_end_is_refused() -> None:
    async def forever(go: Go) -> None:
        again(go)

    with pytest.raises(FlowError, match="begun again 100 times without waiting"):
        run_in(forever)


def test_a_message_that_could_begin_it_and_comes_early_begins_nothing_after_again() -> None:
    async def repeats(go: Go) -> str:
        await work(str(len(go.program)))
        if len(go.program) < 2:
            again(Go(go.id, (*go.program, "x")))
        return "done"

    world = run_in(repeats)
    world.take(Go("p", ("another", "one")))
    events = world.come(("answer", 3))
    assert messages(events)[-1] == work.command(name="1")
    events = world.come(("answer", len(world.stream)))
    assert messages(events)[-1] == work.command(name="2")


def test_a_task_that_is_open_when_it_begins_again_is_closed() -> None:
    async def asks(go: Go) -> str:
        asking = asyncio.ensure_future(ask("Go on?", Yes, role="lead"))
        await receive(Ping)
        assert not asking.done()
        again(go)

    world = run_in(asks, receives=(Ping, Yes))
    assert TaskClosed("Yes") in world.come(("ping", 0))
    assert len(world.open) == 1


# ---- the cache


def test_a_step_that_was_not_recorded_leaves_nothing_behind() -> None:
    world = run_in(confirmed)
    state, stream = world.state, list(world.stream)
    world.flow.decide_on(_received(world, Ping("p", 7)), state)
    world.state, world.stream = state, stream
    events = world.come(("answer", 3))
    assert messages(events) == [TimerDue("300s"), work.command(name="late")]


def test_the_same_message_at_another_time_is_another_input() -> None:
    async def timed(go: Go) -> str:
        await receive(Ping)
        return await work(now().isoformat())

    world = run_in(timed)
    message = Ping("p", 7)
    world.flow.decide_on(_received(world, message), world.state)
    world.time += timedelta(hours=1)
    events = world.take(message)
    assert messages(events)[-1] == work.command(name=world.time.isoformat())


def test_two_threads_decide_on_one_journal_as_one_does() -> None:
    for _ in range(20):
        world = run_in(confirmed)
        asked, found = _received(world, Ping("p", 7)), list[Any]()

        def decide(world: World = world, asked: Any = asked, found: list[Any] = found) -> None:
            found.append(world.flow.decide_on(asked, world.state))

        threads = [threading.Thread(target=decide) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4
        assert all(decisions == found[0] for decisions in found)


def _received(world: World, message: Any) -> Any:
    return Occurrence(Received(message), world.time, len(world.stream) + 1, None)


def test_evicted_flows_end_deliberately_and_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LIVE_FLOWS", 5)
    ended: list[str] = []

    async def tidies(go: Go) -> str:
        try:
            return str((await receive(Ping)).number)
        finally:
            ended.append(go.id)
            await work("tidied")
            ended.append("went on")

    flow = flow_of(tidies)
    worlds: list[World] = []
    for number in range(200):
        world = World(flow)
        world.take(Go(f"p{number}", ()))
        worlds.append(world)
    assert live.kept() <= 5
    assert "went on" not in ended
    streams = []
    for world in worlds:
        events = world.come(("ping", 0))
        assert messages(events)[-1] == work.command(name="tidied")
        streams.append(len(world.stream))
    assert set(streams) == {4}


def test_code_that_resists_its_end_is_named_and_left(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.flows.loop.EVICTIONS", 0)

    async def stubborn(go: Go) -> None:
        for _ in range(50):
            try:
                await receive(Ping)
            except BaseException:  # noqa: BLE001, S112  as authors do
                continue

    world = run_in(stubborn)
    log: Any = log_of(world.state)
    log.live.close()
    assert len(world.come(("ping", 0))) == 1
    assert "do not await there" in caplog.text
    closed: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", closed.append)
    del log, world
    gc.collect()
    assert closed == []


# ---- under the guard, with the testing kit


def test_a_flow_is_tested_like_any_workflow_under_the_guard() -> None:
    flow = flow_of(confirmed)
    given(flow).when(Go("p", ())).then(Schedule(TimerDue("300s"), after=timedelta(seconds=300), key="300s"))
    given(flow, Go("p", ())).when(TimerDue("300s")).then(Send(work.command(name="late")))
    given(flow, Go("p", ()), TimerDue("300s")).when(work.returned("x")).then(Complete(flow.completed("late")))


def test_race_ends_with_the_first_and_sends_nothing_more() -> None:
    async def races(go: Go) -> str:
        return await race(work("a"), work("b"))

    world = run_in(races)
    events = world.come(("answer", 4))
    assert events[-1].result.value == "b"
    assert Became not in map(type, events)


def test_race_leaves_a_message_that_came_early_to_who_receives_it_next() -> None:
    async def races(go: Go) -> str:
        await work("first")
        one = await race(receive(Ping), receive(Pong))
        other = await receive(Ping, Pong)
        return f"{type(one).__name__}, {type(other).__name__}"

    world = run_in(races)
    world.come(("ping", 0))
    world.come(("pong", 0))
    assert world.come(("answer", max(world.open)))[-1].result.value == "Ping, Pong"


def test_a_call_whose_task_is_cancelled_before_it_begins_was_not_forgotten() -> None:
    async def gives_up(go: Go) -> str:
        with suppress(TimeoutError):
            await asyncio.wait_for(work("a"), 0)
        async with asyncio.TaskGroup() as group:
            group.create_task(work("b")).cancel()
        return "given up"

    assert run_in(gives_up).ended


def test_an_async_generator_that_is_left_ends_in_the_flow() -> None:
    async def numbers() -> AsyncIterator[str]:
        try:
            yield await work("a")
            yield "b"
        finally:
            await work("closed")

    async def leaves(go: Go) -> None:
        async for _ in numbers():
            break
        await receive(Ping)

    before = sys.get_asyncgen_hooks()
    asked = run_in(leaves).come(("answer", 3))
    assert work.command(name="closed") in messages(asked)
    assert sys.get_asyncgen_hooks() == before


def test_an_async_generator_that_is_torn_down_asks_for_nothing() -> None:
    ends: list[str] = []

    async def numbers() -> AsyncIterator[str]:
        try:
            yield "a"
        finally:
            ends.append("began")
            await work("closed")
            ends.append("went on")

    async def waits(go: Go) -> None:
        held = numbers()
        await anext(held)
        await receive(Ping)

    world = run_in(waits)
    log = log_of(world.state)
    assert log is not None
    log.live.close()
    gc.collect()
    assert set(ends) == {"began"}


def test_ids_are_others_each_time_that_a_flow_begins_again_in_one_step() -> None:
    async def repeats(go: Go) -> None:
        publish(Told(str(uuid())))
        if len(go.program) < 3:
            again(Go(go.id, (*go.program, "x")))

    told = [
        message.text
        for message in messages([entry.event for entry in run_in(repeats, sends=(Told,)).stream])
        if isinstance(message, Told)
    ]
    assert len(set(told)) == len(told) == 4
