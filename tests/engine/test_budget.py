"""An instance that goes on for ever is told of, and suspended when it has spent its steps of an hour."""

import logging
import sys
from dataclasses import dataclass

import pytest

from mainspring import Complete, Decisions, Event, Mainspring, Received, Send, Workflow
from mainspring.app.internals import internals_of
from mainspring.engine.registry import WorkflowEntry
from mainspring.engine.stepping.lanes import Lanes
from mainspring.errors import DefinitionError, SettingError
from mainspring.port.records import FAN_OUT, Ref
from mainspring.testing.clock import VirtualClock
from mainspring.views import InstanceInfo
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

STEPS = 100
HOUR_SECONDS = 3_600


@dataclass(frozen=True)
class Go:
    id: str
    on: bool = True


@dataclass(frozen=True)
class Ask:
    id: str


@dataclass(frozen=True)
class Counted:
    steps: int = 0


class Round(Workflow[Go, Counted, Go]):
    """Sends to itself for ever, where it is told to go on."""

    initial_state = Counted()
    steps_per_hour = STEPS

    def route(self, message: Go) -> str | None:
        return message.id

    def decide(self, message: Go, state: Counted) -> Decisions[Go, Go] | None:
        return [Send(message)] if message.on else []

    def evolve(self, state: Counted, event: Event[Go, Go]) -> Counted | None:
        return Counted(state.steps + 1) if isinstance(event, Received) else None


class Asking(Round, Workflow[Go, Counted, Ask]):  # pyright: ignore[reportGeneralTypeIssues]  another output
    """Asks a handler for ever."""

    def decide(self, message: Go, state: Counted) -> Decisions[Go, Ask] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return [Send(Ask(message.id))]


class Anew(Round):
    """Ends, and begins itself anew, for ever."""

    again = "anew"

    def decide(self, message: Go, state: Counted) -> Decisions[Go, Go] | None:
        return [Send(message), Complete()]


async def suspended(app: Mainspring, workflow: type[Workflow[Go, Counted, Go]], id: str = "r-1") -> InstanceInfo:
    """Wait until an instance is suspended, and return its row."""
    instance = app.instance(workflow, id)

    async def is_suspended() -> bool:
        return (await instance.row()).status == "suspended"

    await until(is_suspended)
    return await instance.row()


def test_a_workflow_that_sends_to_itself_for_ever_is_told_of_and_suspended(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Round())
        async with app:
            await app.send(Go("r-1"))
            row = await suspended(app, Round)
            assert row.error is not None
            assert row.error.startswith("StepBudgetError: Round/r-1 has taken 100 steps within an hour, and was about")
            assert "Go, which it sends to itself" in row.error
            assert (await app.instance(Round, "r-1").state()) == Counted(STEPS)
            assert len(await internals_of(app).engine.store.inbox(Ref("Round", "r-1"), 10)) == 1  # nothing is lost

            await app.instance(Round, "r-1").resume()
            await until(lambda: _stepped(app, 2 * STEPS))  # as much again
            await suspended(app, Round)

    with caplog.at_level(logging.WARNING, "mainspring.engine"):
        run(main)
    told = [record.getMessage() for record in caplog.records if "at 100 it is suspended" in record.getMessage()]
    assert [text.split(" steps ")[0].split()[-1] for text in told] == ["80", "90"] * 2
    assert told[0].startswith("Round/r-1 has taken 80 steps within an hour, now Go, which it sends to itself")


async def _stepped(app: Mainspring, steps: int) -> bool:
    return (await app.instance(Round, "r-1").state()) == Counted(steps)


def test_what_asks_a_handler_for_ever_is_suspended_too(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Asking())

        @app.handler
        async def answer(command: Ask) -> Go:
            return Go(command.id)

        async with app:
            await app.send(Go("r-1"))
            row = await suspended(app, Asking)  # pyright: ignore[reportArgumentType]  as above
            assert "Go, the answer to a command of its own" in (row.error or "")

    run(main)


def test_a_budget_comes_back_with_time(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        app.add(Round())
        async with app:

            async def send(count: int) -> list[str]:
                receipts = [await app.send(Go("r-1", on=False)) for _ in range(count)]
                return [receipt.status for receipt in receipts]

            for _ in range(4):
                assert set(await send(STEPS - 10)) == {"stepped"}
                clock.advance(HOUR_SECONDS)
            assert set(await send(STEPS)) == {"stepped"}
            statuses = await send(15)  # it is counted in tenths
            assert statuses[-1] == "suspended"
            row = await app.instance(Round, "r-1").row()
            assert "Go from outside" in (row.error or "")

    run(main)


def test_what_begins_anew_for_ever_ends_with_a_dead_letter(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Anew())
        async with app:
            await app.send(Go("r-1"))
            await until(lambda: _letters(app))
            (letter,) = await app.dead_letters()
            assert letter.reason == "Anew/r-1 could not begin anew"
            assert (letter.error or "").startswith("StepBudgetError: Anew/r-1 has taken 100 st")
            assert (await app.instance(Anew, "r-1").row()).status == "completed"

    run(main)


async def _letters(app: Mainspring) -> bool:
    return len(await app.dead_letters()) == 1


def test_others_of_the_same_workflow_have_budgets_of_their_own(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Round())
        async with app:
            await app.send(Go("r-1"))
            await suspended(app, Round)
            assert (await app.send(Go("r-2", on=False))).status == "stepped"

    run(main)


def test_an_instance_that_is_busy_does_not_lose_its_count_with_others_coming() -> None:
    lanes, app = Lanes(limit=20), Mainspring("memory://")
    app.add(Round())
    entry = internals_of(app).registry.workflows["Round"]
    lane = lanes.at(Ref("Round", "r-1"), entry, 1)
    lane.steps_left -= 7
    for n in range(200):
        lanes.at(Ref("Round", f"o-{n}"), entry, 1)
        assert lanes.at(Ref("Round", "r-1"), entry, 1) is lane
    lane.forget()  # as after a conflict
    assert lane.steps_left == STEPS // 10 - 7


def test_a_workflows_own_budget_goes_before_the_apps() -> None:
    class Free(Round):
        steps_per_hour = None

    def budgets(app: Mainspring) -> dict[str, WorkflowEntry]:
        app.add(Round(), Free())
        internals_of(app).registry.add_fan_out()
        return internals_of(app).registry.workflows

    entries = budgets(Mainspring("memory://"))
    assert (entries["Round"].budget.steps, entries["Free"].budget.steps) == (STEPS, 1_000_000)
    assert entries[FAN_OUT].budget.every == sys.maxsize
    assert budgets(Mainspring("memory://", steps_per_hour=500))["Free"].budget.steps == 500
    assert budgets(Mainspring("memory://", steps_per_hour=None))["Free"].budget.every == sys.maxsize


@pytest.mark.parametrize("steps", [0, 9, -1, 1.5, "many", True])
def test_a_budget_that_makes_no_sense_is_refused(steps: object) -> None:
    with pytest.raises(SettingError, match="steps_per_hour"):
        Mainspring("memory://", steps_per_hour=steps)  # pyright: ignore[reportArgumentType]
    odd = type("Odd", (Round,), {"steps_per_hour": steps})
    with pytest.raises(DefinitionError, match="steps_per_hour"):
        Mainspring("memory://").add(odd())
