"""Random work for two stores at once: what the memory store answers, the SQLite store must answer too."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from msgspec.structs import replace

from mainspring.port.records import (
    ARMED,
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
from mainspring.port.tasks import Hand, TaskAnswer, TaskFilter, TaskOpening, TaskWork
from mainspring.testing.clock import VirtualClock

WORKFLOWS = ("Orders", "Stock")
DESTINATIONS = ("Charge", "Ship", "Orders")
KEYS = ("Timeout", "Reminder")
PEOPLE = ("ann", "bob", "cho")
ROLES = ("manager", "clerk")
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
    tasks: dict[Ref, list[int]] = field(default_factory=dict[Ref, list[int]])

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
        key = ARMED if self.chance(0.3) else None
        destination = self.random.choice(DESTINATIONS)
        return OutputRow(version, "send", destination, after_us, key=key, claimed=claimed, priority=priority)

    def letter(self, ref: Ref, settles: tuple[OutputKey, ...]) -> DeadLetter:
        output = self.random.choice(settles) if settles and self.chance(0.8) else None
        return DeadLetter(
            *(ref.workflow, ref.id, self.message(), "command", "Go", 1, b"{}", 0, CONTEXT),
            reason="gave up",
            output=output,
        )

    def task_work(self, ref: Ref, versions: list[int]) -> TaskWork:
        """Return something to do to an instance's tasks; new ones stand at some of these versions."""
        known = self.tasks.setdefault(ref, [])
        answer = None
        if known and self.chance(0.5):
            version = self.random.choice(known[-4:])
            answer = TaskAnswer(version, self.random.choice(PEOPLE), self.some(list(ROLES)), "Approve")
        opens = tuple(self.opening(version) for version in versions if self.chance(0.5))
        known += [task.version for task in opens]
        closes = self.some(list(KEYS)) if self.chance(0.3) else ()
        return TaskWork(answer, closes, self.chance(0.1), opens)

    def opening(self, version: int) -> TaskOpening:
        role = self.random.choice(ROLES) if self.chance(0.8) else None
        due_after_us = self.random.choice((None, 5_000_000, 9_000_000))
        return TaskOpening(
            version,
            self.random.choice(KEYS),
            "Approve",
            ("Approve",),
            role,
            self.random.choice(PEOPLE) if role is None or self.chance(0.2) else None,
            self.some(list(PEOPLE), 1),
            due_after_us=due_after_us,
            due_at_us=7_000_000 if due_after_us is None and self.chance(0.5) else None,
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
            "cancel_all": self.random.choice(("timers", "unclaimed", "forward")) if self.chance(0.15) else None,
            "consumes": self.random.choice(own) if own and self.chance(0.35) else None,
            "releases": tuple(own[:1]) if self.chance(0.1) else (),
            "direct": self.chance(0.3),
            "remembers": (Remembered(self.message(), "Go", 1, b"{}", 1 << 60),) if self.chance(0.1) else (),
        }
        if self.chance(0.6):
            return self.step(ref, fields)
        return Unit(ref.workflow, ref.id, tasks=self.task_work(ref, []) if self.chance(0.2) else None, **fields)

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
            tasks=self.task_work(ref, [event.version for event in events]) if self.chance(0.5) else None,
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
        "tasks": await store.tasks(TaskFilter(), 1_000),
        "all tasks": [await store.task(ref, version) for ref in refs for version in range(1, 200)],
    }


async def compare_hands(model: Model, memory: Store, sqlite: Store) -> None:
    """Let people look, pick and take tasks in both stores."""
    random, ref = model.random, model.ref()
    where = TaskFilter(
        model.some(list(ROLES)),
        random.choice((None, *PEOPLE)),
        random.choice((None, *WORKFLOWS)),
        random.choice((None, memory.now_us())),
    )
    listed = await memory.tasks(where, 3)
    assert await sqlite.tasks(where, 3) == listed
    if listed:
        behind = (Ref(listed[-1].workflow, listed[-1].instance), listed[-1].version)
        assert await sqlite.tasks(where, 50, behind) == await memory.tasks(where, 50, behind)
    version = random.choice(model.tasks.get(ref) or [1])
    actor, to = random.choice((None, *PEOPLE)), random.choice(PEOPLE)
    hand = Hand(random.choice(("claim", "release", "delegate")), actor, model.some(list(ROLES)), to)
    if hand.kind != "claim" or actor is not None:
        assert await sqlite.hand(ref, version, hand) == await memory.hand(ref, version, hand)
    picker = (random.choice(ROLES), random.choice(PEOPLE), random.randint(1, 3))
    assert await sqlite.pick(*picker) == await memory.pick(*picker)


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
        if model.chance(0.3):
            await compare_hands(model, memory, sqlite)
        for owner in workers:
            assert sorted(await sqlite.holds(owner), key=str) == sorted(await memory.holds(owner), key=str)
    assert await everything(sqlite) == await everything(memory)
    return committed
