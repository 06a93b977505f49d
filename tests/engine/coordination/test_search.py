"""Instances found by what their workflow says of them, by their error, and by time."""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.errors import AttributeValueError, SettingError
from mainspring.port.attributes import rows_of
from tests.engine.shop import Break, Charge, Charged, Note, Paying, PlaceOrder, Ship, Shop, State
from tests.support.apps import MakeApp
from tests.support.running import run

DUE = datetime(2026, 1, 1, tzinfo=UTC)


class Found(Shop):
    name = "Found"

    def attributes(self, state: State) -> Mapping[str, str | int | float | bool | datetime]:
        match state:
            case Paying(order_id, amount, notes):
                due = DUE + timedelta(days=amount)
                attributes = {
                    "buyer": order_id[0],
                    "amount": amount,
                    "share": amount / 8,
                    "noted": bool(notes),
                    "due": due,
                }
                if "leave" in notes:
                    sys.exit(3)
                return {**attributes, **{note: "x" * 501 for note in notes if note == "long"}}
            case _:
                return {}


def shop(app: Mainspring) -> Mainspring:
    app.add(Found())
    app.external(Charge, Ship)
    return app


async def ids(app: Mainspring, **search: Any) -> list[str]:
    return [row.id for row in await app.instances(**search)]


def test_instances_are_found_by_equal_attributes_and_by_ranges(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            for id, amount in (("a-1", 10), ("b-1", 20), ("a-2", 30), ("a-3", 30)):
                await app.send(PlaceOrder(id, amount))
            await app.send(Note("a-2", "hello"))
            assert await ids(app, attributes={"buyer": "a"}) == ["a-1", "a-2", "a-3"]
            assert await ids(app, attributes={"buyer": "a", "amount": 30}) == ["a-2", "a-3"]
            assert await ids(app, attributes={"noted": True}) == ["a-2"]
            assert await ids(app, attributes=[("amount", ">=", 20)]) == ["b-1", "a-2", "a-3"]
            assert await ids(app, attributes=[("amount", ">", 10), ("amount", "<", 30)]) == ["b-1"]
            assert await ids(app, attributes=[("share", "=", 1.25)]) == ["a-1"]
            assert await ids(app, attributes=[("due", "<=", DUE + timedelta(days=20))]) == ["a-1", "b-1"]
            assert await ids(app, attributes=[("amount", "<", 31), ("buyer", "=", "a"), ("noted", "=", False)]) == [
                "a-1",
                "a-3",
            ]
            assert await ids(app, attributes={"buyer": "A"}) == []
            assert await ids(app, attributes={"noted": 1}) == []  # a flag is no number
            first = await app.instances(attributes={"buyer": "a"}, limit=2)
            assert await ids(app, attributes={"buyer": "a"}, after=first[-1].key) == ["a-3"]
            assert await ids(app, attributes={"buyer": "a"}, id_prefix="a-2", workflow="Found") == ["a-2"]
            assert await app.instance(Found, "a-2").attributes() == {
                "amount": 30,
                "buyer": "a",
                "due": DUE + timedelta(days=30),
                "noted": True,
                "share": 3.75,
            }

    run(main)


def test_attributes_follow_the_state_and_go_with_it(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            await app.send(PlaceOrder("a-1", 10))
            await app.send(Charged("a-1"))
            assert await ids(app, attributes={"buyer": "a"}) == []
            assert await app.instance(Found, "a-1").attributes() == {}
            await app.instance(Found, "a-1").reset(4)
            assert await ids(app, attributes={"buyer": "a"}) == ["a-1"]
            await app.instance(Found, "a-1").cancel()
            store = internals_of(app).engine.store
            await store.purge((await store.purgeable("Found", store.now_us() + 3_600_000_000, 10)).found, 1_000)
            assert await ids(app, attributes={"buyer": "a"}) == []

    run(main)


def test_unchanged_attributes_are_not_written_again(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            store, units = internals_of(app).engine.store, list[Any]()
            commit = store.commit

            async def watched(worker: int, batch: Any) -> Any:
                units.extend(batch)
                return await commit(worker, batch)

            cast("Any", store).commit = watched
            await app.send(PlaceOrder("a-1", 10))
            await app.send(Note("a-1", "one"))
            await app.send(Note("a-1", "two"))
            assert [unit.attributes is not None for unit in units] == [True, True, False]

    run(main)


def test_an_attribute_that_cannot_be_indexed_suspends_its_instance_and_says_why(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            await app.send(PlaceOrder("a-1", 10))
            await app.send(Note("a-1", "long"))
            (row,) = await app.instances(status="suspended", error="attribute long has 501 characters")
            assert (row.id, row.position) == ("a-1", 5)

    run(main)


def test_attributes_that_would_end_the_process_suspend_their_instance_alone(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            await app.send(PlaceOrder("a-1", 10))
            receipt = await app.send(Note("a-1", "leave"))
            assert receipt.status == "suspended"
            assert await ids(app, status="suspended", error="left attributes by SystemExit") == ["a-1"]
            await app.send(PlaceOrder("a-2", 10))
            assert await ids(app, status="running") == ["a-2"]

    run(main)


def test_instances_are_found_by_error_and_by_time(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            await app.send(PlaceOrder("a-1", 10))
            await app.send(PlaceOrder("a-2", 10))
            await app.send(Break("a-1"))
            one, two = await app.instances()
            second = two.began
            broken = one.updated
            assert await ids(app, error="broken on purpose") == ["a-1"]
            assert await ids(app, error="Broken%") == []
            assert await ids(app, created_to=second) == ["a-1"]
            assert await ids(app, created_from=second) == ["a-2"]
            assert await ids(app, updated_from=broken) == ["a-1"]
            assert await ids(app, updated_to=broken) == ["a-2"]
            assert await ids(app, created_to=second, attributes={"amount": 10}) == ["a-1"]
            assert await ids(app, updated_to=broken, attributes=[("amount", ">", 1)]) == ["a-2"]
            with pytest.raises(SettingError, match="with a time zone"):
                await ids(app, created_to=datetime(2026, 1, 1))  # noqa: DTZ001  that is the point

    run(main)


def test_a_workflow_that_says_nothing_writes_nothing(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Shop())
        app.external(Charge, Ship)
        async with app:
            await app.send(PlaceOrder("a-1", 10))
            assert not internals_of(app).registry.workflows["Shop"].searchable
            assert await app.instance(Shop, "a-1").attributes() == {}

    run(main)


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        ({str(n): 1 for n in range(33)}, "at most 32"),
        ({"n" * 101: 1}, "1 to 100 characters"),
        ({"": 1}, "1 to 100 characters"),
        ({"a": "x" * 501}, "at most 500"),
        ({"a": "\0"}, "cannot be stored"),
        ({"a": "\ud800"}, "cannot be stored"),
        ({"a": 2**53 + 1}, "2\\*\\*53"),
        ({"a": float("nan")}, "is nan"),
        ({"a": None}, "is a NoneType"),
        ({"a": datetime(2026, 1, 1)}, "without a zone"),  # noqa: DTZ001  that is the point
        ({"a": 1, 2: 3}, "2 is no name"),
        (None, "None is no mapping"),
    ],
)
def test_limits_are_told(attributes: Any, problem: str) -> None:
    with pytest.raises(AttributeValueError, match=problem):
        rows_of(attributes)


@pytest.mark.parametrize("hours", [-12, 0, 12])
def test_the_last_and_the_first_moment_come_back_as_such(hours: int) -> None:
    zone = timezone(timedelta(hours=hours))
    rows = rows_of({"from": datetime.min.replace(tzinfo=zone), "until": datetime.max.replace(tzinfo=zone)})
    assert [cast("datetime", row.value).year for row in rows] == [1, 9999]


@pytest.mark.parametrize(
    ("condition", "problem"), [(("a", "~", 1), "compared by '~'"), (("a", "<", "text"), "found by = only")]
)
def test_a_search_that_makes_no_sense_is_refused(condition: Any, problem: str) -> None:
    async def main() -> None:
        async with Mainspring("memory://") as app:
            with pytest.raises(AttributeValueError, match=problem):
                await app.instances(attributes=[condition])

    run(main)
