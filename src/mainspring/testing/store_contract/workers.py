"""Workers: leases, relief, and keys that are worth nothing afterwards."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from mainspring.port.records import Conflict, Retry
from mainspring.testing.store_contract.rig import LEASE_SECONDS, Rig, Suite, accept, behaviour, send, settle, step


class WorkerTests(Suite):
    """A worker holds what it claims until it settles it, gives it back, or its lease runs out."""

    @behaviour
    async def test_every_worker_gets_a_key_of_its_own(self, rig: Rig) -> None:
        third = await rig.store.register_worker("first", 1_000_000)
        assert len({rig.worker, rig.other, third}) == 3
        assert min(rig.worker, rig.other, third) > 0

    @behaviour
    async def test_a_key_is_never_given_again(self, rig: Rig) -> None:
        await rig.store.release_worker(rig.other)
        assert await rig.store.register_worker("second", 1_000_000) > rig.other

    @behaviour
    async def test_a_namesake_does_not_inherit_what_a_worker_holds(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        namesake = await rig.store.register_worker("first", LEASE_SECONDS * 1_000_000)
        assert await rig.commit(settle(output), by=namesake) == [Conflict("lost")]

    @behaviour
    async def test_nobody_is_relieved_while_its_lease_runs(self, rig: Rig) -> None:
        outputs = await rig.begun(send(claimed=True))
        rig.clock.advance(LEASE_SECONDS - 1)
        assert await rig.store.relieve() == 0
        assert await rig.store.holds(rig.worker) == outputs

    @behaviour
    async def test_relief_counts_the_workers_that_are_out_of_their_lease(self, rig: Rig) -> None:
        rig.clock.advance(LEASE_SECONDS + 1)
        assert await rig.store.relieve() == 2
        assert await rig.store.relieve() == 0

    @behaviour
    async def test_a_lease_is_over_at_the_moment_at_which_it_ends(self, rig: Rig) -> None:
        rig.clock.advance(LEASE_SECONDS)
        assert await rig.store.relieve() == 2

    @behaviour
    async def test_a_heartbeat_extends_the_lease(self, rig: Rig) -> None:
        outputs = await rig.begun(send(claimed=True))
        rig.clock.advance(LEASE_SECONDS - 1)
        assert await rig.store.heartbeat(rig.worker)
        rig.clock.advance(LEASE_SECONDS - 1)
        assert await rig.store.relieve() == 1
        assert await rig.store.holds(rig.worker) == outputs

    @behaviour
    async def test_a_relieved_worker_is_told_by_its_heartbeat(self, rig: Rig) -> None:
        await self._relieved(rig)
        assert not await rig.store.heartbeat(rig.worker)
        assert await rig.store.heartbeat(rig.other)

    @behaviour
    async def test_the_outputs_of_a_relieved_worker_are_free(self, rig: Rig) -> None:
        outputs = await rig.begun(send(), send(claimed=True))
        await rig.claim()
        await self._relieved(rig)
        assert await rig.store.holds(rig.worker) == []
        assert await rig.claimed(by=rig.other) == outputs

    @behaviour
    async def test_the_inputs_of_a_relieved_worker_are_free_and_in_order(self, rig: Rig) -> None:
        await rig.done(accept("w-1", "w-2", claimed=True), accept("w-3"))
        await self._relieved(rig)
        assert await rig.inputs(by=rig.other) == ["w-1", "w-2", "w-3"]

    @behaviour
    async def test_a_relieved_worker_settles_nothing(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        await self._relieved(rig)
        late = step("Orders/o-1/3", after=3, settles=(output,))
        assert await rig.commit(settle(output), late) == [Conflict("lost")] * 2
        assert await rig.versions() == [1, 2, 3]

    @behaviour
    async def test_a_relieved_worker_does_not_settle_what_another_claimed_since(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        await self._relieved(rig)
        await rig.claim(by=rig.other)
        assert await rig.commit(settle(output)) == [Conflict("lost")]
        await rig.done(settle(output), by=rig.other)

    @behaviour
    async def test_a_relieved_worker_claims_nothing(self, rig: Rig) -> None:
        outputs = await rig.begun(send())
        await rig.done(accept("w-1"))
        await self._relieved(rig)
        claims = await rig.claim()
        assert (claims.outputs, claims.inputs) == ([], [])
        assert await rig.claimed(by=rig.other) == outputs

    @behaviour
    async def test_nothing_is_born_into_the_hands_of_a_relieved_worker(self, rig: Rig) -> None:
        await self._relieved(rig)
        await rig.done(step("m-1", send(claimed=True)), accept("w-1", claimed=True))
        claims = await rig.claim(by=rig.other)
        assert (len(claims.outputs), len(claims.inputs)) == (1, 1)

    @behaviour
    async def test_a_released_worker_gives_everything_back_at_once(self, rig: Rig) -> None:
        outputs = await rig.begun(send(), send(claimed=True))
        await rig.done(accept("w-1"))
        await rig.claim()
        await rig.store.release_worker(rig.worker)
        claims = await rig.claim(by=rig.other)
        assert [claim.output for claim in claims.outputs] == outputs
        assert [row.message_id for row in claims.inputs] == ["w-1"]

    @behaviour
    async def test_a_released_worker_is_forgotten(self, rig: Rig) -> None:
        await rig.store.release_worker(rig.worker)
        assert not await rig.store.heartbeat(rig.worker)
        assert (await rig.store.stats()).workers == 1

    @behaviour
    async def test_releasing_one_worker_leaves_the_others_alone(self, rig: Rig) -> None:
        outputs = await rig.begun(send(claimed=True))
        await rig.store.release_worker(rig.other)
        await rig.store.release_worker(rig.other)
        assert await rig.store.holds(rig.worker) == outputs

    @behaviour
    async def test_attempts_are_kept_when_a_worker_is_relieved(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        await rig.done(settle(retries=(Retry(output, 3, 0, "boom"),)))
        await rig.claim()
        await self._relieved(rig)
        (claim,) = (await rig.claim(by=rig.other)).outputs
        assert (claim.output, claim.attempts) == (output, 3)

    async def _relieved(self, rig: Rig) -> None:
        """Have the first worker relieved, and not the other."""
        rig.clock.advance(LEASE_SECONDS - 1)
        await rig.store.heartbeat(rig.other)
        rig.clock.advance(2)
        assert await rig.store.relieve() == 1
