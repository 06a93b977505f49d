"""Projections and attributes: checkpoints that move once, documents that move with them, and searching."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from msgspec.structs import replace

from mainspring.port.attributes import AttributeRow, conditions_of, rows_of
from mainspring.port.projections import Advance, Document
from mainspring.port.records import InstanceFilter, Unit
from mainspring.testing.store_contract.rig import Rig, Suite, behaviour, order, step

NAME = "orders"
BODY = b'{ "n":1 }'


def _begin(generation: int = 1, status: str = "live", retires: tuple[int, ...] = ()) -> Advance:
    return Advance(NAME, generation, None, -1, status="live" if status == "live" else "building", retires=retires)


def _keep(expected: int, position: int, *keys: str, generation: int = 1) -> Advance:
    documents = tuple(Document(key, "Order", 2, BODY) for key in keys)
    return Advance(NAME, generation, expected, position, documents=documents)


class ProjectionTests(Suite):
    """What a read model needs of a store."""

    @behaviour
    async def test_a_checkpoint_moves_only_from_where_it_stands(self, rig: Rig) -> None:
        store = rig.store
        assert await store.advance(_begin())
        assert not await store.advance(_begin())
        assert await store.advance(_keep(-1, 7, "a"))
        assert not await store.advance(_keep(-1, 9, "b"))
        assert not await store.advance(_keep(7, 9, "b", generation=2))
        (checkpoint,) = await store.checkpoints(NAME)
        assert (checkpoint.position, checkpoint.status, checkpoint.error) == (7, "live", None)
        assert [document.key for document in await store.documents(NAME, ["a", "b"])] == ["a"]

    @behaviour
    async def test_documents_come_back_whole_and_are_replaced_and_removed(self, rig: Rig) -> None:
        store = rig.store
        await store.advance(_begin())
        await store.advance(_keep(-1, 1, "a", "b"))
        assert await store.documents(NAME, ["b", "x", "a"]) == [
            Document("b", "Order", 2, BODY),
            Document("a", "Order", 2, BODY),
        ]
        changed = (Document("a"), Document("b", "Order", 3, b"{}"), Document("never"))
        await store.advance(Advance(NAME, 1, 1, 2, documents=changed))
        assert await store.documents(NAME, ["a", "b"]) == [Document("b", "Order", 3, b"{}")]

    @behaviour
    async def test_documents_are_listed_by_prefix_in_the_order_of_their_keys(self, rig: Rig) -> None:
        store = rig.store
        await store.advance(_begin())
        await store.advance(_keep(-1, 1, "b", "a%2", "a%1", "a", "é", "A", "a%10"))
        assert [d.key for d in await store.list_documents(NAME, "", "", 10)] == [
            "A",
            "a",
            "a%1",
            "a%10",
            "a%2",
            "b",
            "é",
        ]
        assert [d.key for d in await store.list_documents(NAME, "a%", "a%1", 1)] == ["a%10"]
        assert await store.list_documents("others", "", "", 10) == []

    @behaviour
    async def test_an_error_is_shown_and_goes_with_the_next_move(self, rig: Rig) -> None:
        store = rig.store
        await store.advance(_begin())
        assert await store.advance(Advance(NAME, 1, -1, -1, error="ValueError: boom\0"))
        (checkpoint,) = await store.checkpoints()
        assert (checkpoint.error or "").startswith("ValueError")
        await store.advance(_keep(-1, 3))
        (checkpoint,) = await store.checkpoints()
        assert (checkpoint.position, checkpoint.error) == (3, None)

    @behaviour
    async def test_a_generation_takes_the_live_ones_place_when_it_is_as_far(self, rig: Rig) -> None:
        store = rig.store
        await store.advance(_begin())
        await store.advance(_keep(-1, 5, "old"))
        await store.advance(_begin(2, "building"))
        await store.advance(_keep(-1, 4, "new", generation=2))
        swap = Advance(NAME, 2, 4, 4, status="live", retires=(1,))
        assert not await store.advance(swap)
        assert [d.key for d in await store.list_documents(NAME, "", "", 10)] == ["old"]
        await store.advance(_keep(4, 5, generation=2))
        assert await store.advance(replace(swap, expected=5, position=5))
        assert [d.key for d in await store.list_documents(NAME, "", "", 10)] == ["new"]
        assert not await store.advance(_keep(5, 6, "late"))
        assert not await store.advance(replace(swap, expected=5, position=5))

    @behaviour
    async def test_only_what_is_retired_is_cleared_and_piece_by_piece(self, rig: Rig) -> None:
        store = rig.store
        await store.advance(_begin())
        await store.advance(_keep(-1, 1, "a", "b", "c"))
        assert await store.clear_documents(NAME, 1, 10) == 0
        await store.advance(_begin(2, retires=(1,)))
        assert await store.clear_documents(NAME, 1, 2) == 2
        assert [c.generation for c in await store.checkpoints(NAME)] == [1, 2]
        assert await store.clear_documents(NAME, 1, 2) == 1
        assert [c.generation for c in await store.checkpoints(NAME)] == [2]
        assert await store.documents(NAME, ["c"], generation=1) == []

    @behaviour
    async def test_what_the_feed_has_behind_a_position_is_counted(self, rig: Rig) -> None:
        store = rig.store
        await rig.done(step("m-1", on="a"), step("m-1", on="b"))
        feed = await store.feed(0, 100)
        behind = await store.behind(0, 100)
        assert (behind.events, behind.since_us) == (len(feed), feed[0][2].time_us)
        assert (await store.behind(0, 1)).events == 1
        assert (await store.behind(feed[0][0], 100)).events == len(feed) - 1
        assert (await store.behind(feed[-1][0], 100)).since_us is None

    @behaviour
    async def test_attributes_are_replaced_as_a_whole_or_left_alone(self, rig: Rig) -> None:
        store = rig.store
        first, second = rows_of({"customer": "c-7", "amount": 5}), rows_of({"amount": 6.5})
        await rig.done(replace(step("m-1"), attributes=first))
        await rig.done(step("m-2", after=2))
        assert await store.attributes(order()) == list(first)
        await rig.done(replace(step("m-3", after=3), attributes=second))
        assert await store.attributes(order()) == [AttributeRow("amount", "number", None, 6.5)]
        await rig.done(replace(step("m-4", after=4), attributes=()))
        assert await store.attributes(order()) == []

    @behaviour
    async def test_instances_are_found_by_their_attributes_in_the_order_of_their_beginning(self, rig: Rig) -> None:
        units = [_with(f"o-{n}", customer="c-7" if n % 2 else "c-8", amount=n, late=n > 3) for n in (5, 1, 4, 3, 2)]
        await rig.done(*units)
        store = rig.store

        async def found(
            *conditions: tuple[str, str, str | int | float | bool], limit: int = 10, after: int = 0
        ) -> list[str]:
            where = InstanceFilter(attributes=conditions_of(conditions))
            return [row.id for row in await store.instances(where, limit, after)]

        assert await found(("customer", "=", "c-7")) == ["o-5", "o-1", "o-3"]
        assert await found(("amount", ">", 1), ("amount", "<=", 4)) == ["o-4", "o-3", "o-2"]
        assert await found(("customer", "=", "c-7"), ("amount", ">=", 3), ("late", "=", False)) == ["o-3"]
        assert await found(("late", "=", True), ("amount", "<", 4.5)) == ["o-4"]
        assert await found(("nothing", "=", "c-7")) == []
        first = await store.instances(InstanceFilter(attributes=conditions_of({"customer": "c-7"})), 1)
        assert await found(("customer", "=", "c-7"), after=first[0].key) == ["o-1", "o-3"]
        assert await found(("amount", ">", 0), limit=2) == ["o-5", "o-1"]

    @behaviour
    async def test_instances_are_found_by_a_part_of_their_error_and_by_time(self, rig: Rig) -> None:
        await rig.done(step("m-1", on="a"))
        rig.clock.advance(10)
        await rig.done(replace(step("m-1", on="b"), status="suspended", error="card%refused"))
        a, b = await rig.store.instances(InstanceFilter(), 10)
        for where, expected in (
            (InstanceFilter(error="d%r"), ["b"]),
            (InstanceFilter(error="D%R"), []),
            (InstanceFilter(created_from_us=b.created_us), ["b"]),
            (InstanceFilter(created_to_us=b.created_us), ["a"]),
            (InstanceFilter(updated_from_us=a.updated_us, updated_to_us=b.updated_us), ["a"]),
        ):
            assert [row.id for row in await rig.store.instances(where, 10)] == expected


def _with(id: str, **attributes: str | float | bool) -> Unit:
    return replace(step("m-1", on=id), attributes=rows_of(attributes))
