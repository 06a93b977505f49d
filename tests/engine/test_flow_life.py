"""A flow and its twin in virtual time: begun, timed out, operated on, parents, children, tasks."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

from mainspring import Mainspring
from mainspring.errors import SettingError, WiringError
from mainspring.flows import Flow, receive
from mainspring.testing import simulate
from tests.engine import computing_steps
from tests.engine.flow_orders import (
    Bundle,
    Bundler,
    CardDeclined,
    Charge,
    Choose,
    Confirmed,
    Price,
    Priced,
    Receipt,
    Ship,
    Shipped,
    charge,
    fulfil,
    orders,
    price,
    refund,
    ship,
)
from tests.engine.flow_twins import FLOW, HAND, Style, both, kinds, placed, released, world
from tests.support.running import run


def test_simulated_the_twins_record_the_same_events_and_the_stage_beside() -> None:
    async def body() -> None:
        async with world() as simulated:
            mine = await placed(simulated, FLOW, "o-1", until_stage="released")
            hand = await placed(simulated, HAND, "h-1", until_stage="released")
            # A task that decide answers is closed by its answer in both.
            assert kinds(await mine.stream()) == kinds(await hand.stream())
            assert (await mine.row()).state == "confirmed"
            assert await mine.result() == Receipt("o-1", "c-o-1", 2)

    run(body)


@both
def test_a_timeout_undoes_what_was_done(style: Style) -> None:
    async def body() -> None:
        async with world() as simulated:
            instance = await placed(simulated, style, "x-1")
            await simulated.advance(hours=1)
            assert kinds(await instance.stream())[-4:] == ["Compensating", "Sent", "Compensated", "Failed"]
            assert (await instance.row()).error == "not confirmed"

    run(body)


@both
def test_an_operator_cancels_and_compensations_run(style: Style) -> None:
    async def body() -> None:
        async with world() as simulated:
            instance = await placed(simulated, style, "x-1")
            await instance.cancel("not wanted")
            await simulated.settle()
            assert kinds(await instance.stream())[-4:] == ["Compensating", "Sent", "Compensated", "Cancelled"]
            other = await placed(simulated, style, "x-2")
            await other.terminate("at once")
            assert (await other.row()).status == "terminated"

    run(body)


@both
def test_suspended_it_keeps_inputs_and_takes_them_when_it_is_resumed(style: Style) -> None:
    async def body() -> None:
        async with world() as simulated:
            instance = await placed(simulated, style, "x-1")
            await instance.suspend("look first")
            await simulated.send(style.confirm("x-1"))
            await simulated.settle()
            assert [waiting.message for waiting in await instance.waiting()] == [style.confirm("x-1")]
            await instance.resume()
            await simulated.settle()
            assert (await instance.row()).state == style.second

    run(body)


@both
def test_a_reset_goes_back_to_where_a_timer_ran_and_the_timer_still_fires(style: Style) -> None:
    async def body() -> None:
        async with world() as simulated:
            instance = await placed(simulated, style, "x-1", until_stage="released")
            await instance.reset(5)
            assert (await instance.row()).state == "Running"
            await simulated.send(style.confirm("x-1"))
            await simulated.settle()
            assert (await instance.row()).state == style.second
            other = await placed(simulated, style, "x-2", until_stage="released")
            await other.reset(5)
            await simulated.advance(hours=1)
            assert (await other.row()).error == "not confirmed"

    run(body)


@both
def test_a_reset_goes_back_to_where_a_task_was_open_and_it_can_be_answered_again(style: Style) -> None:
    async def body() -> None:
        async with world() as simulated:
            instance = await placed(simulated, style, "x-1", until_stage="released")
            await instance.reset(8 + style.shift)
            await released(simulated.app, style, "x-1")
            await simulated.settle()
            assert (await instance.row()).status == "completed"

    run(body)


@both
def test_a_reset_goes_back_to_where_a_command_was_unanswered_and_it_is_carried_out_again(style: Style) -> None:
    async def body() -> None:
        async with world() as simulated:
            instance = await placed(simulated, style, "x-1", until_stage="confirmed")
            await instance.reset(3)
            await simulated.settle()
            await simulated.send(style.confirm("x-1"))
            await simulated.settle()
            await released(simulated.app, style, "x-1")
            await simulated.settle()
            assert (await instance.row()).status == "completed"

    run(body)


def test_steps_are_stubbed_by_what_they_return_raise_or_do() -> None:
    async def body() -> None:
        async with simulate(orders(), stubs={charge: Charge("stubbed")}) as simulated:
            mine = await placed(simulated, FLOW, "o-1", until_stage="released")
            assert (await mine.result()).charge == "stubbed"
            simulated.stub(charge, CardDeclined("no funds"))
            assert (await (await placed(simulated, FLOW, "o-2")).row()).error == "CardDeclined: no funds"
            assert len(simulated.calls(charge)) == 2, "what is declared is not tried again"
            simulated.stub(charge, [ConnectionError("down"), lambda order_id, cents: Charge(f"{order_id}/{cents}")])
            await placed(simulated, FLOW, "o-3")
            await simulated.advance(seconds=5)
            assert simulated.calls(charge)[-1].outcome == charge.returned(Charge("o-3/500"))

    run(body)


def test_a_kind_of_an_error_that_a_step_declares_is_caught_as_what_is_declared() -> None:
    app = Mainspring("memory://")

    @app.step(raises=LookupError)
    def find(id: str) -> None:
        raise KeyError(id)

    @app.flow
    async def finding(question: Price) -> str:
        try:
            await find(question.id)
        except LookupError as error:
            return str(error)
        return "found"

    async def body() -> None:
        async with simulate(app) as simulated:
            receipt = await simulated.send(Price("p-1", 3))
            await simulated.settle()
            assert await receipt.result() == "KeyError: 'p-1'"

    run(body)


mended = {"is": False}
"""Whether the code of `fragile` was mended. A real one is deployed anew."""


def fragile_app() -> tuple[Mainspring, Flow[Price, None]]:
    app = Mainspring("memory://")

    @app.flow
    async def fragile(question: Price) -> None:
        await receive(Choose)
        if not mended["is"]:
            raise ValueError("a mistake in the code")
        await receive(Ship)

    return app, fragile


@pytest.mark.parametrize("operation", ["retry", "skip"])
def test_an_input_that_failed_is_taken_again_or_passed_over(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app, fragile = fragile_app()

    async def body() -> None:
        async with simulate(app) as simulated:
            await simulated.send(Price("p-1", 3))
            await simulated.send(Choose("p-1", 1))
            await simulated.settle()
            instance = simulated.instance(fragile, "p-1")
            assert "a mistake in the code" in ((await instance.row()).error or "")
            monkeypatch.setitem(mended, "is", True)
            await (instance.retry() if operation == "retry" else instance.skip())
            await simulated.settle()
            assert (await instance.row()).status == "running"
            recorded = [type(entry.event).__name__ for entry in await instance.stream()]
            assert recorded[-1] == ("Received" if operation == "retry" else "Skipped")

    run(body)


def test_each_is_a_child_of_the_other() -> None:
    async def body() -> None:
        async with world() as simulated:
            await simulated.send(Ship("s"))
            await simulated.settle()
            for style, id in ((FLOW, "s-a"), (HAND, "s-b")):
                await simulated.send(style.confirm(id))
                await simulated.settle()
                await released(simulated.app, style, id)
                await simulated.settle()
            assert await simulated.instance(ship, "s").result() == Shipped("s", 4)
            await simulated.send(Bundle("b"))
            await simulated.settle()
            await simulated.send(Confirmed("b-c"))
            await simulated.settle()
            await released(simulated.app, FLOW, "b-c")
            await simulated.settle()
            assert (await simulated.instance(Bundler, "b").row()).status == "completed"

    run(body)


def test_a_child_is_cancelled_and_undone_with_its_parent() -> None:
    async def body() -> None:
        async with world() as simulated:
            await simulated.send(Ship("s"))
            await simulated.settle()
            await simulated.instance(ship, "s").cancel("not wanted")
            await simulated.settle()
            assert kinds(await simulated.instance(fulfil, "s-a").stream())[-1] == "Cancelled"
            assert [call.message.order_id for call in simulated.calls(refund.command)] == ["s-a"]

    run(body)


def test_a_request_is_replied_to() -> None:
    async def body() -> None:
        async with world() as simulated:
            assert await simulated.request(Price("p-1", 3), Priced) == Priced(6)
            assert (await simulated.instance(price, "p-1").row()).status == "completed"

    run(body)


@both
def test_a_calendar_begins_it(style: Style) -> None:
    async def body() -> None:
        app = orders()
        app.schedules.add("nightly", message=lambda time: style.place(f"x-{time:%d}"), every=timedelta(days=1))
        async with simulate(app) as simulated:
            await simulated.advance(days=2)
            assert len(await app.instances(workflow=style.name)) >= 2

    run(body)


@both
def test_who_may_not_answer_a_task_is_refused_and_a_claim_is_kept(style: Style) -> None:
    async def body() -> None:
        async with world() as simulated:
            await placed(simulated, style, "x-1", until_stage="confirmed")
            (task,) = await simulated.app.tasks.list()
            assert (task.title, task.role) == ("Release?", "lead")
            with pytest.raises(Exception, match="was not asked of ann"):
                await simulated.app.tasks.complete(task.id, style.release("x-1"), actor="ann")
            claimed = await simulated.app.tasks.claim(task.id, actor="eve", roles=["lead"])
            assert claimed.claimed_by == "eve"
            forms = await simulated.app.tasks.forms(task.id)
            assert len(forms) == 1

    run(body)


# ---- what is said of it


def test_a_flow_is_found_by_its_attributes_and_kept_as_long_as_it_says() -> None:
    app = Mainspring("memory://")

    @app.flow(attributes=lambda question: {"cents": question.cents}, retention=timedelta(days=30), again="refuse")
    async def asked(question: Price) -> None:
        await receive(Confirmed)

    async def body() -> None:
        async with simulate(app) as simulated:
            await simulated.send(Price("p-1", 3))
            await simulated.send(Price("p-2", 4))
            (found,) = await app.instances(attributes={"cents": 4})
            assert found.id == "p-2"
            assert await app.instance(asked, "p-2").attributes() == {"cents": 4}

    run(body)
    assert (asked.retention, asked.again) == (timedelta(days=30), "refuse")


def test_an_option_that_a_flow_has_not_is_refused_with_its_reason() -> None:
    app = Mainspring("memory://")
    with pytest.raises(SettingError, match="The state of a flow is its history"):
        app.flow(history="state")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportUnknownMemberType]
    with pytest.raises(SettingError, match="A flow has no such option"):
        app.flow(speed=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportUnknownMemberType]


# ---- steps in processes


def test_steps_compute_in_processes_of_their_own() -> None:
    async def body() -> list[int]:
        async with computing_steps.app as app:
            return await (await app.workflow(computing_steps.total).send(computing_steps.Sum("a", (1, 2, 3)))).result()

    sum, *processes = run(body)
    assert sum == 14
    assert os.getpid() not in processes


def test_a_step_that_no_other_process_could_find_is_refused() -> None:
    app = Mainspring("memory://")
    with pytest.raises(WiringError, match="is async"):

        @app.step(executor="process")
        async def waits(number: int) -> int:
            return number

    with pytest.raises(WiringError, match="not at the top of a module"):

        @app.step(executor="process")
        def inner(number: int) -> int:
            return number
