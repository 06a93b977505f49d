"""The machine: does to a store whatever can be done to it, and after each step compares all that can be seen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from mainspring.port.attributes import AttributeFilter
from mainspring.port.projections import Advance, Document
from mainspring.port.purges import Purgeable
from mainspring.port.records import Claims, InstanceFilter, Ref, Unit
from mainspring.port.tasks import TaskFilter
from mainspring.testing.clock import SECOND_US
from tests.proof.model.beds import Bed, Stand, Wrap
from tests.proof.model.reading import Model
from tests.proof.model.work import DESTINATIONS, MEANINGS, PEOPLE, REFS, RESULTS, ROLES, STATES, WORKFLOWS, Work

LEASE_US = 30 * SECOND_US
LEASE_SECONDS_AND_MORE = 40
ALL = 10_000
PROJECTION = "orders"
SEEDS = st.integers(0, 2**32 - 1)
STEPS = tuple(sorted(meaning for meaning, parts in MEANINGS.items() if "step" in parts))
OTHERS = tuple(sorted(set(MEANINGS) - set(STEPS)))


def batches(*meanings: str, most: int) -> st.SearchStrategy[list[tuple[str, int]]]:
    """Return batches of units with some of these meanings."""
    return st.lists(st.tuples(st.sampled_from(meanings), SEEDS), min_size=1, max_size=most)


class StoreMachine(RuleBasedStateMachine):
    """A store and the model of it, side by side. `machine_on` makes one for a bed."""

    bed: ClassVar[Bed]
    runner: ClassVar[asyncio.Runner]
    wrap: ClassVar[Wrap]
    steps: ClassVar[dict[str, int]]

    def __init__(self) -> None:
        super().__init__()
        self.stand = Stand(self.bed, self.runner, type(self).wrap)
        self.model = Model(self.stand.clock)
        self.workers: list[int] = []

    @initialize()
    def begin(self) -> None:
        for name in ("first", "second"):
            self._register(name)

    def _register(self, name: str) -> None:
        worker = self._ask("register_worker", name, LEASE_US)
        assert worker not in (0, *self.workers), "a key is never used twice"
        self.workers.append(worker)
        self.model.workers[worker] = (LEASE_US, self.stand.clock.now_us() + LEASE_US)

    def _ask(self, verb: str, *arguments: Any) -> Any:
        self.steps[verb] = self.steps.get(verb, 0) + 1
        return self.stand.ask(getattr(self.stand.store, verb)(*arguments))

    def _worker(self, random: Random) -> int:
        """Return a worker: mostly a live one, now and then one that is known no longer, or none at all."""
        live = list(self.model.workers) or [0]
        return random.choice([0, *self.workers]) if random.random() < 0.1 else random.choice(live[-2:])

    # ---- commit: several rules, for they are chosen evenly, and most of a store's work is this

    @rule(batch=batches(*STEPS, most=1), seed=SEEDS)
    def step(self, batch: list[tuple[str, int]], seed: int) -> None:
        self._commit(batch, seed)

    @rule(batch=batches(*STEPS, most=4), seed=SEEDS)
    def steps_in_a_chain(self, batch: list[tuple[str, int]], seed: int) -> None:
        self._commit(batch, seed)

    @rule(batch=batches("step", "step of a result", "step of the inbox", most=2), seed=SEEDS)
    def plain_steps(self, batch: list[tuple[str, int]], seed: int) -> None:
        self._commit(batch, seed)

    @rule(batch=batches(*OTHERS, most=2), seed=SEEDS)
    def work_without_a_step(self, batch: list[tuple[str, int]], seed: int) -> None:
        self._commit(batch, seed)

    @rule(batch=batches(*STEPS, *OTHERS, most=6), seed=SEEDS)
    def commit(self, batch: list[tuple[str, int]], seed: int) -> None:
        self._commit(batch, seed)

    def _commit(self, batch: list[tuple[str, int]], seed: int) -> None:
        worker = self._worker(_dice(seed))
        work = Work(self.model, worker, seed)
        units: list[Unit] = []
        for meaning, own in batch:
            work.random.seed(own)
            units.append(work.unit(meaning))
        self._commit_units(worker, units)

    @rule(ref=st.sampled_from(REFS), seconds=st.sampled_from((0, 1)), discards=st.booleans())
    def wind_up(self, ref: Ref, seconds: int, discards: bool) -> None:
        """Complete an instance and take away all its work: else nothing would ever be done with, and purged."""
        model = self.model
        for worker in list(model.workers):
            held = tuple(key for key, output in model.outputs(ref).items() if output.owner == worker)
            self._commit_units(worker, [Unit(ref.workflow, ref.id, settles=held)])
        inputs = [Unit(ref.workflow, ref.id, consumes=position) for position in model.inputs(ref)]
        own = [
            id
            for id, (letter, _) in model.letters.items()
            if (letter.workflow, letter.instance) == (ref.workflow, ref.id)
        ]
        unit = Unit(ref.workflow, ref.id, cancel_all="unclaimed", discards=tuple(own) if discards else ())
        if row := model.instances.get(ref):
            unit = replace(unit, key=row.key, expected_version=row.version, status="completed")
        self._commit_units(0, [*inputs, unit])
        self.stand.clock.advance(seconds)

    def _commit_units(self, worker: int, units: list[Unit]) -> None:
        outcomes = self._ask("commit", worker, units)
        for outcome in outcomes:
            kind = f"commit: {type(outcome).__name__}"
            self.steps[kind] = self.steps.get(kind, 0) + 1
        self.model.check(worker, units, outcomes)
        self.model.number_letters(self._ask("dead_letters", ALL, self.model.last_letter))
        trimmed = {trim.ref for trim in self.model.trims}
        self.model.take_trims({ref: {e.version for e in self._ask("stream", ref, 0, ALL)} for ref in trimmed})

    # ---- work and workers

    @rule(seed=SEEDS, limit=st.sampled_from((1, 3, 50)))
    def claim(self, seed: int, limit: int) -> None:
        random = _dice(seed)
        destinations = tuple(random.sample(DESTINATIONS, random.randint(1, len(DESTINATIONS))))
        asked = (self._worker(random), destinations, WORKFLOWS[: random.randint(0, 2)], limit)
        _agree(_plain(self._ask("claim", *asked)), _plain(self.model.claim(*asked)))

    @rule(seconds=st.sampled_from((1, 3, 6, LEASE_SECONDS_AND_MORE)))
    def let_time_pass(self, seconds: int) -> None:
        self.stand.clock.advance(seconds)

    @rule(seed=SEEDS)
    def change_workers(self, seed: int) -> None:
        random = _dice(seed)
        match random.choice(("beat", "beat", "relieve", "release", "register")):
            case "beat":
                self._beat(random.choice(self.workers))
            case "release" if len(self.model.workers) > 1:
                worker = random.choice(self.workers)
                self._ask("release_worker", worker)
                self.model.release(worker)
            case "register" if len(self.model.workers) < 3:
                self._register("another")
            case _:
                self._relieve()

    def _beat(self, worker: int) -> None:
        known = self.model.workers.get(worker)
        _agree(self._ask("heartbeat", worker), (known is not None))
        if known is not None:
            self.model.workers[worker] = (known[0], self.stand.clock.now_us() + known[0])

    def _relieve(self) -> None:
        _agree(self._ask("relieve"), self.model.relieve())
        if not self.model.workers:
            self._register("in their place")

    @rule(seed=SEEDS)
    def restore_a_dead_letter(self, seed: int) -> None:
        random = _dice(seed)
        id, version = random.choice([*self.model.letters, 10**9]), random.choice((None, *range(4)))
        _agree(self._ask("restore_output", id, version), self.model.restore(id, version))

    @precondition(lambda self: self.stand.durable)
    @rule()
    def close_and_open_again(self) -> None:
        self.stand.reopen()
        # A worker may be known to be gone with its store, or be out of its lease: now it is both.
        self.stand.clock.advance(LEASE_SECONDS_AND_MORE)
        self._relieve()

    # ---- people

    @rule(seed=SEEDS, limit=st.integers(1, 3))
    def let_people_work(self, seed: int, limit: int) -> None:
        work = Work(self.model, 0, seed)
        where = work.task_filter()
        expected = self.model.list_tasks(where)
        page = self._ask("tasks", where, limit)
        _agree(page, expected[:limit])
        if page:
            last = page[-1]
            _agree(self._ask("tasks", where, ALL, (Ref(last.workflow, last.instance), last.version)), expected[limit:])
        hand = work.hand()
        _agree(self._ask("hand", *hand), self.model.hand(*hand))
        if work.chance(0.3):
            picker = (work.random.choice(ROLES), work.random.choice(PEOPLE), limit)
            _agree(self._ask("pick", *picker), self.model.pick(*picker))

    # ---- purging

    @rule(workflow=st.sampled_from(WORKFLOWS), limit=st.integers(1, 3), events=st.sampled_from((1, 3, ALL)), seed=SEEDS)
    def purge(self, workflow: str, limit: int, events: int, seed: int) -> None:
        before_us = self.stand.clock.now_us() - _dice(seed).choice((0, 0, 2, 8)) * SECOND_US
        found = self._purgeable(workflow, before_us, limit)
        # One that ended more than once is found again by another of its ends, when nothing is left of it but that.
        _agree(
            [one for one in _last_ends(found) if not self.model.is_gone(one)], self.model.purgeable(workflow, before_us)
        )
        for one in found[:1]:
            _agree(self._ask("purge", [one], events), self.model.purge(one, events))

    def _purgeable(self, workflow: str, before_us: int, limit: int) -> list[Purgeable]:
        found: list[Purgeable] = []
        page = self._ask("purgeable", workflow, before_us, limit)
        while True:
            found += page.found
            if page.after is None:
                return found
            page = self._ask("purgeable", workflow, before_us, limit, page.after)

    # ---- projections

    @rule(seed=SEEDS)
    def advance_a_projection(self, seed: int) -> None:
        random = _dice(seed)
        generation = random.randint(1, 3)
        known = self.model.checkpoints.get((PROJECTION, generation))
        expected = None if known is None else known.position
        if random.random() < 0.1:
            expected = random.choice((None, -1, 3))
        others = [number for _, number in self.model.checkpoints if number != generation]
        status = random.choice((None, "building", "live"))
        is_live = (
            status == "live" or (known is None and status is None) or (known is not None and known.status == "live")
        )
        # There is one live generation at most: whoever makes another one live retires it in the same move.
        live = [n for (_, n), one in self.model.checkpoints.items() if one.status == "live" and n != generation]
        retires = tuple(live) if is_live else tuple(random.sample(others, min(len(others), random.randrange(2))))
        documents = tuple(
            Document(
                f"o-{n}", *((None, 1, None) if random.random() < 0.3 else ("Order", 1, b"%d" % random.randrange(9)))
            )
            for n in random.sample(range(4), random.randrange(3))
        )
        position = (expected or 0) + random.randrange(4)
        move = Advance(PROJECTION, generation, expected, position, 1, status, None, retires, documents)
        _agree(self._ask("advance", move), self.model.advance(move))
        if random.random() < 0.3:
            gone = (PROJECTION, random.randint(1, 3), random.randint(1, 2))
            _agree(self._ask("clear_documents", *gone), self.model.clear(*gone))

    # ---- looking

    @rule(seed=SEEDS, limit=st.integers(1, 4))
    def look_at_pages(self, seed: int, limit: int) -> None:
        random, model = _dice(seed), self.model
        ref, after = random.choice(REFS), random.randrange(12)
        behind = [event for event in model.stream(ref) if event.version > after][:limit]
        _agree(self._ask("stream", ref, after, limit), behind)
        _agree(_unclaimed(self._ask("inbox", ref, limit)), _unclaimed(model.waiting(ref)[:limit]))
        letters = [letter for letter, _ in model.letters.values()]
        some = random.sample(sorted(model.letters), min(2, len(letters)))
        _agree(self._ask("dead_letters", limit, 0, some), [one for one in letters if one.id in some][:limit])
        where = _filter(random, model)
        key = random.choice([0, 0, *(row.key for row in model.instances.values())])
        _agree(self._ask("instances", where, limit, key), model.list_instances(where, limit, key))
        positions = [position for position, _, _ in self._ask("feed", 0, ALL)]
        assert positions == sorted(set(positions)), "the feed's positions increase"
        if positions:
            at = random.randrange(len(positions))
            page = self._ask("feed", positions[at], limit)
            assert [position for position, _, _ in page] == positions[at + 1 : at + 1 + limit]
            expected = min(limit, len(positions) - at - 1)
            assert self._ask("behind", positions[at], limit).events == expected

    @invariant()
    def all_that_can_be_seen_is_as_the_model_says(self) -> None:
        model = self.model
        _agree(self._ask("instances", InstanceFilter(), ALL), model.list_instances(InstanceFilter(), ALL, 0))
        _agree(self._ask("load", REFS), [model.load(ref) for ref in REFS])
        _agree([(ref, event) for _, ref, event in self._ask("feed", 0, ALL)], model.feed())
        for timers in (False, True):
            found = self._ask("outputs", None, timers, ALL)
            assert [claim.due_us for claim in found] == sorted(claim.due_us for claim in found)
            _agree(sorted(found, key=_place), sorted(model.open_outputs(timers=timers), key=_place))
        _agree(self._ask("dead_letters", ALL), [letter for letter, _ in model.letters.values()])
        _agree(self._ask("tasks", TaskFilter(), ALL), model.list_tasks(TaskFilter()))
        _agree(self._ask("stats"), model.stats())
        for worker in model.workers:
            _agree(set(self._ask("holds", worker)), model.holds(worker))

    @invariant()
    def the_smaller_things_too(self) -> None:
        model = self.model
        for ref in REFS:
            _agree(_unclaimed(self._ask("inbox", ref, ALL)), _unclaimed(model.waiting(ref)))
            _agree(self._ask("attributes", ref), sorted(model.attributes.get(ref, ()), key=lambda row: row.name))
        checkpoints = [one for _, one in sorted(model.checkpoints.items())]
        _agree(self._ask("checkpoints"), checkpoints)
        _agree(self._ask("list_documents", PROJECTION, "", "", ALL), model.live_documents(PROJECTION))
        for key in RESULTS:
            kept = model.remembered.get(key)
            is_valid = kept is not None and kept.expires_us > self.stand.clock.now_us()
            _agree(self._ask("remembered", key), (kept if is_valid else None))
        for (ref, version), task in list(model.tasks.items())[-4:]:
            _agree(self._ask("task", ref, version), task)

    def teardown(self) -> None:
        self.stand.close()


def machine_on(bed: Bed, runner: asyncio.Runner, wrap: Wrap | None = None) -> type[StoreMachine]:
    """Return a machine for stores of a bed; `wrap` puts something before each of them."""
    first: Callable[[Any], Any] = wrap or (lambda store: store)
    members: dict[str, Any] = {"bed": bed, "runner": runner, "wrap": staticmethod(first), "steps": {}}
    return type("StoreMachine", (StoreMachine,), members)


def _agree(seen: Any, said: Any) -> None:
    """Compare what the store shows with what the model says, and tell the difference."""
    if isinstance(seen, list) and isinstance(said, list):
        only_seen, only_said = [one for one in seen if one not in said], [one for one in said if one not in seen]
        assert seen == said, f"the store alone shows {only_seen}, the model alone {only_said}, or the order differs"
    assert seen == said, f"the store shows {seen}, the model says {said}"


def _dice(seed: int) -> Random:
    return Random(seed)  # noqa: S311  a test's own dice


def _place(claim: Any) -> tuple[int, int]:
    return claim.output.instance, claim.output.version


def _unclaimed(rows: list[Any]) -> list[Any]:
    """Return inputs without what they said about claiming when they were accepted: stores may show who holds them."""
    return [replace(row, claimed=False) for row in rows]


def _plain(claims: Claims) -> Claims:
    return replace(claims, inputs=_unclaimed(claims.inputs))


def _last_ends(found: list[Purgeable]) -> list[Purgeable]:
    """Return what is to be purged once each: an instance that began anew has ended more than once."""
    return sorted({one.key: one for one in found}.values(), key=lambda one: (one.ended_us, one.key))


def _filter(random: Random, model: Model) -> InstanceFilter:
    attributes = (AttributeFilter("amount", "number", None, 1.0, 2.0), AttributeFilter("customer", "text", "ann"))
    return InstanceFilter(
        random.choice((None, *WORKFLOWS)),
        random.choice((None, "running", "suspended", "completed")),
        random.choice((None, *STATES)),
        random.choice((None, "i-", "i-1")),
        random.choice((None, None, "oo")),
        updated_from_us=random.choice((None, model.clock.now_us() - 2 * SECOND_US)),
        attributes=tuple(random.sample(attributes, random.choice((0, 0, 1)))),
    )
