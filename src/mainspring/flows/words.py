"""The words of a flow: what its code calls, beside steps and asyncio's own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Coroutine, Iterable
from datetime import datetime, timedelta
from types import UnionType
from typing import Any, Literal, TypeVar, cast, get_args, overload
from uuid import UUID

from mainspring.core.decisions import Ask, CloseTask, Publish, Reply, StartChild
from mainspring.core.messages import Message, type_of
from mainspring.errors import FlowError
from mainspring.flows.asked import At
from mainspring.flows.calls import Awaited, Call, Step, answer_of, current, fan_out, place_of_caller

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


@overload
def call(message: Message, answer: type[T], /) -> Call[T]: ...
@overload
def call(message: Message, answer: UnionType, /) -> Call[Any]: ...
def call(message: Message, answer: Any, /) -> Call[Any]:
    """Send a message to its handler or workflow, and await what comes back: its result or its reply.

    `answer` is the type that comes back, one or a union. Of a handler that returns nothing, nothing comes back.
    """
    name, types = type_of(type(message)).name, _types(answer)
    if not types:
        raise FlowError(f"call({name}(…)) awaits no answer", "Say of what type it is, as in call(message, Answer).")
    return Call(name, message, answer_of(name, types), place_of_caller(), types=types)


@overload
def child(message: Message, answer: type[T], /) -> Call[T]: ...
@overload
def child(message: Message, answer: None, /) -> Call[None]: ...
@overload
def child(message: Message, answer: UnionType, /) -> Call[Any]: ...
def child(message: Message, answer: Any, /) -> Call[Any]:
    """Begin an instance of another workflow as this one's child, and await its result.

    `answer` is the type of its result, one or a union; None where it has none. One that ends badly raises StepFailed.
    When this instance ends before it, it is cancelled. Of a flow, call the flow itself: `await invoice(order)`.
    """
    name, types = type_of(type(message)).name, _types(answer)
    return Call(name, message, answer_of(name, types), place_of_caller(), kind=StartChild, types=types)


@overload
def receive(type: type[T], /) -> Coroutine[Any, Any, T]: ...
@overload
def receive(type: type[A], other: type[B], /) -> Coroutine[Any, Any, A | B]: ...
@overload
def receive(*types: type[Any] | UnionType) -> Coroutine[Any, Any, Any]: ...
def receive(*types: Any) -> Any:
    """Await the next message of a type, or of one of several. One that came before is received at once."""
    wanted = tuple(member for each in types for member in _types(each))
    run = current("receive")
    run.flow.check_received(wanted)

    async def received() -> Any:
        return await run.receive(wanted)

    return Awaited("receive", received(), place_of_caller())


@overload
def ask(
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
) -> Coroutine[Any, Any, T]: ...
@overload
def ask(
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
) -> Coroutine[Any, Any, Any]: ...
def ask(title: str, answer: Any, /, *, key: str | None = None, **options: Any) -> Any:
    """Ask a person, or anyone with a role, and await the answer: a message of one of the types. See `Ask`.

    If the await is cancelled, as by a timeout, the task is closed.
    """
    run, types, at = current("ask"), _types(answer), place_of_caller()
    run.flow.check_received(types)
    run.flow.check_answers(types)

    async def answered() -> Any:
        name = key
        if name is None:
            number = run.count(f"ask {[type_of(each).name for each in types]}")
            name = type_of(types[0]).name if number == 1 else f"{type_of(types[0]).name}#{number}"
        given = {option: value for option, value in options.items() if (option, value) != ("data", None)}
        decision = Ask(title, answer=types, key=name, **given)
        try:
            return await run.ask(decision, at, lambda message: message, types)
        except asyncio.CancelledError:
            run.ask_unrecorded(CloseTask(name))
            raise

    return Awaited("ask", answered(), at)


@overload
def each(
    calls: Iterable[Call[T]], *, key: str | None = None, return_failures: Literal[False] = False
) -> Coroutine[Any, Any, list[T]]: ...
@overload
def each(
    calls: Iterable[Call[T]], *, key: str | None = None, return_failures: Literal[True]
) -> Coroutine[Any, Any, list[T | Exception]]: ...
def each(calls: Iterable[Call[Any]], *, key: str | None = None, return_failures: bool = False) -> Any:
    """Await many calls of one step together, thousands of them: they are one entry of the stream, and so is their end.

    Returns their results in order. If some failed, an ExceptionGroup of StepFailed is raised when all have ended; with
    `return_failures`, each stands in the place of its result.
    """
    run, at = current("each"), place_of_caller()
    made: list[Any] = list(calls)
    commands = {cast("type[Any]", type(one.message) if isinstance(one, Call) else object) for one in made}
    step: Step[Any, Any] | None = run.flow.step_of(commands.pop()) if len(commands) == 1 else None
    if made and step is None:
        raise FlowError(
            "each(…) takes calls of one step", "Give it those, as in `each(pack(item) for item in items)`, or gather."
        )
    for one in made:
        one.use()
        if one.is_undone:
            raise FlowError(
                f"each(…) cannot undo one of its parts, and {one.name}(…) says undone_by",
                "Await such calls by gather or in a TaskGroup; or let one step undo all of them.",
            )

    async def answered() -> Any:
        if step is None:
            return []
        number = run.count(f"each {step.name}")
        name = key or str(step.name if number == 1 else f"{step.name}#{number}")

        def answer(message: Any, step: Step[Any, Any] = step) -> list[Any]:
            return step.each_answer(message, len(made), return_failures=return_failures)

        return await run.ask(fan_out(step, made, name), at, answer)

    return Awaited("each", answered(), at)


def race(*awaitables: Awaitable[T]) -> Coroutine[Any, Any, T]:
    """Await the first of several, and cancel the others. What was sent for them goes on; its answer is passed over.

    They begin one after the other: if one has its result at once, those behind it do nothing.
    """

    async def first() -> T:
        tasks: list[asyncio.Future[T]] = []
        try:
            for each in awaitables:
                tasks.append(asyncio.ensure_future(each))
                await asyncio.sleep(0)  # of the messages that came early, one is received, and not one by each
                if any(task.done() for task in tasks):
                    break
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            tasks += [asyncio.ensure_future(each) for each in awaitables[len(tasks) :]]  # cancelled, they never begin
            for task in tasks:
                task.add_done_callback(_looked_at)
                task.cancel()
        return next(task for task in tasks if task in done).result()

    return Awaited("race", first(), place_of_caller())


def publish(message: Message) -> None:
    """Publish a message to all that want it."""
    current("publish").ask(Publish(message), _at(), None)


def reply(message: Message, to: str | None = None) -> None:
    """Reply to the sender of the message that was taken last, else to the one that began the flow."""
    current("reply").ask(Reply(message, to), _at(), None)


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


def _at() -> At:
    return place_of_caller(3)


__all__ = ["Step", "ask", "call", "child", "each", "now", "publish", "race", "receive", "reply", "rng", "stage", "uuid"]
