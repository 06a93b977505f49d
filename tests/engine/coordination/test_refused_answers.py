"""Answers that the workflow itself refuses: the task stays open, and whoever answered is told why."""

import asyncio
from typing import Any

import pytest

from mainspring import (
    CloseTask,
    Decisions,
    Envelope,
    Event,
    Mainspring,
    Received,
    RefuseAnswer,
    TaskClosed,
)
from mainspring.core.events import AnswerRefused
from mainspring.core.story import tell
from mainspring.engine.recording import event_rows
from mainspring.errors import InstanceFailedError, TaskRefusedError
from mainspring.testing.clock import VirtualClock
from tests.engine.coordination.expenses import (
    APPROVAL,
    DAY,
    MANAGER,
    Approve,
    Approved,
    Escalate,
    Expenses,
    Input,
    Open,
    Pause,
    Reject,
    Remind,
    Submit,
    app_of,
    events,
    opened,
    refusal,
)
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

WHY = "an approval needs a note"
BARE, NOTED = Approve("e-1"), Approve("e-1", "as agreed")


class GuardedExpenses(Expenses):
    """Refuses an approval without a note. Its state counts what it has seen of answers and closed tasks."""

    def evolve(self, state: Open, event: Event[Input, Approved]) -> Open | None:
        match event:
            case Received(Approve() | Reject()) | TaskClosed():
                return Open(state.reminders + 1)

    def decide(self, envelope: Envelope[Input], state: Open) -> Decisions[Input, Approved] | None:
        match envelope.message:
            case Approve(note="") if envelope.task:
                return [RefuseAnswer(WHY)]
            case _:
                return super().decide(envelope, state)


class CarefulGuardedExpenses(GuardedExpenses):
    """The same through the inbox."""

    mode = "inbox"


class ForgetfulGuardedExpenses(CarefulGuardedExpenses):
    """The same without a history."""

    history = "state"


async def refused(app: Mainspring, id: str, answer: Approve = BARE, **who: Any) -> TaskRefusedError:
    with pytest.raises(TaskRefusedError) as error:
        await app.tasks.complete(id, answer, **(who or MANAGER))
    return error.value


async def seen(app: Mainspring, count: int = 1) -> None:
    """Wait until so many answers are refused."""

    async def is_so() -> bool:
        return (await events(app)).count("AnswerRefused") == count

    await until(is_so)


def test_a_refused_answer_is_told_and_recorded_and_changes_nothing(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app, VirtualClock(), GuardedExpenses) as app:
            task = await opened(app)
            expense = app.instance(GuardedExpenses, "e-1")
            before, timers = await events(app), await app.timers()
            error = await refused(app, task.id)
            assert (error.reason, error.detail, error.actor) == ("guard", WHY, "bob")
            assert str(error) == (
                f"Task {task.id} is open still: the answer was refused: {WHY}. Answer it otherwise, or later."
            )
            assert await events(app) == [*before, "AnswerRefused"]
            last = (await expense.stream())[-1]
            assert (last.event, last.actor, last.kind) == (AnswerRefused(BARE, APPROVAL, WHY), "bob", "answer")
            assert tell([last])[0].message == f"Approve(id='e-1', note='') to approval: {WHY!r}"
            assert (await expense.state(), await app.timers(), await app.tasks.get(task.id)) == (Open(), timers, task)

    run(main)


@pytest.mark.parametrize("restarted", [False, True])
def test_the_next_answer_is_no_duplicate_of_the_refused_one(restarted: bool, make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app, workflow=GuardedExpenses) as app:
            task = await opened(app)
            await refused(app, task.id)
            await refused(app, task.id)  # a double click
            assert (await events(app)).count("AnswerRefused") == 2
            if not restarted:
                await answered(app, task.id)
        if restarted:
            async with app_of(make_app, workflow=GuardedExpenses) as app:
                await answered(app, task.id)

    async def answered(app: Mainspring, id: str) -> None:
        assert (await app.tasks.complete(id, NOTED, **MANAGER)).first
        assert await app.instance(GuardedExpenses, "e-1").result() == Approved("e-1", "bob")
        again = await app.tasks.complete(id, BARE, actor="cho", roles=["manager"])
        assert (again.first, again.message, again.answered_by) == (False, NOTED, "bob")

    run(main)


def test_who_may_not_answer_hears_that_first_and_nothing_is_recorded(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app, workflow=GuardedExpenses) as app:
            task = await opened(app)
            before = await events(app)
            assert await refusal(app.tasks.complete(task.id, BARE, actor="ann", roles=["manager"])) == "excluded"
            assert await refusal(app.tasks.complete(task.id, BARE, actor="dan", roles=["clerk"])) == "not asked"
            await app.tasks.claim(task.id, actor="cho", roles=["manager"])
            assert await refusal(app.tasks.complete(task.id, BARE, **MANAGER)) == "held"
            assert await events(app) == before

    run(main)


@pytest.mark.parametrize("workflow", [GuardedExpenses, CarefulGuardedExpenses])
def test_whoever_holds_the_task_keeps_it(workflow: type[Expenses], make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app, workflow=workflow) as app:
            task = await opened(app)
            await app.tasks.claim(task.id, **MANAGER)
            if workflow is GuardedExpenses:
                await refused(app, task.id)
            else:
                assert (await app.tasks.complete(task.id, BARE, **MANAGER)).status == "accepted"
                await seen(app)
            now = await app.tasks.get(task.id)
            assert (now.status, now.claimed_by, now.answered_by) == ("open", "bob", None)
            assert await refusal(app.tasks.complete(task.id, NOTED, actor="cho", roles=["manager"])) == "held"
            await app.tasks.complete(task.id, NOTED, **MANAGER)
            assert await app.instance(workflow, "e-1").result() == Approved("e-1", "bob")

    run(main)


def test_of_answers_at_once_the_good_one_wins_and_the_others_change_nothing(make_app: MakeApp) -> None:
    async def main() -> None:
        async with (
            app_of(make_app, workflow=GuardedExpenses) as app,
            app_of(make_app, workflow=GuardedExpenses) as other,
        ):
            task = await opened(app)
            answers = [NOTED if n == 5 else BARE for n in range(12)]
            came = await asyncio.gather(
                *((app, other)[n % 2].tasks.complete(task.id, one, **MANAGER) for n, one in enumerate(answers)),
                return_exceptions=True,
            )
            firsts = [one for one in came if not isinstance(one, BaseException) and one.first]
            assert [one.message for one in firsts] == [NOTED]
            # Whoever came first was refused by the guard, whoever came later was told of the one that won.
            late = [one for one in came if not isinstance(one, BaseException) and not one.first]
            guarded = [one for one in came if isinstance(one, TaskRefusedError)]
            assert {one.message for one in late} <= {NOTED}
            assert {(one.reason, one.detail) for one in guarded} <= {("guard", WHY)}
            assert len(firsts) + len(late) + len(guarded) == len(answers)
            assert (await events(app)).count("AnswerRefused") == len(guarded)
            assert (await events(app)).count("Received") == 1

    run(main)


@pytest.mark.parametrize("workflow", [CarefulGuardedExpenses, ForgetfulGuardedExpenses])
def test_an_answer_from_the_inbox_that_is_refused_opens_its_task_again(
    workflow: type[Expenses], make_app: MakeApp
) -> None:
    async def main() -> None:
        async with app_of(make_app, workflow=workflow) as app:
            task = await opened(app)
            first = await app.tasks.complete(task.id, BARE, **MANAGER)
            assert (first.first, first.status) == (True, "accepted")
            await seen(app)
            assert (await app.tasks.get(task.id)).status == "open"
            await app.tasks.complete(task.id, NOTED, actor="cho", roles=["manager"])
            assert await app.instance(workflow, "e-1").result() == Approved("e-1", "cho")
            assert (await app.tasks.complete(task.id, BARE, **MANAGER)).message == (
                NOTED if workflow is CarefulGuardedExpenses else None
            )

    run(main)


def test_an_answer_that_waited_while_its_instance_was_suspended_is_refused_when_it_goes_on(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app, workflow=GuardedExpenses) as app:
            task, expense = await opened(app), app.instance(GuardedExpenses, "e-1")
            await expense.suspend("a look at it")
            assert (await app.tasks.complete(task.id, BARE, **MANAGER)).status == "suspended"
            assert (await app.tasks.get(task.id)).status == "answered"
            behind = await app.tasks.complete(task.id, NOTED, actor="cho", roles=["manager"])
            assert (behind.first, behind.status, behind.message) == (False, "accepted", BARE)
            await expense.resume()
            await seen(app)
            assert (await app.tasks.get(task.id)).status == "open"
            assert (await app.tasks.complete(task.id, NOTED, **MANAGER)).first
            assert await expense.result() == Approved("e-1", "bob")

    run(main)


@pytest.mark.parametrize("workflow", [GuardedExpenses, ForgetfulGuardedExpenses])
@pytest.mark.parametrize("meanwhile", [Pause("e-1"), Escalate("e-1")])
def test_a_task_that_was_closed_or_asked_anew_meanwhile_stays_away(
    meanwhile: Input, workflow: type[Expenses], make_app: MakeApp
) -> None:
    async def main() -> None:
        async with app_of(make_app, workflow=workflow) as app:
            task, expense = await opened(app), app.instance(workflow, "e-1")
            await expense.suspend("a look at it")
            for message in (meanwhile, Remind("e-1")):
                await app.send(message)
            await app.tasks.complete(task.id, BARE, **MANAGER)
            await expense.resume()
            await seen(app)
            still = [one.title for one in await app.tasks.list()]
            assert still == ([] if isinstance(meanwhile, Pause) else ["Decide e-1"])
            assert (await app.tasks.get(task.id)).status == "answered"

    run(main)


@pytest.mark.parametrize("before", [1, 0])
def test_an_instance_goes_back_to_before_a_refused_answer_and_past_it(before: int, make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app, workflow=GuardedExpenses) as app:
            task, expense = await opened(app), app.instance(GuardedExpenses, "e-1")
            await refused(app, task.id)
            at = len(await events(app))
            await app.send(Pause("e-1"))
            await expense.reset(at - before, "the pause was a mistake")
            (again,) = await app.tasks.list()
            await app.tasks.complete(again.id, NOTED, **MANAGER)
            assert await expense.result() == Approved("e-1", "bob")

    run(main)


def test_a_release_that_does_not_know_refused_answers_leaves_the_instance_to_newer_workers(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with app_of(make_app, workflow=GuardedExpenses) as app:
            task = await opened(app)
            await refused(app, task.id)
        with monkeypatch.context() as older:
            older.setattr(event_rows, "_BESIDE", frozenset({"Kept"}))
            async with app_of(make_app, workflow=GuardedExpenses) as app:
                assert (await app.tasks.complete(task.id, NOTED, **MANAGER)).status == "accepted"
                assert (await app.instance(GuardedExpenses, "e-1").row()).status == "running"
        async with app_of(make_app, workflow=GuardedExpenses) as app:
            assert await app.instance(GuardedExpenses, "e-1").result() == Approved("e-1", "bob")

    run(main)


class UnaskedExpenses(Expenses):
    """Refuses what answers no task."""

    from_outside = Submit | Approve | Pause

    def decide(self, envelope: Envelope[Input], state: Open) -> Decisions[Input, Approved] | None:
        match envelope.message:
            case Pause() | Remind() | Approve(note=""):
                return [RefuseAnswer(WHY)]
            case Approve():
                return [CloseTask(APPROVAL), RefuseAnswer(WHY)]
            case Submit(amount=0):
                return [RefuseAnswer(WHY)]
            case _:
                return super().decide(envelope, state)


class CarefulUnaskedExpenses(UnaskedExpenses):
    """The same through the inbox."""

    mode = "inbox"


@pytest.mark.parametrize("workflow", [UnaskedExpenses, CarefulUnaskedExpenses])
@pytest.mark.parametrize("unasked", [Pause("e-1"), BARE])
def test_what_is_refused_and_answers_no_task_is_a_dead_letter_and_stops_nothing(
    workflow: type[UnaskedExpenses], unasked: Input, make_app: MakeApp
) -> None:
    async def main() -> None:
        async with app_of(make_app, workflow=workflow) as app:
            expense, _ = app.instance(workflow, "e-1"), await opened(app)
            before = await events(app)
            receipt = await app.send(unasked, id="unasked")
            assert receipt.status == ("accepted" if workflow is CarefulUnaskedExpenses else "dead letter")
            (letter,) = await until(app.dead_letters)
            assert (letter.message, letter.reason) == (unasked, f"{workflow.__name__}/e-1 refused it")
            assert WHY in str(letter.error)
            assert ((await expense.row()).status, await events(app)) == ("running", before)
            await app.send(Reject("e-1", "no"))
            with pytest.raises(InstanceFailedError, match="no"):
                await expense.result()

    run(main)


def test_a_timer_or_a_beginning_that_is_refused_is_a_mistake_of_the_author(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with app_of(make_app, clock, UnaskedExpenses) as app:
            assert (await app.send(Submit("e-0", 0))).status == "suspended"
            await opened(app)
            clock.advance(2 * DAY.total_seconds())
            await until(lambda: stopped(app))
            assert "which answers no task" in ((await app.instance(UnaskedExpenses, "e-1").row()).error or "")

    async def stopped(app: Mainspring) -> bool:
        return (await app.instance(UnaskedExpenses, "e-1").row()).status == "suspended"

    run(main)


def test_a_refusal_with_other_decisions_is_a_mistake_of_the_author(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app, workflow=UnaskedExpenses) as app:
            task = await opened(app)
            await app.tasks.complete(task.id, NOTED, **MANAGER)
            expense = app.instance(UnaskedExpenses, "e-1")
            assert "refuses an answer and decides more" in ((await expense.row()).error or "")
            assert "AnswerRefused" not in await events(app)

    run(main)
