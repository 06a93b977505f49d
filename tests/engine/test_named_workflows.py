"""Where several workflows take one message, the sender names the one that is meant."""

from typing import Any

import pytest

from mainspring import Complete, Decisions, Event, Mainspring, Reply, Workflow
from mainspring.app.internals import internals_of
from mainspring.errors import WiringError
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_events import History
from mainspring.styles.history_words import (
    CompleteWorkflow,
    ExternalEventReceived,
    HistoryCommand,
    RunTask,
    ScheduleTask,
    StartWorkflow,
    TaskCompleted,
)
from mainspring.testing.samples import Count, Counted, CountedThrice, Counter
from mainspring.testing.simulation import simulate
from tests.support.apps import MakeApp
from tests.support.running import run


class Order(HistoryWorkflow):
    def decide(self, events: History) -> list[HistoryCommand]:
        if events.end_of("t-1"):
            return [CompleteWorkflow({"of": "order", "input": events[0].input, "task": events.result_of("t-1")})]  # type: ignore[union-attr]
        return [ScheduleTask("t-1", "work", None)]


class Parcel(Order):
    name = "parcel"


class Chatty(Workflow[Count, Counted, CountedThrice]):
    """Another one that takes Count, and answers."""

    initial_state = Counted()

    def route(self, message: Count) -> str | None:
        return message.counter

    def decide(self, message: Count, state: Counted) -> Decisions[Count, CountedThrice]:
        return [Reply(CountedThrice(message.counter)), Complete()]

    def evolve(self, state: Counted, event: Event[Count, CountedThrice]) -> None: ...


def both(app: Mainspring) -> Mainspring:
    app.add(Order(), Parcel(), Counter(), Chatty())

    @app.handler
    async def work(task: RunTask) -> TaskCompleted:
        return TaskCompleted(task.task_id, [task.workflow, task.workflow_id])

    return app


def test_each_workflow_gets_what_names_it_and_no_other(make_app: MakeApp) -> None:
    async def main() -> None:
        async with both(make_app()) as app:
            order = await app.send(StartWorkflow("x-1", 1), workflow=Order)
            parcel = await app.send(StartWorkflow("x-1", 2), workflow="parcel")
            assert (str(order), str(parcel)) == ("Order/x-1", "parcel/x-1")
            assert await order.result() == {"of": "order", "input": 1, "task": ["Order", "x-1"]}
            assert await parcel.result() == {"of": "order", "input": 2, "task": ["parcel", "x-1"]}

    run(main)


def test_whoever_names_none_of_several_is_told_to(make_app: MakeApp) -> None:
    async def main() -> None:
        async with both(make_app()) as app:
            with pytest.raises(WiringError, match=r"taken by several workflows: Order, parcel\. Name the one"):
                await app.send(StartWorkflow("x-1", 1))

    run(main)


@pytest.mark.parametrize("workflow", ["Orders", Counter, "Counter"])
def test_one_that_does_not_take_the_message_is_refused(make_app: MakeApp, workflow: Any) -> None:
    async def main() -> None:
        async with both(make_app()) as app:
            with pytest.raises(WiringError, match=r"takes StartWorkflow\. It is taken by Order, parcel"):
                await app.send(StartWorkflow("x-1", 1), workflow=workflow)

    run(main)


def test_many_messages_requests_and_transactions_name_it_too(make_app: MakeApp) -> None:
    async def main() -> None:
        async with both(make_app()) as app:
            many = await app.send_many([StartWorkflow("a", 1), StartWorkflow("b", 1)], workflow=Parcel)
            assert [str(receipt) for receipt in many] == ["parcel/a", "parcel/b"]
            assert await app.request(Count("c-1"), workflow=Chatty) == CountedThrice("c-1")
            if not internals_of(app).url.startswith("memory"):
                async with app.transaction() as transaction:
                    receipt = transaction.send(StartWorkflow("c", 1), workflow="parcel")
                assert str(receipt) == "parcel/c"

    run(main)


def test_what_is_published_reaches_all_of_them(make_app: MakeApp) -> None:
    async def main() -> None:
        async with both(make_app()) as app:
            await app.send(StartWorkflow("x-1", 1), workflow=Order)
            found = await app.publish(ExternalEventReceived("x-1", "rain", None))
            assert sorted(map(str, found)) == ["Order/x-1", "parcel/x-1"]

    run(main)


def test_a_simulation_names_it_as_the_app_does() -> None:
    async def main() -> None:
        async with simulate(both(Mainspring("memory://"))) as world:
            assert str(await world.send(StartWorkflow("x-1", 1), workflow="parcel")) == "parcel/x-1"

    run(main)


def test_a_post_names_it_too() -> None:
    envelopes = internals_of(both(Mainspring("memory://"))).envelopes
    assert str(envelopes.sent(StartWorkflow("x-1", 1), workflow="parcel").ref) == "parcel/x-1"
