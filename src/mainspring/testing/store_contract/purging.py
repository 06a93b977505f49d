"""Purging: ended instances become tombstones, and their events go, a bounded number at a time."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from msgspec.structs import replace

from mainspring.port.purges import Purgeable, Purged
from mainspring.port.records import Conflict, Duplicate, InstanceFilter, InstanceRow, Loaded, OutputKey, Snapshot, Unit
from mainspring.testing.store_contract.rig import (
    ORDERS,
    Rig,
    Suite,
    accept,
    behaviour,
    letter,
    order,
    received,
    send,
    settle,
    step,
    timer,
)

ALL = 1_000


async def _ended(rig: Rig, *ids: str) -> None:
    """Begin and end instances, one after the other, and let a second go by."""
    for id in ids or ("o-1",):
        await rig.done(step("m-1", on=id, status="completed", state="Done", error="none"))
        rig.clock.advance(1)


async def _found(rig: Rig, limit: int = ALL) -> list[Purgeable]:
    return (await rig.store.purgeable(ORDERS, rig.store.now_us(), limit)).found


async def _purged(rig: Rig, events: int = ALL) -> Purged:
    return await rig.store.purge(await _found(rig), events)


async def _loaded(rig: Rig, on: str = "o-1") -> Loaded:
    (loaded,) = await rig.store.load([order(on)])
    assert loaded is not None
    return loaded


class PurgingTests(Suite):
    """What a purge may take, what it leaves, and what is seen meanwhile."""

    @behaviour
    async def test_an_instance_may_be_purged_when_its_end_lies_behind(self, rig: Rig) -> None:
        ended_us = rig.store.now_us()
        await rig.done(step("m-1", status="completed"))
        assert (await rig.store.purgeable(ORDERS, ended_us, ALL)).found == []
        rig.clock.advance(1)
        (found,) = (await rig.store.purgeable(ORDERS, ended_us + 1, ALL)).found
        assert (found.workflow, found.id, found.version) == (ORDERS, "o-1", 2)
        assert (found.ended_us, found.purged_us) == (ended_us, None)
        assert found.key == (await _loaded(rig)).row.key

    @behaviour
    async def test_every_kind_of_end_is_one(self, rig: Rig) -> None:
        for status in ("completed", "failed", "cancelled", "terminated"):
            await rig.done(step("m-1", on=status, status=status))
        rig.clock.advance(1)
        assert sorted(found.id for found in await _found(rig)) == ["cancelled", "completed", "failed", "terminated"]

    @behaviour
    async def test_an_end_in_a_later_step_counts_from_that_step(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        rig.clock.advance(60)
        await rig.done(step("m-2", after=2, status="failed"))
        ended_us = rig.store.now_us()
        rig.clock.advance(1)
        assert [found.ended_us for found in await _found(rig)] == [ended_us]

    @behaviour
    async def test_an_end_after_a_compensation_counts_too(self, rig: Rig) -> None:
        await rig.done(step("m-1", status="compensating"))
        rig.clock.advance(1)
        assert await _found(rig) == []
        await rig.done(step("m-2", after=2, status="failed"))
        rig.clock.advance(1)
        assert (await _purged(rig)).tombstones == 1

    @behaviour
    async def test_what_was_reset_after_its_end_and_is_being_compensated_may_not_be_purged(self, rig: Rig) -> None:
        await _ended(rig)
        ended = await _found(rig)
        await rig.done(step("m-2", after=2, status="compensating"))
        rig.clock.advance(1)
        assert await _found(rig) == []
        moved = [replace(one, version=(await _loaded(rig)).row.version) for one in ended]
        assert (await rig.store.purge(moved, ALL)).tombstones == 0

    @behaviour
    async def test_what_has_not_ended_may_not_be_purged(self, rig: Rig) -> None:
        await rig.done(step("m-1", on="runs"), step("m-1", on="stopped", status="suspended"))
        rig.clock.advance(1)
        assert await _found(rig) == []

    @behaviour
    async def test_what_still_has_work_may_not_be_purged(self, rig: Rig) -> None:
        await rig.done(step("m-1", send(), on="output", status="completed"))
        await rig.done(step("m-1", timer(), on="timer", status="completed"))
        await rig.done(step("m-1", on="input", status="completed"), accept("w-1", on="input"))
        rig.clock.advance(1)
        assert await _found(rig) == []

    @behaviour
    async def test_what_has_dead_letters_may_not_be_purged(self, rig: Rig) -> None:
        (output,) = await rig.begun(send(claimed=True))
        await rig.done(settle(output, dead_letters=(letter("Orders/o-1/3", output=output),)))
        await rig.done(step("m-2", after=3, status="failed"), step("m-1", on="o-2", status="completed"))
        await rig.done(Unit(ORDERS, "o-2", dead_letters=(replace(letter("late"), instance="o-2"),)))
        rig.clock.advance(1)
        assert await _found(rig) == []
        letters = await rig.store.dead_letters(ALL)
        await rig.done(Unit(ORDERS, "o-1", discards=tuple(letter.id for letter in letters)))
        assert [found.id for found in await _found(rig)] == ["o-1", "o-2"]

    @behaviour
    async def test_what_moved_after_its_end_waits_as_long_again(self, rig: Rig) -> None:
        await _ended(rig)
        late_us = rig.store.now_us()
        await rig.done(step("late", after=2, status="completed"))
        assert (await rig.store.purgeable(ORDERS, late_us, ALL)).found == []
        rig.clock.advance(1)
        assert [found.version for found in await _found(rig)] == [3]

    @behaviour
    async def test_other_workflows_are_left_alone(self, rig: Rig) -> None:
        await rig.done(replace(step("m-1", status="completed"), workflow="Stock"))
        rig.clock.advance(1)
        assert await _found(rig) == []
        assert len((await rig.store.purgeable("Stock", rig.store.now_us(), ALL)).found) == 1

    @behaviour
    async def test_they_are_found_in_pages_in_the_order_of_their_ends(self, rig: Rig) -> None:
        await _ended(rig, "c", "a", "kept", "e", "b")
        await rig.done(accept("w-1", on="kept"))
        seen: list[list[str]] = []
        after = None
        for _ in range(5):
            page = await rig.store.purgeable(ORDERS, rig.store.now_us(), 2, after)
            seen.append([found.id for found in page.found])
            if (after := page.after) is None:
                break
        assert seen == [["c", "a"], ["e"], ["b"]]

    @behaviour
    async def test_those_that_ended_at_one_moment_are_all_found(self, rig: Rig) -> None:
        await rig.done(*(step("m-1", on=f"o-{n}", status="completed") for n in range(5)))
        rig.clock.advance(1)
        first = await rig.store.purgeable(ORDERS, rig.store.now_us(), 3)
        second = await rig.store.purgeable(ORDERS, rig.store.now_us(), 3, first.after)
        assert {found.id for found in [*first.found, *second.found]} == {f"o-{n}" for n in range(5)}

    @behaviour
    async def test_a_tombstone_keeps_identity_version_status_and_times(self, rig: Rig) -> None:
        await _ended(rig)
        before = (await _loaded(rig)).row
        assert await _purged(rig) == Purged(1, 2, ())
        bare = {"state": None, "error": None, "context": b"{}"}
        assert (await _loaded(rig)) == Loaded(replace(before, **bare, purged_us=rig.store.now_us()), None, [])

    @behaviour
    async def test_a_tombstone_shows_nothing_of_its_stream(self, rig: Rig) -> None:
        snapshot = Snapshot(2, "f", "Done", 1, b"{}")
        await rig.done(step("m-1", status="completed", snapshot=snapshot), step("m-1", on="o-2"))
        rig.clock.advance(1)
        await _purged(rig)
        assert await rig.store.stream(order(), 0, ALL) == await rig.store.stream(order(), 1, ALL) == []
        assert [ref.id for _, ref, _ in await rig.store.feed(0, ALL)] == ["o-2", "o-2"]
        assert await self._listed(rig) == ["o-2"]
        assert (await rig.store.stats()).instances == {"running": 1}

    @behaviour
    async def test_neighbours_stay_as_they_are(self, rig: Rig) -> None:
        await rig.done(step("m-1", send(), on="o-2", snapshot=Snapshot(2, "f", "Waiting", 1, b"{}")))
        before = await _loaded(rig, "o-2")
        await _ended(rig)
        await _purged(rig)
        assert await _loaded(rig, "o-2") == before
        assert len(await rig.open_outputs()) == 1

    @behaviour
    async def test_an_instance_that_was_purged_cannot_begin_anew(self, rig: Rig) -> None:
        await _ended(rig)
        key = (await _loaded(rig)).row.key
        await _purged(rig)
        assert await rig.commit(step("m-9")) == [Conflict("version")]
        assert await rig.commit(step("m-9", key=key)) == [Conflict("version")]
        assert (await _loaded(rig)).events == []

    @behaviour
    async def test_nothing_moves_a_tombstone(self, rig: Rig) -> None:
        await _ended(rig)
        key = (await _loaded(rig)).row.key
        await _purged(rig)
        late = Unit(ORDERS, "o-1", key, 2, (received(3, "r-1", "Kept"),), "completed")
        assert await rig.commit(late, replace(late, key=None)) == [Conflict("version")] * 2
        assert await rig.versions() == []
        assert (await _loaded(rig)).row.version == 2

    @behaviour
    async def test_the_ids_of_taken_messages_are_forgotten_with_the_stream(self, rig: Rig) -> None:
        await _ended(rig)
        assert await rig.commit(step("m-1")) == [Duplicate(same=True)]
        await _purged(rig, events=1)
        assert await rig.commit(step("m-1")) == [Conflict("version")], "its event is still there, without an instance"
        await _purged(rig)
        assert await rig.commit(step("m-1")) == [Conflict("version")]

    @behaviour
    async def test_a_message_for_a_tombstone_is_kept(self, rig: Rig) -> None:
        await _ended(rig)
        await _purged(rig)
        await rig.done(accept("w-1"), Unit(ORDERS, "o-1", dead_letters=(letter("m-9"),)))
        assert await rig.inputs() == ["w-1"]
        assert [letter.message_id for letter in await rig.store.dead_letters(ALL)] == ["m-9"]

    @behaviour
    async def test_a_long_stream_goes_a_few_events_at_a_time_and_is_never_seen_in_part(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        await rig.done(*(step(f"m-{n}", after=n) for n in range(2, 9)))
        await rig.done(step("m-9", after=9, status="completed"))
        rig.clock.advance(1)
        (found,) = await _found(rig)
        removed: list[int] = []
        for _ in range(4):
            purged = await rig.store.purge([found], 3)
            removed.append(purged.events)
            assert await rig.versions() == []
            assert await rig.store.feed(0, ALL) == []
            assert purged.left == ((found.key,) if len(removed) < 4 else ())
        assert removed == [3, 3, 3, 1]

    @behaviour
    async def test_what_a_purge_has_left_is_found_by_the_next(self, rig: Rig) -> None:
        await _ended(rig, "o-1", "o-2")
        begun_us = rig.store.now_us()
        assert (await _purged(rig, events=1)).tombstones == 2
        rig.clock.advance(1)
        assert [(found.id, found.purged_us) for found in await _found(rig)] == [("o-1", begun_us), ("o-2", begun_us)]
        await rig.done(accept("w-1"))
        assert await _purged(rig) == Purged(0, 3, ())
        assert await _found(rig) == []

    @behaviour
    async def test_what_was_purged_is_found_no_more(self, rig: Rig) -> None:
        await _ended(rig, "o-1", "o-2")
        found = await _found(rig)
        await rig.store.purge(found, ALL)
        assert await _found(rig) == []
        assert await rig.store.purge(found, ALL) == Purged(0, 0, ())

    @behaviour
    async def test_what_moved_since_it_was_found_is_left_alone(self, rig: Rig) -> None:
        await _ended(rig)
        found = await _found(rig)
        await rig.done(step("late", after=2, status="completed"))
        assert await rig.store.purge(found, ALL) == Purged(0, 0, ())
        assert await rig.versions() == [1, 2, 3]

    @behaviour
    async def test_what_something_is_kept_for_since_it_was_found_is_left_alone(self, rig: Rig) -> None:
        await _ended(rig, "o-1", "o-2")
        found = await _found(rig)
        await rig.done(Unit(ORDERS, "o-1", dead_letters=(letter("late"),)), accept("w-1", on="o-2"))
        assert await rig.store.purge(found, ALL) == Purged(0, 0, ())
        assert (await rig.versions(), await rig.versions("o-2")) == ([1, 2], [1, 2])

    @behaviour
    async def test_the_feed_goes_on_behind_what_was_purged(self, rig: Rig) -> None:
        await _ended(rig)
        last = (await rig.store.feed(0, ALL))[-1][0]
        await _purged(rig)
        await rig.done(step("m-1", on="o-2"))
        assert [ref.id for _, ref, _ in await rig.store.feed(last, ALL)] == ["o-2", "o-2"]

    @behaviour
    async def test_a_new_instance_never_has_the_key_of_one_that_was_purged(self, rig: Rig) -> None:
        await _ended(rig)
        key = (await _loaded(rig)).row.key
        await _purged(rig)
        (output,) = await rig.begun(send(), on="o-2")
        assert output != OutputKey(key, output.version)

    @behaviour
    async def test_a_tombstone_outlives_a_restart(self, rig: Rig) -> None:
        await _ended(rig)
        await _purged(rig, events=1)
        await rig.reopen()
        assert await rig.versions() == []
        assert (await _loaded(rig)).row.purged_us is not None
        assert await _purged(rig) == Purged(0, 1, ())

    @behaviour
    async def test_two_purges_at_once_take_each_instance_once(self, rig: Rig) -> None:
        other = await rig.second()
        try:
            await _ended(rig, *(f"o-{n}" for n in range(6)))
            found = await _found(rig)
            purged = [await rig.store.purge(found[:4], ALL), await other.purge(found[2:], ALL)]
            assert [one.tombstones for one in purged] == [4, 2]
            assert sum(one.events for one in purged) == 12
        finally:
            await other.close()

    async def _listed(self, rig: Rig) -> list[str]:
        rows: list[InstanceRow] = await rig.store.instances(InstanceFilter(), ALL)
        return [row.id for row in rows]
