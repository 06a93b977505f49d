"""Inboxes: inputs wait in order, and a claim never lets one overtake another."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from msgspec.structs import replace

from mainspring.port.records import Committed, Conflict, Leaves, Ref, Unit, Waiting
from mainspring.testing.store_contract.rig import (
    ORDERS,
    WRITTEN_US,
    Rig,
    Suite,
    accept,
    behaviour,
    input_row,
    order,
    step,
)


class InboxTests(Suite):
    """What was accepted waits whole and in order, and goes to one worker at a time."""

    @behaviour
    async def test_accepted_inputs_wait_in_order(self, rig: Rig) -> None:
        await rig.done(accept("w-1"), accept("w-3", "w-2"))
        await rig.done(accept("w-0"))
        assert await rig.waiting() == ["w-1", "w-3", "w-2", "w-0"]

    @behaviour
    async def test_positions_increase_and_stand_in_the_rows(self, rig: Rig) -> None:
        first, second = await rig.done(accept("w-1", "w-2"), accept("w-3"))
        positions = [*first.positions, *second.positions]
        assert 0 < positions[0] < positions[1] < positions[2]
        assert [row.position for row in await rig.store.inbox(order(), 10)] == positions

    @behaviour
    async def test_every_field_of_an_input_comes_back(self, rig: Rig) -> None:
        row = input_row(
            "w-1",
            kind="reply",
            type="Paid",
            type_version=3,
            body='{ "t": "ü" }'.encode(),
            time_us=WRITTEN_US + 1,
            context=b'{"trace":"t"}',
            actor="ann",
            cause=7,
            timer_key="Timeout",
        )
        (committed,) = await rig.done(Unit(ORDERS, "o-1", accepts=(row,)))
        expected = [replace(row, position=committed.positions[0])]
        assert [replace(one, claimed=False) for one in await rig.store.inbox(order(), 10)] == expected
        assert [replace(one, claimed=False) for one in (await rig.claim()).inputs] == expected

    @behaviour
    async def test_the_inbox_is_read_up_to_a_limit(self, rig: Rig) -> None:
        await rig.done(accept("w-1", "w-2", "w-3"), accept("x-1", on="o-2"))
        assert [row.message_id for row in await rig.store.inbox(order(), 2)] == ["w-1", "w-2"]

    @behaviour
    async def test_the_inbox_of_an_unknown_instance_is_empty(self, rig: Rig) -> None:
        assert await rig.store.inbox(Ref("Nothing", "o-1"), 10) == []

    @behaviour
    async def test_inputs_are_claimed_in_the_order_of_their_acceptance(self, rig: Rig) -> None:
        await rig.done(accept("a-1", on="a"), accept("b-1", on="b"), accept("a-2", on="a"))
        assert await rig.inputs() == ["a-1", "b-1", "a-2"]

    @behaviour
    async def test_inputs_are_claimed_up_to_the_limit_and_the_rest_later(self, rig: Rig) -> None:
        await rig.done(accept("w-1", "w-2", "w-3"))
        assert [row.message_id for row in (await rig.claim(limit=2)).inputs] == ["w-1", "w-2"]
        assert await rig.inputs() == ["w-3"]

    @behaviour
    async def test_only_inputs_of_the_named_workflows_are_claimed(self, rig: Rig) -> None:
        fine = input_row("w-2", workflow="Fines")
        await rig.done(accept("w-1"), Unit("Fines", "o-1", accepts=(fine,)))
        assert [row.message_id for row in (await rig.claim(workflows=["Fines"])).inputs] == ["w-2"]
        assert (await rig.claim(workflows=[])).inputs == []

    @behaviour
    async def test_a_claimed_input_is_left_to_its_worker(self, rig: Rig) -> None:
        await rig.done(accept("w-1"))
        assert await rig.inputs() == ["w-1"]
        assert await rig.inputs(by=rig.other) == []
        assert await rig.inputs() == []

    @behaviour
    async def test_no_input_overtakes_one_that_another_worker_holds(self, rig: Rig) -> None:
        await rig.done(accept("w-1"))
        await rig.inputs()
        await rig.done(accept("w-2"), accept("x-1", on="o-2"))
        assert await rig.inputs(by=rig.other) == ["x-1"]

    @behaviour
    async def test_the_worker_that_holds_an_input_may_claim_the_next(self, rig: Rig) -> None:
        await rig.done(accept("w-1"))
        await rig.inputs()
        await rig.done(accept("w-2"))
        assert await rig.inputs() == ["w-2"]

    @behaviour
    async def test_the_next_input_is_free_once_the_one_before_is_stepped(self, rig: Rig) -> None:
        (accepted,) = await rig.done(accept("w-1"))
        await rig.inputs()
        await rig.done(accept("w-2"), step("w-1", consumes=accepted.positions[0]))
        assert await rig.inputs(by=rig.other) == ["w-2"]

    @behaviour
    async def test_no_input_is_taken_before_one_that_was_accepted_earlier(self, rig: Rig) -> None:
        first, second, elsewhere = await rig.done(accept("w-1"), accept("w-2"), accept("x-1", on="o-2"))
        await rig.inputs()
        early = step("w-2", consumes=second.positions[0])
        refused, taken = await rig.commit(early, step("x-1", consumes=elsewhere.positions[0], on="o-2"))
        assert refused == Conflict("inbox")
        assert isinstance(taken, Committed)
        assert await rig.waiting() == ["w-1", "w-2"]
        await rig.done(step("w-1", consumes=first.positions[0]), step("w-2", consumes=second.positions[0], after=2))
        assert await rig.waiting() == []

    @behaviour
    async def test_no_input_fails_before_one_that_was_accepted_earlier_is_taken(self, rig: Rig) -> None:
        first, second = await rig.done(accept("w-1"), accept("w-2"))
        await rig.inputs()
        # It would be decided in a state that it was never meant for.
        early = Unit(ORDERS, "o-1", expected_version=0, status="suspended", releases=second.positions)
        assert await rig.commit(early) == [Conflict("inbox")]
        assert await rig.commit(replace(early, releases=(10**9,))) == [Conflict("inbox")]
        assert await rig.store.load([order()]) == [None]
        await rig.done(step("w-1", consumes=first.positions[0]))
        (begun,) = await rig.store.load([order()])
        await rig.done(replace(early, key=begun and begun.row.key, expected_version=2))
        assert await rig.waiting() == ["w-2"]

    @behaviour
    async def test_an_input_born_claimed_is_left_to_its_worker(self, rig: Rig) -> None:
        await rig.done(accept("w-1", claimed=True))
        assert await rig.inputs(by=rig.other) == []

    @behaviour
    async def test_an_input_born_claimed_is_free_when_its_worker_goes(self, rig: Rig) -> None:
        await rig.done(accept("w-1", claimed=True))
        await rig.store.release_worker(rig.worker)
        assert await rig.inputs(by=rig.other) == ["w-1"]

    @behaviour
    async def test_behind_what_another_worker_holds_no_input_is_born_claimed(self, rig: Rig) -> None:
        await rig.done(accept("w-1", claimed=True), by=rig.other)
        (behind,) = await rig.done(accept("w-2", claimed=True))
        assert behind.unclaimed == behind.positions
        assert await rig.inputs() == []
        assert await rig.inputs(by=rig.other) == ["w-2"]

    @behaviour
    async def test_behind_what_nobody_holds_no_input_is_born_claimed(self, rig: Rig) -> None:
        _, behind, elsewhere = await rig.done(
            accept("w-1"), accept("w-2", "w-3", claimed=True), accept("x-1", claimed=True, on="o-2")
        )
        assert behind.unclaimed == behind.positions
        assert elsewhere.unclaimed == ()
        assert await rig.inputs(by=rig.other) == ["w-1", "w-2", "w-3"]

    @behaviour
    async def test_behind_a_workers_own_inputs_more_are_born_claimed(self, rig: Rig) -> None:
        first, second = await rig.done(accept("w-1", claimed=True), accept("w-2", claimed=True))
        (third,) = await rig.done(accept("w-3", claimed=True))
        assert (first.unclaimed, second.unclaimed, third.unclaimed) == ((), (), ())
        assert await rig.inputs(by=rig.other) == []

    @behaviour
    async def test_an_input_is_born_claimed_once_what_was_before_it_is_taken_in_the_same_batch(self, rig: Rig) -> None:
        (first,) = await rig.done(accept("w-1"))
        _, second = await rig.done(step("w-1", consumes=first.positions[0]), accept("w-2", claimed=True))
        assert second.unclaimed == ()

    @behaviour
    async def test_behind_what_is_given_back_in_the_same_batch_no_input_is_born_claimed(self, rig: Rig) -> None:
        (first,) = await rig.done(accept("w-1", claimed=True))
        _, second = await rig.done(Unit(ORDERS, "o-1", releases=first.positions), accept("w-2", claimed=True))
        assert second.unclaimed == second.positions

    @behaviour
    async def test_what_a_relieved_worker_accepts_is_not_born_claimed(self, rig: Rig) -> None:
        await rig.store.release_worker(rig.worker)
        (accepted,) = await rig.done(accept("w-1", claimed=True))
        assert accepted.unclaimed == accepted.positions
        assert await rig.inputs(by=rig.other) == ["w-1"]

    @behaviour
    async def test_an_input_given_back_is_anybodys_at_its_old_place(self, rig: Rig) -> None:
        (accepted,) = await rig.done(accept("w-1", claimed=True))
        await rig.done(accept("w-2"), Unit(ORDERS, "o-1", releases=accepted.positions))
        assert await rig.inputs(by=rig.other) == ["w-1", "w-2"]

    @behaviour
    async def test_a_worker_is_told_which_inputs_it_holds(self, rig: Rig) -> None:
        mine, others, free = await rig.done(accept("w-1"), accept("x-1", on="o-2"), accept("y-1", on="o-3"))
        (born,) = await rig.done(accept("z-1", claimed=True, on="o-4"))
        claimed = await rig.store.claim(rig.worker, [], [ORDERS], 1)
        assert [row.message_id for row in claimed.inputs] == ["w-1"]
        assert await rig.store.holds_inputs(rig.worker) == [
            (order(), mine.positions[0]),
            (order("o-4"), born.positions[0]),
        ]
        await rig.done(Unit(ORDERS, "o-1", releases=mine.positions))
        assert await rig.store.holds_inputs(rig.worker) == [(order("o-4"), born.positions[0])]
        assert await rig.store.holds_inputs(rig.other) == []
        assert others.positions[0] < free.positions[0]

    @behaviour
    async def test_a_worker_gives_back_only_what_it_holds(self, rig: Rig) -> None:
        (accepted,) = await rig.done(accept("w-1", claimed=True))
        await rig.done(Unit(ORDERS, "o-1", releases=(*accepted.positions, 4_711)), by=rig.other)
        assert await rig.inputs(by=rig.other) == []

    @behaviour
    async def test_a_step_that_suspends_gives_its_input_back_until_the_instance_resumes(self, rig: Rig) -> None:
        _, accepted = await rig.done(step("m-1"), accept("w-1", claimed=True))
        suspends = Unit(ORDERS, "o-1", expected_version=2, status="suspended", releases=accepted.positions)
        await rig.done(suspends)
        assert await rig.inputs(by=rig.other) == []
        await rig.done(Unit(ORDERS, "o-1", expected_version=2))
        assert await rig.inputs(by=rig.other) == ["w-1"]

    @behaviour
    async def test_the_inputs_of_a_suspended_instance_are_not_claimed(self, rig: Rig) -> None:
        await rig.done(step("m-1", status="suspended"), accept("w-1"), step("m-1", on="o-2"), accept("x-1", on="o-2"))
        assert await rig.inputs() == ["x-1"]
        assert await rig.waiting() == ["w-1"]

    @behaviour
    async def test_the_inputs_of_a_resumed_instance_are_claimed_again(self, rig: Rig) -> None:
        await rig.done(step("m-1", status="suspended"), accept("w-1", "w-2"))
        await rig.done(Unit(ORDERS, "o-1", expected_version=2, status="running"))
        assert await rig.inputs() == ["w-1", "w-2"]

    @behaviour
    async def test_an_input_of_another_instance_is_not_consumed_and_its_own_step_goes_on(self, rig: Rig) -> None:
        await rig.done(accept("w-1"))
        (row,) = await rig.store.inbox(order(), 10)
        own, wrong = (Unit(ORDERS, id, consumes=row.position) for id in ("o-1", "o-2"))
        outcomes = await rig.commit(wrong, own)
        assert outcomes == [Conflict("inbox"), Committed(0)]
        assert await rig.waiting() == []

    @behaviour
    async def test_inputs_wait_for_an_instance_that_is_yet_to_begin(self, rig: Rig) -> None:
        await rig.done(accept("w-1"))
        assert await rig.store.load([order()]) == [None]
        assert await rig.inputs() == ["w-1"]

    @behaviour
    async def test_a_step_that_ends_the_instance_leaves_its_inbox(self, rig: Rig) -> None:
        await rig.done(accept("w-1"), step("m-1", status="completed", cancel_all="timers"))
        assert await rig.waiting() == ["w-1"]
        assert await rig.inputs() == ["w-1"]

    @behaviour
    async def test_an_input_that_a_worker_leaves_to_others_holds_back_what_stands_behind_it_and_nothing_else(
        self, rig: Rig
    ) -> None:
        await rig.done(accept("w-1"), accept("w-2", type="Strange", type_version=2), accept("w-3"))
        await rig.done(accept("x-1", on="o-2", type="Strange"), accept("y-1", on="o-3"))
        leaves = Leaves(types=(("Strange", 2), ("Stranger", 1)))
        assert [row.message_id for row in (await rig.claim(leaves=leaves)).inputs] == ["w-1", "x-1", "y-1"]
        assert [row.message_id for row in (await rig.claim(leaves=leaves)).inputs] == []
        assert await rig.inputs() == ["w-2", "w-3"]

    @behaviour
    async def test_inputs_that_are_left_to_others_take_no_place_of_those_that_are_claimed(self, rig: Rig) -> None:
        await rig.done(accept("w-1", type="Strange"), accept("w-2", "w-3", "w-4"), accept("x-1", "x-2", on="o-2"))
        claims = await rig.claim(limit=2, leaves=Leaves(types=(("Strange", 1),)))
        assert [row.message_id for row in claims.inputs] == ["x-1", "x-2"]

    @behaviour
    async def test_an_instance_that_a_worker_leaves_to_others_is_not_claimed(self, rig: Rig) -> None:
        await rig.done(accept("w-1"), accept("x-1", on="o-2"))
        leaves = Leaves(instances=(order("o-1"), Ref("Others", "o-2")))
        assert [row.message_id for row in (await rig.claim(leaves=leaves)).inputs] == ["x-1"]
        assert await rig.inputs(by=rig.other) == ["w-1"]

    @behaviour
    async def test_what_waits_for_long_is_counted_by_type_and_version(self, rig: Rig) -> None:
        await rig.done(accept("w-1", "w-2", type="Strange", type_version=2), accept("x-1", on="o-2"))
        await rig.done(step("m-1", on="o-3", status="suspended"), accept("y-1", on="o-3"))
        assert await rig.store.waiting(WRITTEN_US) == []
        found = [Waiting(ORDERS, "Go", 1, 1, WRITTEN_US), Waiting(ORDERS, "Strange", 2, 2, WRITTEN_US)]
        assert await rig.store.waiting(WRITTEN_US + 1) == found
        await rig.claim()
        assert await rig.store.waiting(WRITTEN_US + 1) == []
