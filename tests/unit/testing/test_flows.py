"""given / when / then of a flow: in the words of its code."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta

import pytest

from mainspring import (
    Ask,
    Began,
    CancelSchedule,
    Complete,
    Fail,
    InitiatedBy,
    Mainspring,
    Publish,
    Received,
    Scheduled,
    Sent,
)
from mainspring.flows import Failure, StepFailed, TimerDue, Undo, each, receive
from mainspring.testing import FuzzFailure, assert_pure, fuzz, given
from tests.engine.flow_orders import (
    CardDeclined,
    Charge,
    Confirmed,
    Packed,
    PlaceOrder,
    Receipt,
    Release,
    charge,
    fulfil,
    pack,
    refund,
)

app = Mainspring("memory://")
ORDER = PlaceOrder("o-1")
PAID = (ORDER, charge.returned(Charge("c-1")))
CONFIRMED = (*PAID, Confirmed("o-1"))


@dataclass(frozen=True)
class Start:
    id: str


@dataclass(frozen=True)
class GoOn:
    id: str


@app.step
def double(id: str, number: int) -> int:
    return 2 * number


@app.flow
async def both(start: Start) -> list[int]:
    return list(await asyncio.gather(double(start.id, 1), double(start.id, 2)))


@app.flow
async def twice(start: Start) -> None:
    await each([double(start.id, 1)])
    await asyncio.sleep(5)  # a timer of the flow
    await each([double(start.id, 2)])
    await asyncio.sleep(5)  # as above
    await receive(GoOn)
    raise Failure("never goes on")


# ---- then


def test_a_call_stands_for_what_it_sends() -> None:
    given(fulfil).when(ORDER).then(charge("o-1", 500).undone_by(refund("o-1")))


def test_a_list_of_calls_stands_for_each() -> None:
    given(fulfil, *CONFIRMED).when(Release("o-1")).then([pack("o-1", 0), pack("o-1", 1)])


def test_the_second_each_of_a_step_and_the_second_timer_of_a_length_are_found_as_well() -> None:
    began = (Start("a"), double.all_returned(2), TimerDue("5s"))

    given(twice, *began[:2]).when(began[2]).then([double("a", 2)])
    given(twice, *began).when(double.all_returned(4)).then(TimerDue.after(5, 2))


def test_a_timer_is_told_by_how_long_it_runs() -> None:
    given(fulfil, ORDER).when(charge.returned(Charge("c-1"))).then(TimerDue.after(timedelta(minutes=5)))


def test_a_task_is_told_as_a_decision_is() -> None:
    scenario = given(fulfil, *PAID).when(Confirmed("o-1"))

    scenario.then(CancelSchedule("300s"), Ask("Release?", Release, role="lead"))


def test_what_ends_a_flow_is_told_as_its_code_raises_and_returns_it() -> None:
    given(fulfil, *PAID).when(TimerDue("300s")).then(Undo("not confirmed"))
    given(fulfil, ORDER).when(charge.failed("no route", 5)).then(StepFailed("charge", "no route", 5))
    begun = (Start("a"), double.all_returned(2), TimerDue("5s"), double.all_returned(2), TimerDue("5s#2"))
    given(twice, *begun).when(GoOn("a")).then(Failure("never goes on"))
    receipt = Receipt("o-1", "c-1", 2)
    done = given(fulfil, *CONFIRMED, Release("o-1")).when(pack.all_returned(0, 1))
    done.then(Publish(Packed("o-1")), Complete(receipt))
    given(both, Start("a"), double.returned(2)).when(double.returned(4)).then(Complete([2, 4]))


def test_a_result_answers_the_call_that_is_named() -> None:
    scenario = given(both, Start("a"))

    scenario.when(double.returned(4), command=double("a", 2)).then()
    scenario.when(double.returned(2)).then(Complete([2, 4]))


def test_compensations_are_told_as_calls() -> None:
    given(fulfil, *PAID).when(TimerDue("300s")).then_undone(refund("o-1"))
    given(fulfil, ORDER).when(charge.failed(CardDeclined("no funds"), definite=True)).then_undone()


def test_the_state_is_the_stage() -> None:
    given(fulfil, ORDER).when(charge.returned(Charge("c-1"))).then_state("Running")
    given(fulfil, *PAID).when(Confirmed("o-1")).then_state("confirmed")


def test_events_are_what_is_recorded() -> None:
    sent = Sent(charge.command_of("o-1", 500), refund.command_of("o-1"))
    paid = charge.returned(Charge("c-1"))
    timer = Scheduled(TimerDue("300s"), after=timedelta(seconds=300), at=None, key="300s")

    given(fulfil).when(ORDER).then_events(Began(), InitiatedBy(ORDER), sent)
    given(fulfil, ORDER).when(paid).then_events(Received(paid), timer)


# ---- when it fails


def failing(text: str) -> AbstractContextManager[object]:
    return pytest.raises(AssertionError, match=text)


def test_a_failure_shows_calls_and_what_differs_in_them() -> None:
    when = given(fulfil).when(ORDER)

    with failing(r"~ step\(charge\): cents: expected 1, decided 500"):
        when.then(charge("o-1", 1).undone_by(refund("o-1")))
    with failing(r"\+ charge\(order_id='o-1', cents=500\)\.undone_by\(refund\(order_id='o-1'\)\)"):
        when.then(Fail("sold out"))


def test_a_failure_shows_the_calls_of_each() -> None:
    when = given(fulfil, *CONFIRMED).when(Release("o-1"))

    with failing(r"~ each: messages\[1\].part: expected 2, decided 1"):
        when.then([pack("o-1", 0), pack("o-1", 2)])


def test_a_failure_shows_the_other_stage() -> None:
    with failing("- 'Running'"):
        given(fulfil, *PAID).when(Confirmed("o-1")).then_state("Running")


def test_a_call_is_no_message() -> None:
    with pytest.raises(TypeError, match=r"charge\(order_id='o-1', cents=5\) is a call, which .* charge\.returned\(…\)"):
        given(fulfil, ORDER).when(charge("o-1", 5))
    with pytest.raises(TypeError, match="Write what comes back of it"):
        given(fulfil, ORDER, charge("o-1", 5))


# ---- fuzz, and what is pure


def test_orders_of_messages_are_tried_and_each_stage_is_seen() -> None:
    messages = [ORDER, Confirmed("o-1"), Release("o-1"), pack.all_returned(0, 1), charge.failed("no route")]

    seen = fuzz(fulfil, messages, answers={charge.command: lambda _: charge.returned(Charge("c-1"))}, max_examples=60)

    assert seen.ended
    assert seen.unseen_states == ()


def test_a_property_that_a_flow_breaks_is_told_with_the_shortest_story() -> None:
    def never_packs(rehearsal: object) -> bool:
        return "FannedOut" not in repr(getattr(rehearsal, "events", ()))

    with pytest.raises(FuzzFailure, match="never_packs") as failed:
        fuzz(
            fulfil,
            [ORDER, Confirmed("o-1"), Release("o-1")],
            answers={charge.command: lambda _: charge.returned(Charge("c-1"))},
            properties=[never_packs],
            max_examples=60,
        )

    messages = [type(message).__name__ for message in failed.value.messages]
    assert sorted(messages) == ["Confirmed", "PlaceOrder", "Release", "charge.done"]


def test_a_flow_is_pure() -> None:
    assert_pure(fulfil)
