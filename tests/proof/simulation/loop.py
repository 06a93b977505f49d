"""An event loop whose time is a number, and on which parties live that can be killed or held at every await."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import logging
import sys
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from tests.proof.simulation.trace import Trace

T = TypeVar("T")

# A Sunday, so that nobody takes a virtual time for a real one.
START_US: Final = 1_000_000_000_000_000


class Party:
    """One who acts: a process that can crash or be held, or the world around the processes, which cannot.

    All that a process starts carries its context, so the loop knows whose turn it is about to run.
    """

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.dead = False
        self.held: list[asyncio.Handle] | None = None
        # After how many more turns it dies; None for not at all.
        self.turns_left: int | None = None
        self.on_death: Callable[[], None] = lambda: None
        self.context = contextvars.copy_context()
        self.context.run(PARTY.set, self)

    def die(self) -> None:
        """Run no more. What is under way elsewhere goes on without it."""
        if not self.dead:
            self.dead = True
            self.on_death()


PARTY: Final[contextvars.ContextVar[Party]] = contextvars.ContextVar("party")


class DeadlockError(Exception):
    """Everybody waits, and nothing will ever happen."""


class VirtualLoop(asyncio.BaseEventLoop):
    """asyncio's own loop without files, sockets and real time: when nobody has anything to do, time leaps."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._ready: deque[asyncio.Handle]
        self._scheduled: list[asyncio.TimerHandle]
        self._now = 0.0
        self._trace = trace
        self.world = Party("world", 0)
        # What dead parties would have run: kept, so that no `finally` of theirs runs in the living world.
        self._graves: list[asyncio.Handle] = []

    def time(self) -> float:
        return self._now

    @property
    def now_us(self) -> int:
        """The true time."""
        return START_US + round(self._now * 1e6)

    def _run_once(self) -> None:
        self._leap()
        for _ in range(len(self._ready)):
            self._run_next(self._ready.popleft())

    def _leap(self) -> None:
        scheduled = self._scheduled
        while scheduled and scheduled[0].cancelled():
            heapq.heappop(scheduled)
        if not self._ready:
            if not scheduled:
                raise DeadlockError
            self._now = max(self._now, scheduled[0].when())
        while scheduled and scheduled[0].when() <= self._now:
            self._ready.append(heapq.heappop(scheduled))

    def _run_next(self, handle: asyncio.Handle) -> None:
        if handle.cancelled():
            return
        party: Party = handle._context.get(PARTY, self.world)  # type: ignore[attr-defined]  # noqa: SLF001  a loop's own business
        if party.turns_left is not None and not party.dead:
            party.turns_left -= 1
            if party.turns_left < 0:
                party.die()
        if party.dead:
            self._graves.append(handle)
        elif party.held is not None:
            party.held.append(handle)
        else:
            self._trace.turn(party.number)
            handle._run()  # noqa: SLF001  as above

    def hold(self, party: Party) -> None:
        """Let a party run no turn until it is released."""
        party.held = []

    def release(self, party: Party) -> None:
        """Let a party go on where it was held."""
        held, party.held = party.held or [], None
        self._ready.extend(held)

    def elsewhere(self, seconds: float, call: Callable[[], None]) -> None:
        """Let something happen in the world after a while, whoever is dead by then."""
        self.call_later(seconds, call, context=self.world.context)

    def remote(self, call: Callable[[], T], there: float, back: float) -> asyncio.Future[T]:
        """Let something be done elsewhere, with a way there and a way back, and return a future of its answer."""
        answer: asyncio.Future[T] = self.create_future()

        def execute() -> None:
            try:
                result = call()
            except Exception as error:  # noqa: BLE001  whatever it is, it travels back
                failure = error
                self.elsewhere(back, lambda: None if answer.done() else answer.set_exception(failure))
            else:
                self.elsewhere(back, lambda: None if answer.done() else answer.set_result(result))

        self.elsewhere(there, execute)
        return answer

    def begin(self, party: Party, work: Any, name: str) -> asyncio.Task[Any]:
        """Start a task in a party's own context."""
        return self.create_task(work, name=name, context=party.context.copy())

    def bury(self) -> None:
        """End all that is left when the story is over, unheard: nothing of it may be told as news to the next one."""
        self.set_exception_handler(lambda *_: None)
        logging.disable()
        # Who awaits more at its end is told of by Python itself.
        complain, sys.unraisablehook = sys.unraisablehook, lambda _: None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Whatever they begin at their end is to be begun here, and not in a loop that Python makes for it.
            asyncio._set_running_loop(self)  # noqa: SLF001  as above
            buried: set[asyncio.Task[Any]] = set()
            while left := asyncio.all_tasks(self) - buried:
                for task in left:
                    task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  as above
                    coroutine: Any = task.get_coro()
                    with suppress(Exception):
                        coroutine.close()
                buried |= left
            asyncio._set_running_loop(None)  # noqa: SLF001  as above
        self._graves.clear()
        logging.disable(logging.NOTSET)
        sys.unraisablehook = complain
        self.close()

    def _process_events(self, event_list: Any) -> None: ...

    def _write_to_self(self) -> None: ...


def at_once(work: Any) -> Any:
    """Return the result of a coroutine that awaits nothing that is not there: what a transaction is made of."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits for something")
