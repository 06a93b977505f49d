"""Timers: never early, once, and never after their cancellation."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from mainspring.port.records import ARMED, Conflict, OutputRow, Retry, Unit
from mainspring.testing.store_contract.rig import (
    ORDERS,
    Rig,
    Suite,
    accept,
    behaviour,
    input_row,
    order,
    send,
    settle,
    step,
    timer,
)


class TimerTests(Suite):
    """A timer is an output that is due later and can be cancelled, waiting or fired, until it is stepped."""

    @behaviour
    async def test_a_timer_never_fires_early(self, rig: Rig) -> None:
        await rig.begun(timer(after_seconds=60))
        rig.clock.advance(59.999_999)
        assert await rig.claimed() == []

    @behaviour
    async def test_a_timer_is_due_when_its_time_has_come(self, rig: Rig) -> None:
        outputs = await rig.begun(timer(after_seconds=60))
        rig.clock.advance(60)
        (claim,) = (await rig.claim()).outputs
        assert ([claim.output], claim.kind, claim.due_us) == (outputs, "timer", rig.store.now_us())

    @behaviour
    async def test_a_timer_counts_from_its_commit_not_from_when_it_was_written(self, rig: Rig) -> None:
        unit = step("m-1", timer(after_seconds=60))
        rig.clock.advance(100)
        await rig.done(unit)
        assert await rig.claimed() == []

    @behaviour
    async def test_a_timer_at_a_moment_is_due_then_and_not_before(self, rig: Rig) -> None:
        moment_us = rig.store.now_us() + 1_500_000
        outputs = await rig.begun(OutputRow(0, "timer", ORDERS, at_us=moment_us))
        rig.clock.advance(1.499_999)
        claims = await rig.claim()
        assert (claims.outputs, claims.next_due_us) == ([], moment_us)
        rig.clock.advance(0.000_001)
        assert await rig.claimed() == outputs

    @behaviour
    async def test_a_timer_at_a_past_moment_is_due_at_once(self, rig: Rig) -> None:
        outputs = await rig.begun(OutputRow(0, "timer", ORDERS, at_us=rig.store.now_us() - 1))
        assert await rig.claimed() == outputs

    @behaviour
    async def test_a_timer_centuries_ahead_is_kept(self, rig: Rig) -> None:
        moment_us = rig.store.now_us() + 500 * 365 * 24 * 3_600 * 1_000_000
        await rig.begun(OutputRow(0, "timer", ORDERS, at_us=moment_us))
        assert [claim.due_us for claim in await rig.open_outputs(timers=True)] == [moment_us]

    @behaviour
    async def test_waiting_timers_are_told_apart_from_other_outputs(self, rig: Rig) -> None:
        _, late, soon = await rig.begun(send(), timer(after_seconds=60), timer("Reminder", after_seconds=5))
        assert [claim.output for claim in await rig.open_outputs(timers=True)] == [soon, late]
        assert [claim.output for claim in await rig.store.outputs(order(), timers=True, limit=1)] == [soon]

    @behaviour
    async def test_a_waiting_timer_is_cancelled_by_its_key(self, rig: Rig) -> None:
        await rig.begun(timer("Timeout"))
        await rig.done(step("m-2", after=3, cancels=("Timeout",)))
        rig.clock.advance(60)
        assert await rig.claimed() == []

    @behaviour
    async def test_all_timers_of_a_key_are_cancelled(self, rig: Rig) -> None:
        await rig.begun(timer("Timeout"), timer("Timeout", after_seconds=90))
        await rig.done(step("m-2", after=4, cancels=("Timeout",)))
        assert await rig.open_outputs(timers=True) == []

    @behaviour
    async def test_timers_of_other_keys_stay(self, rig: Rig) -> None:
        _, reminder, nameless = await rig.begun(
            timer("Timeout"), timer("Reminder"), OutputRow(0, "timer", ORDERS, after_us=90_000_000)
        )
        await rig.done(step("m-2", after=5, cancels=("Timeout", "Unknown")))
        assert [claim.output for claim in await rig.open_outputs(timers=True)] == [reminder, nameless]

    @behaviour
    async def test_timers_of_other_instances_stay(self, rig: Rig) -> None:
        await rig.begun(timer("Timeout"))
        theirs = await rig.begun(timer("Timeout"), on="o-2")
        await rig.done(accept("w-1", on="o-2", timer_key="Timeout"), step("m-2", after=3, cancels=("Timeout",)))
        assert [claim.output for claim in await rig.open_outputs(timers=True)] == theirs
        assert await rig.waiting("o-2") == ["w-1"]

    @behaviour
    async def test_a_timer_that_fired_into_the_inbox_is_cancelled(self, rig: Rig) -> None:
        await rig.done(step("m-1"), accept("w-1"), accept("t-1", timer_key="Timeout"), accept("w-2"))
        await rig.done(step("m-2", after=2, cancels=("Timeout",)))
        assert await rig.waiting() == ["w-1", "w-2"]

    @behaviour
    async def test_a_fired_timer_is_cancelled_although_a_worker_holds_it(self, rig: Rig) -> None:
        _, accepted = await rig.done(step("m-1"), accept("t-1", timer_key="Timeout"))
        await rig.inputs(by=rig.other)
        await rig.done(step("m-2", after=2, cancels=("Timeout",)))
        late = step("t-1", after=3, consumes=accepted.positions[0])
        assert await rig.commit(late, by=rig.other) == [Conflict("inbox")]

    @behaviour
    async def test_a_timer_is_cancelled_although_a_worker_is_about_to_fire_it(self, rig: Rig) -> None:
        (output,) = await rig.begun(timer("Timeout", after_seconds=1))
        rig.clock.advance(1)
        await rig.claim(by=rig.other)
        await rig.done(step("m-2", after=3, cancels=("Timeout",)))
        fired = settle(output, accepts=(input_row("t-1", timer_key="Timeout"),))
        assert await rig.commit(fired, by=rig.other) == [Conflict("lost")]
        assert await rig.waiting() == []

    @behaviour
    async def test_a_timer_is_cancelled_in_the_batch_that_scheduled_it(self, rig: Rig) -> None:
        await rig.done(step("m-1", timer("Timeout")), step("m-2", after=3, cancels=("Timeout",)))
        assert await rig.open_outputs(timers=True) == []

    @behaviour
    async def test_a_timer_is_cancelled_in_the_batch_that_fired_it(self, rig: Rig) -> None:
        (output,) = await rig.begun(timer("Timeout", after_seconds=0, claimed=True))
        fired = settle(output, accepts=(input_row("t-1", timer_key="Timeout"),))
        await rig.done(fired, step("m-2", after=3, cancels=("Timeout",)))
        assert await rig.waiting() == []

    @behaviour
    async def test_a_timer_scheduled_anew_by_the_step_that_cancels_it_stays(self, rig: Rig) -> None:
        await rig.begun(timer("Timeout", after_seconds=60))
        await rig.done(step("m-2", timer("Timeout", after_seconds=90), after=3, cancels=("Timeout",)))
        assert [claim.output.version for claim in await rig.open_outputs(timers=True)] == [5]

    @behaviour
    async def test_a_timer_is_cancelled_without_a_step(self, rig: Rig) -> None:
        await rig.begun(timer("Timeout"))
        await rig.done(Unit(ORDERS, "o-1", cancels=("Timeout",)))
        assert await rig.open_outputs(timers=True) == []

    @behaviour
    async def test_cancelling_all_timers_takes_the_waiting_and_the_fired_and_no_sends(self, rig: Rig) -> None:
        sent, _, _ = await rig.begun(send(), timer("Timeout"), OutputRow(0, "timer", ORDERS, after_us=1_000))
        await rig.done(accept("w-1"), accept("t-1", timer_key="Reminder"))
        await rig.done(step("m-2", after=5, cancel_all="timers"))
        assert await rig.open_outputs(timers=True) == []
        assert await rig.claimed() == [sent]
        assert await rig.waiting() == ["w-1"]

    @behaviour
    async def test_cancelling_all_that_is_unclaimed_leaves_what_workers_hold(self, rig: Rig) -> None:
        held, _, _ = await rig.begun(send(claimed=True), send(), timer("Timeout"))
        await rig.done(accept("w-1"), step("m-2", after=5, cancel_all="unclaimed"))
        assert [claim.output for claim in await rig.open_outputs()] == [held]
        assert await rig.open_outputs(timers=True) == []
        assert await rig.waiting() == ["w-1"]

    @behaviour
    async def test_what_goes_no_further_when_an_instance_is_compensated(self, rig: Rig) -> None:
        armed = send(key=ARMED)
        held, _, plain, _ = await rig.begun(send(key=ARMED, claimed=True), armed, send("Notify"), timer("Timeout"))
        await rig.done(accept("w-1"), accept("t-1", timer_key="Reminder"))
        await rig.done(step("m-2", armed, after=6, cancel_all="forward"))
        left = sorted(claim.output.version for claim in await rig.open_outputs())
        assert left == [held.version, plain.version, 8]
        assert await rig.open_outputs(timers=True) == []
        assert await rig.waiting() == ["w-1"]

    @behaviour
    async def test_a_send_given_back_after_the_compensation_began_is_cancelled_without_a_step(self, rig: Rig) -> None:
        (held,) = await rig.begun(send(key=ARMED, claimed=True))
        await rig.done(
            step("m-2", after=3, cancel_all="forward"), Unit(ORDERS, "o-1", retries=(Retry(held, 1, 0, None),))
        )
        assert [claim.output for claim in await rig.open_outputs()] == [held]
        await rig.done(Unit(ORDERS, "o-1", cancel_all="forward"))
        assert await rig.open_outputs() == []

    @behaviour
    async def test_what_a_step_records_survives_its_own_cancelling_of_all(self, rig: Rig) -> None:
        await rig.begun(send(), timer("Timeout"))
        await rig.done(step("m-2", send("Ship"), after=4, cancel_all="unclaimed"))
        assert [claim.destination for claim in await rig.open_outputs()] == ["Ship"]

    @behaviour
    async def test_cancelling_all_leaves_other_instances_alone(self, rig: Rig) -> None:
        await rig.begun(send(), timer())
        theirs = await rig.begun(send(), timer(), on="o-2")
        await rig.done(step("m-2", after=4, cancel_all="timers"), step("m-3", after=5, cancel_all="unclaimed"))
        assert [c.output for c in [*await rig.open_outputs(), *await rig.open_outputs(timers=True)]] == theirs
