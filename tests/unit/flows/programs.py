"""Random programs as a flow, and a world that answers what they ask for in any order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from mainspring import Mainspring
from mainspring.core.definition import definition_of
from mainspring.core.events import (
    Asked,
    Compensating,
    Completed,
    Failed,
    FannedOut,
    Occurrence,
    ScheduleCancelled,
    Scheduled,
    Sent,
    TaskClosed,
)
from mainspring.core.failures import SendFailed
from mainspring.core.fold import fold
from mainspring.core.messages import Kind
from mainspring.core.step import step
from mainspring.flows import (
    Flow,
    StepFailed,
    ask,
    each,
    now,
    publish,
    race,
    receive,
    stage,
    uuid,
)
from mainspring.testing import envelope

Program = tuple[Any, ...]


@dataclass(frozen=True)
class Go:
    id: str
    program: Program


@dataclass(frozen=True)
class Ping:
    id: str
    number: int


@dataclass(frozen=True)
class Pong:
    id: str
    number: int


@dataclass(frozen=True)
class Yes:
    by: str


@dataclass(frozen=True)
class Told:
    text: str


app = Mainspring("memory://")


@app.step
def work(name: str) -> str:
    return name


@app.step
def pack(number: int) -> int:
    return number


@app.step
def unwork(name: str) -> None:
    return None


@app.flow(id="id", stages=("first", "second"), sends=(Told,), receives=(Ping, Pong, Yes), steps=(work, pack, unwork))
async def programs(go: Go) -> str:
    return str(await execute(go.program))


async def execute(program: Program) -> Any:
    return await OPERATIONS[program[0]](*program[1:])


async def op_call(name: str) -> Any:
    return await work(name).undone_by(unwork(name))


async def op_caught(inner: Program) -> Any:
    try:
        return await execute(inner)
    except (StepFailed, ExceptionGroup, TimeoutError) as error:
        return await work(f"caught {type(error).__name__}")


async def op_sequence(*parts: Program) -> Any:
    return [await execute(part) for part in parts]


async def op_gather(*parts: Program) -> Any:
    return await asyncio.gather(*(execute(part) for part in parts), return_exceptions=True)


async def op_group(*parts: Program) -> Any:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(execute(part)) for part in parts]
    return [task.result() for task in tasks]


async def op_timeout(seconds: float, inner: Program) -> Any:
    try:
        async with asyncio.timeout(seconds):
            return await execute(inner)
    except TimeoutError:
        return "late"


async def op_wait_for(seconds: float, inner: Program) -> Any:
    return await asyncio.wait_for(execute(inner), seconds)


async def op_sleep(seconds: float) -> Any:
    # In a flow: it is recorded, and nobody waits.
    await asyncio.sleep(seconds)
    return asyncio.get_running_loop().time()


async def op_receive(which: str) -> Any:
    if which == "either":
        return await receive(Ping, Pong)
    return await receive(Ping if which == "ping" else Pong)


async def op_race(*parts: Program) -> Any:
    return await race(*(execute(part) for part in parts))


async def op_each(count: int) -> Any:
    return await each((pack(number) for number in range(count)), return_failures=True)


async def op_ask() -> Any:
    return await ask("Go on?", Yes, role="lead")


async def op_cancel(inner: Program) -> Any:
    task = asyncio.ensure_future(execute(inner))
    await work("before the cancel")
    task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return "cancelled"


async def op_seen() -> Any:
    publish(Told(f"{now()} {uuid()}"))
    return await work(f"at {now().isoformat()} {uuid()}")


async def op_stage(name: str) -> Any:
    stage(name)


async def op_queue(inner: Program) -> Any:
    queue: asyncio.Queue[Any] = asyncio.Queue(1)
    lock = asyncio.Lock()

    async def produce(name: str) -> None:
        async with lock:
            await queue.put(await execute(inner))

    async with asyncio.TaskGroup() as group:
        group.create_task(produce("a"))
        group.create_task(produce("b"))
        return [await queue.get(), await queue.get()]


OPERATIONS: dict[str, Callable[..., Any]] = {
    name.removeprefix("op_"): value for name, value in list(globals().items()) if name.startswith("op_")
}

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def outcome(take: Callable[[], Any]) -> Any:
    """Return what a step returns, or the error that it raises."""
    try:
        return take()
    except Exception as error:  # noqa: BLE001  whatever it is, a run anew has to raise the same
        return error


class World:
    """An instance of a flow, its stream, and what it waits for."""

    def __init__(self, flow: Flow[Any, Any] = programs) -> None:
        self.flow = flow
        self.state: Any = flow.initial_state
        self.stream: list[Occurrence[Any]] = []
        self.time = EPOCH
        self.open: dict[int, Any] = {}
        self.ended = False
        self.error: Exception | None = None

    def choices(self) -> list[tuple[str, int]]:
        """Return what could come next: an answer or failure to what is open, and messages."""
        found = [("answer", position) for position in self.open]
        found += [("failure", position) for position, event in self.open.items() if type(event) is Sent]
        return [*found, ("ping", 0), ("pong", 0)]

    def come(self, choice: tuple[str, int], by_cause: bool = True) -> list[Any]:
        """Let one of these come. Return what is recorded, once by the live run and once by the code run anew."""
        kind, position = choice
        number = len(self.stream)
        self.time += timedelta(seconds=1.1)
        if kind in ("ping", "pong"):
            return self.take((Ping if kind == "ping" else Pong)("p", number), None, Kind.COMMAND)
        event = self.open.pop(position)
        cause = position if by_cause else None
        if kind == "failure":
            return self.take(SendFailed(type(event.message).__name__, "m", "ValueError: no", 2), cause, Kind.RESULT)
        if type(event) is Scheduled:
            self.time = max(self.time, self.stream[position - 1].time + (event.after or timedelta()))
            return self.take(event.message, position, Kind.TIMER)
        if type(event) is Asked:
            return self.take(Yes("ann"), position, Kind.ANSWER)
        return self.take(self.answer(event), cause, Kind.RESULT)

    def answer(self, event: Any) -> Any:
        if type(event) is FannedOut:
            return pack.all_done(tuple(pack.done(each.number) for each in event.messages), (), event.key)
        steps = {step.command: step for step in (work, pack, unwork)}
        value = None if type(event.message) is unwork.command else getattr(event.message, "name", 0)
        return steps[type(event.message)].done(value)

    def take(self, message: Any, cause: int | None = None, kind: Kind = Kind.COMMAND) -> list[Any]:
        begins, version = not self.stream, len(self.stream)
        sealed = envelope(message, kind=kind, time=self.time)
        anew = outcome(lambda: step(self.flow, self.refolded(), version, sealed, begins, self.time, cause))
        taken = outcome(lambda: step(self.flow, self.state, version, sealed, begins, self.time, cause))
        if isinstance(taken, Exception):
            assert (type(taken), str(taken)) == (type(anew), str(anew))
            self.ended = True
            self.error = taken
            return []
        assert not isinstance(anew, Exception), anew
        assert taken.events == anew.events
        assert taken.state == anew.state
        self.state = taken.state
        self._record(taken.events, cause)
        return list(taken.events)

    def refolded(self) -> Any:
        return fold(self.flow, self.flow.initial_state, self.stream)

    def _record(self, events: Sequence[Any], cause: int | None) -> None:
        for event in events:
            position = len(self.stream) + 1
            self.stream.append(Occurrence(event, self.time, position, cause if event.direction == "input" else None))
            match event:
                case Sent() | FannedOut():
                    self.open[position] = event
                case Scheduled(key=key):
                    self._cancelled(Scheduled, key)
                    self.open[position] = event
                case Asked(key):
                    self._cancelled(Asked, key)
                    self.open[position] = event
                case ScheduleCancelled(key):
                    self._cancelled(Scheduled, key)
                case TaskClosed(key):
                    self._cancelled(Asked, key)
                case Completed() | Failed() | Compensating():
                    self.ended = True
                case _:
                    pass

    def _cancelled(self, kind: type[Any], key: str) -> None:
        self.open = {p: event for p, event in self.open.items() if not (type(event) is kind and event.key == key)}


definition_of(type(programs))
