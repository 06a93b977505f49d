"""Tasks where they meet the rest: second starts, children, sagas."""

from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import Ask, Compensate, Complete, Envelope, Event, Kind, Send, StartChild, Workflow
from mainspring.app.internals import internals_of
from mainspring.engine.inputs.pending import Pending, ReceiptStatus
from mainspring.errors import InstanceFailedError, TaskRefusedError
from tests.engine.coordination.expenses import (
    MANAGER,
    Approve,
    Approved,
    Expenses,
    Open,
    Reject,
    Submit,
    app_of,
    opened,
)
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


class Revised(Expenses):
    """Lets people correct what they submitted. A second start is refused."""

    again = "refuse"

    def decide(self, envelope: Envelope[Any], state: Open) -> Any:
        if envelope.kind is Kind.ANSWER:
            return [Complete(Approved(envelope.message.id, "nobody"))]
        return [Ask("Correct it", answer=Submit, person="ann")]


@dataclass(frozen=True)
class Travel:
    id: str


@dataclass(frozen=True)
class Reserve:
    id: str


@dataclass(frozen=True)
class Free:
    id: str


@dataclass(frozen=True)
class Replan:
    id: str


class Travels(Workflow[Travel | Replan | Approve | Approved, Open, Reserve | Free | Submit]):
    """Reserves, starts an expense as a child, and asks; who does not approve lets it be undone and asked anew."""

    begins = Travel
    initial_state = Open()

    def route(self, message: Any) -> str | None:
        return message.id

    def decide(self, message: Any, state: Open) -> Any:
        match message:
            case Travel(id):
                return [
                    Send(Reserve(id), compensate=Free(id)),
                    StartChild(Submit(id)),
                    Ask("Go?", Approve, role="boss"),
                ]
            case Approve(id, "undo"):
                return [Compensate("too expensive", then=Replan(id))]
            case Replan():
                return [Ask("Go now?", Approve, role="boss")]
            case Approve():
                return [Complete()]

    def evolve(self, state: Open, event: Event[Any, Any]) -> Open | None:
        return None


def test_what_begins_an_instance_can_also_answer_its_task(make_app: MakeApp) -> None:
    app = make_app()
    app.add(Revised())

    async def main() -> None:
        async with app:
            receipt = await app.send(Submit("e-1"), actor="ann")
            (task,) = await app.tasks.list(person="ann")
            outcome = await app.tasks.complete(task.id, Submit("e-1", 50), actor="ann")
            assert (outcome.status, outcome.message) == ("stepped", Submit("e-1", 50))
            assert await receipt.result() == Approved("e-1", "nobody")

    run(main)


def test_tasks_of_a_saga_and_of_its_children_close_when_it_is_undone_and_new_ones_are_asked(make_app: MakeApp) -> None:
    app = make_app()
    app.add(Travels())
    app.add(Expenses())
    done: list[str] = []

    @app.handler
    async def reserve(command: Reserve) -> None:
        done.append("reserve")

    @app.handler
    async def free(command: Free) -> None:
        done.append("free")

    async def roles() -> list[str]:
        return sorted(task.role or "" for task in await app.tasks.list())

    async def main() -> None:
        async with app:
            receipt = await app.send(Travel("t-1"), actor="ann")
            await until(lambda: has(roles, ["boss", "manager"]))
            (first,) = await app.tasks.list(role="boss")
            await app.tasks.complete(first.id, Approve("t-1", "undo"), actor="bob", roles=["boss"])
            await until(lambda: has_another(first.id))
            (second,) = await app.tasks.list(role="boss")
            assert (second.title, done) == ("Go now?", ["reserve", "free"])
            await receipt.cancel("the customer called")
            with pytest.raises(InstanceFailedError):
                await receipt.result()
            await until(lambda: has(roles, []))
            with pytest.raises(TaskRefusedError):
                await app.tasks.complete(second.id, Approve("t-1"), actor="bob", roles=["boss"])
            assert (await app.instance(Expenses, "t-1").row()).status == "cancelled"

    async def has(look: Any, expected: Any) -> bool:
        return await look() == expected

    async def has_another(id: str) -> bool:
        return [task.id for task in await app.tasks.list(role="boss")] not in ([], [id])

    run(main)


def test_of_two_processes_that_give_the_very_same_answer_only_one_is_told_that_it_was_first(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        app, other = make_app(), make_app()
        app.add(Expenses())
        other.add(Expenses())
        async with app, other:
            await app.send(Submit("e-1"))
            (task,) = await app.tasks.list()

            async def second(_: Pending) -> ReceiptStatus:
                """Be overtaken just before the commit, so that the store finds the same message there already."""
                await app.tasks.complete(task.id, Approve("e-1"), actor="bob", roles=["manager"])
                return "duplicate"

            monkeypatch.setattr(internals_of(other).engine.intake, "answered", second)
            outcome = await other.tasks.complete(task.id, Approve("e-1"), actor="cho", roles=["manager"])
            assert (outcome.first, outcome.status, outcome.answered_by) == (False, "duplicate", "bob")

    run(main)


def test_an_answer_that_became_a_dead_letter_is_told_to_the_next_one_all_the_same(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app) as app:
            task = await opened(app)
            await app.instance(Expenses, "e-1").suspend()
            await app.tasks.complete(task.id, Approve("e-1", "fine"), **MANAGER)
            await app.instance(Expenses, "e-1").terminate()

            async def buried() -> bool:
                return len(await app.dead_letters()) == 1

            await until(buried)
            again = await app.tasks.complete(task.id, Reject("e-1", "late"), actor="cho", roles=["manager"])
            assert (again.answered_by, again.message) == ("bob", Approve("e-1", "fine"))

    run(main)
