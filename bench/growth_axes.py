"""The axes along which a store grows, and the work that is measured at each size."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final, NamedTuple, Self

from msgspec import structs

from bench import apps
from bench.checks import NotDoneError, until_completed
from bench.fill import Copies, finished, sleepers
from bench.isolation_cases import Cases, Note, Open, isolation_app
from bench.measure import Meter
from bench.servers import drop_schema
from bench.settings import Settings
from bench.workflows import Asleep, Order, Orders, Shipping, Sleep, Sleeper, order, order_id
from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.port.records import Ref

ORDERS: Final = 500
STEPS_OF_ORDER: Final = 4
NAPS: Final = 500
STEPS_OF_NAP: Final = 2
NAP_SECONDS = 1.0
NOTES: Final = 100
COLD_NOTES: Final = 30
# From here on, all that is measured makes a stream but little longer.
LONG: Final = 10_000
AT_ONCE: Final = 100
SPREAD: Final = 7_919  # a prime: its multiples come everywhere
FAR: Final = timedelta(days=30)
PATIENCE: Final = timedelta(minutes=30)


class Cost(NamedTuple):
    """Seconds for a step: of CPU, the server's included, and by the clock on the wall."""

    cpu: float
    wall: float


class Axis:
    """One way to grow. `least` is its first size, and the last one is n divided by `share`."""

    what: ClassVar[str]
    least: ClassVar[int] = 1
    share: ClassVar[int] = 1

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._exits = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exits.aclose()

    @abstractmethod
    async def grow(self, size: int) -> None:
        """Come to a size."""

    @abstractmethod
    async def measured(self) -> Cost:
        """Return what a step costs at this size."""

    @abstractmethod
    async def reference(self) -> Cost:
        """Return what it costs in a small store."""

    async def check(self) -> None:
        """Raise if the work was not done."""

    def place(self, name: str) -> Settings:
        """Return a store of one's own."""
        folder = self.settings.path / name
        folder.mkdir()
        own = structs.replace(self.settings, folder=str(folder), schema=f"{self.settings.schema}_{name}")
        if own.store == "postgres":
            self._exits.push_async_callback(drop_schema, own)
        return own

    def cost(self, meter: Meter, steps: int, seconds: float | None = None) -> Cost:
        figures = meter.figures(steps)
        cpu = figures["cpu_us_each"] + figures.get("server_cpu_us_each", 0.0)
        return Cost(cpu / 1e6, (meter.seconds if seconds is None else seconds) / steps)


class Filled(Axis):
    """A store full of copies, and an almost empty one beside it."""

    name: ClassVar[str]

    async def __aenter__(self) -> Self:
        self._full = self.place(self.name)
        self._copies = await self._first(self._full)
        self._app: Mainspring | None = None
        self._small: Mainspring | None = None
        self._number = self._last_key = self._done = self._small_done = 0
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()
        await super().__aexit__()

    async def grow(self, size: int) -> None:
        await self._stop()
        self._last_key = await self._copies.grow(size)
        self._done = self._small_done = 0
        self._app = apps.everything(self._full.url)
        self._small = apps.everything(self.place(f"{self.name}_small_{size}").url)
        await self._app.start()
        await self._small.start()

    async def measured(self) -> Cost:
        cost, self._done = await self._work(self._app, self._last_key, self._done)
        return cost

    async def reference(self) -> Cost:
        cost, self._small_done = await self._work(self._small, 0, self._small_done)
        return cost

    async def check(self) -> None:
        """Check that the engine reads the copies as its own."""
        assert self._app is not None
        last = self._copies.count - 1
        for number in {0, last // 2, last}:
            await self._check(self._app, number)

    async def _stop(self) -> None:
        for app in (self._app, self._small):
            if app is not None:
                await app.stop()
        self._app = self._small = None

    @abstractmethod
    async def _first(self, settings: Settings) -> Copies:
        """Return what is to be copied."""

    @abstractmethod
    async def _work(self, app: Mainspring | None, last_key: int, done: int) -> tuple[Cost, int]:
        """Do some work; return what a step of it cost, and how many instances are done by now."""

    @abstractmethod
    async def _check(self, app: Mainspring, number: int) -> None:
        """Check a copy."""

    def _order(self) -> Order:
        """Return a new order, whose id has its place anywhere among those that are there."""
        self._number += 1
        return replace(order(0), id=f"{order_id(self._number * SPREAD % max(self._copies.count, 1))}-{self._number}")


class Finished(Filled):
    """Orders that are done."""

    name = "finished"
    what = "finished instances"
    least = 1_000

    async def _first(self, settings: Settings) -> Copies:
        return await finished(settings)

    async def _work(self, app: Mainspring | None, last_key: int, done: int) -> tuple[Cost, int]:
        assert app is not None
        orders = [self._order() for _ in range(ORDERS)]
        with Meter(self.settings.server_pid) as meter:
            receipts = await app.send_many(orders)
            await receipts[-1].result(timeout=PATIENCE)
            await until_completed(app, done + ORDERS, last_key)
        return self.cost(meter, ORDERS * STEPS_OF_ORDER), done + ORDERS

    async def _check(self, app: Mainspring, number: int) -> None:
        state = await app.instance(Orders, order_id(number)).state()
        if state != Shipping(order_id(number)):
            raise NotDoneError(f"{order_id(number)} is {state}")


class Timers(Filled):
    """Timers that wait, while others are set and fire."""

    name = "timers"
    what = "waiting timers"

    async def _first(self, settings: Settings) -> Copies:
        return await sleepers(settings, datetime.now(UTC) + FAR)

    async def _work(self, app: Mainspring | None, last_key: int, done: int) -> tuple[Cost, int]:
        assert app is not None
        orders = [self._order() for _ in range(NAPS)]
        until = datetime.now(UTC) + timedelta(seconds=NAP_SECONDS)
        with Meter(self.settings.server_pid) as meter:
            begun = time.perf_counter()
            await app.send_many([Sleep(each, until) for each in orders])
            seconds = time.perf_counter() - begun
            await asyncio.sleep((until - datetime.now(UTC)).total_seconds())  # they are due then
            begun = time.perf_counter()
            await until_completed(app, done + NAPS, last_key)
            seconds += time.perf_counter() - begun
        return self.cost(meter, NAPS * STEPS_OF_NAP, seconds), done + NAPS

    async def _check(self, app: Mainspring, number: int) -> None:
        state = await app.instance(Sleeper, order_id(number)).state()
        if state != Asleep(order_id(number)):
            raise NotDoneError(f"{order_id(number)} is {state}")


class Stream(Axis):
    """Instances with long streams, their state in memory."""

    what = "events in the stream"
    share = 10
    cold: ClassVar[bool] = False

    @property
    def notes(self) -> int:
        """How many are sent in one measurement."""
        return COLD_NOTES if self.cold else NOTES

    async def __aenter__(self) -> Self:
        self._app = isolation_app(self.place("stream_cold" if self.cold else "stream").url)
        await self._app.start()
        self._exits.push_async_callback(self._app.stop)
        self._size = self._made = 0
        self._events: dict[str, int] = {}
        return self

    async def grow(self, size: int) -> None:
        self._size = size
        if size >= LONG:
            await self._grown("long", size)

    async def measured(self) -> Cost:
        """Measure streams that grow by a tenth at most meanwhile: the short ones are many, and made for it."""
        each = max(1, min(self.notes, self._size // 10))
        ids = ["long"] if self._size >= LONG else [await self._short(self._size) for _ in range(0, self.notes, each)]
        return await self._noted(ids, each)

    async def reference(self) -> Cost:
        return await self._noted([await self._short(1)], self.notes)

    async def check(self) -> None:
        for id in {"long", f"short-{self._made}"} & self._events.keys():
            found = await self._app.instance(Cases, id).row()
            if found.position != self._events[id]:
                raise NotDoneError(f"the stream has {found.position} events, and {self._events[id]} were sent")

    async def _short(self, size: int) -> str:
        self._made += 1
        await self._grown(f"short-{self._made}", size)
        return f"short-{self._made}"

    async def _grown(self, id: str, size: int) -> None:
        """Let a stream have so many events."""
        if id not in self._events:
            await self._app.send(Open(id))
            self._events[id] = len(await internals_of(self._app).engine.store.stream(Ref("Cases", id), 0, 10))
        while self._events[id] < size:
            count = min(1_000, size - self._events[id])
            await self._app.send_many([Note(id, "leave it at the door") for _ in range(count)])
            self._events[id] += count

    async def _noted(self, ids: list[str], each: int) -> Cost:
        """Send one note after the other."""
        with Meter(self.settings.server_pid) as meter:
            for id in ids:
                for _ in range(each):
                    if self.cold:
                        internals_of(self._app).engine.stepper.lanes.forget(Ref("Cases", id))
                    await self._app.send(Note(id, "leave it at the door"))
        for id in ids:
            self._events[id] += each
        return self.cost(meter, len(ids) * each)


class ColdStream(Stream):
    """The same, but its state is read from the store before each step."""

    what = "events in the stream, state not in memory"
    cold = True


class Concurrent(Axis):
    """Orders under way at the same time."""

    what = "instances at once"
    share = 100

    async def __aenter__(self) -> Self:
        self._app = apps.orders(self.place("concurrent").url)
        await self._app.start()
        self._exits.push_async_callback(self._app.stop)
        self._size = self._orders = 0
        return self

    async def grow(self, size: int) -> None:
        self._size = size

    async def measured(self) -> Cost:
        return await self._waves(self._size)

    async def reference(self) -> Cost:
        return await self._waves(AT_ONCE)

    async def check(self) -> None:
        completed = (await self._app.stats()).instances.get("completed", 0)
        if completed != self._orders:
            raise NotDoneError(f"{self._orders} orders were sent, and {completed} are done")

    async def _waves(self, size: int) -> Cost:
        """Start so many at the same time and wait for all, as often as it takes to have something to measure."""
        waves = max(1, min(AT_ONCE, ORDERS // size))
        with Meter(self.settings.server_pid) as meter:
            for _ in range(waves):
                numbers = range(self._orders, self._orders + size)
                self._orders += size
                receipts = await self._app.send_many([order(number) for number in numbers])
                await asyncio.gather(*(receipt.result(timeout=PATIENCE) for receipt in receipts))
        return self.cost(meter, waves * size * STEPS_OF_ORDER)


AXES: Final[dict[str, type[Axis]]] = {
    "finished": Finished,
    "stream": Stream,
    "stream-cold": ColdStream,
    "concurrent": Concurrent,
    "timers": Timers,
}
