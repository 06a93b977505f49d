"""Duplicates: a message id counts once in an instance's life."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from mainspring.port.records import Committed, DeadLetter, Duplicate, EventRow, InputRow, Unit
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
)


class DuplicateTests(Suite):
    """The same message again changes nothing and is a Duplicate; another under its id is one too, not the `same`."""

    @behaviour
    async def test_the_same_message_again_is_a_duplicate(self, rig: Rig) -> None:
        await rig.done(step("m-1", body=b'{"a":1}'))
        assert await rig.commit(step("m-1", after=2, body=b'{"a":1}')) == [Duplicate(same=True)]
        assert await rig.versions() == [1, 2]

    @behaviour
    async def test_the_same_id_with_another_body_is_told_apart(self, rig: Rig) -> None:
        await rig.done(step("m-1", body=b'{"a":1}'))
        assert await rig.commit(step("m-1", after=2, body=b'{"a":2}')) == [Duplicate(same=False)]

    @behaviour
    async def test_the_same_id_with_another_type_is_told_apart(self, rig: Rig) -> None:
        await rig.done(accept("m-1"))
        assert await rig.commit(accept("m-1", type="Stop")) == [Duplicate(same=False)]

    @behaviour
    async def test_a_message_that_waits_in_the_inbox_is_a_duplicate_for_a_step(self, rig: Rig) -> None:
        await rig.done(accept("m-1", body=b'{"a":1}'))
        outcomes = await rig.commit(step("m-1", body=b'{"a":1}'), step("m-1", body=b'{"a":2}'))
        assert outcomes == [Duplicate(same=True), Duplicate(same=False)]

    @behaviour
    async def test_the_input_that_a_step_consumes_is_no_duplicate_of_itself(self, rig: Rig) -> None:
        (accepted,) = await rig.done(accept("m-1"))
        await rig.done(step("m-1", consumes=accepted.positions[0]))
        assert await rig.versions() == [1, 2]

    @behaviour
    async def test_a_consumed_input_stepped_again_is_a_duplicate(self, rig: Rig) -> None:
        (accepted,) = await rig.done(accept("m-1"))
        await rig.done(step("m-1", consumes=accepted.positions[0]))
        assert await rig.commit(step("m-1", after=2, consumes=accepted.positions[0])) == [Duplicate(same=True)]

    @behaviour
    async def test_a_stepped_message_is_not_accepted_again(self, rig: Rig) -> None:
        await rig.done(step("m-1", body=b'{"a":1}'))
        assert await rig.commit(accept("m-1", body=b'{"a":1}')) == [Duplicate(same=True)]
        assert await rig.commit(accept("m-1", body=b'{"a":2}')) == [Duplicate(same=False)]
        assert await rig.waiting() == []

    @behaviour
    async def test_a_waiting_message_is_not_accepted_again(self, rig: Rig) -> None:
        await rig.done(accept("m-1", body=b'{"a":1}'))
        assert await rig.commit(accept("m-1", body=b'{"a":1}')) == [Duplicate(same=True)]
        assert await rig.commit(accept("m-1", body=b'{"a":2}')) == [Duplicate(same=False)]
        assert await rig.waiting() == ["m-1"]

    @behaviour
    async def test_a_duplicate_is_found_inside_a_batch(self, rig: Rig) -> None:
        outcomes = await rig.commit(step("m-1"), step("m-1", after=2), accept("w-1"), accept("w-1"))
        assert outcomes[1::2] == [Duplicate(same=True)] * 2

    @behaviour
    async def test_a_duplicate_is_found_after_many_more_steps(self, rig: Rig) -> None:
        await rig.done(step("m-1"), *(step(f"n-{n}", after=n) for n in range(2, 120)))
        rig.clock.advance(400 * 24 * 3_600)
        assert await rig.commit(step("m-1", after=120)) == [Duplicate(same=True)]

    @behaviour
    async def test_a_duplicate_is_found_after_the_instance_ended(self, rig: Rig) -> None:
        await rig.done(step("m-1"), step("m-2", after=2, status="completed"))
        assert await rig.commit(accept("m-1"), step("m-2", after=3)) == [Duplicate(same=True)] * 2

    @behaviour
    async def test_one_message_id_may_reach_many_instances(self, rig: Rig) -> None:
        await rig.done(step("m-1"), step("m-1", on="o-2"), accept("m-1", on="o-3"))
        assert await rig.versions("o-2") == [1, 2]
        assert await rig.waiting("o-3") == ["m-1"]

    @behaviour
    async def test_an_output_is_no_duplicate_of_an_input(self, rig: Rig) -> None:
        await rig.begun(send())
        await rig.done(step("Orders/o-1/3", after=3))

    @behaviour
    async def test_a_duplicate_among_several_accepts_is_skipped(self, rig: Rig) -> None:
        await rig.done(accept("w-1"))
        (committed,) = await rig.done(accept("w-1", "w-2"))
        assert committed.positions[0] == 0
        assert committed.positions[1] > 0
        assert await rig.waiting() == ["w-1", "w-2"]

    @behaviour
    async def test_one_unit_accepts_a_message_once(self, rig: Rig) -> None:
        (committed,) = await rig.done(accept("w-1", "w-1"))
        assert [position > 0 for position in committed.positions] == [True, False]

    @behaviour
    async def test_a_settlement_with_a_duplicate_result_settles(self, rig: Rig) -> None:
        (held,) = await rig.begun(send(claimed=True))
        await rig.done(accept("r-1"))
        (committed,) = await rig.done(settle(held, accepts=(input_row("r-1"),)))
        assert committed.positions == (0,)
        assert await rig.open_outputs() == []

    @behaviour
    async def test_accepts_are_compared_with_their_own_instance_not_the_units(self, rig: Rig) -> None:
        await rig.done(step("m-1", on="o-1"), accept("w-1", on="o-2"))
        outcomes = await rig.commit(
            Unit(ORDERS, "o-1", accepts=(input_row("m-1", "o-3"),)),
            Unit(ORDERS, "o-1", accepts=(input_row("w-1", "o-2"),)),
        )
        assert [type(outcome) for outcome in outcomes] == [Committed, Duplicate]

    @behaviour
    async def test_a_step_and_an_accept_in_one_unit_do_not_take_one_message_twice(self, rig: Rig) -> None:
        (committed,) = await rig.done(step("m-1", accepts=(input_row("m-1"),)))
        assert committed.positions == (0,)
        assert await rig.waiting() == []

    @behaviour
    async def test_what_an_instance_has_under_a_message_id_is_found_wherever_it_is(self, rig: Rig) -> None:
        (accepted,) = await rig.done(accept("m-1", body=b'{"a":1}'))
        await rig.done(accept("m-2"), accept("m-1", on="o-2"))
        (waits,) = await rig.store.messages(order(), "m-1")
        assert isinstance(waits, InputRow)
        assert (waits.position, waits.body) == (accepted.positions[0], b'{"a":1}')
        await rig.done(step("m-1", consumes=accepted.positions[0], body=b'{"a":1}'))
        (taken,) = await rig.store.messages(order(), "m-1")
        assert isinstance(taken, EventRow)
        assert (taken.version, taken.body) == (2, b'{"a":1}')
        assert await rig.store.messages(order(), "m-3") == []

    @behaviour
    async def test_dead_letters_under_a_message_id_come_behind_the_input(self, rig: Rig) -> None:
        await rig.done(step("m-1"), Unit(ORDERS, "o-1", dead_letters=(letter("m-1", reason="1"), letter("m-2"))))
        await rig.done(Unit(ORDERS, "o-1", dead_letters=(letter("m-1", reason="2"),)))
        taken, *letters = await rig.store.messages(order(), "m-1")
        assert isinstance(taken, EventRow)
        assert [one.reason for one in letters if isinstance(one, DeadLetter)] == ["1", "2"]
        assert [one.id for one in letters if isinstance(one, DeadLetter)] == [1, 3]

    @behaviour
    async def test_a_purged_instance_has_nothing_under_a_message_id(self, rig: Rig) -> None:
        await rig.done(step("m-1", status="completed"))
        rig.clock.advance(1)
        found = (await rig.store.purgeable(ORDERS, rig.clock.now_us(), 10)).found
        await rig.store.purge(found, 0)
        assert await rig.store.messages(order(), "m-1") == []
