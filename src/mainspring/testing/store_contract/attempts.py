"""Attempts that failed: kept with what they were made at, the latest of each, until their instance is purged."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from msgspec.structs import replace

from mainspring.port.attempts import ATTEMPTS_KEPT, ATTEMPTS_OF_INSTANCE, Attempt
from mainspring.port.records import OutputKey, Retry, Unit
from mainspring.testing.store_contract.rig import ORDERS, Rig, Suite, behaviour, order, send, settle, step

ALL = 10_000


def _failed(output: OutputKey, number: int, error: str | None = "ConnectionError: no\u2028route") -> Unit:
    """Return the unit of an attempt that failed and is made once more."""
    made = Attempt(output.instance, output.version, number, "host:4711", number * 1_000, number * 1_000 + 7, error)
    return Unit(ORDERS, "o-1", retries=(Retry(output, number, 0, error),), attempts=(made,))


async def _kept(rig: Rig, on: str = "o-1") -> list[tuple[int, int]]:
    return [(one.version, one.number) for one in await rig.store.attempts(order(on), ALL)]


class AttemptTests(Suite):
    """Who tried what, when, and how it failed."""

    @behaviour
    async def test_an_attempt_is_kept_whole_in_the_commit_of_its_retry(self, rig: Rig) -> None:
        await rig.done(step("m-1", send()))
        (output,) = await rig.claimed()
        unit = _failed(output, 1)
        await rig.done(unit)
        assert await rig.store.attempts(order(), ALL) == list(unit.attempts)
        assert await rig.store.attempts(order("o-2"), ALL) == []
        begun = replace(unit.attempts[0], number=2, began_us=None, error=None)
        await rig.done(Unit(ORDERS, "o-1", attempts=(begun,)))
        assert await rig.store.attempts(order(), ALL) == [unit.attempts[0], begun]
        assert await rig.store.attempts(order(), 1) == [unit.attempts[0]]

    @behaviour
    async def test_an_attempt_of_whoever_does_not_hold_the_output_is_not_kept(self, rig: Rig) -> None:
        await rig.done(step("m-1", send()))
        (output,) = await rig.claimed()
        (refused,) = await rig.commit(_failed(output, 1), by=rig.other)
        assert type(refused).__name__ == "Conflict"
        assert await _kept(rig) == []

    @behaviour
    async def test_attempts_stay_when_what_they_were_made_at_is_settled(self, rig: Rig) -> None:
        await rig.done(step("m-1", send(), send("Ship")))
        charge, ship = sorted(await rig.claimed(), key=lambda output: output.version)
        await rig.done(_failed(ship, 1), _failed(charge, 1))
        await rig.claimed()
        await rig.done(settle(charge), settle(ship))
        assert await _kept(rig) == [(charge.version, 1), (ship.version, 1)]

    @behaviour
    async def test_of_one_command_the_latest_are_kept(self, rig: Rig) -> None:
        await rig.done(step("m-1", send(), send("Ship")))
        charge, ship = sorted(await rig.claimed(), key=lambda output: output.version)
        await rig.done(Unit(ORDERS, "o-1", attempts=_failed(ship, 1).attempts))
        for number in range(1, ATTEMPTS_KEPT + 4):
            await rig.done(Unit(ORDERS, "o-1", attempts=_failed(charge, number).attempts))
        latest = [(charge.version, number) for number in range(4, ATTEMPTS_KEPT + 4)]
        assert await _kept(rig) == [*latest, (ship.version, 1)]

    @behaviour
    async def test_of_one_instance_the_latest_are_kept(self, rig: Rig) -> None:
        await rig.done(step("m-1", send()), step("m-1", send(), on="o-2"))
        key = min(output.instance for output in await rig.claimed())
        made = [Attempt(key, n, 1, "host:4711", n, n, None) for n in range(1, ATTEMPTS_OF_INSTANCE + 6)]
        await rig.done(Unit(ORDERS, "o-1", attempts=tuple(made)))
        assert await rig.store.attempts(order(), ALL) == made[5:]

    @behaviour
    async def test_attempts_go_with_their_instance(self, rig: Rig) -> None:
        for id in ("o-1", "o-2"):
            (committed,) = await rig.done(step("m-1", on=id, status="completed"))
            made = Attempt(committed.key, 2, 1, "host:4711", 1, 2, "no")
            await rig.done(Unit(ORDERS, id, attempts=(made,)))
            rig.clock.advance(1)
        found = (await rig.store.purgeable(ORDERS, rig.store.now_us(), 1)).found
        await rig.store.purge(found, ALL)
        assert (await _kept(rig, "o-1"), await _kept(rig, "o-2")) == ([], [(2, 1)])

    @behaviour
    async def test_attempts_are_there_after_a_restart(self, rig: Rig) -> None:
        await rig.done(step("m-1", send()))
        (output,) = await rig.claimed()
        unit = _failed(output, 1)
        await rig.done(unit)
        await rig.reopen()
        assert await rig.store.attempts(order(), ALL) == list(unit.attempts)
