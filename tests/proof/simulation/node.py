"""A node: one process with the real engine in it, which can crash, be held, stop in order, and start again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.engine.runtime import Runtime
from mainspring.errors import StoreError
from mainspring.port.store import Store
from tests.proof.simulation.app import HANDS, Code, Hands, app_of
from tests.proof.simulation.loop import Party, VirtualLoop
from tests.proof.simulation.store import FaultyStore

if TYPE_CHECKING:
    from tests.proof.simulation.world import World

HOUR_US: Final = 3_600_000_000
STOP_SECONDS: Final = 3


class SkewedClock:
    """A machine's clock: as fast as the true one, and set to another time."""

    def __init__(self, loop: VirtualLoop, skew_us: int) -> None:
        self._loop = loop
        self._skew_us = skew_us

    def now_us(self) -> int:
        return self._loop.now_us + self._skew_us

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class InOrder(dict[Any, None]):
    """A set that is gone through in the order of its making, whatever the addresses of its members are."""

    def add(self, member: Any) -> None:
        self[member] = None

    def discard(self, member: Any) -> None:
        self.pop(member, None)


class VirtualRuntime(Runtime):
    """A seeded runtime. What blocks runs in line, after a while."""

    def __init__(self, clock: SkewedClock, seed: int) -> None:
        super().__init__(clock, seed)
        self._tasks: Any = InOrder()
        self._waits = random.Random(seed)  # noqa: S311  no secret

    async def in_thread(self, function: Callable[[], Any], name: str = "") -> Any:
        await asyncio.sleep(self._waits.uniform(0.001, 0.05))
        return function()


class Node:
    """One process. A crash forgets it; what starts in its place is a new one."""

    def __init__(self, world: World, name: str, number: int, code: Code) -> None:
        self.world = world
        self.code: Code = code
        self.party = Party(name, number)
        self.party.on_death = self._died
        self.party.context.run(HANDS.set, Hands(self))
        self.app: Mainspring | None = None
        self._commit_of_death: Literal["before", "after"] | None = None
        self.chance = world.plan.random(f"store/{name}")
        self._stop = asyncio.Event()
        self.over = asyncio.Event()
        self._stores: list[FaultyStore] = []
        world.loop.begin(self.party, self._live(), name)

    @property
    def ready(self) -> bool:
        """Whether it serves clients."""
        return self.app is not None and not self.party.dead and self.party.held is None and not self._stop.is_set()

    @property
    def worker(self) -> int:
        """The key under which it works at this moment."""
        return internals_of(self.app).engine.committer.worker if self.app is not None else 0

    def stop(self) -> None:
        """Stop in order."""
        self._stop.set()

    def die_at_commit(self, when: Literal["before", "after"]) -> None:
        """Die at the next commit."""
        self._commit_of_death = when

    def dies_at_commit(self, when: Literal["before", "after"]) -> bool:
        """Tell whether this is the moment, and die then."""
        if self.party.dead or self._commit_of_death != when:
            return False
        self.world.trace.fault("crash_at_commit", self.party.name, f"dies {when} a commit")
        self.party.die()
        return True

    async def _live(self) -> None:
        plan = self.world.plan
        chance = plan.random(f"node/{self.party.name}")
        skew_us = chance.randint(-HOUR_US, HOUR_US) if self.world.active("skew") else 0
        if skew_us:
            self.world.trace.fault("skew", self.party.name, f"its clock is {skew_us / 1e6:.0f} s off")
        while True:
            runtime = VirtualRuntime(SkewedClock(self.world.loop, skew_us), chance.getrandbits(32))
            store = FaultyStore(self)
            self._stores.append(store)
            app = app_of(self, runtime, cast("Store", store))
            try:
                await app.start(name=self.party.name)
            except StoreError as error:
                self.world.trace.line(self.party.name, f"cannot start: {type(error).__name__}")
                store.forget()
                await asyncio.sleep(0.5)
            else:
                break
        self.app = app
        self.world.trace.line(self.party.name, f"works as {self.worker}")
        await self._stop.wait()
        try:
            await app.stop(drain=timedelta(seconds=STOP_SECONDS))
        except StoreError as error:
            self.world.trace.line(self.party.name, f"stops without giving back: {type(error).__name__}")
            if plan.known_dead:
                self.world.database.end_session(self.party.name)
        self.world.post.leave(self.party.name)
        self.world.trace.line(self.party.name, "has stopped")
        self.party.dead = True
        self.over.set()

    def _died(self) -> None:
        self.world.trace.line(self.party.name, "is dead")
        for store in self._stores:
            store.forget()
        self.world.post.leave(self.party.name)
        if self.world.plan.known_dead:
            self.world.database.end_session(self.party.name)
        self.world.loop.elsewhere(0, self.over.set)
