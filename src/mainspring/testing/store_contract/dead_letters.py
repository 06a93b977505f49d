"""Dead letters: kept whole, restored under their old id, or discarded."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from msgspec.structs import replace

from mainspring.port.records import DeadLetter, Duplicate, OutputKey, Retry, Unit
from mainspring.testing.store_contract.rig import (
    ORDERS,
    Rig,
    Suite,
    behaviour,
    input_row,
    letter,
    send,
    settle,
    step,
    timer,
)


def _dead(*letters: DeadLetter) -> Unit:
    return Unit(ORDERS, "o-1", dead_letters=letters)


class DeadLetterTests(Suite):
    """What could not be carried out is kept until an operator decides about it."""

    @behaviour
    async def test_a_dead_letter_is_kept_whole(self, rig: Rig) -> None:
        whole = letter(
            "m-7",
            kind="event",
            type="Odd",
            type_version=3,
            body='{ "t":"\u2028ü" }'.encode(),
            reason="handler failed",
            error="Traceback …",
            attempts=20,
            actor="ann",
        )
        await rig.done(_dead(whole))
        (kept,) = await rig.store.dead_letters(10)
        assert kept.id > 0
        assert replace(kept, id=0) == whole

    @behaviour
    async def test_a_message_that_nobody_takes_is_kept_once(self, rig: Rig) -> None:
        unit = replace(_dead(letter("m-1")), dedupe="m-1")
        other = replace(_dead(letter("m-1", body=b'{"other":1}')), dedupe="m-1")
        await rig.done(unit)
        assert await rig.commit(unit, other) == [Duplicate(same=True), Duplicate(same=False)]
        assert len(await rig.store.dead_letters(10)) == 1

    @behaviour
    async def test_a_message_that_nobody_takes_is_kept_once_inside_a_batch(self, rig: Rig) -> None:
        unit = replace(_dead(letter("m-1")), dedupe="m-1")
        elsewhere = Unit(ORDERS, "o-2", dead_letters=(replace(letter("m-1"), instance="o-2"),), dedupe="m-1")
        first, again, other = await rig.commit(unit, unit, elsewhere)
        assert (type(first).__name__, again, type(other).__name__) == ("Committed", Duplicate(same=True), "Committed")
        assert len(await rig.store.dead_letters(10)) == 2

    @behaviour
    async def test_a_dead_letter_from_an_outbox_names_its_output(self, rig: Rig) -> None:
        output, kept = await self._died(rig)
        assert kept.output == output
        assert await rig.open_outputs() == []

    @behaviour
    async def test_dead_letters_come_in_the_order_of_their_arrival(self, rig: Rig) -> None:
        await rig.done(_dead(letter("m-2"), letter("m-1")), _dead(letter("m-3")))
        letters = await rig.store.dead_letters(10)
        assert [one.message_id for one in letters] == ["m-2", "m-1", "m-3"]
        assert [one.id for one in letters] == sorted({one.id for one in letters})

    @behaviour
    async def test_dead_letters_are_read_in_pages(self, rig: Rig) -> None:
        await rig.done(_dead(*(letter(f"m-{n}") for n in range(5))))
        first = await rig.store.dead_letters(3)
        second = await rig.store.dead_letters(3, after=first[-1].id)
        assert [one.message_id for one in [*first, *second]] == [f"m-{n}" for n in range(5)]

    @behaviour
    async def test_dead_letters_are_read_by_their_ids(self, rig: Rig) -> None:
        await rig.done(_dead(*(letter(f"m-{n}") for n in range(3))))
        letters = await rig.store.dead_letters(10)
        chosen = await rig.store.dead_letters(10, ids=[letters[2].id, letters[0].id, 4_711])
        assert chosen == [letters[0], letters[2]]
        assert await rig.store.dead_letters(10, ids=[]) == []

    @behaviour
    async def test_one_message_may_die_more_than_once(self, rig: Rig) -> None:
        await rig.done(_dead(letter("m-1")), _dead(letter("m-1")))
        assert len(await rig.store.dead_letters(10)) == 2

    @behaviour
    async def test_a_restored_output_stands_where_it_stood_due_now_with_no_attempts(self, rig: Rig) -> None:
        output, kept = await self._died(rig, priority=3)
        rig.clock.advance(5)
        assert await rig.store.restore_output(kept.id)
        (claim,) = (await rig.claim()).outputs
        assert (claim.output, claim.attempts, claim.due_us) == (output, 0, rig.store.now_us())
        assert (claim.destination, claim.priority, claim.body) == ("Charge", 3, b'{"n":1}')

    @behaviour
    async def test_a_restored_dead_letter_is_gone(self, rig: Rig) -> None:
        _, kept = await self._died(rig)
        await rig.store.restore_output(kept.id)
        assert await rig.store.dead_letters(10) == []

    @behaviour
    async def test_a_dead_letter_is_restored_once(self, rig: Rig) -> None:
        _, kept = await self._died(rig)
        await rig.store.restore_output(kept.id)
        assert not await rig.store.restore_output(kept.id)
        assert len(await rig.open_outputs()) == 1

    @behaviour
    async def test_an_unknown_dead_letter_is_not_restored(self, rig: Rig) -> None:
        assert not await rig.store.restore_output(4_711)

    @behaviour
    async def test_a_dead_letter_that_was_no_output_is_not_restored_and_stays(self, rig: Rig) -> None:
        await rig.done(_dead(letter("m-1")))
        (kept,) = await rig.store.dead_letters(10)
        assert not await rig.store.restore_output(kept.id)
        assert await rig.store.dead_letters(10) == [kept]

    @behaviour
    async def test_a_restored_output_can_be_settled_and_can_die_again(self, rig: Rig) -> None:
        output, kept = await self._died(rig)
        await rig.store.restore_output(kept.id)
        await rig.claim()
        await rig.done(settle(output, dead_letters=(letter("m-1", output=output),)))
        (again,) = await rig.store.dead_letters(10)
        assert again.id > kept.id
        assert await rig.store.restore_output(again.id)

    @behaviour
    async def test_a_restored_timer_can_still_be_cancelled(self, rig: Rig) -> None:
        (output,) = await rig.begun(timer("Timeout", after_seconds=0, claimed=True))
        await rig.done(settle(output, dead_letters=(letter("m-1", output=output),)))
        (kept,) = await rig.store.dead_letters(10)
        await rig.store.restore_output(kept.id)
        await rig.done(step("m-2", after=3, cancels=("Timeout",)))
        assert await rig.open_outputs(timers=True) == []

    @behaviour
    async def test_a_discarded_dead_letter_is_gone(self, rig: Rig) -> None:
        await rig.done(_dead(letter("m-1"), letter("m-2")))
        first, second = await rig.store.dead_letters(10)
        await rig.done(Unit(ORDERS, "o-1", discards=(first.id,)))
        assert await rig.store.dead_letters(10) == [second]
        assert not await rig.store.restore_output(first.id)

    @behaviour
    async def test_a_dead_input_is_accepted_again_in_the_unit_that_discards_it(self, rig: Rig) -> None:
        await rig.done(_dead(letter("m-1")))
        (kept,) = await rig.store.dead_letters(10)
        await rig.done(Unit(ORDERS, "o-1", discards=(kept.id,), accepts=(input_row("m-1"),)))
        assert await rig.waiting() == ["m-1"]
        assert await rig.store.dead_letters(10) == []

    @behaviour
    async def test_what_comes_behind_the_discard_of_its_like_is_kept(self, rig: Rig) -> None:
        await rig.done(_dead(letter("m-1")))
        (kept,) = await rig.store.dead_letters(10)
        again = Unit(ORDERS, "o-1", dedupe="m-1", dead_letters=(letter("m-1"),))
        await rig.done(Unit(ORDERS, "o-2", discards=(kept.id,)), again)
        (left,) = await rig.store.dead_letters(10)
        assert (left.message_id, left.id > kept.id) == ("m-1", True)

    @behaviour
    async def test_an_output_is_restored_if_its_instance_is_at_the_expected_version(self, rig: Rig) -> None:
        output, kept = await self._died(rig)
        assert not await rig.store.restore_output(kept.id, output.version + 1)
        assert await rig.store.dead_letters(10) == [kept]
        assert await rig.store.restore_output(kept.id, output.version)
        assert await rig.store.dead_letters(10) == []

    @behaviour
    async def test_the_dead_letter_of_what_was_handled_is_gone(self, rig: Rig) -> None:
        output, kept = await self._died(rig)
        others = (replace(letter("m-1"), instance="o-2"), letter("m-2"))
        await rig.done(_dead(*others))
        await rig.done(Unit(ORDERS, "o-2", handles=(output.version,)), Unit(ORDERS, "o-1", handles=(99,)))
        assert (await rig.store.dead_letters(10))[0] == kept
        await rig.done(Unit(ORDERS, "o-1", handles=(output.version,)))
        assert [one.message_id for one in await rig.store.dead_letters(10)] == ["m-1", "m-2"]
        assert not await rig.store.restore_output(kept.id)

    @behaviour
    async def test_what_died_in_the_same_batch_is_handled_too(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        died = letter("Orders/o-1/3", output=output)
        await rig.done(settle(output, dead_letters=(died,)), Unit(ORDERS, "o-1", handles=(output.version,)))
        assert await rig.store.dead_letters(10) == []

    @behaviour
    async def test_what_dies_behind_the_handling_of_its_like_is_kept(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        died = letter("Orders/o-1/3", output=output)
        await rig.done(Unit(ORDERS, "o-1", handles=(output.version,)), settle(output, dead_letters=(died,)))
        assert len(await rig.store.dead_letters(10)) == 1

    @behaviour
    async def test_discarding_what_is_gone_is_no_error(self, rig: Rig) -> None:
        await rig.done(Unit(ORDERS, "o-1", discards=(4_711,)))

    async def _died(self, rig: Rig, priority: int = 0) -> tuple[OutputKey, DeadLetter]:
        """Let an output die after some attempts, and return it with its dead letter."""
        (output,) = await rig.begun(send(claimed=True, priority=priority))
        await rig.done(settle(retries=(Retry(output, 19, 0, "boom"),)))
        await rig.claim()
        await rig.done(settle(output, dead_letters=(letter("Orders/o-1/3", output=output, attempts=20),)))
        (kept,) = await rig.store.dead_letters(10)
        return output, kept
