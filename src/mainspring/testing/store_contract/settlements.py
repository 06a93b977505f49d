"""Settlements: an output is carried out once, by the worker that holds it, or retried."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from mainspring.port.records import Conflict, OutputKey, Retry
from mainspring.testing.store_contract.rig import Rig, Suite, behaviour, input_row, order, send, settle, step, timer


def _retry(output: OutputKey, attempts: int = 1, after_seconds: int = 10) -> Retry:
    return Retry(output, attempts, after_seconds * 1_000_000, "refused")


class SettlementTests(Suite):
    """The holder of an output settles it or releases it for later; no other worker does."""

    @behaviour
    async def test_a_settled_output_is_gone(self, rig: Rig) -> None:
        (output,) = await rig.begun(send())
        await rig.claim()
        await rig.done(settle(output))
        assert await rig.open_outputs() == []
        assert await rig.store.holds(rig.worker) == []

    @behaviour
    async def test_an_output_is_settled_once(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        await rig.done(settle(output))
        assert await rig.commit(settle(output)) == [Conflict("lost")]

    @behaviour
    async def test_an_output_is_settled_once_inside_a_batch(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        assert (await rig.commit(settle(output), settle(output)))[1] == Conflict("lost")

    @behaviour
    async def test_an_output_that_another_worker_holds_is_not_settled(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        assert await rig.commit(settle(output), by=rig.other) == [Conflict("lost")]
        assert await rig.store.holds(rig.worker) == [output]

    @behaviour
    async def test_an_output_that_nobody_holds_is_not_settled(self, rig: Rig) -> None:
        (output,) = await rig.begun(send())
        assert await rig.commit(settle(output)) == [Conflict("lost")]
        assert await rig.claimed() == [output]

    @behaviour
    async def test_an_output_that_never_was_is_not_settled(self, rig: Rig) -> None:
        assert await rig.commit(settle(OutputKey(4_711, 3))) == [Conflict("lost")]

    @behaviour
    async def test_one_lost_output_keeps_a_unit_from_settling_the_others(self, rig: Rig) -> None:
        mine, free = await rig.begun(send(claimed=True), send())
        assert await rig.commit(settle(mine, free)) == [Conflict("lost")]
        assert await rig.store.holds(rig.worker) == [mine]

    @behaviour
    async def test_one_unit_settles_outputs_of_several_instances(self, rig: Rig) -> None:
        (first,) = await rig.begun(send(claimed=True))
        (second,) = await rig.begun(send(claimed=True), on="o-2")
        await rig.done(settle(first, second))
        assert await rig.open_outputs() == []

    @behaviour
    async def test_a_result_is_accepted_with_its_settlement(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        (committed,) = await rig.done(settle(output, accepts=(input_row("Orders/o-1/3", cause=3),)))
        assert committed.positions[0] > 0
        assert await rig.waiting() == ["Orders/o-1/3"]

    @behaviour
    async def test_a_lost_settlement_brings_no_result(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        await rig.commit(settle(output, accepts=(input_row("r-1"),)), by=rig.other)
        assert await rig.waiting() == []

    @behaviour
    async def test_a_result_is_stepped_with_its_settlement(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        await rig.done(step("Orders/o-1/3", send("Ship"), after=3, settles=(output,), direct=True))
        assert await rig.versions() == [1, 2, 3, 4, 5]
        assert [claim.destination for claim in await rig.open_outputs()] == ["Ship"]

    @behaviour
    async def test_a_step_and_its_outputs_settlement_chain_inside_a_batch(self, rig: Rig) -> None:
        (first,) = await rig.done(step("m-1"))
        output = OutputKey(first.key, 4)
        await rig.done(step("m-2", send(claimed=True), after=2), settle(output))
        assert await rig.open_outputs() == []

    @behaviour
    async def test_a_retried_output_is_due_later_and_counts_its_attempts(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        await rig.done(settle(retries=(_retry(output, attempts=3),)))
        assert await rig.claimed() == []
        rig.clock.advance(10)
        (claim,) = (await rig.claim()).outputs
        assert (claim.output, claim.attempts, claim.due_us) == (output, 3, rig.store.now_us())

    @behaviour
    async def test_a_retried_output_says_why_the_last_attempt_failed(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        assert [claim.error for claim in await rig.open_outputs()] == [None]
        await rig.done(settle(retries=(_retry(output, after_seconds=0),)))
        (waiting,), (claimed,) = await rig.open_outputs(), (await rig.claim()).outputs
        assert waiting.error == claimed.error == "refused"

    @behaviour
    async def test_a_retry_never_comes_early(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        await rig.done(settle(retries=(_retry(output),)))
        rig.clock.advance(9.999_999)
        claims = await rig.claim()
        assert (claims.outputs, claims.next_due_us) == ([], rig.store.now_us() + 1)

    @behaviour
    async def test_a_retry_is_for_any_worker(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        await rig.done(settle(retries=(_retry(output, after_seconds=0),)))
        assert await rig.store.holds(rig.worker) == []
        assert await rig.claimed(by=rig.other) == [output]

    @behaviour
    async def test_waiting_for_a_limit_costs_no_attempt(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        await rig.done(settle(retries=(_retry(output, attempts=0, after_seconds=0),)))
        assert [claim.attempts for claim in (await rig.claim()).outputs] == [0]

    @behaviour
    async def test_an_output_that_another_worker_holds_is_not_retried(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        assert await rig.commit(settle(retries=(_retry(output),)), by=rig.other) == [Conflict("lost")]
        assert await rig.store.holds(rig.worker) == [output]

    @behaviour
    async def test_an_output_is_not_settled_after_it_was_given_back(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        await rig.done(settle(retries=(_retry(output),)))
        assert await rig.commit(settle(output)) == [Conflict("lost")]

    @behaviour
    async def test_one_unit_may_settle_one_output_and_retry_another(self, rig: Rig) -> None:
        first, second = await rig.begun(send(claimed=True), send(claimed=True))
        await rig.done(settle(first, retries=(_retry(second),)))
        assert [(claim.output, claim.attempts) for claim in await rig.open_outputs()] == [(second, 1)]

    @behaviour
    async def test_open_outputs_are_told_without_timers_the_next_due_first(self, rig: Rig) -> None:
        late, soon, _ = await rig.begun(send(after_us=2_000), send(after_us=1_000, claimed=True), timer())
        assert [claim.output for claim in await rig.open_outputs()] == [soon, late]
        assert [claim.output for claim in await rig.store.outputs(None, timers=False, limit=1)] == [soon]

    @behaviour
    async def test_open_outputs_are_told_for_one_instance(self, rig: Rig) -> None:
        mine = await rig.begun(send())
        await rig.begun(send(), on="o-2")
        assert [claim.output for claim in await rig.store.outputs(order(), timers=False, limit=10)] == mine
