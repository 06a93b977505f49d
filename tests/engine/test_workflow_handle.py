"""A handle on a workflow: it sends to this one alone."""

from dataclasses import dataclass
from typing import Any

import pytest

from mainspring import Complete, Decisions, Event, Mainspring, Workflow
from mainspring.errors import NoSuchInstanceError, WiringError
from tests.support.apps import MakeApp
from tests.support.running import run


@dataclass(frozen=True)
class Paid:
    order_id: str


@dataclass(frozen=True)
class Refunded:
    order_id: str


@dataclass(frozen=True)
class Open:
    pass


@dataclass(frozen=True)
class Booked:
    by: str


class Books(Workflow[Paid, Open, Booked, Booked]):
    initial_state = Open()

    def route(self, message: Paid) -> str | None:
        return message.order_id

    def decide(self, message: Paid, state: Open) -> Decisions[Paid, Booked] | None:
        return [Complete(Booked(type(self).__name__))]

    def evolve(self, state: Open, event: Event[Paid, Booked]) -> Open | None:
        return None


class Points(Books):
    pass


def ledger(app: Mainspring) -> Mainspring:
    app.add(Books(), Points())
    return app


def test_a_message_that_several_workflows_take_goes_to_this_one(make_app: MakeApp) -> None:
    async def main() -> None:
        async with ledger(make_app()) as app:
            with pytest.raises(WiringError, match="Paid is taken by several workflows"):
                await app.send(Paid("o-1"))
            assert await (await app.workflow(Points).send(Paid("o-1"))).result() == Booked("Points")
            with pytest.raises(NoSuchInstanceError):
                await app.instance(Books, "o-1").row()

    run(main)


def test_many_messages_go_to_this_one(make_app: MakeApp) -> None:
    async def main() -> None:
        async with ledger(make_app()) as app:
            receipts = await app.workflow(Points).send_many([Paid("o-1"), Paid("o-2")], ids=["a", "b"])
            assert [(str(each), (await each.result()).by) for each in receipts] == [
                ("Points/o-1", "Points"),
                ("Points/o-2", "Points"),
            ]
            assert await app.workflow(Points).instance("o-2").result() == Booked("Points")

    run(main)


def test_what_is_no_input_of_this_one_is_refused(make_app: MakeApp) -> None:
    async def main() -> None:
        async with ledger(make_app()) as app:
            books: Any = app.workflow(Books)
            with pytest.raises(WiringError, match="No workflow 'Books' takes Refunded"):
                await books.send(Refunded("o-1"))

    run(main)


def test_a_workflow_that_was_not_added_has_no_handle() -> None:
    with pytest.raises(WiringError, match="Books is not part of this app"):
        Mainspring("memory://").workflow(Books)
