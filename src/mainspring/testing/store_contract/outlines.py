"""Outlines: the events of many instances without their bodies."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from msgspec.structs import replace

from mainspring.port.records import EventRow, Outline, OutlineSpot, Unit
from mainspring.testing.store_contract.rig import ORDERS, Rig, Suite, behaviour, order, send, step

ALL = 1_000


async def _outlines(rig: Rig, *spots: OutlineSpot, limit: int = ALL) -> list[Outline]:
    return [tuple(row) for row in await rig.store.outlines(spots, limit)]  # pyright: ignore[reportReturnType]  a store's own rows may be sequences of another kind


def _places(outlines: list[Outline]) -> list[tuple[int, int]]:
    return [(key, version) for key, version, *_ in outlines]


class OutlineTests(Suite):
    """What is read of every event, in which order, and in which portions."""

    @behaviour
    async def test_an_outline_says_all_but_the_bodies(self, rig: Rig) -> None:
        (committed,) = await rig.done(step("m-1", send()))
        whole = EventRow(
            4,
            "Received",
            7,
            type="Charged",
            body=b"12345",
            detail=b"{}",
            kind="result",
            cause=3,
            context=b"123",
            actor="ann",
            state="Paid",
            attempt=2,
            duration_us=90,
        )
        await rig.done(Unit(ORDERS, "o-1", key=committed.key, expected_version=3, events=(whole,), state="Paid"))
        (found,) = await _outlines(rig, (committed.key, 3))
        *rest, size_bytes = found
        assert rest == [committed.key, 4, "Received", 7, "Charged", "result", 3, "Paid", 2, 90, "ann"]
        assert size_bytes > 0  # as they are stored: a seal may have made more or less of them

    @behaviour
    async def test_an_event_without_bodies_has_no_bytes(self, rig: Rig) -> None:
        (committed,) = await rig.done(step("m-1"))
        began, *_ = await _outlines(rig, (committed.key, 0))
        assert (began[2], began[-1]) == ("Began", 0)

    @behaviour
    async def test_outlines_come_instance_by_instance_as_they_were_asked_for(self, rig: Rig) -> None:
        (first,) = await rig.done(step("m-1", on="a"))
        (second,) = await rig.done(step("m-1", on="b"))
        await rig.done(step("m-2", on="a", after=2))
        found = _places(await _outlines(rig, (second.key, 0), (first.key, 0)))
        assert found == [(second.key, 1), (second.key, 2), (first.key, 1), (first.key, 2), (first.key, 3)]

    @behaviour
    async def test_outlines_are_read_in_portions(self, rig: Rig) -> None:
        keys = [(await rig.done(step("m-1", send(), on=f"o-{n}")))[0].key for n in range(3)]
        first = _places(await _outlines(rig, *((key, 0) for key in keys), limit=4))
        assert first == [(keys[0], 1), (keys[0], 2), (keys[0], 3), (keys[1], 1)]
        rest = _places(await _outlines(rig, first[-1], (keys[2], 0)))
        assert rest == [(keys[1], 2), (keys[1], 3), (keys[2], 1), (keys[2], 2), (keys[2], 3)]

    @behaviour
    async def test_nothing_asked_for_is_nothing_found(self, rig: Rig) -> None:
        await rig.done(step("m-1"))
        assert await _outlines(rig) == []

    @behaviour
    async def test_a_tombstone_has_no_outlines(self, rig: Rig) -> None:
        (committed,) = await rig.done(replace(step("m-1"), status="completed"))
        rig.clock.advance(1)
        found = (await rig.store.purgeable(ORDERS, rig.store.now_us(), ALL)).found
        # Some of its events are still there: they belong to no instance.
        await rig.store.purge(found, events=1)
        assert await _outlines(rig, (committed.key, 0)) == []

    @behaviour
    async def test_an_outline_is_of_the_event_that_the_stream_has(self, rig: Rig) -> None:
        (committed,) = await rig.done(step("m-1", send()))
        events = await rig.store.stream(order(), 0, ALL)
        found = await _outlines(rig, (committed.key, 0))
        assert [row[1:5] for row in found] == [(e.version, e.event, e.time_us, e.type) for e in events]
