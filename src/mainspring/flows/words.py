"""The words of a flow: what its code calls, beside steps and asyncio's own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Iterable
from datetime import datetime, timedelta
from types import UnionType
from typing import Any, Literal, TypeVar, cast, get_args, overload
from uuid import UUID

from mainspring.core.decisions import Ask, CloseTask, Publish, Reply, StartChild
from mainspring.core.messages import Message, type_of
from mainspring.errors import FlowError
from mainspring.flows.asked import Place
from mainspring.flows.calls import Call, Step, answer_of, current, fan_out, place_of_caller

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


@overload
def call(message: Message, answer: type[T], /) -> Call[T]: ...
@overload
def call(message: Message, answer: UnionType | None = None, /) -> Call[Any]: ...
def call(message: Message, answer: Any = None, /) -> Call[Any]:
    """Send a message to its handler or workflow, and await what comes back: its result or its reply.

    `answer` is the type that comes back, one or a union; with None, whatever does.
    """
    name = type_of(type(message)).name
    types = _types(answer)
    return Call(name, message, answer_of(name, types), place_of_caller(), types=types)


@overload
def child(message: Message, answer: type[T], /) -> Call[T]: ...
@overload
def child(message: Message, answer: UnionType | None = None, /) -> Call[Any]: ...
def child(message: Message, answer: Any = None, /) -> Call[Any]:
    """Begin an instance of another workflow as this one's child, and await its result.

    One that ends badly raises StepFailed. When this instance ends before it, it is cancelled.
    """
    name = type_of(type(message)).name
    types = _types(answer)
    return Call(name, message, answer_of(name, types), place_of_caller(), kind=StartChild, types=types)


@overload
async def receive(type: type[T], /) -> T: ...
@overload
async def receive(type: type[A], other: type[B], /) -> A | B: ...
@overload
async def receive(*types: type[Any] | UnionType) -> Any: ...
async def receive(*types: Any) -> Any:
    """Await the next message of a type, or of one of several. One that came before is received at once."""
    wanted = tuple(member for each in types for member in _types(each))
    run = current("receive")
    run.flow.check_received(wanted)
    return await run.receive(wanted)


@overload
async def ask(
    title: str,
    answer: type[T],
    /,
    *,
    role: str | None = None,
    person: str | None = None,
    excludes: tuple[str, ...] = (),
    reject: type[Any] | None = None,
    due: timedelta | datetime | None = None,
    data: dict[str, Any] | None = None,
    key: str | None = None,
) -> T: ...
@overload
async def ask(
    title: str,
    answer: UnionType,
    /,
    *,
    role: str | None = None,
    person: str | None = None,
    excludes: tuple[str, ...] = (),
    reject: type[Any] | None = None,
    due: timedelta | datetime | None = None,
    data: dict[str, Any] | None = None,
    key: str | None = None,
) -> Any: ...
async def ask(title: str, answer: Any, /, *, key: str | None = None, **options: Any) -> Any:
    """Ask a person, or anyone with a role, and await the answer: a message of one of the types. See `Ask`.

    If the await is cancelled, as by a timeout, the task is closed.
    """
    run, types = current("ask"), _types(answer)
    if key is None:
        number = run.count(f"ask {types}")
        key = type_of(types[0]).name if number == 1 else f"{type_of(types[0]).name}#{number}"
    if options.get("data") is None:
        options.pop("data", None)
    decision = Ask(title, answer=types, key=key, **options)
    try:
        return await run.ask(decision, _place(), lambda message: message, types)
    except asyncio.CancelledError:
        run.ask_unrecorded(CloseTask(key))
        raise


@overload
async def each(
    calls: Iterable[Call[T]], *, key: str | None = None, return_failures: Literal[False] = False
) -> list[T]: ...
@overload
async def each(
    calls: Iterable[Call[T]], *, key: str | None = None, return_failures: Literal[True]
) -> list[T | Exception]: ...
async def each(calls: Iterable[Call[Any]], *, key: str | None = None, return_failures: bool = False) -> Any:
    """Await many calls of one step together, thousands of them: they are one entry of the stream, and so is their end.

    Returns their results in order. If some failed, an ExceptionGroup of StepFailed is raised when all have ended; with
    `return_failures`, each stands in the place of its result.
    """
    run, made = current("each"), list(calls)
    for one in made:
        one.use()
    if not made:
        return []
    step: Step[Any, Any] | None = run.flow.step_of(cast("type[Any]", type(made[0].message)))
    if step is None or any(type(one.message) is not step.command for one in made):
        raise FlowError(
            "each(…) takes calls of one step", "Give it those, as in `each(pack(item) for item in items)`, or gather."
        )
    number = run.count(f"each {step.name}")
    key = key or str(step.name if number == 1 else f"{step.name}#{number}")

    def answer(message: Any) -> list[Any]:
        return step.each_answer(message, len(made), return_failures=return_failures)

    return await run.ask(fan_out(step, made, key), _place(), answer)


async def race(*awaitables: Awaitable[T]) -> T:
    """Await the first of several, and cancel the others. What was sent for them goes on; its answer is passed over."""
    tasks = [asyncio.ensure_future(each) for each in awaitables]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.add_done_callback(_looked_at)
            task.cancel()
    return next(task for task in tasks if task in done).result()


def publish(message: Message) -> None:
    """Publish a message to all that want it."""
    current("publish").ask(Publish(message), _place(), None)


def reply(message: Message, to: str | None = None) -> None:
    """Reply to the sender of the message that was taken last, else to the one that began the flow."""
    current("reply").ask(Reply(message, to), _place(), None)


def stage(name: str) -> None:
    """Say which stage the flow has reached: lists, figures and diagrams call its state by that name."""
    run = current("stage")
    run.flow.check_stage(name)
    run.stage = name


def now() -> datetime:
    """Return the time, as it was recorded: that of the input which let the code go on, the same at every re-run."""
    time = current("now").time
    if time is None:
        raise FlowError("now() was called before the flow began", "Call it inside of the function.")
    return time


def rng() -> random.Random:
    """Return a random number generator that gives the same numbers at every re-run, and others in each instance."""
    return current("rng").random()


def uuid() -> UUID:
    """Return a new UUID, the same one at every re-run."""
    return UUID(int=rng().getrandbits(128), version=4)


def _looked_at(task: asyncio.Future[Any]) -> None:
    """Let the error of one that came too late concern nobody."""
    if not task.cancelled():
        task.exception()


def _types(answer: Any) -> tuple[type[Any], ...]:
    if answer is None:
        return ()
    if isinstance(answer, tuple):
        return cast("tuple[type[Any], ...]", answer)
    return get_args(answer) if isinstance(answer, UnionType) else (answer,)


def _place() -> Place:
    return Place.of(*place_of_caller(3))


__all__ = ["Step", "ask", "call", "child", "each", "now", "publish", "race", "receive", "reply", "rng", "stage", "uuid"]
