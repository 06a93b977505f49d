"""The read side: remembered results, instances, stats."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from msgspec.structs import replace

from mainspring.port.records import InstanceFilter, Remembered, Unit
from mainspring.testing.store_contract.rig import (
    ORDERS,
    Rig,
    Suite,
    accept,
    behaviour,
    letter,
    order,
    send,
    step,
    timer,
)


def _remembering(rig: Rig, seconds: float, body: bytes = b'{ "n":1 }', key: str = "charge:o-1") -> Unit:
    expires_us = rig.store.now_us() + round(seconds * 1_000_000)
    return Unit(ORDERS, "o-1", remembers=(Remembered(key, "Charged", 2, body, expires_us),))


class ReadingTests(Suite):
    """What people and tools ask a store."""

    @behaviour
    async def test_a_remembered_result_comes_back_whole(self, rig: Rig) -> None:
        unit = _remembering(rig, 60)
        await rig.done(unit)
        assert await rig.store.remembered("charge:o-1") == unit.remembers[0]

    @behaviour
    async def test_a_remembered_nothing_comes_back(self, rig: Rig) -> None:
        nothing = Remembered("k", None, 1, b"null", rig.store.now_us() + 1)
        await rig.done(Unit(ORDERS, "o-1", remembers=(nothing,)))
        assert await rig.store.remembered("k") == nothing

    @behaviour
    async def test_what_was_never_remembered_is_none(self, rig: Rig) -> None:
        await rig.done(_remembering(rig, 60))
        assert await rig.store.remembered("charge:o-2") is None

    @behaviour
    async def test_a_remembered_result_expires(self, rig: Rig) -> None:
        await rig.done(_remembering(rig, 60))
        rig.clock.advance(59.999_999)
        assert await rig.store.remembered("charge:o-1") is not None
        rig.clock.advance(0.000_001)
        assert await rig.store.remembered("charge:o-1") is None

    @behaviour
    async def test_an_expired_result_makes_room_for_a_new_one(self, rig: Rig) -> None:
        await rig.done(_remembering(rig, 60))
        rig.clock.advance(61)
        await rig.done(_remembering(rig, 60, body=b"{}"))
        result = await rig.store.remembered("charge:o-1")
        assert result is not None
        assert result.body == b"{}"

    @behaviour
    async def test_instances_come_in_the_order_of_their_beginning(self, rig: Rig) -> None:
        await rig.done(step("m-1", on="c"), step("m-1", on="a"))
        await rig.done(step("m-1", on="b"), step("m-2", on="c", after=2))
        assert await self._ids(rig, InstanceFilter()) == ["c", "a", "b"]

    @behaviour
    async def test_instances_are_read_in_pages(self, rig: Rig) -> None:
        await rig.done(*(step("m-1", on=f"o-{n}") for n in range(5)))
        first = await rig.store.instances(InstanceFilter(), 3)
        second = await rig.store.instances(InstanceFilter(), 3, after=first[-1].key)
        assert [row.id for row in [*first, *second]] == [f"o-{n}" for n in range(5)]

    @behaviour
    async def test_a_listed_instance_is_the_one_that_loads(self, rig: Rig) -> None:
        await rig.done(step("m-1", status="failed", error="boom"))
        (row,) = await rig.store.instances(InstanceFilter(), 10)
        (loaded,) = await rig.store.load([order()])
        assert loaded is not None
        assert loaded.row == row

    @behaviour
    async def test_an_inbox_alone_is_no_instance(self, rig: Rig) -> None:
        await rig.done(accept("w-1"))
        assert await self._ids(rig, InstanceFilter()) == []

    @behaviour
    async def test_instances_are_narrowed_by_workflow(self, rig: Rig) -> None:
        await rig.done(step("m-1", on="a"), replace(step("m-1", on="b"), workflow="Fines"))
        assert await self._ids(rig, InstanceFilter(workflow="Fines")) == ["b"]

    @behaviour
    async def test_instances_are_narrowed_by_status(self, rig: Rig) -> None:
        await rig.done(step("m-1", on="a"), step("m-1", on="b", status="suspended"))
        assert await self._ids(rig, InstanceFilter(status="suspended")) == ["b"]

    @behaviour
    async def test_instances_are_narrowed_by_state(self, rig: Rig) -> None:
        await rig.done(step("m-1", on="a", state="New"), step("m-1", on="b", state="Old"))
        assert await self._ids(rig, InstanceFilter(state="Old")) == ["b"]

    @behaviour
    async def test_instances_are_narrowed_by_the_beginning_of_their_id(self, rig: Rig) -> None:
        await rig.done(*(step("m-1", on=id) for id in ["a_1", "ab1", "A_1", "a%1", "xa_1"]))
        assert await self._ids(rig, InstanceFilter(id_prefix="a_")) == ["a_1"]
        assert await self._ids(rig, InstanceFilter(id_prefix="a%")) == ["a%1"]

    @behaviour
    async def test_every_narrowing_counts_and_so_does_the_page(self, rig: Rig) -> None:
        await rig.done(*(step("m-1", on=f"o-{n}", state="New" if n % 2 else "Old") for n in range(8)))
        where = InstanceFilter(workflow=ORDERS, status="running", state="New", id_prefix="o-")
        first = await rig.store.instances(where, 2)
        second = await rig.store.instances(where, 2, after=first[-1].key)
        assert [row.id for row in [*first, *second]] == ["o-1", "o-3", "o-5", "o-7"]

    @behaviour
    async def test_the_stats_of_an_empty_store_are_zero(self, rig: Rig) -> None:
        stats = await rig.store.stats()
        assert (sum(stats.instances.values()), stats.inbox, stats.outbox, stats.timers) == (0, 0, 0, 0)
        assert (stats.dead_letters, stats.oldest_due_us, stats.workers) == (0, None, 2)

    @behaviour
    async def test_workers_are_told_with_their_names_and_leases(self, rig: Rig) -> None:
        before = {worker.key for worker in await rig.store.workers()}
        key = await rig.store.register_worker("host:4711", 30_000_000)
        [found] = [worker for worker in await rig.store.workers() if worker.key not in before]
        assert (found.key, found.name, found.lease_us) == (key, "host:4711", 30_000_000)
        assert abs(found.heard_us - rig.store.now_us()) < 30_000_000
        await rig.store.release_worker(key)
        assert {worker.key for worker in await rig.store.workers()} == before

    @behaviour
    async def test_workers_say_what_they_know_and_what_they_hold_back(self, rig: Rig) -> None:
        before = {worker.key for worker in await rig.store.workers()}
        key = await rig.store.register_worker("host:4711", 30_000_000, "what it knows")

        async def said() -> list[tuple[str, str]]:
            return [(each.knows, each.standing) for each in await rig.store.workers() if each.key not in before]

        assert await said() == [("what it knows", "")]
        await rig.store.heartbeat(key, "a destination")
        assert await said() == [("what it knows", "a destination")]
        await rig.store.heartbeat(key)
        assert await said() == [("what it knows", "")]
        await rig.store.release_worker(key)

    @behaviour
    async def test_stats_count_instances_by_their_status(self, rig: Rig) -> None:
        await rig.done(step("m-1"), step("m-1", on="o-2"), step("m-1", on="o-3", status="completed"))
        counted = (await rig.store.stats()).instances
        assert {status: count for status, count in counted.items() if count} == {"running": 2, "completed": 1}

    @behaviour
    async def test_the_tally_counts_instances_by_workflow_and_status(self, rig: Rig) -> None:
        assert await rig.store.tally() == {}
        await rig.done(step("m-1"), step("m-1", on="o-2"), step("m-1", on="o-3", status="completed"))
        await rig.done(replace(step("m-1", on="o-4", status="suspended"), workflow="Others"))
        assert await rig.store.tally() == {(ORDERS, "running"): 2, (ORDERS, "completed"): 1, ("Others", "suspended"): 1}

    @behaviour
    async def test_stats_tell_the_depths(self, rig: Rig) -> None:
        await rig.begun(send(), send(claimed=True), timer())
        await rig.done(accept("w-1", "w-2"), accept("w-1", on="o-2"), Unit(ORDERS, "o-1", dead_letters=(letter(),)))
        stats = await rig.store.stats()
        assert (stats.inbox, stats.outbox, stats.timers, stats.dead_letters) == (3, 2, 1, 1)

    @behaviour
    async def test_stats_tell_since_when_the_oldest_output_is_due(self, rig: Rig) -> None:
        await rig.begun(timer(after_seconds=10), send(after_us=5_000_000))
        assert (await rig.store.stats()).oldest_due_us is None
        due_us = rig.store.now_us() + 5_000_000
        rig.clock.advance(60)
        assert (await rig.store.stats()).oldest_due_us == due_us

    async def _ids(self, rig: Rig, where: InstanceFilter) -> list[str]:
        return [row.id for row in await rig.store.instances(where, 100)]
