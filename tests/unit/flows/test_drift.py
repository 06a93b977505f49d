"""Code that was changed under an instance: what differs is named, and nothing is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from mainspring.core.fold import fold
from mainspring.core.step import step
from mainspring.errors import DriftError
from mainspring.flows import Flow, receive
from mainspring.flows.flow import make_flow
from mainspring.testing import envelope
from tests.unit.flows.programs import Go, Ping, World, pack, work


def flow_of(function: Callable[[Go], Any], drift: str = "refuse") -> Flow[Any, Any]:
    options: dict[str, Any] = {"receives": (Ping,), "sends": (), "steps": (pack, work), "stages": ()}
    return make_flow(function, "order", id="id", version=1, drift=drift, deadline=None, **options)


async def original(go: Go) -> str:
    await work("reserve")
    await receive(Ping)
    await work("ship")
    return "shipped"


async def one_more(go: Go) -> str:
    await work("check")
    await work("reserve")
    await receive(Ping)
    await work("ship")
    return "shipped"


async def one_less(go: Go) -> str:
    await receive(Ping)
    await work("ship")
    return "shipped"


async def another_argument(go: Go) -> str:
    await work("reserve now")
    await receive(Ping)
    await work("ship")
    return "shipped"


async def another_order(go: Go) -> str:
    await receive(Ping)
    await work("ship")
    await work("reserve")
    return "shipped"


def line_of(function: Callable[..., Any], offset: int) -> str:
    return f"{__file__}:{function.__code__.co_firstlineno + offset} in {function.__qualname__}"


def begun() -> World:
    """Return an instance of the original code that waits for a message."""
    world = World(flow_of(original))
    world.take(Go("p", ()))
    world.come(("answer", 3))
    return world


def under(function: Callable[[Go], Any], world: World, drift: str = "refuse") -> list[Any]:
    flow = flow_of(function, drift)
    state = fold(flow, flow.initial_state, world.stream)
    taken = step(flow, state, len(world.stream), envelope(Ping("p", 1), time=world.time), False, world.time)
    return list(taken.events)


ADVICE = (
    "Deploy the code that it began with, as version 1 beside the new one as version 2; or let it go on with "
    'drift="adopt"; or reset it to a position before.'
)


@pytest.mark.parametrize(
    ("function", "lines"),
    [
        (
            one_more,
            [
                "  recorded, and no longer asked for: work(name='reserve') at position 3",
                f"  asked for, and not recorded: work(name='check') at {line_of(one_more, 1)}",
            ],
        ),
        (one_less, ["  recorded, and no longer asked for: work(name='reserve') at position 3"]),
        (
            another_argument,
            [
                "  recorded, and no longer asked for: work(name='reserve') at position 3",
                f"  asked for, and not recorded: work(name='reserve now') at {line_of(another_argument, 1)}",
            ],
        ),
        (another_order, ["  recorded, and no longer asked for: work(name='reserve') at position 3"]),
    ],
)
def test_what_differs_is_named_with_its_line_and_nothing_is_decided(
    function: Callable[[Go], Any], lines: list[str]
) -> None:
    world = begun()
    with pytest.raises(DriftError) as raised:
        under(function, world)
    head = "order: the code is not that with which this instance began."
    assert str(raised.value) == "\n".join([head, *lines, ADVICE])


def test_what_is_the_same_in_another_step_is_no_drift() -> None:
    async def moved(go: Go) -> str:
        reserving = asyncio.ensure_future(work("reserve"))
        await receive(Ping)
        await reserving
        await work("ship")
        return "shipped"

    assert len(under(moved, begun())) == 2


def test_adopting_code_sends_what_is_new_and_passes_over_what_is_gone() -> None:
    events = under(another_argument, begun(), "adopt")
    assert [event.message for event in events] == [Ping("p", 1), work.command(name="reserve now")]
    assert [event.message for event in under(one_less, begun(), "adopt")][1:] == [work.command(name="ship")]


def test_adopting_code_gets_the_answers_that_came_before() -> None:
    events = under(another_order, begun(), "adopt")
    assert [event.message for event in events[1:]] == [work.command(name="ship")]


def test_adopting_code_that_goes_on_decides_as_live_as_anew() -> None:
    world = begun()
    adopting = flow_of(one_more, "adopt")
    world.flow = adopting
    world.state = world.refolded()
    events = world.take(Ping("p", 1))
    assert [event.message for event in events[1:]] == [work.command(name="check")]
    events = world.come(("answer", len(world.stream)))
    assert [event.message for event in events[1:]] == [work.command(name="ship")]
    world.come(("answer", len(world.stream)))
    assert world.ended


def test_an_input_that_the_code_has_no_more_use_for_is_drift() -> None:
    async def ends_at_once(go: Go) -> str:
        return "done"

    with pytest.raises(DriftError, match="no longer asked for"):
        under(ends_at_once, begun())
