"""Planted mistakes on the database's side: what a store might get wrong, and the engine could not make good."""

# ruff: noqa: SLF001  a mistake is planted in the inside of things
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest
from msgspec.structs import replace

from mainspring.engine.inputs.pending import Pending
from mainspring.engine.stepping.step_unit import StepUnits
from mainspring.port.records import Committed, Conflict, Leaves, Outcome, OutputKey, OutputRow, Ref, Unit
from mainspring.port.suspects import Suspect
from mainspring.stores.commit import judge
from mainspring.stores.commit.changes import Changes
from mainspring.stores.commit.facts import Name
from mainspring.stores.commit.judge import Judge
from mainspring.stores.commit.task_book import TaskBook
from mainspring.stores.memory import MemoryStore
from mainspring.stores.memory.projections import ProjectionVerbs
from mainspring.stores.memory.tables import Output, Tables
from tests.proof.simulation.database import Database
from tests.proof.simulation.planting import Plants
from tests.proof.simulation.store import FaultyStore

STORE_PLANTS: Final = Plants()
plant = STORE_PLANTS.plant


# ---- identity


@plant("the id of a message is never looked up")
def deduplication_off(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Judge, "_duplicate", lambda *_: None)
    patch.setattr(Judge, "_message", lambda *_, **__: None)


@plant("the same id with another body counts as the same message")
def any_body_is_the_same(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(judge, "same_message", lambda *_: True)


# ---- fencing and order


@plant("whoever settles an output need not hold it")
def lease_not_fenced(patch: pytest.MonkeyPatch) -> None:
    commit = MemoryStore._commit

    def unfenced(self: MemoryStore, worker: int, unit: Unit, void: set[Name]) -> Outcome:
        for key in (*unit.settles, *(retry.output for retry in unit.retries)):
            if key in self._tables.outbox:
                self._tables.outbox[key].owner = worker
        return commit(self, worker, unit, void)

    patch.setattr(MemoryStore, "_commit", unfenced)


@plant("an output that was settled already can be settled again")
def settled_twice(patch: pytest.MonkeyPatch) -> None:
    commit = MemoryStore._commit

    def lenient(self: MemoryStore, worker: int, unit: Unit, void: set[Name]) -> Outcome:
        outbox = self._tables.outbox
        there = tuple(key for key in unit.settles if key in outbox and outbox[key].owner == worker)
        return commit(self, worker, replace(unit, settles=there), void)

    patch.setattr(MemoryStore, "_commit", lenient)


@plant("a step is committed whatever version the instance has")
def version_not_checked(patch: pytest.MonkeyPatch) -> None:
    refusal = Judge._refusal

    def blind(self: Judge[Any], worker: int, unit: Unit, known: Any) -> Any:
        found = refusal(self, worker, unit, known)
        return None if isinstance(found, Conflict) and found.reason == "version" else found

    def wherever(self: Judge[Any], unit: Unit, known: Any) -> None:
        self._changes.events += unit.events
        self._changes.event_keys += [known.key] * len(unit.events)
        known.version += len(unit.events)

    patch.setattr(Judge, "_refusal", blind)
    patch.setattr(Judge, "_append", wherever)


@plant("an input is stepped although others wait before it")
def inbox_jumped(patch: pytest.MonkeyPatch) -> None:
    refusal = Judge._refusal

    def unordered(self: Judge[Any], worker: int, unit: Unit, known: Any) -> Any:
        return refusal(self, worker, replace(unit, direct=False), known)

    patch.setattr(Judge, "_refusal", unordered)


@plant("of the inputs of an instance, the last one is claimed first, and taken before its turn")
def last_in_first_out(patch: pytest.MonkeyPatch) -> None:
    steppable, refusal = MemoryStore._steppable, Judge._refusal

    def backwards(self: MemoryStore, worker: int, workflows: Sequence[str], leaves: Leaves) -> Any:
        return reversed(list(steppable(self, worker, workflows, leaves)))

    def whatever_waits(self: Judge[Any], worker: int, unit: Unit, known: Any) -> Any:
        refused = refusal(self, worker, unit, known)
        waits = unit.takes is not None and self._waits(known, unit.takes)
        return None if waits and refused == Conflict("inbox") else refused

    patch.setattr(MemoryStore, "_steppable", backwards)
    patch.setattr(Judge, "_refusal", whatever_waits)


@plant("what a dead worker held stays its own")
def nothing_relieved(patch: pytest.MonkeyPatch) -> None:
    async def only_forget(self: MemoryStore, worker: int) -> None:
        self._tables.workers.pop(worker, None)

    patch.setattr(MemoryStore, "release_worker", only_forget)


@plant("what was lost with its workers is set aside, and nobody tries it", first=50)
def suspects_forgotten(patch: pytest.MonkeyPatch) -> None:
    async def nothing(self: MemoryStore, limit: int) -> list[Suspect]:
        return []

    patch.setattr(MemoryStore, "suspects", nothing)


# ---- transactions


@plant("outputs are written in a transaction of their own, after the step's")
def outbox_after_commit(patch: pytest.MonkeyPatch) -> None:
    call = FaultyStore.call

    async def in_two(self: FaultyStore, verb: str, *given: Any, **named: Any) -> Any:
        if verb != "commit":
            return await call(self, verb, *given, **named)
        worker, units = given
        outcomes = await call(self, "commit", worker, [replace(unit, outputs=()) for unit in units])
        late = [
            (Ref(unit.workflow, unit.instance), outcome.key, unit.outputs)
            for unit, outcome in zip(units, outcomes, strict=True)
            if isinstance(outcome, Committed) and unit.outputs
        ]
        if late:
            await call(self, "write_outputs", worker, late)
        return outcomes

    async def write_outputs(self: Database, worker: int, late: list[tuple[Ref, int, tuple[OutputRow, ...]]]) -> None:
        for ref, key, rows in late:
            for row in rows:
                due_us = self.now_us() + row.after_us if row.at_us is None else row.at_us
                owner = worker if row.claimed and worker in self._tables.workers else None
                self._tables.put_output(OutputKey(key, row.version), Output(ref, row, due_us, owner=owner))
                self._news.set()

    patch.setattr(FaultyStore, "call", in_two)
    patch.setattr(Database, "write_outputs", write_outputs, raising=False)


@plant("a handler's own rows are kept even if its result is refused")
def loan_kept_without_result(patch: pytest.MonkeyPatch) -> None:
    commit_with = Database.commit_with

    async def always(self: Database, worker: int, unit: Unit, writes: Sequence[str]) -> Any:
        outcome = await commit_with(self, worker, unit, [])
        self.payments.extend(writes)
        return outcome

    patch.setattr(Database, "commit_with", always)


# ---- time


@plant("a timer is due one microsecond early")
def timer_early_by_one_tick(patch: pytest.MonkeyPatch) -> None:
    put = Tables.put_output

    def early(self: Tables, key: OutputKey, output: Output) -> None:
        if output.row.kind == "timer":
            output.due_us -= 1
        put(self, key, output)

    patch.setattr(Tables, "put_output", early)


@plant("due times are counted by the worker's own clock")
def due_by_the_workers_clock(patch: pytest.MonkeyPatch) -> None:
    output = StepUnits._output

    def by_own_clock(self: StepUnits, lane: Any, event: Any, row: Any) -> OutputRow | None:
        made = output(self, lane, event, row)
        if made is None or made.kind != "timer" or made.at_us is not None:
            return made
        dispatcher: Any = getattr(self._capacity, "__self__")  # noqa: B009  a method's own object
        return replace(made, after_us=0, at_us=dispatcher._runtime.clock.now_us() + made.after_us)

    patch.setattr(StepUnits, "_output", by_own_clock)


@plant("a cancelled timer stays")
def timer_not_cancelled(patch: pytest.MonkeyPatch) -> None:
    cancel = Changes.cancel

    def only_all(self: Changes[Any], known: Any, keys: Sequence[str], everything: str | None, facts: Any) -> None:
        cancel(self, known, (), everything, facts)
        self.fired += [(known, key) for key in keys]

    patch.setattr(Changes, "cancel", only_all)


@plant("a timer that fired and waits in the inbox cannot be cancelled any more")
def fired_timer_not_cancelled(patch: pytest.MonkeyPatch) -> None:
    row = Pending.input_row

    def keyless(self: Pending, *, claimed: bool = False) -> Any:
        return replace(row(self, claimed=claimed), timer_key=None)

    patch.setattr(Pending, "input_row", keyless)


# ---- people and projections


@plant("a task can be answered again and again")
def task_answered_twice(patch: pytest.MonkeyPatch) -> None:
    message = Judge._message

    def forgetful(self: Judge[Any], known: Any, message_id: str, besides: int | None = None) -> Any:
        return None if message_id.endswith("/answer") else message(self, known, message_id, besides)

    patch.setattr(Judge, "_message", forgetful)
    patch.setattr(TaskBook, "refusal", lambda *_: None)


@plant("the checkpoint of a projection is moved by whoever comes")
def checkpoint_not_compared(patch: pytest.MonkeyPatch) -> None:
    advance = ProjectionVerbs.advance

    async def unfit(self: ProjectionVerbs, move: Any) -> bool:
        known = self._checkpoints.get((move.name, move.generation))
        return await advance(self, move if known is None else replace(move, expected=known.position))

    patch.setattr(ProjectionVerbs, "advance", unfit)
