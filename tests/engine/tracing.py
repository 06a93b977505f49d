"""`python -m tests.engine.tracing`: the way of one order through the code, from its sending to its handler's result.

A crossing is a call from one module of mainspring to a function of another; what runs in the store's own thread, and
what only goes on after it has waited, is none.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self

from mainspring import Complete, Decisions, Event, Mainspring, Received, Send, Workflow
from mainspring.app.internals import internals_of
from mainspring.engine.runtime import Runtime
from mainspring.port.records import Ref
from mainspring.testing.clock import VirtualClock
from tests.support.waiting import until


@dataclass(frozen=True)
class RequestLeave:
    employee: str


@dataclass(frozen=True)
class AskManager:
    employee: str


@dataclass(frozen=True)
class LeaveApproved:
    employee: str


class Leave(Workflow[RequestLeave | LeaveApproved, str, AskManager]):
    begins = RequestLeave
    initial_state = "new"

    def route(self, message: RequestLeave | LeaveApproved) -> str:
        return message.employee

    def decide(self, message: RequestLeave | LeaveApproved, state: str) -> Decisions[Any, AskManager] | None:
        match message:
            case RequestLeave(employee):
                return [Send(AskManager(employee))]
            case LeaveApproved():
                return [Complete()]

    def evolve(self, state: str, event: Event[Any, AskManager]) -> str | None:
        return "waiting" if isinstance(event, Received) else None


@dataclass(frozen=True)
class Crossing:
    """A call from a module to another; from the event loop where `caller` is empty."""

    caller: str
    module: str
    function: str

    def __str__(self) -> str:
        return f"{self.caller or 'the event loop'} → {self.module}: {self.function}"


class Tracer:
    """Notes the crossings of the thread in which it is entered."""

    def __init__(self) -> None:
        self.crossings: list[Crossing] = []
        # Kept, so that none is taken for another that has its place in memory: what has waited goes on as it was.
        self._frames: set[FrameType] = set()

    def __enter__(self) -> Self:
        sys.setprofile(self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _heard(self, frame: FrameType, event: str, _: object) -> None:
        # Who begins to wait for a time meanwhile is not on the message's way.
        if event != "call" or frame in self._frames or frame.f_code.co_name == "sleep":
            return
        module, caller = _module(frame), _module(frame.f_back)
        if not module:
            return
        self._frames.add(frame)
        if module != caller:
            self.crossings.append(Crossing(caller, module, frame.f_code.co_name))


def _module(frame: FrameType | None) -> str:
    name: str = "" if frame is None else frame.f_globals.get("__name__", "")
    # The clock that stands still is asked in place of the runtime's own.
    name = name.replace("mainspring.testing.clock", "mainspring.engine.runtime")
    return name.removeprefix("mainspring.") if name.startswith("mainspring.") else ""


async def walk(folder: Path) -> list[Crossing]:
    """Return the crossings of an order in an app that has carried some out before."""
    # Nothing falls due while a clock stands still: a heartbeat or a look in the middle is no part of the way.
    app = Mainspring(f"sqlite:///{folder / 'leave.db'}", runtime=Runtime(VirtualClock()))
    app.add(Leave())

    @app.handler
    async def ask(command: AskManager) -> LeaveApproved:
        return LeaveApproved(command.employee)

    async with app:
        for employee in ("eve", "ann"):
            await (await app.send(RequestLeave(employee))).result()
        await until(lambda: internals_of(app).engine.claimer.idle)  # what was begun before is no part of the way
        ended = internals_of(app).engine.ends.end_of(Ref("Leave", "ada"))
        with Tracer() as tracer:
            await app.send(RequestLeave("ada"))
            await ended
    return tracer.crossings


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        crossings = asyncio.run(walk(Path(folder)))
    for crossing in crossings:
        sys.stdout.write(f"{crossing}\n")
    modules = Counter(crossing.module for crossing in crossings)
    sys.stdout.write(f"\n{len(crossings)} crossings into {len(modules)} modules: {modules.most_common()}\n")


if __name__ == "__main__":
    main()
