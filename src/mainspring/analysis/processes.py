"""Work on many instances, shared among processes: each gets a part of it at a time, and answers.

    here                          in each helper
    parts of the work  ───▶  load the app, read with its own connection, work  ───▶  an answer for each part

A helper carries nothing out, and ends with the process that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any, Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

from mainspring.app import Mainspring
from mainspring.app.tuning import tune_process
from mainspring.errors import OperationError, told

END_SECONDS: Final = 10.0

P = TypeVar("P")
A = TypeVar("A")

Work: TypeAlias = Callable[[Mainspring, P], Awaitable[A]]
"""What a helper does with a part. It travels there, so it is a function of a module, or a partial of one."""

_SPAWN: Final = multiprocessing.get_context("spawn")


class Sharing(Struct, frozen=True):
    """Among how many processes work is shared, and how each of them loads the app.

    >>> from mainspring.testing.samples import Counter
    >>> Sharing(lambda: Mainspring("sqlite:///app.db"), 4).processes
    4
    """

    load: Callable[[], Mainspring]
    processes: int


async def shared(parts: AsyncIterator[P], work: Work[P, A], sharing: Sharing) -> AsyncIterator[A]:
    """Return the answers for all parts, in the order in which they come. For few parts few helpers are started."""
    helpers, idle, busy = list[_Helper[P, A]](), list[_Helper[P, A]](), list[_Helper[P, A]]()
    try:
        async for part in parts:
            if not idle and len(helpers) < sharing.processes:
                helpers.append(_Helper[P, A](sharing.load, work))
                idle = helpers[-1:]
            elif not idle:
                idle, busy = await _ready(busy)
                for helper in idle:
                    yield helper.answer()
            helper = idle.pop()
            helper.give(part)
            busy.append(helper)
        while busy:
            ready, busy = await _ready(busy)
            for helper in ready:
                yield helper.answer()
    finally:
        for helper in helpers:
            helper.pipe.close()  # all end at the same time
        for helper in helpers:
            await asyncio.to_thread(helper.end)


async def _ready(busy: list[_Helper[P, A]]) -> tuple[list[_Helper[P, A]], list[_Helper[P, A]]]:
    """Wait for helpers that have answered, and return them and the others."""
    pipes = await asyncio.to_thread(connection.wait, [helper.pipe for helper in busy])
    return [h for h in busy if h.pipe in pipes], [h for h in busy if h.pipe not in pipes]


class _Helper(Generic[P, A]):
    """A process that works on one part after the other."""

    def __init__(self, load: Callable[[], Mainspring], work: Work[P, A]) -> None:
        self.pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_help, args=(load, work, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def give(self, part: P) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has failed before it read: its answer says why
            self.pipe.send(part)

    def answer(self) -> A:
        try:
            failure, answer = self.pipe.recv()
        except EOFError:
            raise _failed("it ended before it answered") from None
        if failure is not None:
            raise _failed(failure)
        return answer

    def end(self) -> None:
        self._process.join(END_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(END_SECONDS)


def _failed(why: str) -> OperationError:
    return OperationError("A process that helps", f"has failed: {why}", "Try --processes 1.")


def _help(load: Callable[[], Mainspring], work: Work[Any, Any], pipe: Connection) -> None:
    # An interrupt at the terminal reaches all processes: who gave the work ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tune_process()
    try:
        # Not inside the loop: a module may run one of its own while it is imported.
        asyncio.run(_serve(load(), work, pipe))
    except (EOFError, BrokenPipeError):
        return  # there is no more work
    except Exception as error:  # noqa: BLE001  told to who waits for the answer
        pipe.send((told(error), None))


async def _serve(app: Mainspring, work: Work[Any, Any], pipe: Connection) -> None:
    await app.start(work=False)
    try:
        while True:
            pipe.send((None, await work(app, pipe.recv())))
    finally:
        await app.stop()
