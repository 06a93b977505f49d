"""The world: what a test holds of a simulation."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack, overload

from msgspec import Struct

from mainspring.app.instance import Instance, Receipt
from mainspring.app.internals import internals_of
from mainspring.app.requests import AskOptions
from mainspring.app.workflow_handle import SendOptions
from mainspring.core.messages import In, Message, Out
from mainspring.core.story import Entry, duration
from mainspring.core.workflow import State, Workflow
from mainspring.engine.inputs.pending import NEVER_US
from mainspring.engine.recording.stored_values import moment
from mainspring.errors import SettingError, SimulationError
from mainspring.flows.calls import Step
from mainspring.testing.simulation.chronicle import Call, Chronicle
from mainspring.testing.simulation.gate import Gate
from mainspring.testing.simulation.machine import SimulatedClock, SimulatedRuntime, SimulatedStore, until_idle
from mainspring.testing.simulation.stubs import Stub, Stubs, of_step

if TYPE_CHECKING:
    from mainspring.app.app import Mainspring

Result = TypeVar("Result")
R = TypeVar("R")

REAL_CHECK_SECONDS: Final = 0.001
TURNS_AT_ONE_MOMENT: Final = 200_000
MOST: Final = timedelta(days=30)
NO_TIME: Final = timedelta(0)


class Timer(Struct, frozen=True):
    """What is scheduled: its message will come to the instance when it is due.

    >>> from datetime import UTC
    >>> Timer(datetime(2026, 1, 8, tzinfo=UTC), "Expense/e-1", "escalate").instance
    'Expense/e-1'
    """

    due: datetime
    instance: str
    message: Any


class World:
    """A running app and its time, which passes by `advance`, `until` and `step` only, from due moment to due moment."""

    def __init__(
        self,
        app: Mainspring,
        clock: SimulatedClock,
        runtime: SimulatedRuntime,
        store: SimulatedStore,
        gate: Gate,
        stubs: Stubs,
        chronicle: Chronicle,
        patience: timedelta,
        exits: AsyncExitStack,
    ) -> None:
        self.app = app
        """The running app, for what a world has no method for."""
        self._clock = clock
        self._runtime = runtime
        self._store = store
        self._gate = gate
        self._stubs = stubs
        self._chronicle = chronicle
        self._moving = asyncio.Lock()
        self._posted: list[asyncio.Task[Receipt[Any]]] = []
        self._patience = patience
        clock.drives, clock.drive = self._drives, self._drive
        exits.push_async_callback(self._close)

    # ---- messages in

    async def send(self, message: Message, **options: Unpack[SendOptions]) -> Receipt[Any]:
        """Send a message as `app.send` does, and let everything that follows at this moment happen."""
        self._gate.open()
        receipt = await self.app.send(message, **options)
        await self.settle()
        return receipt

    async def publish(
        self, message: Message, *, id: str | None = None, actor: str | None = None, correlation_id: str | None = None
    ) -> list[Receipt[Any]]:
        """Publish a message as `app.publish` does, and let everything that follows at this moment happen."""
        self._gate.open()
        receipts = await self.app.publish(message, id=id, actor=actor, correlation_id=correlation_id)
        await self.settle()
        return receipts

    @overload
    async def request(self, message: Message, reply: type[R], **options: Unpack[AskOptions]) -> R: ...
    @overload
    async def request(self, message: Message, reply: UnionType | None = None, **options: Unpack[AskOptions]) -> Any: ...
    async def request(self, message: Message, reply: Any = None, **options: Unpack[AskOptions]) -> Any:
        """Send a message and wait for the reply as `app.request` does; its timeout is virtual time."""
        self._gate.open()
        given = await self.app.request(message, reply, **options)
        await self.settle()
        return given

    async def put(self, message: Message, **options: Unpack[SendOptions]) -> None:
        """Queue a message, to be taken by `step`: nothing happens yet."""
        self._gate.closed = True
        task = asyncio.ensure_future(self.app.send(message, **options))
        self._posted.append(task)
        async with self._moving:
            await self._become_quiet()
        if task.done():
            task.result()

    def stub(
        self,
        cls: type[R] | Step[..., Any],
        outcome: Callable[[R], Any] | object = None,
        *,
        takes: timedelta = NO_TIME,
    ) -> None:
        """Have messages of a type, or calls of a flow's step, carried out by a stub from now on.

        `outcome` is what the handler is to return: a message, several in a tuple, or None. It may also be an exception
        to raise, a function of the message (and the context), or a list of all these by attempt, whose last one stays.
        `takes` is how long each attempt takes, in virtual time. Of a step it is what the step is to return, or a
        function of its arguments.
        """
        command, does = of_step(cls, outcome)
        self._stubs.put(command, Stub(does, takes))

    # ---- time

    @property
    def now(self) -> datetime:
        """The present moment of the virtual clock."""
        return moment(self._clock.now_us())

    async def advance(self, span: timedelta | None = None, /, **parts: float) -> None:
        """Let time pass: `advance(days=7)`. All that is due on the way happens at its moment, in order."""
        span = timedelta(**parts) if span is None else span
        if span < NO_TIME:
            raise SettingError("advance", span, "Time does not go backwards: use a positive span.")
        self._gate.open()
        await self._advance_to(self._clock.now_us() + span // timedelta(microseconds=1))

    async def until(self, condition: Callable[[], bool | Awaitable[bool]], most: timedelta = MOST) -> None:
        """Let time pass until a condition holds; it is asked whenever everything is quiet."""
        self._gate.open()
        last_us = self._clock.now_us() + most // timedelta(microseconds=1)
        await self.settle()
        while not await _holds(condition):
            due_us = self._next_due_us()
            if due_us is None or due_us > last_us:
                why = ", and nothing is due any more" if due_us is None else f" within {duration(most)}"
                raise SimulationError(f"What was waited for did not happen{why}", self._the_end())
            await self._advance_to(due_us)

    async def settle(self) -> None:
        """Run everything that is due at this moment."""
        self._gate.open()
        async with self._moving:
            await self._become_quiet()

    async def step(self) -> str | None:
        """Run one more thing: an input is stepped, or a handler is called. Return what that was.

        When nothing waits, time passes until something is due. When nothing is due any more, there is no next step.
        """
        self._gate.closed = True
        since = self._chronicle.length
        async with self._moving:
            await self._become_quiet()
            while True:
                if self._gate.let_one_through():
                    await self._become_quiet()
                elif (due_us := self._next_due_us()) is not None:
                    await self._move_to(due_us)
                else:
                    return None
                if since < self._chronicle.length:
                    return self._chronicle.told(since)

    # ---- looking

    def instance(
        self, workflow: type[Workflow[In, State, Out, Result]] | Workflow[In, State, Out, Result], id: str
    ) -> Instance[State, Result]:
        """Return a handle on one instance, as `app.instance` does."""
        return self.app.instance(workflow, id)

    def streams(self) -> dict[str, list[Entry]]:
        """Return the streams of all instances, in the order of their beginning."""
        return self._store.streams(internals_of(self.app).registry)

    def timers(self) -> list[Timer]:
        """Return what is scheduled, the next one first."""
        decode = internals_of(self.app).registry.codec.decode
        return [
            Timer(moment(c.due_us), f"{c.workflow}/{c.instance}", decode(c.type, c.type_version, c.body))
            for c in self._store.waiting_timers()
        ]

    def calls(self, cls: type[Any] | Step[..., Any]) -> list[Call]:
        """Return the calls of handlers with messages of a type, or of a step: each attempt, with its outcome."""
        return list(self._chronicle.calls(of_step(cls, None)[0]))

    def told(self) -> str:
        """Return the story of all that happened, in order: inputs, decisions, calls, retries, dead letters."""
        return self._chronicle.told()

    # ---- how time moves

    async def _drive(self, moment_us: int) -> None:
        """Let time pass because the test's own code sleeps until then."""
        await self._advance_to(moment_us)

    def _drives(self, task: asyncio.Task[Any] | None) -> bool:
        """Return True if a sleeper has to move the world itself: the test's own code, while nothing else does."""
        return not self._moving.locked() and not self._runtime.owns(task)

    async def _close(self) -> None:
        """Forget what was put at the door and not taken."""
        for task in self._posted:
            task.cancel()
        await asyncio.gather(*self._posted, return_exceptions=True)

    async def _advance_to(self, moment_us: int) -> None:
        async with self._moving:
            await self._become_quiet()
            while (due_us := self._next_due_us()) is not None and due_us <= moment_us:
                await self._move_to(due_us)
            await self._move_to(moment_us)

    async def _move_to(self, moment_us: int) -> None:
        self._clock.advance_to(max(moment_us, self._clock.now_us()))
        # Tasks that are woken run first: an attempt that ends at its deadline has made it in time.
        await self._become_quiet()
        await internals_of(self.app).engine.stop_overdue()
        await self._become_quiet()

    def _next_due_us(self) -> int | None:
        """Return when the next sleeper wakes, or the next attempt's time is up."""
        deadlines = [
            deadline_us for _, _, deadline_us in internals_of(self.app).engine.attempts() if deadline_us < NEVER_US
        ]
        due = [*deadlines, *([] if self._clock.next_us is None else [self._clock.next_us])]
        return min(due, default=None)

    async def _become_quiet(self) -> None:
        """Return when nothing happens any more by itself at this moment. What is real is waited for, for a while."""
        patience_seconds = self._patience.total_seconds()
        waiting_since, happened = time.monotonic(), self._chronicle.length
        while True:
            if not await until_idle(TURNS_AT_ONE_MOMENT):
                raise SimulationError("The app does not become quiet: it goes on and on at one moment", self._the_end())
            if happened != self._chronicle.length:
                waiting_since, happened = time.monotonic(), self._chronicle.length
            called = self._runtime.start_next_call()
            if called is not None:
                await asyncio.wait((called,), timeout=patience_seconds)
            elif not (busy := self._busy()):
                return
            else:
                if time.monotonic() - waiting_since > patience_seconds:
                    raise _stuck(busy, patience_seconds)
                await asyncio.sleep(REAL_CHECK_SECONDS)

    def _busy(self) -> list[str]:
        """Return the handlers that wait for something that neither the loop nor the virtual clock will deliver."""
        at_rest = self._clock.asleep | self._gate.waiting
        return [name for task, name, _ in internals_of(self.app).engine.attempts() if task not in at_rest]

    def _the_end(self) -> str:
        lines = self._chronicle.told(max(0, self._chronicle.length - 5))
        return f"Read world.told(); it ends with:\n{lines}"


async def _holds(condition: Callable[[], bool | Awaitable[bool]]) -> bool:
    found = condition()
    return await found if inspect.isawaitable(found) else found


def _stuck(busy: list[str], seconds: float) -> SimulationError:
    names = ", ".join(sorted(set(busy)))
    return SimulationError(
        f"{names} waits for something real: {seconds:g} s have passed",
        "Time is virtual here, asyncio.sleep and the network are not: stub it, "
        "as in world.stub(ChargeCard, CardCharged(…), takes=timedelta(seconds=30)).",
    )
