"""Claims: which outputs a worker is given, and in which order."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from mainspring.port.records import EventRow, OutputClaim, OutputRow, Unit
from mainspring.testing.store_contract.rig import (
    CONTEXT,
    ORDERS,
    WRITTEN_US,
    Rig,
    Suite,
    accept,
    behaviour,
    received,
    send,
    step,
    timer,
)


class ClaimTests(Suite):
    """A worker gets what is due, for what it knows, the most urgent first; and no other worker does."""

    @behaviour
    async def test_a_claim_finds_nothing_in_an_empty_store(self, rig: Rig) -> None:
        claims = await rig.claim()
        assert (claims.outputs, claims.inputs, claims.next_due_us) == ([], [], None)

    @behaviour
    async def test_a_claim_carries_all_that_is_needed_to_carry_the_output_out(self, rig: Rig) -> None:
        unit = Unit(
            ORDERS,
            "o-1",
            expected_version=0,
            events=(
                received(1, "m-1", context=b'{"correlation_id":"c-7"}'),
                EventRow(2, "Sent", WRITTEN_US, "ChargeCard", 3, b'{ "a": 1 }', b'{"to":"x"}'),
            ),
            outputs=(OutputRow(2, "publish", "Charge", priority=4),),
        )
        (committed,) = await rig.done(unit)
        (claim,) = (await rig.claim()).outputs
        assert claim == OutputClaim(
            output=replace(claim.output, instance=committed.key, version=2),
            workflow=ORDERS,
            instance="o-1",
            kind="publish",
            destination="Charge",
            attempts=0,
            due_us=rig.store.now_us(),
            priority=4,
            type="ChargeCard",
            type_version=3,
            body=b'{ "a": 1 }',
            detail=b'{"to":"x"}',
            context=b'{"correlation_id":"c-7"}',
        )

    @behaviour
    async def test_an_output_carries_the_context_of_the_input_that_caused_it(self, rig: Rig) -> None:
        later = step("m-2", send("Ship"), after=3)
        moved = replace(later, events=(replace(later.events[0], context=b'{"correlation_id":"c-2"}'), later.events[1]))
        await rig.done(step("m-1", send()), moved)
        contexts = {claim.destination: claim.context for claim in (await rig.claim()).outputs}
        assert contexts == {"Charge": CONTEXT, "Ship": b'{"correlation_id":"c-2"}'}

    @behaviour
    async def test_outputs_come_by_due_time(self, rig: Rig) -> None:
        outputs = await rig.begun(send(after_us=3_000), send(after_us=1_000), send(after_us=2_000))
        rig.clock.advance(1)
        assert await rig.claimed() == [outputs[1], outputs[2], outputs[0]]

    @behaviour
    async def test_a_higher_priority_comes_first_whatever_is_due_earlier(self, rig: Rig) -> None:
        outputs = await rig.begun(send(priority=-1), send(), send(priority=5, after_us=10), send(priority=5))
        rig.clock.advance(1)
        assert await rig.claimed() == [outputs[3], outputs[2], outputs[1], outputs[0]]

    @behaviour
    async def test_outputs_are_claimed_up_to_the_limit_and_the_rest_later(self, rig: Rig) -> None:
        outputs = await rig.begun(send(priority=3), send(priority=2), send(priority=1))
        assert [claim.output for claim in (await rig.claim(limit=2)).outputs] == outputs[:2]
        assert await rig.claimed() == outputs[2:]

    @behaviour
    async def test_outputs_and_inputs_have_a_limit_each(self, rig: Rig) -> None:
        await rig.begun(send(), send())
        await rig.done(accept("w-1", "w-2"))
        claims = await rig.claim(limit=1)
        assert (len(claims.outputs), len(claims.inputs)) == (1, 1)

    @behaviour
    async def test_only_outputs_for_the_named_destinations_are_claimed(self, rig: Rig) -> None:
        charge, ship = await rig.begun(send("Charge"), send("Ship"))
        assert [claim.output for claim in (await rig.claim(destinations=["Ship"])).outputs] == [ship]
        assert (await rig.claim(destinations=[])).outputs == []
        assert await rig.claimed() == [charge]

    @behaviour
    async def test_a_claimed_output_is_left_to_its_worker(self, rig: Rig) -> None:
        outputs = await rig.begun(send())
        assert await rig.claimed() == outputs
        assert await rig.claimed(by=rig.other) == []

    @behaviour
    async def test_a_worker_is_not_given_twice_what_it_holds(self, rig: Rig) -> None:
        await rig.begun(send())
        await rig.claimed()
        assert await rig.claimed() == []

    @behaviour
    async def test_the_outputs_of_a_suspended_instance_are_still_carried_out(self, rig: Rig) -> None:
        await rig.done(step("m-1", send(), status="suspended"))
        assert len(await rig.claimed()) == 1

    @behaviour
    async def test_the_outputs_of_an_ended_instance_are_still_carried_out(self, rig: Rig) -> None:
        await rig.done(step("m-1", send(), status="completed", cancel_all="timers"))
        assert len(await rig.claimed()) == 1

    @behaviour
    async def test_an_output_born_claimed_is_its_workers(self, rig: Rig) -> None:
        outputs = await rig.begun(send(claimed=True))
        assert await rig.store.holds(rig.worker) == outputs
        assert await rig.claimed() == []
        assert await rig.claimed(by=rig.other) == []

    @behaviour
    async def test_an_output_born_unclaimed_is_anybodys(self, rig: Rig) -> None:
        outputs = await rig.begun(send(), send(claimed=True))
        assert await rig.claimed(by=rig.other) == outputs[:1]

    @behaviour
    async def test_a_worker_holds_what_it_claimed(self, rig: Rig) -> None:
        outputs = await rig.begun(send(), send())
        await rig.claim(limit=1)
        await rig.claim(by=rig.other)
        held = [*await rig.store.holds(rig.worker), *await rig.store.holds(rig.other)]
        assert sorted(held, key=lambda key: key.version) == outputs

    @behaviour
    async def test_the_next_due_time_is_that_of_the_earliest_output_that_waits(self, rig: Rig) -> None:
        await rig.begun(timer(after_seconds=60), timer("Reminder", after_seconds=20))
        assert (await rig.claim()).next_due_us == rig.store.now_us() + 20_000_000

    @behaviour
    async def test_there_is_no_next_due_time_when_all_is_claimed(self, rig: Rig) -> None:
        await rig.begun(send())
        assert (await rig.claim()).next_due_us is None

    @behaviour
    async def test_what_the_limit_left_is_due_already(self, rig: Rig) -> None:
        await rig.begun(send(), send())
        next_due_us = (await rig.claim(limit=1)).next_due_us
        assert next_due_us is not None
        assert next_due_us <= rig.store.now_us()

    @behaviour
    async def test_waiting_for_work_ends_with_its_timeout(self, rig: Rig) -> None:
        waiting = asyncio.create_task(rig.store.wait_for_work(5))
        for _ in range(1_000):
            done, _ = await asyncio.wait({waiting}, timeout=0.01)
            if done:
                break
            rig.clock.advance(5)
        assert waiting.done()
