"""Planted mistakes, such as engines like this one have had: each is in the real code for the time of a run.

Nothing of this can be reached from the product: a plant replaces functions of the engine or of the virtual database
from outside, and puts them back. The simulator has to notice every one of them, or its silence proves nothing.
`plants_of_stores` are mistakes that a database's side might have, `plants_of_edges` are those of versions, purging and
brokers, `plants_of_people` those about what people do wrong, and those here are the engine's.
"""

# ruff: noqa: SLF001, ARG005  a mistake is planted in the inside of things
from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, cast

import pytest
from msgspec.structs import replace

from mainspring.app import requests
from mainspring.core.saga import Ledger
from mainspring.engine.committing.committer import Committer
from mainspring.engine.engine import Engine
from mainspring.engine.handlers.job import Job
from mainspring.engine.inputs.pending import Pending
from mainspring.engine.outputs import fan_out
from mainspring.engine.outputs.child_deliveries import ChildDeliveries
from mainspring.engine.outputs.replies import Replies
from mainspring.engine.outputs.settlements import Settlements
from mainspring.engine.outputs.subscriptions import Subscriptions
from mainspring.engine.projections.folding import Folding
from mainspring.engine.stepping import disposition, loader
from mainspring.engine.stepping.broken_lanes import BrokenLanes
from mainspring.engine.stepping.duplicates import Duplicates
from mainspring.engine.stepping.lanes import Lane, Phase
from mainspring.engine.stepping.step_unit import StepUnits
from mainspring.engine.stepping.stepper import Stepper
from mainspring.port.ids import MARK, plain
from mainspring.port.records import ENDED, Ref, Unit
from mainspring.stores.memory import MemoryStore, work
from mainspring.stores.memory.facts import facts_of
from mainspring.stores.memory.tables import Tables
from tests.proof.simulation import app
from tests.proof.simulation.planting import Plants
from tests.proof.simulation.plants_of_edges import EDGE_PLANTS
from tests.proof.simulation.plants_of_people import PEOPLE_PLANTS
from tests.proof.simulation.plants_of_stores import STORE_PLANTS

ENGINE_PLANTS: Final = Plants()
plant = ENGINE_PLANTS.plant


# ---- steps


@plant("an id that somebody chose is taken for that of another instance's command")
def chosen_id_swallows_a_derived_one(patch: pytest.MonkeyPatch) -> None:
    def confused(tables: Tables, questions: Any) -> Any:
        facts = facts_of(tables, questions)
        for known, id in questions.inputs:
            taken = tables.at(Ref(known.workflow, known.id)).taken
            for form in (plain(id), MARK + plain(id)):
                if form in taken:
                    facts.taken[known.name, id] = (taken[form].type, taken[form].body)
        return facts

    def silent(self: Duplicates, pending: Pending) -> None:
        self._committer.add(self._units.settled(pending), lambda _: None)

    patch.setattr(work, "facts_of", confused)
    patch.setattr(Duplicates, "_clashed", silent)


@plant("the caller is told before the commit")
def told_too_early(patch: pytest.MonkeyPatch) -> None:
    commit = Stepper._commit

    def hasty(self: Stepper, lane: Lane, pending: Pending, unit: Unit, status: Any, *more: Any, **named: Any) -> None:
        if pending.answer is not None:
            pending.answer.resolve(status)
        commit(self, lane, pending, unit, status, *more, **named)

    patch.setattr(Stepper, "_commit", hasty)


@plant("a commit that lost its race is reported as if it had been made")
def deaf_to_conflicts(patch: pytest.MonkeyPatch) -> None:
    def deaf(self: BrokenLanes, lane: Lane, pending: Pending, outcome: Any) -> None:
        lane.phase = Phase.BROKEN
        if pending.answer is not None:
            pending.answer.resolve("stepped")

    patch.setattr(BrokenLanes, "refused", deaf)


@plant("after a conflict the state in memory is taken for the truth")
def cache_not_dropped_on_conflict(patch: pytest.MonkeyPatch) -> None:
    settle, fill = Stepper._settle, loader.Loader._fill
    stale: dict[int, Any] = {}

    def remember(self: Stepper, lane: Lane) -> None:
        if lane.phase is Phase.BROKEN and lane.version:
            stale[id(lane)] = lane.state
        settle(self, lane)

    def keep(self: Any, lane: Lane, *read: Any) -> None:
        state = stale.pop(id(lane), None)
        finish = self._finish

        def finished(lane: Lane) -> None:
            if state is not None:
                lane.state = state
            finish(lane)

        self._finish = finished
        fill(self, lane, *read)
        self._finish = finish

    patch.setattr(Stepper, "_settle", remember)
    patch.setattr(loader.Loader, "_fill", keep)


@plant("what was built on a refused step is committed all the same", first=161)
def chain_not_withdrawn(patch: pytest.MonkeyPatch) -> None:
    commit = MemoryStore._commit
    patch.setattr(MemoryStore, "_commit", lambda self, worker, unit, _: commit(self, worker, unit, set()))
    patch.setattr(Committer, "_withdraw", lambda *_: [])


@plant("an input that came from the inbox is forgotten when the store is in trouble")
def forgotten_in_trouble(patch: pytest.MonkeyPatch) -> None:
    def forget(self: BrokenLanes, lane: Lane, pending: Pending, error: Any) -> None:
        if pending.answer is not None:
            pending.answer.fail(error)

    patch.setattr(BrokenLanes, "_failed", forget)


@plant("an instance that has ended goes on deciding")
def stepped_after_the_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lane, "ended", property(lambda _: False))


@plant("an input for an instance that has ended is dropped")
def late_input_dropped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(disposition, "late", lambda *_: disposition.Plain.SETTLE)


# ---- snapshots


@plant("a snapshot is trusted, whichever code has made it")
def snapshot_trusted_across_versions(patch: pytest.MonkeyPatch) -> None:
    async def as_it_is(store: Any, entry: Any, loaded: Any) -> Any:
        return loaded

    patch.setattr(loader, "trusted", as_it_is)


@plant("a snapshot says that it is one event further than it is")
def snapshot_off_by_one(patch: pytest.MonkeyPatch) -> None:
    snapshot = StepUnits._snapshot

    def further(self: StepUnits, lane: Lane, taken: Any, *, ended: bool) -> Any:
        made = snapshot(self, lane, taken, ended=ended)
        return None if made is None else replace(made, version=made.version + 1)

    patch.setattr(StepUnits, "_snapshot", further)


@plant("where only the state is kept, it is the one before the step")
def state_one_step_old(patch: pytest.MonkeyPatch) -> None:
    snapshot = StepUnits._snapshot

    def older(self: StepUnits, lane: Lane, taken: Any, *, ended: bool) -> Any:
        if lane.trims and lane.version:
            return lane.entry.recorder.snapshot(lane.state, taken.version, "")
        return snapshot(self, lane, taken, ended=ended)

    patch.setattr(StepUnits, "_snapshot", older)


# ---- outputs


@plant("an output is settled and its result forgotten")
def settled_without_result(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Settlements, "succeeded", lambda self, handler, job, result, duration_us: self.settle(job.claim))


@plant("results are recorded without settling their output: a worker that was relieved records its own too")
def result_without_settling(patch: pytest.MonkeyPatch) -> None:
    stepped = StepUnits.stepped

    def unsettled(*given: Any, **named: Any) -> Any:
        unit, outputs = stepped(*given, **named)
        return replace(unit, settles=()), outputs

    patch.setattr(StepUnits, "stepped", unsettled)


@plant("failed attempts are not counted")
def attempts_not_counted(patch: pytest.MonkeyPatch) -> None:
    retry = Settlements.retry
    patch.setattr(
        Settlements,
        "retry",
        lambda self, claim, attempts, delay_us, error: retry(self, claim, claim.attempts, delay_us, error),
    )


@plant("a command that failed for good leaves no dead letter")
def no_dead_letter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Settlements, "give_up", lambda self, job, *_: self.settle(job.claim))


@plant("a command whose failure was taken is a dead letter too")
def letter_although_handled(patch: pytest.MonkeyPatch) -> None:
    stepped = StepUnits.stepped

    def buried(self: StepUnits, lane: Any, pending: Any, taken: Any, **named: Any) -> Any:
        unit, outputs = stepped(self, lane, pending, taken, **named)
        return replace(unit, dead_letters=pending.letters, handles=()), outputs

    patch.setattr(StepUnits, "stepped", buried)


@plant("a dead letter is carried out for an instance that has ended", first=463)
def retried_after_the_end(patch: pytest.MonkeyPatch) -> None:
    async def not_refused(*_: Any) -> None:
        return None

    patch.setattr("mainspring.app.letters.refuse", not_refused)


@plant("every attempt has an idempotency key of its own")
def key_per_attempt(patch: pytest.MonkeyPatch) -> None:
    id = cast("Any", Job.id).fget
    patch.setattr(Job, "id", property(lambda self: f"{id(self)}/{self.claim.attempts}"))


@plant("a reply is settled and not delivered")
def reply_not_delivered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replies, "deliver", lambda self, claim, message: self._dispatcher.settle(claim))


@plant("whoever asks is told that no reply comes while one is on its way", first=121)
def reply_despaired_of(patch: pytest.MonkeyPatch) -> None:
    async def hasty(engine: Engine, pending: Pending) -> Exception | None:
        [loaded] = await engine.store.load([pending.ref], 0)
        return requests._ended(pending, loaded.row) if loaded and loaded.row.status in ENDED else None

    patch.setattr(requests, "_in_vain", hasty)


@plant("of several subscribers only the first is told")
def first_subscriber_only(patch: pytest.MonkeyPatch) -> None:
    tell = Subscriptions._tell

    async def tell_first(self: Subscriptions, publication: Any) -> None:
        publication.subscribers = publication.subscribers[:1]
        await tell(self, publication)

    patch.setattr(Subscriptions, "_tell", tell_first)


@plant("a worker that was relieved does not hear of it")
def relieved_and_not_told(patch: pytest.MonkeyPatch) -> None:
    async def beat(self: Engine) -> None:
        await self.store.heartbeat(self.committer.worker)

    patch.setattr(Engine, "_beat", beat)


# ---- sagas, children, projections


@plant("compensations run in the order of what they undo")
def compensated_forwards(patch: pytest.MonkeyPatch) -> None:
    onward = Ledger.onward

    def forwards(self: Ledger) -> Any:
        armed, self.armed = self.armed, dict(reversed(self.armed.items()))
        found = onward(self)
        self.armed = armed
        return found

    patch.setattr(Ledger, "onward", forwards)


@plant("only the last step of a saga is undone")
def last_step_compensated_only(patch: pytest.MonkeyPatch) -> None:
    onward = Ledger.onward

    def once(self: Ledger) -> Any:
        if self.undone:
            self.armed.clear()
        return onward(self)

    patch.setattr(Ledger, "onward", once)


@plant("a parent does not hear of its child's end")
def end_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChildDeliveries, "_tell_parent", lambda self, claim, end: self._settlements.settle(claim))


@plant("a fan-out is joined before its last part is done")
def joined_too_early(patch: pytest.MonkeyPatch) -> None:
    evolve = fan_out._FanOut.evolve

    def count(self: Any, state: Any, event: Any, /) -> Any:
        after = evolve(self, state, event)
        return after and fan_out.Counting(after.total, after.started, max(after.done, 1))

    patch.setattr(fan_out._FanOut, "evolve", count)
    # It is read when an app is made, and that is done once for all runs.
    patch.setattr(app, "whole", cache(app.whole.__wrapped__))


@plant("a projection's checkpoint is moved one event too far")
def checkpoint_too_far(patch: pytest.MonkeyPatch) -> None:
    piece = Folding._piece
    patch.setattr(Folding, "_piece", lambda self, at, page, reaches: piece(self, at, page, reaches + 1))


PLANTS: Final = {
    **STORE_PLANTS.by_name,
    **ENGINE_PLANTS.by_name,
    **EDGE_PLANTS.by_name,
    **PEOPLE_PLANTS.by_name,
}


@contextmanager
def planted(name: str | None) -> Generator[None]:
    """Let a mistake be there for a while; with None, none."""
    with pytest.MonkeyPatch.context() as patch:
        if name is not None:
            PLANTS[name].put_in(patch)
        yield
