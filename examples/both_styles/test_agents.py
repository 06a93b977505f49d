"""The agent, in both styles."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from examples.both_styles import agent, agent_flow
from mainspring.errors import InstanceFailedError
from mainspring.testing import World, simulate

agents = pytest.mark.parametrize("style", [agent, agent_flow], ids=["decide", "flow"])


def model(style: Any, *said: tuple[str, str]) -> Any:
    """Return what stands in for the model: it says these things, one after the other."""
    if style is agent_flow:
        return [agent_flow.think.returned(agent_flow.Turn(*each)) for each in said]
    return [agent.Turn("a-1", *each) for each in said]


def thinking(said: list[Any]) -> Callable[[Any], Any]:
    """Return what answers each call of the model by the next thing that it says."""
    left = iter(said)
    return lambda _: next(left)


def commands(style: Any) -> tuple[Any, Any]:
    return (style.Think, style.Use) if style is agent else (style.think.command, style.use.command)


async def answered(style: Any, world: World, answer: Any, *said: tuple[str, str]) -> Any:
    think, _ = commands(style)
    world.stub(think, thinking(model(style, *said)))
    receipt = await world.send(style.Task("a-1", "pay the baker"))
    for task in await world.app.tasks.list(role="operator"):
        await world.app.tasks.complete(task.id, answer("a-1"), actor="ann", roles=["operator"])
    return await receipt.result()


@agents
def test_an_agent_uses_tools_until_it_is_done_and_asks_before_what_is_dangerous(style: Any) -> None:
    async def story() -> None:
        async with asyncio.timeout(30), simulate(style.app) as world:
            said = ("search", "baker"), ("send_money", "7 to the baker"), ("", "paid")
            result = await answered(style, world, style.Allow, *said)
            assert getattr(result, "text", result) == "paid"
            assert [call.message.tool for call in world.calls(commands(style)[1])] == ["search", "send_money"]

    asyncio.run(story())


@agents
def test_what_nobody_allows_is_not_done(style: Any) -> None:
    async def story() -> None:
        async with asyncio.timeout(30), simulate(style.app) as world:
            with pytest.raises(InstanceFailedError, match="nobody allowed send_money"):
                await answered(style, world, style.Deny, ("send_money", "everything"), ("", "paid"))
            assert world.calls(commands(style)[1]) == []

    asyncio.run(story())


@agents
def test_an_agent_that_goes_round_in_circles_is_ended(style: Any) -> None:
    async def story() -> None:
        async with asyncio.timeout(30), simulate(style.app) as world:
            with pytest.raises(InstanceFailedError, match="too many turns"):
                await answered(style, world, style.Allow, *[("search", "baker")] * 99)
            assert len(world.calls(commands(style)[1])) == style.TURNS

    asyncio.run(story())
