"""simulate: an app's whole life in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from datetime import datetime, timedelta
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack, overload

from mainspring.app.app import Mainspring
from mainspring.app.blocking import Blocking, BlockingInstance, EventLoopThread
from mainspring.app.internals import internals_of
from mainspring.app.requests import AskOptions
from mainspring.core.messages import Message
from mainspring.core.story import Entry
from mainspring.core.workflow import State, Workflow
from mainspring.engine.registry import Registry
from mainspring.errors import SettingError
from mainspring.flows.calls import Step
from mainspring.testing.envelopes import EPOCH
from mainspring.testing.simulation.chronicle import Call, Chronicle
from mainspring.testing.simulation.gate import Gate
from mainspring.testing.simulation.machine import SimulatedClock, SimulatedRuntime, SimulatedStore
from mainspring.testing.simulation.stubs import Stubs
from mainspring.testing.simulation.world import Timer, World

if TYPE_CHECKING:
    from mainspring.app.blocking import receives, receives_many, waits

R = TypeVar("R")

PATIENCE: Final = timedelta(seconds=5)


class Simulation:
    """An app about to be simulated: `async with` it, or `with` its `blocking()`."""

    def __init__(
        self,
        app: Mainspring,
        seed: int,
        start: datetime,
        stubs: Mapping[Any, Any],
        resources: Mapping[str, Any],
        patience: timedelta,
    ) -> None:
        if start.tzinfo is None:
            raise SettingError("start", start, "Give it a time zone, as in datetime(2026, 3, 1, tzinfo=UTC).")
        self._app = app
        self._seed = seed
        self._start = start
        self._stubs = stubs
        self._resources = resources
        self._patience = patience
        self._exits = AsyncExitStack()

    async def __aenter__(self) -> World:
        app, gate, clock = self._app, Gate(), SimulatedClock(self._start)
        inside = internals_of(app)
        chronicle = Chronicle(inside.registry)
        runtime, store = SimulatedRuntime(clock, self._seed), SimulatedStore(clock, chronicle)
        async with AsyncExitStack() as exits:
            exits.enter_context(inside.standing_on(runtime, store, self._resources))
            exits.enter_context(_without_tables(inside.registry))
            stubs = Stubs(inside.registry, clock, runtime, gate, chronicle)
            exits.callback(stubs.remove)
            stubs.install(self._stubs)
            await app.start(name="simulation")
            exits.push_async_callback(app.stop, drain=timedelta(0))
            stepper = inside.engine.stepper
            submit = stepper.submit
            stepper.submit = lambda pending: gate.when_open(lambda: submit(pending))
            world = World(app, clock, runtime, store, gate, stubs, chronicle, self._patience, exits)
            await world.settle()
            self._exits = exits.pop_all()
        return world

    async def __aexit__(self, *_: object) -> None:
        await self._exits.aclose()

    def blocking(self) -> BlockingWorld:
        """Return it for a test without an event loop: `with simulate(app).blocking() as world: world.send(…)`."""
        return BlockingWorld(self)


@contextmanager
def _without_tables(registry: Registry) -> Generator[None]:
    """Leave out the projections that write to tables of their own: there are none in memory."""
    own = registry.projections
    registry.projections = {name: projection for name, projection in own.items() if projection.kept}
    try:
        yield
    finally:
        registry.projections = own


class BlockingWorld(Blocking):
    """A world whose methods are called without `await`.

    >>> from mainspring.testing.samples import Count, Counter
    >>> app = Mainspring("memory://")
    >>> app.add(Counter())
    >>> with simulate(app).blocking() as world:
    ...     receipt = world.send(Count("c-1"))
    ...     print(receipt.state())
    Counted(times=1)
    """

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(None, EventLoopThread())
        self._simulation = simulation

    def __enter__(self) -> Self:
        self._loop.start()
        try:
            self._target = self._loop.run(self._simulation.__aenter__())
        except BaseException:
            self._loop.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._loop.run(self._simulation.__aexit__())
        finally:
            self._loop.stop()

    if TYPE_CHECKING:
        app: Mainspring
        now: datetime

        @overload
        def request(self, message: Message, reply: type[R], **options: Unpack[AskOptions]) -> R: ...
        @overload
        def request(self, message: Message, reply: UnionType | None = None, **options: Unpack[AskOptions]) -> Any: ...
        def request(self, message: Any, reply: Any = None, **options: Any) -> Any: ...
        def instance(
            self, workflow: type[Workflow[Any, State, Any, R]] | Workflow[Any, State, Any, R], id: str
        ) -> BlockingInstance[State, R]: ...
        def stub(
            self,
            cls: type[R] | Step[..., Any],
            outcome: Callable[[R], Any] | object = None,
            *,
            takes: timedelta = ...,
        ) -> None: ...
        def streams(self) -> dict[str, list[Entry]]: ...
        def timers(self) -> list[Timer]: ...
        def calls(self, cls: type[Any] | Step[..., Any]) -> list[Call]: ...
        def told(self) -> str: ...

        send = receives(World.send)
        publish = receives_many(World.publish)
        put = waits(World.put)
        advance = waits(World.advance)
        until = waits(World.until)
        settle = waits(World.settle)
        step = waits(World.step)


def simulate(
    app: Mainspring,
    *,
    seed: int = 0,
    start: datetime = EPOCH,
    stubs: Mapping[Any, Any] | None = None,
    resources: Mapping[str, Any] | None = None,
    patience: timedelta = PATIENCE,
) -> Simulation:
    """Run an app on a virtual clock and in memory, whatever its store: the same engine, workflows and handlers.

    The same seed gives the same ids, jitter, streams and order. `stubs` are in place before the app starts, also for
    messages that have no handler; `resources` stand in for those of the app with the same names.
    A handler that waits for something real, such as the network, is given `patience` of real time.

    >>> import asyncio
    >>> from mainspring.testing.samples import Count, Counter
    >>> app = Mainspring("postgresql://localhost/shop")
    >>> app.add(Counter())
    >>> async def week() -> None:
    ...     async with simulate(app) as world:
    ...         await world.send(Count("c-1"))
    ...         await world.advance(days=7)
    ...         print(world.now, *world.streams())
    >>> asyncio.run(week())
    2026-01-08 00:00:00+00:00 Counter/c-1
    """
    return Simulation(app, seed, start, stubs or {}, resources or {}, patience)
