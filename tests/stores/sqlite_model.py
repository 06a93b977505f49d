"""Random work for two stores at once: what the memory store answers, the SQLite store must answer too."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from msgspec.structs import replace

from mainspring.port.records import (
    Claims,
    Committed,
    DeadLetter,
    EventRow,
    InputRow,
    InstanceFilter,
    OutputKey,
    OutputRow,
    Ref,
    Remembered,
    Retry,
    Snapshot,
    Unit,
)
from mainspring.port.store import Store
from mainspring.testing.clock import VirtualClock

WORKFLOWS = ("Orders", "Stock")
DESTINATIONS = ("Charge", "Ship", "Orders")
KEYS = ("Timeout", "Reminder")
INSTANCES = 2
CONTEXT = b'{"correlation_id":"c-1"}'


@dataclass
class Model:
    """What a client of the store knows, right or stale: enough to ask for things that sometimes fit."""

    random: Random
    workers: list[int]
    versions: dict[Ref, int] = field(default_factory=dict[Ref, int])
    keys: dict[Ref, int] = field(default_factory=dict[Ref, int])
    outputs: list[OutputKey] = field(default_factory=list[OutputKey])
    positions: list[tuple[Ref, int]] = field(default_factory=list[tuple[Ref, int]])

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def ref(self) -> Ref:
        return Ref(self.random.choice(WORKFLOWS), f"i-{self.random.randrange(INSTANCES)}")

    def some(self, items: list[Any], most: int = 2) -> tuple[Any, ...]:
        count = min(len(items), self.random.randint(0, most))
        return tuple(self.random.sample(items[-12:], min(count, len(items[-12:]))))

    def message(self) -> str:
        return f"m-{self.random.randrange(12)}"

    def input(self, ref: Ref) -> InputRow:
        timer = self.random.choice(KEYS) if self.chance(0.4) else None
        body = b"{}" if self.chance(0.8) else b"[]"
        claimed = self.chance(0.4)
        return InputRow(
            *(ref.workflow, ref.id, self.message(), "command", "Go", 1, body, 0, CONTEXT),
            timer_key=timer,
            claimed=claimed,
        )

    def output(self, version: int) -> OutputRow:
        after_us = self.random.choice((0, 0, 5_000_000))
        claimed, priority = self.chance(0.5), self.random.randrange(2)
        if self.chance(0.5):
            key = self.random.choice(KEYS)
            return OutputRow(version, "timer", "Orders", after_us, key=key, claimed=claimed, priority=priority)
        return OutputRow(
            version, "send", self.random.choice(DESTINATIONS), after_us, claimed=claimed, priority=priority
        )

    def letter(self, ref: Ref, settles: tuple[OutputKey, ...]) -> DeadLetter:
        output = self.random.choice(settles) if settles and self.chance(0.8) else None
        return DeadLetter(
            *(ref.workflow, ref.id, self.message(), "command", "Go", 1, b"{}", 0, CONTEXT),
            reason="gave up",
            output=output,
        )

    def unit(self) -> Unit:
        """Return a unit that may or may not fit."""
        ref = self.ref()
        settles = self.some(self.outputs) if self.chance(0.5) else ()
        retries = tuple(
            Retry(output, self.random.randrange(5), self.random.choice((0, 2_000_000)), "boom")
            for output in (self.some(self.outputs, 1) if self.chance(0.3) else ())
            if output not in settles
        )
        own = [position for owner, position in self.positions if owner == ref] if self.chance(0.9) else [99_999]
        fields: dict[str, Any] = {
            "settles": settles,
            "retries": retries,
            "accepts": tuple(self.input(self.ref()) for _ in range(self.random.randint(1, 2)))
            if self.chance(0.3)
            else (),
            "dead_letters": (self.letter(ref, settles),) if self.chance(0.15) else (),
            "cancels": self.some(list(KEYS)) if self.chance(0.25) else (),
            "cancel_all": self.random.choice(("timers", "unclaimed")) if self.chance(0.15) else None,
            "consumes": self.random.choice(own) if own and self.chance(0.35) else None,
            "releases": tuple(own[:1]) if self.chance(0.1) else (),
            "direct": self.chance(0.3),
            "remembers": (Remembered(self.message(), "Go", 1, b"{}", 1 << 60),) if self.chance(0.1) else (),
        }
        return self.step(ref, fields) if self.chance(0.6) else Unit(ref.workflow, ref.id, **fields)

    def step(self, ref: Ref, fields: dict[str, Any]) -> Unit:
        version = self.versions.get(ref, 0)
        if self.chance(0.1):
            version = max(0, version + self.random.choice((-1, 1)))
        message = self.message() if self.chance(0.6) else None
        context = CONTEXT + b" " * self.random.randrange(3) if message else None
        body = b"{}" if self.chance(0.8) else b"[]"
        events = [
            EventRow(version + 1, "Received", 0, "Go", 1, body, kind="command", message_id=message, context=context)
        ]
        outputs = [self.output(version + 2 + n) for n in range(self.random.randint(0, 2))]
        events += [EventRow(output.version, "Sent", 0, "Sent", 1, b'{"n":1}') for output in outputs]
        self.versions[ref] = events[-1].version  # hopefully: later units of the batch chain on it
        status = self.random.choice(("running", "running", "running", "suspended", "completed"))
        snapshot = Snapshot(events[-1].version, "f", "S", 1, b"{}") if self.chance(0.1) else None
        return Unit(
            ref.workflow,
            ref.id,
            self.keys.get(ref) if self.chance(0.7) else None,
            version,
            tuple(events),
            status,
            self.random.choice(("A", "B", None)),
            context=context,
            outputs=tuple(outputs),
            dedupe=message,
            snapshot=snapshot,
            **fields,
        )

    async def learn(self, store: Store) -> None:
        """Look at what is there, so that the next units mostly fit."""
        for row in await store.instances(InstanceFilter(), 100):
            ref = Ref(row.workflow, row.id)
            self.versions[ref], self.keys[ref] = row.version, row.key
        outputs = [*await store.outputs(None, False, 1_000), *await store.outputs(None, True, 1_000)]
        self.outputs = [claim.output for claim in outputs]
        self.positions = [
            (Ref(workflow, f"i-{n}"), row.position)
            for workflow in WORKFLOWS
            for n in range(INSTANCES)
            for row in await store.inbox(Ref(workflow, f"i-{n}"), 100)
        ]


def unflagged(claims: Claims) -> Claims:
    """Return claims without what their inputs said about claiming when they were accepted."""
    return replace(claims, inputs=[replace(row, claimed=False) for row in claims.inputs])


async def everything(store: Store) -> dict[str, Any]:
    """Return all that can be seen of a store."""
    refs = [Ref(workflow, f"i-{n}") for workflow in WORKFLOWS for n in range(INSTANCES)]
    return {
        "instances": await store.instances(InstanceFilter(), 100),
        "loaded": await store.load(refs),
        "feed": await store.feed(0, 100_000),
        "inbox": [[row.message_id for row in await store.inbox(ref, 100)] for ref in refs],
        "sends": sorted(await store.outputs(None, False, 1_000), key=str),
        "timers": sorted(await store.outputs(None, True, 1_000), key=str),
        "dead": await store.dead_letters(1_000),
        "remembered": [await store.remembered(f"m-{n}") for n in range(12)],
        "stats": await store.stats(),
    }


async def compare(seed: int, rounds: int, memory: Store, sqlite: Store, clock: VirtualClock) -> int:
    """Do the same to both stores and compare every answer. Return how many units were committed."""
    random = Random(seed)  # noqa: S311  a test's own dice
    workers = [await memory.register_worker(name, 30_000_000) for name in "ab"]
    assert workers == [await sqlite.register_worker(name, 30_000_000) for name in "ab"]
    model = Model(random, [*workers, 0])
    committed = 0
    for _ in range(rounds):
        await model.learn(memory)
        worker = random.choice(model.workers)
        units = [model.unit() for _ in range(random.choice((1, 3, 12)))]
        expected = await memory.commit(worker, units)
        outcomes = await sqlite.commit(worker, units)
        assert outcomes == expected, [
            (i, units[i]) for i, (o, e) in enumerate(zip(outcomes, expected, strict=True)) if o != e
        ]
        committed += sum(isinstance(outcome, Committed) for outcome in outcomes)
        claim = (random.choice(model.workers), random.sample(DESTINATIONS, 2), WORKFLOWS[: random.randint(0, 2)])
        if model.chance(0.4):
            limit = random.choice((1, 3, 50))
            assert unflagged(await sqlite.claim(*claim, limit)) == unflagged(await memory.claim(*claim, limit))
        if model.chance(0.1):
            clock.advance(3)
        if model.chance(0.1):
            letter = random.randrange(1, 20)
            assert await sqlite.restore_output(letter) == await memory.restore_output(letter)
        if model.chance(0.05):
            clock.advance(40)
            await sqlite.heartbeat(workers[0])
            await memory.heartbeat(workers[0])
            assert await sqlite.relieve() == await memory.relieve()
        for owner in workers:
            assert sorted(await sqlite.holds(owner), key=str) == sorted(await memory.holds(owner), key=str)
    assert await everything(sqlite) == await everything(memory)
    return committed
