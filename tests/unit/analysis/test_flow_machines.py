"""Flows as state machines: what is read from code of many kinds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from mainspring import Mainspring
from mainspring.analysis.reading.machine import read_machine
from mainspring.flows import (
    Failure,
    StepFailed,
    Undo,
    again,
    ask,
    call,
    child,
    each,
    publish,
    race,
    receive,
    reply,
    stage,
)

app = Mainspring("memory://")


@dataclass(frozen=True)
class Start:
    id: str
    times: int = 1


@dataclass(frozen=True)
class GoOn:
    id: str


@dataclass(frozen=True)
class Stop:
    id: str


@dataclass(frozen=True)
class Told:
    id: str


class RefusedError(Exception): ...


@app.step(raises=RefusedError)
def work(id: str) -> int:
    return 1


@app.step
def undo_work(id: str) -> None: ...


Arrows = set[tuple[str, str, str]]


def arrows(flow: Any) -> Arrows:
    """Return what leads where: from a stage, by a message, to a stage or an end."""
    machine = read_machine(flow)
    assert not machine.unresolved
    return {(each.source, each.message, each.ends or each.target) for each in machine.transitions}


def asked(flow: Any) -> set[str]:
    return {str(output) for each in read_machine(flow).transitions for output in each.outputs}


@app.flow
async def catches(start: Start) -> None:
    try:
        await work(start.id).undone_by(undo_work(start.id))
    except RefusedError:
        stage("refused")
        await receive(GoOn)
        return
    stage("worked")
    await receive(Stop)


def test_an_except_leads_on_from_what_it_catches_and_the_rest_fails() -> None:
    assert arrows(catches) == {
        ("Running", "Start", "Running"),
        ("Running", "work.done", "worked"),
        ("Running", "SendFailed", "refused"),
        ("Running", "SendFailed", "failed"),
        ("refused", "GoOn", "completed"),
        ("worked", "Stop", "completed"),
    }
    assert asked(catches) >= {"Send(work, compensate=undo_work)"}


@app.flow
async def loops(start: Start) -> None:
    while True:
        match await receive(GoOn, Stop):
            case GoOn():
                publish(Told(start.id))
                continue
            case Stop():
                stage("stopping")
                break
    for _ in range(start.times):
        await work(start.id)


def test_loops_lead_back_and_out() -> None:
    # Which message a case is for is not looked at: each may come to each.
    found = arrows(loops)
    assert found >= {
        ("Running", "GoOn", "Running"),
        ("Running", "Stop", "stopping"),
        ("stopping", "work.done", "stopping"),
        ("stopping", "work.done", "completed"),
    }
    assert "Publish(Told)" in asked(loops)


@app.flow
async def together(start: Start) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(work(start.id))
        group.create_task(asyncio.sleep(5))  # a timer of the flow
    stage("grouped")
    await asyncio.gather(work(start.id), call(Told(start.id), GoOn))
    stage("gathered")
    first = asyncio.create_task(work(start.id))
    await race(receive(Stop), asyncio.sleep(60))  # as above
    stage("raced")
    await first
    await each(work(start.id) for _ in range(3))


def test_tasks_are_awaited_where_they_are() -> None:
    assert arrows(together) >= {
        ("Running", "work.done", "grouped"),
        ("Running", "mainspring.TimerDue", "grouped"),
        ("grouped", "GoOn", "gathered"),
        ("gathered", "Stop", "raced"),
        ("raced", "work.done", "raced"),
        ("raced", "work.all_done", "completed"),
    }


async def helper(id: str) -> None:
    await receive(GoOn)
    stage("helped")


@app.flow
async def helped(start: Start) -> None:
    await helper(start.id)
    if start.times > 1:
        raise Failure("too many")
    reply(Told(start.id))
    await ask("Stop?", GoOn | Stop, role="lead")
    again(Start(start.id))


def test_functions_are_followed_and_a_new_beginning_leads_on_from_where_it_was() -> None:
    assert arrows(helped) == {
        ("Running", "Start", "Running"),
        ("Running", "GoOn", "helped"),
        ("Running", "GoOn", "failed"),
        ("helped", "GoOn", "helped"),
        ("helped", "Stop", "helped"),
        ("helped", "GoOn", "failed"),
    }
    assert {"Reply(Told)", "Ask(GoOn)", "Fail()"} <= asked(helped)


@app.flow
async def family(start: Start) -> None:
    try:
        await catches(start)
        await child(Told(start.id), GoOn)
    except StepFailed:
        raise Undo("a child failed") from None


def test_children_come_back_by_their_results_or_fail() -> None:
    assert arrows(family) == {
        ("Running", "Start", "Running"),
        ("Running", "mainspring.ChildCompleted", "Running"),
        ("Running", "mainspring.ChildFailed", "failed"),
        ("Running", "GoOn", "completed"),
    }
    assert {"StartChild(Start)", "StartChild(Told)", "Compensate()"} <= asked(family)


@app.flow
async def impatient(start: Start) -> None:
    try:
        await asyncio.wait_for(receive(GoOn), 10)
    except TimeoutError:
        stage("late")
        async with asyncio.timeout(5):
            await receive(GoOn)


def test_a_timeout_leads_to_its_handler_and_one_that_is_not_handled_to_no_end() -> None:
    assert arrows(impatient) == {
        ("Running", "Start", "Running"),
        ("Running", "GoOn", "completed"),
        ("Running", "mainspring.TimerDue", "late"),
        ("late", "GoOn", "completed"),
    }


def test_a_machine_of_a_flow_names_only_what_its_author_knows() -> None:
    machine = read_machine(catches)

    assert sorted(state.name for state in machine.states) == ["Running", "refused", "worked"]
    assert {message.name for message in machine.inputs} == {"Start", "GoOn", "Stop", "work.done", "SendFailed"}
    assert machine.place is not None
    assert machine.place.file == __file__
