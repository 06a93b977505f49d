"""What answers a flow's task: the person who was asked, and nobody past the task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import CloseTask, Mainspring
from mainspring.app.internals import internals_of
from mainspring.core.messages import Kind
from mainspring.engine.inputs.outside_rule import check_outside
from mainspring.errors import FlowError, NotFromOutsideError
from mainspring.flows import Flow, ask, each, receive
from mainspring.testing import given
from mainspring.testing.envelopes import envelope


@dataclass(frozen=True)
class Claim:
    expense: str


@dataclass(frozen=True)
class Approve:
    expense: str


@dataclass(frozen=True)
class Paid:
    expense: str


async def approve(claim: Claim) -> None:
    if claim.expense:
        await ask("Approve it?", Approve, role="manager")
    await receive(Paid)


def claims(**options: Any) -> tuple[Mainspring, Flow[Claim, None]]:
    app = Mainspring("memory://")
    return app, app.flow(**options)(approve)


def test_an_answer_is_not_taken_past_the_task_unless_the_flow_says_so() -> None:
    app, _ = claims()
    entries = list(internals_of(app).registry.entries())
    check_outside(entries, Claim("e-1"))
    check_outside(entries, Paid("e-1"))
    with pytest.raises(NotFromOutsideError, match="it answers a task, which knows who may"):
        check_outside(entries, Approve("e-1"))
    app, _ = claims(from_outside=Approve)
    check_outside(list(internals_of(app).registry.entries()), Approve("e-1"))


def test_a_question_whose_answer_is_not_seen_in_the_code_is_refused() -> None:
    app = Mainspring("memory://")
    answer: Any = Approve

    @app.flow(receives=(Approve,))
    async def asks(claim: Claim) -> None:
        kind: Any = {"yes": answer}["yes"]
        await ask("Approve it?", kind, role="manager")

    given(asks).when(Claim("e-1")).then_raises(FlowError, match="which it also takes from outside, past the task")


def test_an_answer_that_the_app_sends_past_the_task_closes_it() -> None:
    _, flow = claims()
    came = given(flow, Claim("e-1")).when(envelope(Approve("e-1"), kind=Kind.COMMAND))
    came.then(CloseTask("Approve"))


def test_many_at_once_refuse_a_compensation_that_would_be_lost() -> None:
    app = Mainspring("memory://")

    @app.step
    async def book(name: str) -> None: ...

    @app.step
    async def cancel(name: str) -> None: ...

    @app.flow
    async def books(claim: Claim) -> None:
        await each(book(name).undone_by(cancel(name)) for name in "ab")

    given(books).when(Claim("e-1")).then_raises(FlowError, match="each(…) cannot undo one of its parts")
