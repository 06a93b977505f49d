"""How a function is run as a flow, on the pure core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mainspring.flows import Flow
from mainspring.flows.flow import make_flow
from tests.unit.flows.programs import Go, Ping, Pong, World, pack, work


def flow_of(function: Callable[[Go], Any], **given: Any) -> Flow[Any, Any]:
    options: dict[str, Any] = {
        "receives": (Ping, Pong),
        "sends": (),
        "steps": (pack, work),
        "stages": ("first", "second"),
    }
    return make_flow(
        function, "order", **{"id": "id", "version": 1, "drift": "refuse", "deadline": None, **options, **given}
    )


def run_in(function: Callable[[Go], Any], **given: Any) -> World:
    world = World(flow_of(function, **given))
    world.take(Go("p", ()))
    if world.error is not None:
        raise world.error
    return world
