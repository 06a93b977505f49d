"""Preconditions: a message is taken in only if its instance is as its sender asks, and that is judged in the commit."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from msgspec.structs import replace

from mainspring.port.preconditions import Precondition, Unmet
from mainspring.port.records import Committed, Conflict, Duplicate, Unit
from mainspring.testing.store_contract.rig import (
    ORDERS,
    Rig,
    Suite,
    accept,
    behaviour,
    input_row,
    letter,
    order,
    step,
    timer,
)

THERE = Precondition(exists=True)


def at(position: int) -> Precondition:
    """Return what a caller requires that has seen an instance at a position.

    >>> at(2)
    Precondition(exists=False, position=2)
    """
    return Precondition(position=position)


class PreconditionTests(Suite):
    """A sender says what it has seen, or that there must be something; what is otherwise changes nothing."""

    @behaviour
    async def test_an_acceptance_at_the_position_that_was_seen_is_taken(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        await rig.done(replace(accept("m-2"), requires=at(2)))
        assert await rig.waiting() == ["m-2"]

    @behaviour
    async def test_an_acceptance_at_another_position_says_which_it_is(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        assert await rig.commit(replace(accept("m-2"), requires=at(1))) == [Unmet(2, waiting=False)]
        assert await rig.waiting() == []

    @behaviour
    async def test_a_step_at_another_position_is_unmet_and_not_a_conflict(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        stale = step("m-2", after=1, direct=True, requires=at(1))
        assert await rig.commit(stale) == [Unmet(2, waiting=False)]
        assert await rig.versions() == [1, 2]

    @behaviour
    async def test_a_step_at_the_position_that_was_seen_is_taken(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        await rig.done(step("m-2", after=2, direct=True, requires=at(2)))
        assert await rig.versions() == [1, 2, 3]

    @behaviour
    async def test_a_step_of_who_is_behind_the_times_is_a_conflict_if_its_sender_is_not(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        assert await rig.commit(step("m-2", after=1, direct=True, requires=at(2))) == [Conflict("version")]

    @behaviour
    async def test_inputs_that_wait_are_unmet_at_any_position(self, rig: Rig) -> None:
        await rig.done(step("m-1"), accept("m-2"))
        unmet = Unmet(2, waiting=True)
        assert await rig.commit(replace(accept("m-3"), requires=at(2))) == [unmet]
        assert await rig.commit(step("m-4", after=2, direct=True, requires=at(2))) == [unmet]
        assert await rig.waiting() == ["m-2"]

    @behaviour
    async def test_of_two_who_have_seen_the_same_one_is_taken(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        first, second = (replace(accept(message), requires=at(2)) for message in ("m-2", "m-3"))
        assert [type(outcome) for outcome in await rig.commit(first, second)] == [Committed, Unmet]
        assert await rig.waiting() == ["m-2"]

    @behaviour
    async def test_what_was_stepped_in_the_same_commit_counts(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        outcomes = await rig.commit(step("m-2", after=2), replace(accept("m-3"), requires=at(2)))
        assert outcomes[1] == Unmet(3, waiting=False)

    @behaviour
    async def test_what_was_consumed_in_the_same_commit_waits_no_more(self, rig: Rig) -> None:
        _, accepted = await rig.done(step("m-1"), accept("m-2"))
        taken = step("m-2", after=2, consumes=accepted.positions[0])
        outcomes = await rig.commit(taken, replace(accept("m-3"), requires=at(3)))
        assert [type(outcome) for outcome in outcomes] == [Committed, Committed]

    @behaviour
    async def test_a_timer_that_fired_and_was_cancelled_waits_no_more(self, rig: Rig) -> None:
        await rig.done(step("m-1", timer()), Unit(ORDERS, "o-1", accepts=(input_row("t-1", timer_key="Timeout"),)))
        outcomes = await rig.commit(step("m-2", after=3, cancels=("Timeout",)), replace(accept("m-3"), requires=at(4)))
        assert [type(outcome) for outcome in outcomes] == [Committed, Committed]

    @behaviour
    async def test_the_same_message_again_is_a_duplicate_wherever_the_instance_is(self, rig: Rig) -> None:
        await rig.done(step("m-1"), step("m-2", after=2, direct=True, requires=at(2)))
        again = [
            step("m-2", after=2, direct=True, requires=at(2)),
            replace(accept("m-2"), requires=at(2)),
            replace(accept("m-2", body=b'{"other":1}'), requires=at(2)),
        ]
        assert await rig.commit(*again) == [Duplicate(same=True), Duplicate(same=True), Duplicate(same=False)]

    @behaviour
    async def test_the_same_message_that_waits_is_a_duplicate(self, rig: Rig) -> None:
        await rig.done(step("m-1"), replace(accept("m-2"), requires=at(2)))
        assert await rig.commit(replace(accept("m-2"), requires=at(2))) == [Duplicate(same=True)]

    @behaviour
    async def test_at_0_nobody_may_have_begun(self, rig: Rig) -> None:
        begins = replace(accept("m-1"), requires=at(0))
        await rig.done(begins)
        assert await rig.commit(replace(accept("m-2"), requires=at(0))) == [Unmet(0, waiting=True)]
        await rig.done(step("m-3", on="o-2", requires=at(0)))
        assert await rig.commit(step("m-4", on="o-2", requires=at(0))) == [Unmet(2, waiting=False)]

    @behaviour
    async def test_what_must_be_there_and_is_not_is_unmet(self, rig: Rig) -> None:
        absent = Unmet(0, waiting=False)
        assert await rig.commit(replace(accept("m-1"), requires=THERE)) == [absent]
        assert await rig.commit(step("m-1", requires=THERE)) == [absent]
        buried = Unit(ORDERS, "o-1", dedupe="m-1", dead_letters=(letter("m-1"),), requires=THERE)
        assert await rig.commit(buried) == [absent]
        assert (await rig.store.load([order()], 0), await rig.waiting(), await rig.store.dead_letters(10)) == (
            [None],
            [],
            [],
        )

    @behaviour
    async def test_what_must_be_there_is_there_once_it_has_begun(self, rig: Rig) -> None:
        await rig.done(step("m-1"), accept("m-2"))
        await rig.done(replace(accept("m-3"), requires=THERE))
        assert await rig.waiting() == ["m-2", "m-3"]

    @behaviour
    async def test_what_must_be_there_is_there_if_it_begins_in_the_same_commit(self, rig: Rig) -> None:
        outcomes = await rig.commit(step("m-1"), replace(accept("m-2"), requires=THERE))
        assert [type(outcome) for outcome in outcomes] == [Committed, Committed]

    @behaviour
    async def test_an_instance_whose_first_input_waits_counts_as_there(self, rig: Rig) -> None:
        await rig.done(accept("m-1"))
        await rig.done(replace(accept("m-2"), requires=THERE))
        assert await rig.waiting() == ["m-1", "m-2"]

    @behaviour
    async def test_a_purged_instance_is_at_no_position_and_not_there(self, rig: Rig) -> None:
        await rig.done(step("m-1", status="completed"))
        ended = await rig.store.purgeable(ORDERS, rig.store.now_us() + 1, 10)
        assert (await rig.store.purge(ended.found, 10)).tombstones == 1
        gone = [replace(accept("m-2"), requires=requires) for requires in (at(2), THERE)]
        assert await rig.commit(*gone) == [Unmet(-1, waiting=False), Unmet(-1, waiting=False)]
