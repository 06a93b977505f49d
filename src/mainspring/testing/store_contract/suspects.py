"""Suspects: what is lost with one worker after the other is set aside, and tried alone."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from mainspring.port.records import EventRow, Retry, Unit
from mainspring.port.suspects import Alone, Suspect
from mainspring.testing.clock import SECOND_US
from mainspring.testing.store_contract.rig import (
    LEASE_SECONDS,
    ORDERS,
    WRITTEN_US,
    Rig,
    Suite,
    accept,
    behaviour,
    order,
    send,
    settle,
    step,
)


class SuspectTests(Suite):
    """Work is counted as lost when its worker is relieved, and never where a worker gives it back itself."""

    @behaviour
    async def test_what_was_lost_once_is_claimed_as_before(self, rig: Rig) -> None:
        outputs = await rig.begun(send(claimed=True))
        await rig.done(accept("w-1", on="o-2", claimed=True))
        await self._lost(rig)
        claims = await rig.claim()
        assert [claim.output for claim in claims.outputs] == outputs
        assert [row.message_id for row in claims.inputs] == ["w-1"]
        assert await rig.store.suspects(10) == []

    @behaviour
    async def test_what_was_lost_twice_is_set_aside(self, rig: Rig) -> None:
        await rig.begun(send())
        await rig.done(accept("w-1", on="o-2"))
        await self._lost(rig, times=2)
        claims = await rig.claim()
        assert (claims.outputs, claims.inputs) == ([], [])
        (waiting,) = await rig.store.inbox(order("o-2"), 10)
        assert sorted(await rig.store.suspects(10), key=lambda suspect: suspect.instance) == [
            Suspect(ORDERS, "o-1", "ChargeMessage", 3, 2, "Charge"),
            Suspect(ORDERS, "o-2", "Go", None, 2, position=waiting.position),
        ]
        assert len(await rig.store.suspects(1)) == 1

    @behaviour
    async def test_what_stands_behind_an_input_that_is_set_aside_waits_with_it(self, rig: Rig) -> None:
        await rig.done(accept("w-1", on="o-2"))
        await self._lost(rig, times=2)
        await rig.done(accept("w-2", on="o-2"), accept("w-3", on="o-3"))
        assert await rig.inputs() == ["w-3"]
        assert self._id(await self._alone(rig)) == "w-1"
        assert await rig.inputs(by=rig.other) == []
        assert await rig.inputs() == ["w-2"]

    @behaviour
    async def test_one_thing_at_a_time_is_tried_alone_and_what_was_lost_least_first(self, rig: Rig) -> None:
        first, second = await rig.begun(send(), send("Ship"))
        await self._lost(rig, times=2)
        taken = await self._alone(rig)
        assert taken is not None
        assert taken.lost == 2
        assert sorted(suspect.aside for suspect in await rig.store.suspects(10)) == [False, True]
        blamed = taken.output.output if taken.output else None
        await self._relieve(rig)
        left = await self._alone(rig)
        assert left is not None
        assert left.output is not None
        assert {blamed, left.output.output} == {first, second}
        assert left.lost == 2
        assert [suspect.lost for suspect in await rig.store.suspects(10)] == [3, 2]

    @behaviour
    async def test_only_what_was_tried_alone_is_blamed(self, rig: Rig) -> None:
        await rig.begun(send())
        await self._lost(rig, times=2)
        assert await self._alone(rig) is not None
        (beside,) = await rig.begun(send(claimed=True), on="o-2")
        await rig.done(accept("w-1", on="o-3", claimed=True))
        await self._relieve(rig)
        for _ in range(2):  # it is lost once more without being set aside, so it was not blamed before
            claims = await rig.claim()
            assert [claim.output for claim in claims.outputs] == [beside]
            assert [row.message_id for row in claims.inputs] == ["w-1"]
            await self._relieve(rig)

    @behaviour
    async def test_an_input_that_was_tried_alone_is_blamed_alone(self, rig: Rig) -> None:
        await rig.done(accept("w-1", on="o-2"))
        await self._lost(rig, times=2)
        assert self._id(await self._alone(rig)) == "w-1"
        (beside,) = await rig.begun(send(claimed=True))
        await self._relieve(rig)
        assert [suspect.lost for suspect in await rig.store.suspects(10)] == [3]
        assert await rig.claimed() == [beside]

    @behaviour
    async def test_a_worker_that_finds_nothing_to_try_alone_is_blamed_for_all_again(self, rig: Rig) -> None:
        (output,) = await rig.begun(send())
        await self._lost(rig, times=2)
        assert await self._alone(rig) is not None
        await rig.done(settle(output))
        assert await self._alone(rig) is None
        await rig.begun(send(claimed=True), on="o-2")
        await self._relieve(rig)
        await rig.claim()
        await self._relieve(rig)
        assert [suspect.instance for suspect in await rig.store.suspects(10)] == ["o-2"]

    @behaviour
    async def test_only_one_worker_takes_it_and_none_that_is_gone(self, rig: Rig) -> None:
        await rig.begun(send())
        await self._lost(rig, times=2)
        (suspect,) = await rig.store.suspects(10)
        assert await rig.store.claim_alone(0, suspect) is None
        assert await rig.store.claim_alone(rig.worker, suspect) is not None
        assert await rig.store.claim_alone(rig.other, suspect) is None

    @behaviour
    async def test_an_input_is_tried_when_it_is_the_first_that_waits(self, rig: Rig) -> None:
        await rig.done(accept("w-1", "w-2", on="o-2"))
        await self._lost(rig, times=2)
        first, second = sorted(await rig.store.suspects(10), key=lambda suspect: suspect.position or 0)
        assert await rig.store.claim_alone(rig.worker, second) is None
        assert self._id(await rig.store.claim_alone(rig.worker, first)) == "w-1"

    @behaviour
    async def test_an_orderly_end_does_not_count_and_leaves_it_set_aside(self, rig: Rig) -> None:
        await rig.begun(send())
        await rig.done(accept("w-1", on="o-2"))
        await self._lost(rig, times=2)
        await self._alone(rig)
        await self._alone(rig)
        await rig.store.release_worker(rig.worker)
        assert [suspect.lost for suspect in await rig.store.suspects(10)] == [2, 2]
        claims = await rig.claim(by=rig.other)
        assert (claims.outputs, claims.inputs) == ([], [])

    @behaviour
    async def test_an_orderly_end_is_never_counted(self, rig: Rig) -> None:
        (output,) = await rig.begun(send())
        for _ in range(3):
            assert await rig.claimed(by=rig.other) == [output]
            await rig.store.release_worker(rig.other)
            rig.other = await rig.store.register_worker("second", LEASE_SECONDS * SECOND_US)
        assert await rig.claimed() == [output]

    @behaviour
    async def test_a_retry_begins_the_count_anew(self, rig: Rig) -> None:
        (output,) = await rig.begun(send())
        await self._lost(rig, times=2)
        await self._alone(rig)
        await rig.done(Unit(ORDERS, "o-1", retries=(Retry(output, 1, 0, "it failed"),)))
        assert await rig.store.suspects(10) == []
        assert await rig.claimed() == [output]
        await self._relieve(rig)
        assert await rig.claimed() == [output]

    @behaviour
    async def test_what_is_given_back_without_an_attempt_stays_set_aside(self, rig: Rig) -> None:
        (output,) = await rig.begun(send())
        await self._lost(rig, times=2)
        await self._alone(rig)
        await rig.done(Unit(ORDERS, "o-1", retries=(Retry(output, 0, 0, "it cannot be read here"),)))
        assert [(suspect.lost, suspect.aside) for suspect in await rig.store.suspects(10)] == [(2, True)]
        assert await rig.claimed() == []

    @behaviour
    async def test_an_input_that_is_given_back_stays_set_aside(self, rig: Rig) -> None:
        await rig.done(accept("w-1", on="o-2"))
        await self._lost(rig, times=2)
        taken = await self._alone(rig)
        assert taken is not None
        assert taken.input is not None
        await rig.done(Unit(ORDERS, "o-2", releases=(taken.input.position,)))
        assert await rig.inputs() == []
        assert self._id(await self._alone(rig)) == "w-1"

    @behaviour
    async def test_what_is_set_aside_is_cancelled_like_all_that_nobody_holds(self, rig: Rig) -> None:
        await rig.begun(send())
        await self._lost(rig, times=2)
        ends = EventRow(4, "Cancelled", WRITTEN_US)
        unit = Unit(ORDERS, "o-1", expected_version=3, events=(ends,), status="cancelled", cancel_all="unclaimed")
        await rig.done(unit)
        assert await rig.open_outputs() == []

    @behaviour
    async def test_inputs_of_suspended_instances_wait_for_the_resumption_which_begins_anew(self, rig: Rig) -> None:
        await rig.done(step("m-1", on="o-2"))
        await rig.done(accept("w-1", on="o-2"))
        await self._lost(rig, times=2)
        await rig.done(self._told("Suspended", "suspended", after=2))
        assert await self._alone(rig) is None
        assert await rig.store.suspects(10) == []
        await rig.done(self._told("Resumed", "running", after=3))
        assert await rig.store.suspects(10) == []
        assert await rig.inputs() == ["w-1"]
        await self._relieve(rig)
        assert await rig.inputs() == ["w-1"]

    @behaviour
    async def test_an_input_that_was_tried_alone_and_suspended_its_instance_begins_anew(self, rig: Rig) -> None:
        await rig.done(step("m-1", on="o-2"))
        await rig.done(accept("w-1", on="o-2"))
        await self._lost(rig, times=2)
        taken = await self._alone(rig)
        assert taken is not None
        assert taken.input is not None
        await rig.done(self._told("Suspended", "suspended", after=2, releases=(taken.input.position,)))
        assert await self._alone(rig) is None
        assert await rig.store.suspects(10) == []
        await rig.done(self._told("Resumed", "running", after=3))
        assert await rig.store.suspects(10) == []
        assert await rig.inputs() == ["w-1"]

    @behaviour
    async def test_it_is_all_there_after_a_restart(self, rig: Rig) -> None:
        await rig.begun(send())
        await self._lost(rig, times=2)
        await rig.reopen()
        assert [suspect.lost for suspect in await rig.store.suspects(10)] == [2]

    @staticmethod
    def _told(event: str, status: str, *, after: int, **fields: object) -> Unit:
        row = EventRow(after + 1, event, WRITTEN_US)
        return Unit(ORDERS, "o-2", expected_version=after, events=(row,), status=status, **fields)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    @staticmethod
    def _id(taken: Alone | None) -> str | None:
        return None if taken is None or taken.input is None else taken.input.message_id

    @staticmethod
    async def _alone(rig: Rig) -> Alone | None:
        """Try what was lost least; if there is nothing, say so to the store."""
        found = [suspect for suspect in await rig.store.suspects(10) if suspect.aside]
        return await rig.store.claim_alone(rig.worker, min(found, key=lambda one: one.lost, default=None))

    async def _lost(self, rig: Rig, times: int = 1) -> None:
        for _ in range(times):
            await rig.claim()
            await self._relieve(rig)

    @staticmethod
    async def _relieve(rig: Rig) -> None:
        """Let the first worker be lost, and another take its place."""
        rig.clock.advance(LEASE_SECONDS - 1)
        assert await rig.store.heartbeat(rig.other)
        rig.clock.advance(1)
        assert await rig.store.relieve() == 1
        rig.worker = await rig.store.register_worker("next", LEASE_SECONDS * SECOND_US)
