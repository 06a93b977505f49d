"""A process's way to the database, on which things go wrong, within what the port promises and no more.

A verb travels there, is one transaction, and its answer travels back. Where a real store could be refused, it is
refused before anything was done. Where a real store can lose the answer to a commit, it is lost: the PostgreSQL store
then asks what became of it, mostly learns it (that is a slow answer), and raises only when the server was away for too
long (UnknownOutcomeError) or has crashed since (StoreUnreachableError): in both cases it may have been committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mainspring.errors import StoreBusyError, StoreClosedError, StoreUnreachableError, UnknownOutcomeError
from mainspring.port.loans import Connection
from mainspring.port.projections import Advance
from mainspring.port.records import Outcome, Unit
from tests.proof.simulation.loop import at_once

if TYPE_CHECKING:
    from tests.proof.simulation.node import Node

NAME: Final = "virtual"
WRITES: Final = frozenset(
    {
        *("register_worker", "heartbeat", "release_worker", "relieve", "commit", "claim", "restore_output", "hand"),
        "claim_alone",
        *("pick", "advance", "clear_documents", "commit_with", "purge"),
    }
)
# These are asked all the time and mostly bring nothing: one line each would hide the story.
UNTOLD: Final = frozenset({"claim", "relieve", "heartbeat", "holds", "feed", "checkpoints", "remembered", "behind"})
LONGEST_ANSWER_SECONDS: Final = 60.0


class FaultyStore:
    """The store port, as one process sees it."""

    era = None  # nothing is erased from it

    def __init__(self, node: Node) -> None:
        self.node = node
        self._world = node.world
        self._random = node.chance
        self._hint = asyncio.Event()
        self._open = False

    # ---- life

    async def open(self) -> None:
        self._open = True
        self._hint = asyncio.Event()
        self._world.database.news.listeners.append(self._heard)

    async def close(self) -> None:
        self._open = False
        self.forget()

    def forget(self) -> None:
        """Hear no more: the process is gone."""
        if self._heard in self._world.database.news.listeners:
            self._world.database.news.listeners.remove(self._heard)

    def now_us(self) -> int:
        return self._world.database.now_us()

    @property
    def lends(self) -> bool:
        return True

    # ---- verbs

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        if verb.startswith("_"):
            raise AttributeError(verb)
        return partial(self.call, verb)

    async def call(self, verb: str, *given: Any, **named: Any) -> Any:
        """Let a verb travel to the database, happen or not, and its answer travel back or not."""
        if not self._open:
            raise StoreClosedError(NAME)
        there, back = self._ways(verb)
        error, lost = self._fate(verb)
        if lost is not None:
            back += self._random.choice((0.0, 0.5, 10.0, LONGEST_ANSWER_SECONDS))
            self._world.last_echo = max(self._world.last_echo, self._world.loop.time() + there + back)
        database: Any = self._world.database
        if verb == "claim" and self._world.active("partial") and self._random.random() < 0.5:
            self._world.trace.fault("partial", self.node.party.name, "a claim brings less")
            given = (*given[:3], min(given[3], self._random.choice((1, 1, 2))), *given[4:])

        def execute() -> Any:
            if error is not None:
                raise error
            if verb in ("commit", "commit_with") and self.node.dies_at_commit("before"):
                raise StoreUnreachableError(NAME, "nobody asks any more")
            result = at_once(getattr(database, verb)(*given, **named))
            if verb == "register_worker":
                database.sessions[result] = self.node.party.name
            self._tell(verb, given, result)
            if verb in ("commit", "commit_with"):
                self.node.dies_at_commit("after")
            if lost is not None:
                raise lost
            return result

        return await self._world.loop.remote(execute, there, back)

    def _ways(self, verb: str) -> tuple[float, float]:
        """Return how long a verb is on its way there and back."""
        random, world = self._random, self._world
        # Now and then in no time, so that what is early by a single tick is seen.
        there, back = random.choice((0.0, random.uniform(0.0002, 0.002))), random.uniform(0.0002, 0.002)
        if world.active("slow") and random.random() < 0.03:
            world.trace.fault("slow", self.node.party.name, f"{verb} is slow")
            there += random.uniform(0.5, 8)
            back += random.uniform(0, 3)
        if verb not in WRITES and world.active("slow_reader") and random.random() < 0.1:
            world.trace.fault("slow_reader", self.node.party.name, f"{verb} comes back old")
            back += random.uniform(0.5, 6)
        return there, back

    def _fate(self, verb: str) -> tuple[Exception | None, Exception | None]:
        """Return with what a verb is refused before it is done, or how its answer is lost."""
        random, world, name = self._random, self._world, self.node.party.name
        if world.active("error") and random.random() < 0.05:
            world.trace.fault("error", name, f"{verb} is refused")
            return random.choice((StoreBusyError(NAME, 5), StoreUnreachableError(NAME, "refused"))), None
        if verb in WRITES and world.active("lost_answer") and random.random() < 0.05:
            world.trace.fault("lost_answer", name, f"the answer to {verb} is lost")
            return None, random.choice((UnknownOutcomeError(NAME), StoreUnreachableError(NAME, "it crashed")))
        return None, None

    def _tell(self, verb: str, given: Sequence[Any], result: Any) -> None:
        if verb == "commit":
            for unit, outcome in zip(given[1], result, strict=True):
                self._world.trace.line(self.node.party.name, f"commit {shown(unit)} -> {told(outcome)}")
        elif verb == "commit_with":
            self._world.trace.line(self.node.party.name, f"commit with writes {shown(given[1])} -> {told(result)}")
        elif verb == "claim" and (result.outputs or result.inputs):
            outputs = [f"{c.workflow}/{c.instance}/{c.output.version}" for c in result.outputs]
            inputs = [f"{row.position}:{row.message_id}" for row in result.inputs]
            self._world.trace.line(self.node.party.name, f"claims as {given[0]}: {outputs} {inputs}")
        elif verb == "relieve" and result:
            self._world.trace.line(self.node.party.name, f"relieves {result}")
        elif verb not in UNTOLD:
            self._world.trace.line(self.node.party.name, f"{verb} {[str(value)[:60] for value in given]}")

    # ---- hints

    def _heard(self) -> None:
        """Wake this process soon; a wake-up is a hint, and may be lost."""
        if self._world.active("deaf") and self._random.random() < 0.7:
            self._world.trace.fault("deaf", self.node.party.name, "a wake-up is lost")
            return
        self._world.loop.elsewhere(0.001, self._hint.set)

    async def wait_for_work(self, timeout_seconds: float) -> None:
        if not self._open:
            raise StoreClosedError(NAME)
        hint = self._hint
        timer = self._world.loop.call_later(timeout_seconds, hint.set)
        try:
            await hint.wait()
        finally:
            timer.cancel()
        hint.clear()

    # ---- lending

    async def lend(self, worker: int, limit_seconds: float) -> VirtualLoan:
        await self.call("holds", worker)
        return VirtualLoan(self, worker)


class VirtualLoan:
    """A transaction lent to a handler: what it writes is kept with its result, or not at all."""

    def __init__(self, store: FaultyStore, worker: int) -> None:
        self._store = store
        self._worker = worker
        self._writes: list[str] = []
        self.connection = Connection(self._run)

    async def _run(self, statement: str, values: Sequence[Sequence[Any]]) -> list[Any]:
        await self._store.call("holds", self._worker)
        self._writes.extend(str(row[0]) for row in values)
        return []

    async def advance(self, move: Advance) -> bool:
        raise AssertionError("no projection here writes to tables of its own")

    async def commit(self, unit: Unit) -> Outcome:
        self.connection.finish()
        return await self._store.call("commit_with", self._worker, unit, self._writes)

    async def roll_back(self) -> None:
        self.connection.end("it was rolled back")


def shown(unit: Unit) -> str:
    """Return what a unit does, in few words."""
    events = " ".join(
        f"{event.version}:{event.event}{f'({event.type})' if event.type else ''}" for event in unit.events
    )
    parts = [f"{unit.workflow}/{unit.instance}@{unit.expected_version} [{events}] {unit.status}"]
    for name in ("consumes", "releases", "cancels", "cancel_all", "dedupe", "discards"):
        parts += [f"{name}={value}"] if (value := getattr(unit, name)) else []
    parts += [f"settles={[_pair(key) for key in unit.settles]}"] if unit.settles else []
    parts += [
        f"retry {tuple(_pair(r.output))} attempts={r.attempts} after={r.after_us}us {r.error}" for r in unit.retries
    ]
    parts += [f"accepts {row.workflow}/{row.instance} {row.message_id} claimed={row.claimed}" for row in unit.accepts]
    parts += [f"dead letter {letter.message_id}: {letter.reason}" for letter in unit.dead_letters]
    return " ".join(parts)


def told(outcome: Outcome) -> str:
    """Return an outcome in few words."""
    return str(outcome)


def _pair(key: Any) -> tuple[int, int]:
    return key.instance, key.version
