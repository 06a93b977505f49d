"""Searching among instances, look by look; by what they can be found; and the timers that wait."""

# ruff: noqa: S101  a conformance suite asserts

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from mainspring.port.attributes import conditions_of, rows_of
from mainspring.port.records import FAN_OUT, InstanceFilter, Unit
from mainspring.testing.store_contract.rig import ORDERS, Rig, Suite, behaviour, send, step, timer

_STATUSES: Final = ("running", "suspended", "completed", "failed")

SEARCHES: Final = (
    InstanceFilter(),
    InstanceFilter(workflow="Fines"),
    InstanceFilter(workflow="Nothing"),
    InstanceFilter(status="running"),
    InstanceFilter(status="suspended"),
    InstanceFilter(state="Old"),
    InstanceFilter(workflow_version=1),
    InstanceFilter(workflow_version=2),
    InstanceFilter(workflow_version=2, workflow=ORDERS),
    InstanceFilter(id_prefix="b"),
    InstanceFilter(id_prefix="b-1"),
    InstanceFilter(id_prefix="b-1", workflow=ORDERS),
    InstanceFilter(id_prefix="b-1", status="failed"),
    InstanceFilter(id_prefix="\U0010ffff"),
    InstanceFilter(error="boom"),
    InstanceFilter(error="boom 3", status="failed"),
    InstanceFilter(created_from_us=0),
    InstanceFilter(updated_to_us=0),
    InstanceFilter(attributes=conditions_of({"customer": "c-1"})),
    InstanceFilter(attributes=conditions_of({"customer": "c-1", "vip": True}), status="running"),
    InstanceFilter(attributes=conditions_of([("amount", ">=", 5)])),
    InstanceFilter(attributes=conditions_of([("amount", ">=", 3), ("amount", "<", 9)]), state="New"),
    InstanceFilter(attributes=conditions_of([("amount", ">", 2), ("customer", "=", "c-2")])),
)


def _instances() -> list[Unit]:
    """Return instances of two workflows that differ in all by which one can search."""
    units: list[Unit] = []
    for number in range(12):
        status = _STATUSES[number % 4]
        fields: dict[str, Any] = {
            "status": status,
            "state": "New" if number % 3 else "Old",
            "error": f"boom {number}" if status == "failed" else None,
            "definition_version": 2 if number % 4 == 1 else 1,
        }
        unit = step("m-1", on=f"{'ab'[number % 2]}-{number}", **fields)
        found_by = rows_of({"customer": f"c-{number % 3}", "amount": number, "vip": number < 6})
        units.append(replace(unit, workflow=ORDERS if number % 5 else "Fines", attributes=found_by))
    units.append(step("m-1", on="\U0010ffff-last"))
    return units


async def every_look(rig: Rig, where: InstanceFilter, limit: int, *, newest: bool) -> list[str]:
    """Return what all looks together find."""
    found: list[str] = []
    after: int | None = None
    while True:
        rows, after = await rig.store.search(where, limit, after, newest)
        assert len(rows) <= limit
        found += [row.id for row in rows]
        if after is None:
            return found


class SearchTests(Suite):
    """One look may find a part; all of them find everything, once and in order."""

    @behaviour
    async def test_all_looks_together_find_what_a_list_has(self, rig: Rig) -> None:
        await rig.done(*_instances())
        for where in SEARCHES:
            listed = [row.id for row in await rig.store.instances(where, 100)]
            for limit in (1, 2, 5, 100):
                assert await every_look(rig, where, limit, newest=False) == listed, where
                assert await every_look(rig, where, limit, newest=True) == listed[::-1], where

    @behaviour
    async def test_instances_are_found_by_the_version_of_their_workflow(self, rig: Rig) -> None:
        await rig.done(step("m-1", on="a"), replace(step("m-1", on="b"), definition_version=2))
        rows = await rig.store.instances(InstanceFilter(workflow_version=2), 10)
        assert [(row.id, row.definition_version) for row in rows] == [("b", 2)]

    @behaviour
    async def test_the_engines_own_instances_are_in_no_count(self, rig: Rig) -> None:
        await rig.done(step("m-1", on="a"), replace(step("m-1", on="b"), workflow=FAN_OUT))
        assert sum((await rig.store.stats()).instances.values()) == 1
        assert list(await rig.store.tally()) == [(ORDERS, "running")]

    @behaviour
    async def test_a_search_in_an_empty_store_is_over_at_once(self, rig: Rig) -> None:
        for newest in (False, True):
            assert await rig.store.search(InstanceFilter(), 10, None, newest) == ([], None)

    @behaviour
    async def test_a_look_from_beyond_the_end_finds_nothing_or_all(self, rig: Rig) -> None:
        await rig.done(step("m-1", on="a"), step("m-1", on="b"))
        assert await rig.store.search(InstanceFilter(), 10, 2**40) == ([], None)
        found = await rig.store.search(InstanceFilter(), 10, 2**40, newest=True)
        assert [row.id for row in found.rows] == ["b", "a"]

    @behaviour
    async def test_attributes_are_named_once_each_with_their_kinds(self, rig: Rig) -> None:
        assert await rig.store.attribute_names() == []
        several = [{"b": 1, "a": "x"}, {"b": "y", "a": "z"}, {"c": True, "b": 2.5}]
        await rig.done(*(replace(step("m-1", on=f"o-{n}"), attributes=rows_of(each)) for n, each in enumerate(several)))
        names = [("a", "text"), ("b", "number"), ("b", "text"), ("c", "flag")]
        assert [tuple(each) for each in await rig.store.attribute_names()] == names

    @behaviour
    async def test_timers_that_nobody_holds_come_by_their_due_times(self, rig: Rig) -> None:
        await rig.begun(timer("late", 90), send(), timer("held", 10, claimed=True), on="o-1")
        await rig.begun(timer("soon", 30, priority=-1), timer("sooner", 20), on="o-2")
        rig.clock.advance(100)
        waiting = await rig.store.timers(10)
        assert [(claim.instance, claim.kind) for claim in waiting] == [
            ("o-2", "timer"),
            ("o-2", "timer"),
            ("o-1", "timer"),
        ]
        assert [claim.due_us for claim in waiting] == sorted(claim.due_us for claim in waiting)
        assert [claim.output for claim in await rig.store.timers(1)] == [waiting[0].output]
