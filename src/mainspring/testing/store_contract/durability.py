"""Durability: what was committed is there for the next process, and for another handle on the same data."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

import asyncio

from mainspring.port.records import Committed, Conflict, Duplicate, Remembered, Retry, Snapshot, Unit
from mainspring.testing.store_contract.rig import (
    ALL_DESTINATIONS,
    ORDERS,
    Rig,
    Suite,
    accept,
    behaviour,
    letter,
    order,
    send,
    settle,
    step,
    timer,
)


class DurabilityTests(Suite):
    """Skipped, with the reason, by stores that forget or that have one handle only."""

    @behaviour
    async def test_streams_survive_a_restart(self, rig: Rig) -> None:
        await rig.done(
            step("m-1", send(), body='{ "t": "ü" }'.encode(), snapshot=Snapshot(2, "f", "Waiting", 1, b"{}"))
        )
        before = (await rig.store.load([order()]), await rig.store.feed(0, 100), await rig.store.stream(order(), 0, 9))
        await rig.reopen()
        after = (await rig.store.load([order()]), await rig.store.feed(0, 100), await rig.store.stream(order(), 0, 9))
        assert after == before

    @behaviour
    async def test_work_survives_a_restart(self, rig: Rig) -> None:
        held, waiting = await rig.begun(send(claimed=True), timer())
        await rig.done(accept("w-1"), settle(retries=(Retry(held, 3, 1_000_000, "boom"),)))
        await rig.reopen()
        assert [(claim.output, claim.attempts) for claim in await rig.open_outputs()] == [(held, 3)]
        assert [claim.output for claim in await rig.open_outputs(timers=True)] == [waiting]
        assert await rig.waiting() == ["w-1"]

    @behaviour
    async def test_dead_letters_and_remembered_results_survive_a_restart(self, rig: Rig) -> None:
        result = Remembered("k", "Go", 1, b"{}", rig.store.now_us() + 1_000_000)
        await rig.done(Unit(ORDERS, "o-1", dead_letters=(letter(),), remembers=(result,)))
        before = await rig.store.dead_letters(10)
        await rig.reopen()
        assert await rig.store.dead_letters(10) == before
        assert await rig.store.remembered("k") == result

    @behaviour
    async def test_duplicates_are_found_after_a_restart(self, rig: Rig) -> None:
        await rig.done(step("m-1"), accept("w-1"))
        await rig.reopen()
        assert await rig.commit(step("m-1", after=2), accept("w-1")) == [Duplicate(same=True)] * 2

    @behaviour
    async def test_a_dead_output_is_restored_after_a_restart(self, rig: Rig) -> None:
        (output,) = await rig.begun(send("Ship", claimed=True))
        await rig.done(settle(output, dead_letters=(letter("m-1", output=output),)))
        await rig.reopen()
        (kept,) = await rig.store.dead_letters(10)
        assert await rig.store.restore_output(kept.id)
        assert [(claim.output, claim.destination) for claim in await rig.open_outputs()] == [(output, "Ship")]

    @behaviour
    async def test_numbers_go_on_after_a_restart(self, rig: Rig) -> None:
        first, accepted = await rig.done(step("m-1"), accept("w-1"))
        last = (await rig.store.feed(0, 100))[-1][0]
        await rig.reopen()
        second, later = await rig.done(step("m-1", on="o-2"), accept("w-2"))
        assert second.key > first.key
        assert later.positions > accepted.positions
        assert all(position > last for position, _, _ in await rig.store.feed(last, 100))
        assert await rig.store.register_worker("third", 1_000_000) > max(rig.worker, rig.other)

    @behaviour
    async def test_a_lease_runs_out_across_a_restart(self, rig: Rig) -> None:
        outputs = await rig.begun(send(claimed=True))
        await rig.reopen()
        rig.clock.advance(60)
        await rig.store.relieve()
        late = await rig.store.register_worker("late", 30_000_000)
        assert await rig.claimed(by=late) == outputs

    @behaviour
    async def test_two_handles_see_each_others_commits(self, rig: Rig) -> None:
        second = await rig.second()
        try:
            await rig.done(step("m-1"))
            await second.commit(rig.other, [step("m-2", after=2)])
            assert await rig.versions() == [1, 2, 3]
            assert len(await second.stream(order(), 0, 10)) == 3
        finally:
            await second.close()

    @behaviour
    async def test_of_two_handles_one_commits_a_version(self, rig: Rig) -> None:
        second = await rig.second()
        try:
            outcomes = await asyncio.gather(rig.commit(step("m-1")), second.commit(rig.other, [step("m-2")]))
            refused = [one for (one,) in outcomes if not isinstance(one, Committed)]
            assert refused == [Conflict("version")]
            assert await rig.versions() == [1, 2]
        finally:
            await second.close()

    @behaviour
    async def test_of_two_handles_one_claims_an_output(self, rig: Rig) -> None:
        second = await rig.second()
        try:
            outputs = await rig.begun(*[send()] * 50)
            mine, theirs = await asyncio.gather(
                rig.claim(limit=40), second.claim(rig.other, ALL_DESTINATIONS, [ORDERS], 40)
            )
            claimed = [claim.output for claim in [*mine.outputs, *theirs.outputs]]
            assert len(claimed) == len(set(claimed))
            assert set(claimed) <= set(outputs)
        finally:
            await second.close()

    @behaviour
    async def test_two_handles_append_side_by_side_without_loss(self, rig: Rig) -> None:
        second = await rig.second()
        try:
            batches = [[step("m-1", on=f"o-{batch}-{n}") for n in range(20)] for batch in range(10)]
            await asyncio.gather(
                *(
                    (second if n % 2 else rig.store).commit(rig.other if n % 2 else rig.worker, batch)
                    for n, batch in enumerate(batches)
                )
            )
            assert len(await second.feed(0, 1_000)) == 400
        finally:
            await second.close()
