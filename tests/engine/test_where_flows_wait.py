"""Where a flow waits, asked of a running app: now, at every position of its stream, and when it cannot be told."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from pathlib import Path

import pytest

from mainspring import Mainspring
from mainspring.engine.watching import code_watch
from mainspring.errors import InstancePurgedError, NoSuchInstanceError, OperationError
from mainspring.flows import receive
from mainspring.sealing import Encrypted, FileKeys
from mainspring.testing.samples import Count, Counter
from mainspring.views import WaitsAt
from tests.edges import flow_shop
from tests.edges.flow_shop import Confirmed, PlaceOrder, fulfil
from tests.support.running import run
from tests.support.waiting import until

CALLED_IN_FULFIL = ["await receive(Confirmed)", "await confirmed(charged)"]
EVENTS = (
    "Began InitiatedBy Sent Received Scheduled Received ScheduleCancelled Sent Sent Received Received Asked Received "
    "TaskClosed Completed"
)
GATHER = "parcels = await asyncio.gather(ship(order.order_id, 1), ship(order.order_id, 2))"


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mainspring:
    monkeypatch.chdir(tmp_path)
    return flow_shop.app


async def begun(app: Mainspring, id: str = "o-1") -> None:
    """Let an order come to where it waits for its confirmation."""
    await app.send(PlaceOrder(id, "4111"))
    await at_position(app, 5, id)


async def at_position(app: Mainspring, position: int, id: str = "o-1") -> None:
    async def there() -> bool:
        return (await app.instance(fulfil, id).row()).position >= position

    await until(there)


def texts(found: WaitsAt) -> list[list[str]]:
    return [[frame.text for frame in code.frames] for code in found.waiting]


def test_an_instance_tells_its_line_its_calls_and_its_variables(app: Mainspring) -> None:
    async def main() -> None:
        async with app:
            await begun(app)
            found = await app.instance(fulfil, "o-1").waits_at()
            (code,) = found.waiting

            assert (found.position, found.is_flow, found.ended, found.problem) == (5, True, False, None)
            assert (code.awaits, [frame.text for frame in code.frames]) == ("a message Confirmed", CALLED_IN_FULFIL)
            assert {each.name: each.value for each in code.frames[0].variables} == {
                "receipt": "'charge of 4111'",
                "shown": "'CHARGE OF 4111'",
            }
            scheduled = (await app.instance(fulfil, "o-1").stream())[4].time
            assert scheduled is not None
            assert code.times_out == scheduled + timedelta(hours=1)

    run(main)


def test_each_position_tells_where_the_code_waited_behind_its_step(app: Mainspring) -> None:
    charging, shipping = [["charged = await charge(order.order_id, order.card)"]], [[GATHER]] * 3
    asking = [['await ask(f"Release {order.order_id}?", Release, role="lead")']]

    async def main() -> None:
        async with app:
            await begun(app)
            instance = app.instance(fulfil, "o-1")
            await app.send(Confirmed("o-1"))
            await at_position(app, 12)
            (task,) = await app.tasks.list()
            await app.tasks.complete(task.id, "Release", {"order_id": "o-1"}, actor="ann", roles=["lead"])
            await instance.result()
            events = [type(entry.event).__name__ for entry in await instance.stream()]
            assert " ".join(events) == EVENTS
            found = [await instance.waits_at(position) for position in range(1, 16)]

            assert [texts(each) for each in found] == (
                [charging] * 3 + [[CALLED_IN_FULFIL]] * 2 + [shipping] * 4 + [shipping[1:]] + [asking] * 2 + [[]] * 3
            )
            assert [each.ended for each in found] == [False] * 12 + [True] * 3
            assert {each.problem for each in found} == {None}
            assert [each.position for each in found] == list(range(1, 16))

    run(main)


def test_a_position_that_is_not_there_and_an_instance_that_is_not_are_said(app: Mainspring) -> None:
    async def main() -> None:
        async with app:
            await begun(app)
            with pytest.raises(OperationError, match="has no position 9"):
                await app.instance(fulfil, "o-1").waits_at(9)
            with pytest.raises(NoSuchInstanceError):
                await app.instance(fulfil, "o-2").waits_at()

    run(main)


def test_one_that_was_ended_from_outside_tells_where_it_waited_until_it_is_purged(app: Mainspring) -> None:
    async def main() -> None:
        async with app:
            await begun(app)
            instance = app.instance(fulfil, "o-1")
            await instance.terminate()
            found = await instance.waits_at()
            assert (found.ended, texts(found)) == (True, [CALLED_IN_FULFIL])
            await app.purge(older_than=timedelta(0))
            with pytest.raises(InstancePurgedError):
                await instance.waits_at()

    run(main)


def test_behind_a_reset_it_waits_again_where_it_waited_and_what_was_left_behind_tells_its_own(app: Mainspring) -> None:
    async def main() -> None:
        async with app:
            await begun(app)
            instance = app.instance(fulfil, "o-1")
            await app.send(Confirmed("o-1"))
            await at_position(app, 12)
            await instance.reset(5)
            assert texts(await instance.waits_at()) == [CALLED_IN_FULFIL]
            assert texts(await instance.waits_at(8)) == [[GATHER]] * 3

    run(main)


def test_one_whose_code_was_changed_says_what_has_drifted(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    async def changed(order: PlaceOrder) -> int:
        await flow_shop.ship(order.order_id, 7)
        return 7

    async def main() -> None:
        async with app:
            await begun(app)
            monkeypatch.setattr(type(fulfil), "function", staticmethod(changed))
            found = await app.instance(fulfil, "o-1").waits_at()

            assert (found.ended, found.waiting) == (False, ())
            assert found.problem is not None
            assert "DriftError" in found.problem
            assert "charge" in found.problem

    run(main)


def test_code_that_now_ends_too_early_is_told(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    async def early(order: PlaceOrder) -> int:
        await flow_shop.charge(order.order_id, order.card)
        async with asyncio.timeout(3_600):
            await asyncio.sleep(0)
        return 7

    async def main() -> None:
        async with app:
            await begun(app)
            monkeypatch.setattr(type(fulfil), "function", staticmethod(early))
            found = await app.instance(fulfil, "o-1").waits_at()

            assert (found.ended, found.waiting) == (False, ())
            assert found.problem == "today's code ends behind this position, and what is recorded does not"

    run(main)


def test_variables_that_take_for_ever_to_show_are_ended(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_watch, "STEP_SECONDS", 0.2)
    ends = asyncio.Event()

    class Endless:
        def __repr__(self) -> str:
            while not ends.is_set():
                pass
            return ""

    async def slow(order: PlaceOrder) -> int:
        endless = Endless()
        await flow_shop.charge(order.order_id, order.card)
        return 0 if endless else 1

    async def main() -> None:
        async with app:
            await app.send(PlaceOrder("o-1", "4111"))
            await begun(app)
            monkeypatch.setattr(type(fulfil), "function", staticmethod(slow))
            found = await app.instance(fulfil, "o-1").waits_at(3)

            assert found.problem is not None
            assert "SlowStepError" in found.problem

    try:
        run(main)
    finally:
        ends.set()


def test_nothing_of_the_variables_is_logged(app: Mainspring, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with app:
            await begun(app)
            await app.instance(fulfil, "o-1").waits_at()

    with caplog.at_level(logging.DEBUG):
        run(main)
    assert "4111" not in caplog.text


def sealed(keys: FileKeys) -> Mainspring:
    app = Mainspring("sqlite:///sealed.db", seal=Encrypted(keys, subject=lambda about, _: about.instance))

    @app.flow(id="order_id")
    async def order(order: PlaceOrder) -> None:
        await receive(Confirmed)

    return app


def test_with_a_seal_lines_are_told_and_of_erased_data_that_they_are_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    keys = FileKeys(tmp_path / "keys")

    async def main() -> None:
        async with sealed(keys) as app:
            await app.send(PlaceOrder("o-1", "4111"))
            found = await app.instance_at("order/o-1").waits_at()
            assert texts(found) == [["await receive(Confirmed)"]]
        keys.destroy("o-1")
        async with sealed(keys) as app:
            found = await app.instance_at("order/o-1").waits_at()
            assert found.waiting == ()
            assert found.problem is not None
            assert "erased" in found.problem
            assert "4111" not in found.problem

    run(main)


def test_a_workflow_that_is_no_flow_says_so() -> None:
    async def main() -> None:
        app = Mainspring("memory://")
        app.add(Counter())
        async with app:
            await app.send(Count("c-1"))
            found = await app.instance(Counter, "c-1").waits_at()

            assert (found.is_flow, found.waiting, found.problem) == (False, (), None)

    run(main)
