"""Inputs that a worker gives back are not overtaken by what it claims meanwhile."""

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

from mainspring import Decisions, Event, Mainspring, Received, Workflow
from mainspring.app.internals import internals_of
from mainspring.engine.runtime import SystemClock
from mainspring.stores.memory import MemoryStore
from tests.support.running import run
from tests.support.waiting import until


@dataclass(frozen=True)
class Add:
    id: str
    number: int


@dataclass(frozen=True)
class Begin:
    id: str


@dataclass(frozen=True)
class Numbers:
    added: tuple[int, ...] = ()


class Adding(Workflow[Begin | Add, Numbers, Add]):
    begins = Begin
    initial_state = Numbers()
    broken: ClassVar = False

    def route(self, message: Begin | Add) -> str | None:
        return message.id

    def evolve(self, state: Numbers, event: Event[Begin | Add, Add]) -> Numbers | None:
        match event:
            case Received(Add(_, number)):
                return Numbers((*state.added, number))

    def decide(self, message: Begin | Add, state: Numbers) -> Decisions[Begin | Add, Add] | None:
        if Adding.broken and isinstance(message, Add):
            raise ValueError("broken")
        return []


class Gated:
    """A store that commits one batch for each permit, and answers claims that brought inputs when a test lets it."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.permits = asyncio.Semaphore(0)
        self.gated = False
        self.answers = asyncio.Event()
        self.answers.set()
        self.claimed = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, worker: int, units: Any) -> Any:
        if self.gated:
            await self.permits.acquire()
        return await self._store.commit(worker, units)

    async def claim(self, *asked: Any) -> Any:
        claims = await self._store.claim(*asked)
        if claims.inputs:
            self.claimed += len(claims.inputs)
            await self.answers.wait()
        return claims

    def let_through(self) -> None:
        self.gated = False
        self.permits.release()
        self.answers.set()


def adding(store: Any) -> Mainspring:
    app = Mainspring("memory://", store=store)
    app.add(Adding())
    return app


async def overtake(app: Mainspring, gated: Gated, store: MemoryStore) -> None:
    """Let a worker claim an input while it gives back those before it, and learn of it when that is done."""
    await app.send(Begin("a"))
    Adding.broken = True
    await app.send(Add("a", 1))
    await app.send(Add("a", 2))
    Adding.broken = False
    # Its lane knows the instance as suspended, and is busy with an input that is not accepted yet, ...
    gated.gated = True
    sending = asyncio.create_task(app.send(Add("a", 3)))
    await until(lambda: not internals_of(app).engine.committer.idle)
    other = adding(store)
    await other.start(work=False)
    await other.instance(Adding, "a").resume()
    await other.stop()
    # ... so what is claimed now is given back. The other input is accepted and claimed before that is committed, ...
    await until(lambda: internals_of(app).engine.committer.waiting == 2)
    gated.answers.clear()
    gated.permits.release()
    await sending
    await until(lambda: gated.claimed == 3)
    # ... and its claim is answered afterwards.
    gated.permits.release()
    await until(lambda: internals_of(app).engine.committer.idle)


def test_what_a_worker_gives_back_is_not_overtaken_by_what_it_has_just_claimed() -> None:
    async def main() -> None:
        store = MemoryStore(SystemClock())
        gated = Gated(store)
        async with adding(gated) as app:
            try:
                await overtake(app, gated, store)
            finally:
                gated.let_through()

            async def all_taken() -> bool:
                return len((await app.instance(Adding, "a").state()).added) == 3

            await until(all_taken)
            assert (await app.instance(Adding, "a").state()).added == (1, 2, 3)

    try:
        run(main)
    finally:
        Adding.broken = False
