"""Where a flow waits: its tasks, lines, calls, what they await, and their variables."""

from __future__ import annotations

import gc
from datetime import timedelta
from typing import Any

import pytest

from mainspring.app.internals import internals_of
from mainspring.flows import TimerDue
from mainspring.flows.waiting import FRAMES_MOST, TASKS_MOST, waiting_at
from mainspring.testing.rehearsal import Rehearsal
from mainspring.views import WaitsAt
from tests.unit.flows import waiting_flows as flows
from tests.unit.flows.waiting_flows import Begin, Confirmed, charge


@pytest.fixture(autouse=True, scope="module")
def read() -> None:
    """What flows send and receive is known when the app has looked at them."""
    assert internals_of(flows.app).registry.workflows


def waits(flow: Any, *messages: Any, values: bool = True) -> WaitsAt:
    rehearsal: Rehearsal[Any, Any, Any] = Rehearsal(flow, guard=False)
    for message in messages:
        rehearsal.live(message)
    return waiting_at(flow, rehearsal.state, rehearsal.position, values=values)


def lines(found: WaitsAt) -> list[tuple[str, list[str]]]:
    assert found.problem is None
    return [(code.awaits, [frame.text for frame in code.frames]) for code in found.waiting]


def test_a_step_is_awaited_at_its_line() -> None:
    found = waits(flows.deep, Begin("o-1"))
    (code,) = found.waiting
    (frame,) = code.frames

    assert (code.task, code.kind, code.awaits, code.position) == ("deep", "step", "the step charge", 3)
    assert (frame.file, frame.function, frame.text) == (flows.__file__, "deep", "price = await charge(begin.id)")
    assert frame == found.first
    assert [(each.name, each.type, each.value) for each in frame.variables] == [
        ("begin", "Begin", "Begin(id='o-1', card='4111')")
    ]


def test_helper_functions_are_told_the_innermost_first_each_with_its_variables() -> None:
    found = waits(flows.deep, Begin("o-1"), charge.returned(3))
    (code,) = found.waiting

    assert code.awaits == "a message Confirmed or Refused"
    assert [frame.function for frame in code.frames] == ["inner", "outer", "deep"]
    assert [frame.text for frame in code.frames] == [
        "await receive(Confirmed, Refused)",
        "await inner(doubled)",
        "await outer(price)",
    ]
    values = [{each.name: each.value for each in frame.variables} for frame in code.frames]
    assert values[:2] == [{"doubled": "6", "text": "'6 cents'"}, {"price": "3", "doubled": "6"}]


def test_the_source_of_each_function_is_told_once() -> None:
    found = waits(flows.gathered, Begin("o-1"))
    texts = {each.function: each for each in found.functions}

    assert list(texts) == ["gathered", "named"]
    assert texts["named"].text.splitlines() == ["async def named(name: str) -> None:", "    await charge(name)"]
    waiting = found.waiting[1].frames[0]
    assert texts["named"].text.splitlines()[waiting.line - texts["named"].line].strip() == waiting.text


def test_a_gather_waits_for_its_tasks_and_each_of_them_at_its_own_line() -> None:
    gather = 'await asyncio.gather(named("a"), named("b"), charge("c"))'
    found = waits(flows.gathered, Begin("o-1"))
    names = [code.task for code in found.waiting]

    assert lines(found) == [
        (f"the end of {', '.join(names[1:])}", [gather]),
        ("the step charge", ["await charge(name)"]),
        ("the step charge", ["await charge(name)"]),
        ("the step charge", [gather]),
    ]
    assert [code.frames[0].variables[0].value for code in found.waiting[1:3]] == ["'a'", "'b'"]


def test_a_gather_waits_for_those_that_have_not_ended() -> None:
    found = waits(flows.gathered, Begin("o-1"), charge.returned(1))

    assert len(found.waiting) == 3
    assert found.waiting[0].awaits == f"the end of {found.waiting[1].task}, {found.waiting[2].task}"


def test_what_a_task_group_awaits_has_its_own_lines_or_that_of_the_group() -> None:
    found = waits(flows.grouped, Begin("o-1"))

    assert lines(found) == [
        (
            f"the end of {', '.join(code.task for code in found.waiting[1:])}",
            ["async with asyncio.TaskGroup() as group:"],
        ),
        ("the step charge", ['group.create_task(charge("a"))']),
        ("a message Confirmed", ["async with asyncio.TaskGroup() as group:"]),
        ("the step charge", ["await charge(name)"]),
    ]


def test_a_timeout_says_when_it_ends_the_wait_and_a_sleep_when_it_is_over() -> None:
    rehearsal: Rehearsal[Any, Any, Any] = Rehearsal(flows.limited, guard=False)
    rehearsal.live(Begin("o-1"))
    began = rehearsal.time
    (code,) = waiting_at(flows.limited, rehearsal.state).waiting
    assert (code.kind, code.times_out) == ("message", began + timedelta(seconds=300))
    rehearsal.live(TimerDue("300s"))
    (code,) = waiting_at(flows.limited, rehearsal.state).waiting

    assert (code.kind, code.awaits, code.times_out) == ("timer", "the timer 60s", None)
    assert code.due is not None
    assert code.due >= began + timedelta(seconds=360)
    assert code.frames[0].text == "await asyncio.sleep(60)  # a timer of the flow: nothing is slept for"


@pytest.mark.parametrize(
    ("flow", "kind", "awaits"),
    [
        (flows.shipping, "child", "the child that Parcel began"),
        (flows.packing, "fan-out", "3 calls of the step pack"),
        (flows.asking, "task", "the task 'Release it?' of a person"),
    ],
)
def test_what_is_awaited_is_said_in_words(flow: Any, kind: str, awaits: str) -> None:
    (code,) = waits(flow, Begin("o-1")).waiting

    assert (code.kind, code.awaits, code.position) == (kind, awaits, 3)


def test_a_race_waits_for_its_tasks() -> None:
    found = waits(flows.racing, Begin("o-1"))

    assert [code.kind for code in found.waiting] == ["code", "step", "message"]
    assert {code.frames[0].text for code in found.waiting} == {"await race(charge(begin.id), receive(Confirmed))"}


def test_code_that_waits_for_other_code_says_for_what() -> None:
    found = waits(flows.queued, Begin("o-1"))

    assert lines(found) == [
        ("Queue.get", ["await queue.get()"]),
        ("the step charge", ['await queue.put(await charge("a"))']),
    ]


def test_frames_of_an_async_generator_are_read() -> None:
    assert lines(waits(flows.generating, Begin("o-1"), charge.returned(1))) == [
        ("the step charge", ["yield await charge(second)", "async for price in prices():"])
    ]


def test_values_are_shown_shortened_and_never_fail() -> None:
    variables = waits(flows.holding, Begin("o-1")).waiting[0].frames[0].variables
    values = {each.name: each.value or "" for each in variables}

    assert values["loud"].endswith("… (5000 characters)")
    assert len(values["loud"]) < 400
    assert values["broken"] == "<Broken that cannot be shown>"
    assert values["lone"] == "'\\ud800'"


def test_without_values_variables_have_their_types_alone() -> None:
    found = waits(flows.holding, Begin("o-1"), values=False)

    assert [(each.name, each.type, each.value) for each in found.waiting[0].frames[0].variables] == [
        ("begin", "Begin", None),
        ("loud", "Loud", None),
        ("broken", "Broken", None),
        ("lone", "str", None),
    ]
    assert "4111" not in repr(found)


def test_calls_and_tasks_are_limited_and_the_rest_is_counted() -> None:
    (deepest,) = waits(flows.recursing, Begin("o-1")).waiting
    crowd = waits(flows.crowded, Begin("o-1"))

    assert (len(deepest.frames), deepest.more) == (FRAMES_MOST, 102 - FRAMES_MOST)
    assert [deepest.frames[0].function, deepest.frames[-1].function] == ["nested", "recursing"]
    assert (len(crowd.waiting), crowd.more) == (TASKS_MOST, 101 - TASKS_MOST)
    assert crowd.waiting[0].awaits.endswith(" and 95 more")


def test_a_flow_that_has_ended_waits_nowhere() -> None:
    found = waits(flows.limited, Begin("o-1"), Confirmed("o-1"))

    assert (found.ended, found.waiting, found.first) == (True, (), None)


def test_drift_is_told_and_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    rehearsal: Rehearsal[Any, Any, Any] = Rehearsal(flows.drifting, guard=False)
    rehearsal.live(Begin("o-1"))
    monkeypatch.setattr(flows, "VERSION", ["pack"])
    found = waiting_at(flows.drifting, rehearsal.state)

    assert found.waiting == ()
    assert found.problem is not None
    assert found.problem.startswith("DriftError: ")
    assert "charge" in found.problem


def test_one_that_began_again_waits_with_its_new_argument() -> None:
    (code,) = waits(flows.rounds, flows.Round("o-1"), Confirmed("o-1"), Confirmed("o-1")).waiting

    assert code.frames[0].text == "await receive(Confirmed)"
    assert code.frames[0].variables[0].value == "Round(id='o-1', number=3)"


def test_looking_leaves_nothing_behind() -> None:
    rehearsal: Rehearsal[Any, Any, Any] = Rehearsal(flows.grouped, guard=False)
    rehearsal.live(Begin("o-1"))
    run = waiting_at(flows.grouped, rehearsal.state)
    again = waiting_at(flows.grouped, rehearsal.state)
    gc.collect()

    assert again == run
    rehearsal.live(charge.returned(1))  # the run that the journal keeps was not touched
    assert len(waiting_at(flows.grouped, rehearsal.state).waiting) == 3
