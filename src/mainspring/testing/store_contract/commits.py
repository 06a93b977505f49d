"""Commits: versions, chains, neighbours, all or nothing, and which refusal comes first."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from msgspec.structs import replace

from mainspring.port.records import Committed, Conflict, Duplicate, OutputKey, Remembered, Retry, Snapshot, Unit
from mainspring.testing.store_contract.rig import (
    ORDERS,
    Rig,
    Suite,
    accept,
    behaviour,
    input_row,
    letter,
    order,
    send,
    settle,
    step,
    timer,
)

BIG_BATCH = 2_000


class CommitTests(Suite):
    """A unit is applied whole or not at all, and never at its neighbours' cost."""

    @behaviour
    async def test_an_empty_batch_has_no_outcomes(self, rig: Rig) -> None:
        assert await rig.commit() == []

    @behaviour
    async def test_a_step_behind_the_instances_version_conflicts(self, rig: Rig) -> None:
        await rig.done(step("m-1"), step("m-2", after=2))
        assert await rig.commit(step("m-3", after=2)) == [Conflict("version")]

    @behaviour
    async def test_a_beginning_conflicts_with_an_instance_that_has_no_events_yet(self, rig: Rig) -> None:
        """It may be suspended or cancelled: a worker that did not know of it must look first."""
        (begun,) = await rig.done(Unit(ORDERS, "o-1", expected_version=0, status="cancelled"))
        assert await rig.commit(step("m-1")) == [Conflict("version")]
        await rig.done(Unit(ORDERS, "o-1", key=begun.key, expected_version=0, status="running"))

    @behaviour
    async def test_context_and_definition_stay_until_a_unit_renews_them(self, rig: Rig) -> None:
        first = replace(step("m-1"), definition_version=1, context=b'{"correlation_id":"a"}')
        await rig.done(first, replace(step("m-2", after=2), definition_version=2, context=b'{"correlation_id":"b"}'))
        (kept,) = await rig.store.load([order()])
        assert kept is not None
        assert (kept.row.definition_version, kept.row.context) == (1, b'{"correlation_id":"a"}')
        await rig.done(
            replace(step("m-3", after=3), definition_version=3, context=b'{"correlation_id":"c"}', renews=True)
        )
        (renewed,) = await rig.store.load([order()])
        assert renewed is not None
        assert (renewed.row.definition_version, renewed.row.context) == (3, b'{"correlation_id":"c"}')

    @behaviour
    async def test_an_instance_begun_and_renewed_in_one_batch_has_what_came_last(self, rig: Rig) -> None:
        await rig.done(step("m-1"), replace(step("m-2", after=2), definition_version=2, context=b"{}", renews=True))
        (found,) = await rig.store.load([order()])
        assert found is not None
        assert found.row.definition_version == 2

    @behaviour
    async def test_a_step_ahead_of_the_instances_version_conflicts(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        assert await rig.commit(step("m-2", after=3)) == [Conflict("version")]

    @behaviour
    async def test_an_instance_begins_only_once(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        assert await rig.commit(step("m-2")) == [Conflict("version")]

    @behaviour
    async def test_a_step_of_an_instance_that_never_began_conflicts(self, rig: Rig) -> None:
        assert await rig.commit(step("m-2", after=2)) == [Conflict("version")]
        assert await rig.versions() == []

    @behaviour
    async def test_steps_of_one_instance_chain_inside_a_batch(self, rig: Rig) -> None:
        await rig.done(step("m-1"), step("m-2", after=2), step("m-3", after=3))
        assert await rig.versions() == [1, 2, 3, 4]

    @behaviour
    async def test_a_refused_step_drops_the_rest_of_its_chain(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        outcomes = await rig.commit(step("m-1", after=2), step("m-2", after=3), step("m-3", after=4))
        assert outcomes == [Duplicate(same=True), Conflict("version"), Conflict("version")]
        assert await rig.versions() == [1, 2]

    @behaviour
    async def test_a_refused_unit_never_fails_its_neighbours(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        outcomes = await rig.commit(step("m-1", on="o-2"), step("m-9"), step("m-1", on="o-3"))
        assert [type(outcome) for outcome in outcomes] == [Committed, Conflict, Committed]
        assert await rig.versions("o-2") == await rig.versions("o-3") == [1, 2]

    @behaviour
    async def test_every_kind_of_refusal_leaves_its_neighbours_alone(self, rig: Rig) -> None:
        await rig.done(step("m-1"), accept("w-1", on="busy"))
        outcomes = await rig.commit(
            step("n-1", on="n-1"),
            step("m-1", after=2),
            step("n-2", on="n-2"),
            settle(OutputKey(4_711, 3)),
            step("n-3", on="n-3"),
            step("m-2", on="busy", direct=True),
            step("n-4", on="n-4"),
            step("m-3", after=2, consumes=4_711),
            accept("w-1", on="busy"),
            step("n-5", on="n-5"),
        )
        refused = [outcome for outcome in outcomes if not isinstance(outcome, Committed)]
        assert refused == [
            Duplicate(same=True),
            Conflict("lost"),
            Conflict("inbox"),
            Conflict("inbox"),
            Duplicate(same=True),
        ]
        assert [await rig.versions(f"n-{n}") for n in range(1, 6)] == [[1, 2]] * 5

    @behaviour
    async def test_a_batch_of_two_thousand_units_is_committed_in_one_go(self, rig: Rig) -> None:
        chains = [step("m-1", send(), on=f"o-{n}") for n in range(BIG_BATCH // 2)]
        chains += [step("m-2", on=f"o-{n}", after=3) for n in range(BIG_BATCH // 2)]
        await rig.done(*chains)
        assert len(await rig.store.feed(0, 10 * BIG_BATCH)) == 2 * BIG_BATCH
        assert len((await rig.claim(limit=BIG_BATCH)).outputs) == BIG_BATCH // 2

    @behaviour
    async def test_later_units_of_a_batch_see_what_earlier_ones_accepted(self, rig: Rig) -> None:
        outcomes = await rig.commit(accept("w-1"), step("m-1", direct=True))
        assert outcomes[1] == Conflict("inbox")

    @behaviour
    async def test_a_unit_without_expected_version_touches_no_instance(self, rig: Rig) -> None:
        await rig.done(step("m-1", state="Waiting"))
        before = await rig.store.load([order()])
        rig.clock.advance(1)
        (committed,) = await rig.done(Unit(ORDERS, "o-1", status="failed", accepts=(input_row("w-1"),)))
        assert committed.key == 0
        assert await rig.store.load([order()]) == before

    @behaviour
    async def test_a_direct_step_is_taken_when_nothing_waits(self, rig: Rig) -> None:
        await rig.done(step("m-1", direct=True), accept("w-1", on="o-2"), step("m-2", after=2, direct=True))
        assert await rig.versions() == [1, 2, 3]

    @behaviour
    async def test_a_direct_step_gives_way_to_inputs_that_wait(self, rig: Rig) -> None:
        await rig.done(step("m-1"), accept("w-1"))
        assert await rig.commit(step("m-2", after=2, direct=True)) == [Conflict("inbox")]

    @behaviour
    async def test_a_step_takes_its_input_out_of_the_inbox(self, rig: Rig) -> None:
        (accepted,) = await rig.done(accept("w-1", "w-2"))
        await rig.done(step("w-1", consumes=accepted.positions[0]))
        assert await rig.waiting() == ["w-2"]

    @behaviour
    async def test_an_input_is_consumed_once(self, rig: Rig) -> None:
        (accepted,) = await rig.done(accept("w-1"))
        await rig.done(step("w-1", consumes=accepted.positions[0]))
        again = step("w-1", after=2, consumes=accepted.positions[0], dedupe=None)
        assert await rig.commit(again) == [Conflict("inbox")]

    @behaviour
    async def test_an_instance_cannot_consume_the_input_of_another(self, rig: Rig) -> None:
        (accepted,) = await rig.done(accept("w-1", on="o-2"))
        assert await rig.commit(step("m-1", consumes=accepted.positions[0])) == [Conflict("inbox")]
        assert await rig.waiting("o-2") == ["w-1"]

    # ---- which refusal comes first

    @behaviour
    async def test_a_duplicate_is_told_before_a_lost_output(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        assert await rig.commit(step("m-1", settles=(OutputKey(4_711, 3),))) == [Duplicate(same=True)]

    @behaviour
    async def test_a_lost_output_is_told_before_a_consumed_input(self, rig: Rig) -> None:
        assert await rig.commit(step("m-1", settles=(OutputKey(4_711, 3),), consumes=9)) == [Conflict("lost")]

    @behaviour
    async def test_a_consumed_input_is_told_before_the_version(self, rig: Rig) -> None:
        assert await rig.commit(step("m-1", after=7, consumes=9)) == [Conflict("inbox")]

    @behaviour
    async def test_the_version_is_told_before_waiting_inputs(self, rig: Rig) -> None:
        await rig.done(accept("w-1"))
        assert await rig.commit(step("m-1", after=7, direct=True)) == [Conflict("version")]

    # ---- all or nothing

    @behaviour
    async def test_a_refused_unit_leaves_no_event(self, rig: Rig) -> None:
        await self._refused(rig)
        assert await rig.versions() == [1, 2, 3, 4]
        assert len(await rig.store.feed(0, 100)) == 4

    @behaviour
    async def test_a_refused_unit_leaves_its_instance_as_it_was(self, rig: Rig) -> None:
        await self._refused(rig)
        (loaded,) = await rig.store.load([order()])
        assert loaded is not None
        assert (loaded.row.status, loaded.row.state, loaded.snapshot) == ("running", "Waiting", None)

    @behaviour
    async def test_a_refused_unit_begins_no_instance(self, rig: Rig) -> None:
        await rig.commit(step("m-1", settles=(OutputKey(4_711, 3),)))
        assert await rig.store.load([order()]) == [None]

    @behaviour
    async def test_a_refused_unit_leaves_no_output(self, rig: Rig) -> None:
        held = await self._refused(rig)
        assert [claim.output for claim in await rig.open_outputs()] == [held]

    @behaviour
    async def test_a_refused_unit_accepts_nothing(self, rig: Rig) -> None:
        await self._refused(rig)
        assert await rig.waiting() == []
        assert await rig.waiting("o-2") == []

    @behaviour
    async def test_a_refused_unit_leaves_no_dead_letter_and_discards_none(self, rig: Rig) -> None:
        await self._refused(rig)
        assert [one.message_id for one in await rig.store.dead_letters(10)] == ["m-old"]

    @behaviour
    async def test_a_refused_unit_retries_nothing(self, rig: Rig) -> None:
        held = await self._refused(rig)
        assert [claim.attempts for claim in await rig.open_outputs()] == [0]
        assert await rig.store.holds(rig.worker) == [held]

    @behaviour
    async def test_a_refused_unit_cancels_nothing(self, rig: Rig) -> None:
        await self._refused(rig)
        assert len(await rig.open_outputs(timers=True)) == 1

    @behaviour
    async def test_a_refused_unit_remembers_nothing(self, rig: Rig) -> None:
        await self._refused(rig)
        assert await rig.store.remembered("k-1") is None

    @behaviour
    async def test_a_refused_unit_consumes_nothing(self, rig: Rig) -> None:
        (accepted,) = await rig.done(accept("w-1"))
        await rig.commit(step("w-1", after=7, consumes=accepted.positions[0]))
        assert await rig.waiting() == ["w-1"]

    @behaviour
    async def test_a_refused_unit_gives_no_input_back(self, rig: Rig) -> None:
        (accepted,) = await rig.done(accept("w-1", claimed=True))
        await rig.commit(Unit(ORDERS, "o-1", expected_version=7, releases=accepted.positions))
        assert await rig.inputs(by=rig.other) == []

    @behaviour
    async def test_a_refused_unit_settles_nothing(self, rig: Rig) -> None:
        (held,) = await rig.begun(send(claimed=True))
        await rig.commit(step("m-2", after=7, settles=(held,)))
        assert await rig.store.holds(rig.worker) == [held]

    @behaviour
    async def test_a_refused_message_is_not_taken_for_a_duplicate_later(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        assert await rig.commit(step("m-2", after=7)) == [Conflict("version")]
        await rig.done(step("m-2", after=2))

    async def _refused(self, rig: Rig) -> OutputKey:
        """Have a unit refused that does everything at once, and return the output that it would have retried."""
        held, _ = await rig.begun(send(claimed=True), timer())
        await rig.done(Unit(ORDERS, "o-1", dead_letters=(letter("m-old"),)))
        (old,) = await rig.store.dead_letters(10)
        laden = replace(
            step("m-2", send("Ship"), timer("Reminder"), after=7, status="completed", state="Done"),
            cancels=("Timeout",),
            cancel_all="timers",
            retries=(Retry(held, 5, 1_000, "boom"),),
            accepts=(input_row("w-1"), input_row("w-2", "o-2")),
            dead_letters=(letter("m-new"),),
            discards=(old.id,),
            remembers=(Remembered("k-1", "Go", 1, b"{}", rig.store.now_us() + 1_000_000),),
            snapshot=Snapshot(7, "f", "Done", 1, b"{}"),
        )
        assert await rig.commit(laden) == [Conflict("version")]
        return held
