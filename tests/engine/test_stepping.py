import asyncio
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.app.internals import internals_of
from mainspring.core.story import table, tell
from mainspring.errors import DuplicateIdError, InstanceFailedError, OperationError, WaitTimeoutError, WiringError
from tests.engine.shop import (
    AskTotal,
    Break,
    Charge,
    Charged,
    Note,
    Paying,
    PlaceOrder,
    Receipted,
    Ship,
    Shipped,
    Shop,
    Total,
)
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


def shop(app: Mainspring, workflow: type[Shop] = Shop) -> Mainspring:
    """A shop in which everything works."""
    app.add(workflow())

    @app.handler
    async def charge(command: Charge) -> Charged:
        return Charged(command.order_id)

    @app.handler
    async def ship(command: Ship) -> Shipped:
        return Shipped(command.order_id)

    return app


def closed_shop(app: Mainspring, workflow: type[Shop] = Shop) -> Mainspring:
    """A shop whose handlers run elsewhere: an order stays where it is."""
    app.add(workflow())
    app.external(Charge, Ship)
    return app


def test_an_order_goes_its_whole_way_and_its_stream_tells_it(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            receipt = await app.send(PlaceOrder("o-1", 42), id="m-1")
            assert receipt.status == "stepped"
            assert await receipt.result() == Receipted("o-1", 0)
            assert table(tell(await receipt.stream())) == (
                "position  kind     direction  event              message\n"
                "1                             Began\n"
                "2         command  input      InitiatedBy        PlaceOrder(order_id='o-1', amount=42)\n"
                "3         command  output     Sent               Charge(order_id='o-1', amount=42)\n"
                "4         timer    output     Scheduled          TimedOut(order_id='o-1') after 5 min\n"
                "5         result   input      Received           Charged(order_id='o-1')\n"
                "6         timer    output     ScheduleCancelled  'TimedOut'\n"
                "7         command  output     Sent               Ship(order_id='o-1')\n"
                "8         result   input      Received           Shipped(order_id='o-1')\n"
                "9                             Completed          Receipted(order_id='o-1', notes=0)"
            )
            stream = await receipt.stream()
            assert [e.message_id for e in stream if e.message_id] == [
                "m-1",
                "Shop/o-1/3",
                "Shop/o-1/4",
                "Shop/o-1/3/1",
                "Shop/o-1/7",
                "Shop/o-1/7/1",
            ]
            stats = await app.stats()
            assert (stats.instances, stats.outbox, stats.timers, stats.inbox) == ({"completed": 1}, 0, 0, 0)

    run(main)


def test_inputs_of_one_instance_are_taken_in_the_order_of_their_acceptance(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            await app.send(PlaceOrder("o-1"))
            await asyncio.gather(*(app.send(Note("o-1", str(n))) for n in range(300)))
            state = await app.instance(Shop, "o-1").state()
            assert isinstance(state, Paying)
            assert state.notes == tuple(str(n) for n in range(300))

    run(main)


def test_the_same_id_and_message_again_is_answered_the_same_and_taken_once(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            await app.send(PlaceOrder("o-1"), id="begin")
            first = await app.send(Note("o-1", "a"), id="m-1")
            again = await app.send(Note("o-1", "a"), id="m-1")
            begun_again = await app.send(PlaceOrder("o-1"), id="begin")
            assert (first.status, again.status, begun_again.status) == ("stepped", "duplicate", "duplicate")
            state = await app.instance(Shop, "o-1").state()
            assert isinstance(state, Paying)
            assert state.notes == ("a",)

    run(main)


def test_the_same_id_with_another_message_is_refused(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            await app.send(PlaceOrder("o-1"), id="begin")
            await app.send(Note("o-1", "a"), id="m-1")
            with pytest.raises(DuplicateIdError, match="another message with the id 'm-1'"):
                await app.send(Note("o-1", "b"), id="m-1")

    run(main)


def test_a_duplicate_is_known_after_the_end_and_after_a_restart(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            receipt = await app.send(PlaceOrder("o-1"), id="begin")
            await receipt.result()
            assert (await app.send(PlaceOrder("o-1"), id="begin")).status == "duplicate"
        async with shop(make_app()) as app:
            assert (await app.send(PlaceOrder("o-1"), id="begin")).status == "duplicate"
            assert await app.dead_letters() == []

    run(main)


def test_a_message_for_nobody_is_kept_as_a_dead_letter(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            receipt = await app.send(Note("o-9", "hello"), id="m-1")
            assert receipt.status == "dead letter"
            [letter] = await app.dead_letters()
            assert letter.reason == "there is no instance Shop/o-9, and Note may not begin one"
            assert (letter.type, letter.message, letter.message_id) == ("Note", Note("o-9", "hello"), "m-1")

            await app.retry_dead_letter(letter.id)
            assert await app.dead_letters() == [letter]
            await app.send(PlaceOrder("o-9"))
            await app.retry_dead_letter(letter.id)
            assert await app.dead_letters() == []
            state = await app.instance(Shop, "o-9").state()
            assert isinstance(state, Paying)
            assert state.notes == ("hello",)

    run(main)


def test_a_message_for_an_ended_instance_is_kept_as_a_dead_letter(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            await (await app.send(PlaceOrder("o-1"))).result()
            receipt = await app.send(Note("o-1", "late"), id="late")
            assert receipt.status == "dead letter"
            assert (await app.send(Note("o-1", "late"), id="late")).status == "duplicate"
            [letter] = await app.dead_letters()
            assert letter.reason == "Shop/o-1 has completed already"
            await app.discard_dead_letter(letter.id)
            assert await app.dead_letters() == []

    run(main)


def test_a_failed_decide_suspends_its_own_instance_and_keeps_the_input(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            await app.send(PlaceOrder("o-1"))
            await app.send(PlaceOrder("o-2"))
            receipt = await app.send(Break("o-1"))
            behind = await app.send(Note("o-1", "waits"))
            other = await app.send(Note("o-2", "flows"))
            assert (receipt.status, behind.status, other.status) == ("suspended", "suspended", "stepped")
            row = await receipt.row()
            assert (row.status, row.error) == ("suspended", "ZeroDivisionError: broken on purpose")
            assert [waiting.type for waiting in await receipt.waiting()] == ["Break", "Note"]
            assert [type(e.event).__name__ for e in await receipt.stream()][-1] == "Suspended"

    run(main)


def test_a_skipped_input_lets_those_behind_it_through(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            await app.send(PlaceOrder("o-1"))
            receipt = await app.send(Break("o-1"))
            await app.send(Note("o-1", "waits"))
            await receipt.skip(actor="ann")
            await until(lambda: _noted(app, "o-1", ("waits",)))
            kinds = [type(e.event).__name__ for e in await receipt.stream()]
            assert kinds[-3:] == ["Suspended", "Skipped", "Received"]
            assert (await receipt.stream())[-2].actor == "ann"
            assert (await receipt.row()).status == "running"

    run(main)


async def _noted(app: Mainspring, id: str, notes: tuple[str, ...]) -> bool:
    state = await app.instance(Shop, id).state()
    return isinstance(state, Paying) and state.notes == notes


def test_a_mended_workflow_takes_the_failed_input_when_retried(make_app: MakeApp) -> None:
    class Mended(Shop):
        name = "Shop"

        def decide(self, message: Any, state: Any) -> Any:
            return [] if isinstance(message, Break) else super().decide(message, state)

    async def main() -> None:
        async with closed_shop(make_app()) as app:
            await app.send(PlaceOrder("o-1"))
            await app.send(Break("o-1"))
            await app.send(Note("o-1", "behind"))
        async with closed_shop(make_app(), Mended) as app:
            await app.instance(Mended, "o-1").retry(actor="ann")
            await until(lambda: _noted_in(app, Mended))
            stream = await app.instance(Mended, "o-1").stream()
            assert [type(e.event).__name__ for e in stream][-3:] == ["Resumed", "Received", "Received"]
            assert next(e.actor for e in stream if type(e.event).__name__ == "Resumed") == "ann"

    async def _noted_in(app: Mainspring, workflow: type[Shop]) -> bool:
        state = await app.instance(workflow, "o-1").state()
        return isinstance(state, Paying) and state.notes == ("behind",)

    run(main)


def test_an_instance_whose_first_decide_fails_is_suspended_without_a_stream(make_app: MakeApp) -> None:
    class Fragile(Shop):
        name = "Shop"

        def decide(self, message: Any, state: Any) -> Any:
            raise RuntimeError("not today")

    async def main() -> None:
        async with closed_shop(make_app(), Fragile) as app:
            receipt = await app.send(PlaceOrder("o-1"), id="begin")
            assert receipt.status == "suspended"
            assert (await receipt.row()).position == 0
            assert (await app.send(PlaceOrder("o-1"), id="begin")).status == "duplicate"
        async with closed_shop(make_app()) as app:
            await app.instance(Shop, "o-1").retry()
            await until(lambda: _noted(app, "o-1", ()))
            assert type((await app.instance(Shop, "o-1").stream())[0].event).__name__ == "Began"

    run(main)


@pytest.mark.parametrize("mode", ["inbox", {Note: "inbox"}])
def test_an_input_may_go_through_the_inbox_and_the_stream_is_the_same(make_app: MakeApp, mode: Any) -> None:
    class Boxed(Shop):
        name = "Shop"

    Boxed.mode = mode

    async def main() -> None:
        async with closed_shop(make_app(), Boxed) as app:
            first = await app.send(PlaceOrder("o-1"))
            assert first.status == ("accepted" if mode == "inbox" else "stepped")
            receipt = await app.send(Note("o-1", "a"), id="m-1")
            assert receipt.status == "accepted"
            assert (await app.send(Note("o-1", "a"), id="m-1")).status == "duplicate"
            await until(lambda: _boxed(app))
            assert [type(e.event).__name__ for e in await first.stream()] == [
                "Began",
                "InitiatedBy",
                "Sent",
                "Scheduled",
                "Received",
            ]

    async def _boxed(app: Mainspring) -> bool:
        if not await app.instances():
            return False  # accepted, and not begun yet
        state = await app.instance(Boxed, "o-1").state()
        return isinstance(state, Paying) and state.notes == ("a",)

    run(main)


def test_a_request_awaits_its_reply(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            await app.send(PlaceOrder("o-1", 42))
            assert await app.request(AskTotal("o-1"), id="r-1") == Total(42)
            assert await app.request(AskTotal("o-1"), id="r-1") == Total(42)

    run(main)


def test_a_reply_that_nobody_waits_for_is_recorded_as_undelivered(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            await app.send(PlaceOrder("o-1", 42))
            await app.send(AskTotal("o-1"))
            rows = await internals_of(app).engine.store.stream(app.instance(Shop, "o-1")._ref, 0, 100)  # noqa: SLF001  the row itself is what is looked at
            assert rows[-1].detail == b'{"undelivered":true}'
            assert (await app.stats()).outbox == 1  # the charge; the reply goes nowhere

    run(main)


def test_waiting_for_a_result_has_an_end(make_app: MakeApp) -> None:
    from datetime import timedelta  # noqa: PLC0415

    async def main() -> None:
        async with closed_shop(make_app()) as app:
            receipt = await app.send(PlaceOrder("o-1"))
            with pytest.raises(WaitTimeoutError, match=r"Waited 0.05 s for Shop/o-1; it is running"):
                await receipt.result(timedelta(seconds=0.05))

    run(main)


def test_a_cancelled_instance_is_ended_with_its_work(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            receipt = await app.send(PlaceOrder("o-1"))
            await receipt.cancel("the customer called", actor="ann")
            with pytest.raises(InstanceFailedError, match="has cancelled: the customer called"):
                await receipt.result()
            stats = await app.stats()
            assert (stats.outbox, stats.timers) == (0, 0)
            with pytest.raises(OperationError, match="cannot be cancelled: it has cancelled"):
                await receipt.cancel()
            assert (await app.send(Note("o-1", "late"))).status == "dead letter"

    run(main)


def test_a_suspended_instance_queues_and_a_resumed_one_goes_on(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            receipt = await app.send(PlaceOrder("o-1"))
            await receipt.suspend("holiday", actor="ann")
            assert (await app.send(Note("o-1", "a"))).status == "suspended"
            await receipt.resume(actor="bob")
            await until(lambda: _noted(app, "o-1", ("a",)))
            with pytest.raises(OperationError, match="cannot be resumed: it is running"):
                await receipt.resume()

    run(main)


def test_an_instance_resumed_by_another_process_goes_on_here(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as here:
            await here.send(PlaceOrder("o-1"))
            await here.send(Break("o-1"))
            await here.send(Note("o-1", "parked"))
            elsewhere = closed_shop(make_app())
            await elsewhere.start(work=False)
            await elsewhere.instance(Shop, "o-1").skip()
            await elsewhere.stop()
            await until(lambda: _noted(here, "o-1", ("parked",)))
            assert (await here.send(Note("o-1", "more"))).status == "stepped"

    run(main)


def test_two_workers_on_one_instance_lose_nothing_and_repeat_nothing(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as left, closed_shop(make_app()) as right:
            await left.send(PlaceOrder("o-1"))
            sends = [
                app.send(Note("o-1", f"{name}{n}")) for n in range(40) for name, app in (("l", left), ("r", right))
            ]
            await asyncio.gather(*sends)

            async def all_taken() -> bool:
                state = await left.instance(Shop, "o-1").state()
                return isinstance(state, Paying) and len(state.notes) == 80

            await until(all_taken)
            state = await left.instance(Shop, "o-1").state()
            assert isinstance(state, Paying)
            assert len(set(state.notes)) == 80

    run(main)


def test_many_are_sent_together(make_app: MakeApp) -> None:
    async def main() -> None:
        async with shop(make_app()) as app:
            receipts = await app.send_many([PlaceOrder(f"o-{n}") for n in range(500)])
            assert {receipt.status for receipt in receipts} == {"stepped"}
            assert [await receipt.result() for receipt in receipts] == [Receipted(f"o-{n}", 0) for n in range(500)]
            assert internals_of(app).engine.committer.batches < 200

    run(main)


def test_a_message_that_no_workflow_takes_is_refused_with_what_to_do(make_app: MakeApp) -> None:
    async def main() -> None:
        async with closed_shop(make_app()) as app:
            with pytest.raises(WiringError, match=r"No workflow takes Charge.*this app knows Shop"):
                await app.send(Charge("o-1", 1))

    run(main)
