import asyncio
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Ask, Completed, Envelope, Kind, Mainspring, Received, TaskClosed, TaskOutcome
from mainspring.app.internals import internals_of
from mainspring.core.story import tell
from mainspring.errors import InstanceFailedError, NoSuchTaskError
from mainspring.port.records import Ref
from mainspring.sealing.seals import About
from mainspring.testing import fuzz, given
from mainspring.testing.clock import VirtualClock
from mainspring.testing.envelopes import envelope
from tests.engine.coordination.expenses import (
    APPROVAL,
    MANAGER,
    Approve,
    Approved,
    CarefulExpenses,
    Escalate,
    Expenses,
    Open,
    Pause,
    Reject,
    Remind,
    Submit,
    Withdraw,
    app_of,
    asked,
    events,
    opened,
    refusal,
)
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until

DAY_SECONDS = 24 * 3_600


# ---- a task's life


def test_what_is_asked_is_a_task_with_a_due_date_and_stands_in_the_stream(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with app_of(make_app, clock) as app:
            task = await opened(app)
            assert (task.id, task.title, task.role) == ("Expenses/e-1/3", "Approve e-1", "manager")
            assert (task.answers, task.reject, task.excludes) == (("Approve", "Reject"), "Reject", ("ann",))
            assert task.due_at == task.opened_at + timedelta(days=7)
            assert task.data == {"id": "e-1", "amount": 100}
            await app.tasks.complete(task.id, Approve("e-1"), **MANAGER)
            assert await app.instance(Expenses, "e-1").result() == Approved("e-1", "bob")
            assert [row.cells()[1:] for row in tell(await app.instance(Expenses, "e-1").stream())][1:] == [
                ("command", "input", "InitiatedBy", "Submit(id='e-1', amount=100)"),
                ("task", "output", "Asked", "'Approve e-1' for manager (approval)"),
                ("timer", "output", "Scheduled", "Remind(id='e-1') after 2 days"),
                ("timer", "output", "Scheduled", "Escalate(id='e-1') after 5 days"),
                ("answer", "input", "Received", "Approve(id='e-1', note='')"),
                ("task", "output", "TaskClosed", "'approval'"),
                ("", "", "Completed", "Approved(id='e-1', by='bob')"),
            ]

    run(main)


def test_an_answer_is_durable_with_its_actor_and_a_message_id_fixed_by_the_task(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app) as app:
            task = await opened(app)
            await app.tasks.complete(task.id, Reject("e-1", "no receipt"), **MANAGER)
            with pytest.raises(InstanceFailedError, match="no receipt"):
                await app.instance(Expenses, "e-1").result()
        async with app_of(make_app) as app:
            answer = (await app.instance(Expenses, "e-1").stream())[5]
            assert (answer.message_id, answer.actor, answer.kind) == ("Expenses/e-1/3/answer", "bob", Kind.ANSWER)
            ended = await app.tasks.get("Expenses/e-1/3")
            assert (ended.status, ended.answered_by, ended.answer) == ("answered", "bob", "Reject")

    run(main)


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
@pytest.mark.parametrize("restarted", [False, True])
def test_tasks_close_with_their_instance(end: str, restarted: bool, make_app: MakeApp) -> None:
    async def main() -> None:
        app = app_of(make_app)
        await app.start()
        task = await opened(app)
        other = await opened(app, "e-2")
        if restarted:
            await app.stop()
            app = app_of(make_app)
            await app.start()
        if end == "cancel":
            await app.instance(Expenses, "e-1").cancel()
        else:
            await app.send(Withdraw("e-1", fails=end == "fail"))
        assert [one.id for one in await app.tasks.list()] == [other.id]
        assert (await app.tasks.get(task.id)).status == "closed"
        assert await refusal(app.tasks.complete(task.id, Approve("e-1"), **MANAGER)) == "closed"
        assert [timer.instance for timer in await app.timers()] == ["Expenses/e-2", "Expenses/e-2"]
        await app.stop()

    run(main)


def test_a_workflow_that_moves_on_closes_its_task_with_its_timers(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app) as app:
            task = await opened(app)
            await app.send(Pause("e-1"))
            assert await app.tasks.list() == []
            assert await app.timers() == []
            assert await refusal(app.tasks.claim(task.id, **MANAGER)) == "closed"

    run(main)


def test_reminder_and_escalation_come_with_the_task_and_go_with_it(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with app_of(make_app, clock) as app:
            first, quick = await opened(app), await opened(app, "e-2")
            await app.tasks.complete(quick.id, Approve("e-2"), **MANAGER)
            clock.advance(2 * DAY_SECONDS)
            instance = app.instance(Expenses, "e-1")

            # Time goes on while the test waits: a worker whose lease ran out in the leap needs it to come back.
            async def reminded() -> bool:
                clock.advance(1)
                return await instance.state() == Open(1)

            await until(reminded)
            clock.advance(3 * DAY_SECONDS)

            async def escalated() -> bool:
                clock.advance(1)
                return (await app.tasks.get(first.id)).status == "closed"

            await until(escalated)
            (task,) = await app.tasks.list()
            assert (task.title, task.role, task.key) == ("Decide e-1", "director", APPROVAL)
            assert await refusal(app.tasks.complete(task.id, Approve("e-1"), **MANAGER)) == "not asked"
            await app.tasks.complete(task.id, Approve("e-1"), actor="dora", roles=["director"])
            assert await instance.result() == Approved("e-1", "dora")
            assert await app.timers() == []
            assert (await events(app, "e-2"))[-1] == "Completed"

    run(main)


def test_a_reset_asks_anew_what_was_open_at_that_version(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with app_of(make_app, clock) as app:
            first = await opened(app)
            await app.tasks.claim(first.id, **MANAGER)
            await app.send(Pause("e-1"))
            for _ in range(2):  # also a reset of what was reset
                await app.instance(Expenses, "e-1").reset(5, actor="op")
                (task,) = await app.tasks.list()
                assert (task.title, task.due_at, task.claimed_by) == (first.title, first.due_at, None)
                assert task.id != first.id
                assert len(await app.timers()) == 2
            assert await refusal(app.tasks.complete(first.id, Approve("e-1"), **MANAGER)) == "closed"
            (task,) = await app.tasks.pick("manager", actor="bob")
            await app.tasks.complete(task.id, Approve("e-1"), **MANAGER)
            assert await app.instance(Expenses, "e-1").result() == Approved("e-1", "bob")

    run(main)


class BrittleExpenses(Expenses):
    """Fails on one answer."""

    def decide(self, envelope: Envelope[Any], state: Open) -> Any:
        if envelope.message == Approve("e-1", "crash"):
            raise RuntimeError("it cannot be decided")
        return super().decide(envelope, state)


class ForgetfulBrittleExpenses(BrittleExpenses):
    """The same without a history."""

    history = "state"


@pytest.mark.parametrize("workflow", [BrittleExpenses, ForgetfulBrittleExpenses])
def test_a_task_whose_answer_is_skipped_is_open_again_and_takes_another(
    workflow: type[BrittleExpenses], make_app: MakeApp
) -> None:
    async def main() -> None:
        async with app_of(make_app, workflow=workflow) as app:
            task, instance = await opened(app), app.instance(workflow, "e-1")
            await app.tasks.claim(task.id, **MANAGER)
            for note in range(2):
                await app.tasks.complete(task.id, Approve("e-1", "crash"), **MANAGER)
                assert (await instance.row()).status == "suspended"
                assert await app.tasks.list(role="manager") == []
                await instance.skip(actor="ops")
                (again,) = await app.tasks.list(role="manager", person="bob")
                assert (again.id, again.status, again.claimed_by, again.answered_by) == (task.id, "open", "bob", None)
                assert (await events(app)).count("Skipped") == note + 1
            first = await app.tasks.complete(task.id, Approve("e-1", "well"), **MANAGER)
            second = await app.tasks.complete(task.id, Reject("e-1", "too late"), **MANAGER)
            assert (first.first, second.first) == (True, False)
            kept = None if workflow.history == "state" else Approve("e-1", "well")
            assert (first.message, second.message) == (Approve("e-1", "well"), kept)
            assert await instance.result() == Approved("e-1", "bob")

    run(main)


def test_an_answer_that_is_skipped_before_its_caller_looks_again_is_not_reported_as_the_next_one(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with app_of(make_app, workflow=BrittleExpenses) as app:
            task, instance = await opened(app), app.instance(BrittleExpenses, "e-1")
            read: Any = app.tasks._row  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  what a slow store delays
            looks: list[TaskOutcome | None] = []

            async def slow(id: str) -> Any:
                looks.append(None)
                if len(looks) == 2:
                    monkeypatch.setattr(app.tasks, "_row", read)
                    await instance.skip(actor="ops")
                    looks[1] = await app.tasks.complete(id, Reject("e-1", "no receipt"), **MANAGER)
                return await read(id)

            monkeypatch.setattr(app.tasks, "_row", slow)
            told = await app.tasks.complete(task.id, Approve("e-1", "crash"), **MANAGER)
            after = looks[1]
            assert after is not None
            assert (told.answer, told.message, told.first) == ("Approve", Approve("e-1", "crash"), True)
            assert (after.answer, after.answered_by, after.first) == ("Reject", "bob", True)

    run(main)


@pytest.mark.parametrize("meanwhile", ["escalated", "reset"])
def test_a_task_that_was_asked_anew_meanwhile_is_not_opened_by_a_skip(meanwhile: str, make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app, workflow=BrittleExpenses) as app:
            task, instance = await opened(app), app.instance(BrittleExpenses, "e-1")
            if meanwhile == "escalated":
                await instance.suspend("for a while")
                await app.send(Escalate("e-1"))
            await app.tasks.complete(task.id, Approve("e-1", "crash"), **MANAGER)
            await (instance.resume() if meanwhile == "escalated" else instance.reset(5))
            await until(lambda: failed_on_it(app))
            (anew,) = [one.id for one in await app.tasks.list()]
            assert anew != task.id
            await instance.skip()
            assert [one.id for one in await app.tasks.list()] == [anew]

    async def failed_on_it(app: Mainspring) -> bool:
        row = await app.instance(BrittleExpenses, "e-1").row()
        return row.status == "suspended" and "cannot be decided" in str(row.error) and bool(await app.tasks.list())

    run(main)


# ---- many answers, one outcome


@pytest.mark.parametrize("second", [Approve("e-1"), Reject("e-1", "too dear")])
def test_a_second_click_gets_the_first_clicks_outcome(second: object, make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app) as app:
            task = await opened(app)
            first = await app.tasks.complete(task.id, Approve("e-1", "fine"), **MANAGER)
            before = await events(app)
            again = await app.tasks.complete(task.id, second, actor="cho", roles=["manager"])
            assert (first.first, first.status) == (True, "stepped")
            assert (again.first, again.status) == (False, "duplicate")
            assert (again.answered_by, again.answered_at) == ("bob", first.answered_at)
            assert again.message == first.message == Approve("e-1", "fine")
            assert await events(app) == before

    run(main)


@pytest.mark.parametrize("workflow", [Expenses, CarefulExpenses])
def test_of_twenty_answers_at_once_one_wins_and_all_get_its_outcome(
    workflow: type[Expenses], make_app: MakeApp
) -> None:
    async def main() -> None:
        async with app_of(make_app, None, workflow) as app, app_of(make_app, None, workflow) as other:
            task = await opened(app)

            async def click(n: int) -> TaskOutcome:
                answer = Approve("e-1", f"click {n}") if n % 2 else Reject("e-1", f"click {n}")
                return await (app, other)[n % 2].tasks.complete(task.id, answer, actor=f"boss-{n}", roles=["manager"])

            outcomes = await asyncio.gather(*(click(n) for n in range(20)))
            assert sum(outcome.first for outcome in outcomes) == 1
            assert len({(o.answered_by, o.answered_at, o.message) for o in outcomes}) == 1

            async def ended() -> bool:
                return (await app.instance(workflow, "e-1").row()).status in ("completed", "failed")

            await until(ended)
            assert (await events(app)).count("Received") == 1
            assert await app.dead_letters() == []

    run(main)


def test_a_message_with_the_id_of_an_answer_is_not_taken_for_the_first_one(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app, VirtualClock()) as app:
            task = await opened(app)
            await app.send(Remind("e-1"), id=f"{task.id}/answer")
            await app.tasks.complete(task.id, Approve("e-1"), **MANAGER)
            second = await app.tasks.complete(task.id, Reject("e-1", "too late"), **MANAGER)
            assert (second.first, second.message) == (False, Approve("e-1"))

    run(main)


def test_an_answer_to_a_suspended_instance_counts_and_waits(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app) as app:
            task = await opened(app)
            await app.instance(Expenses, "e-1").suspend()
            first = await app.tasks.complete(task.id, Approve("e-1"), **MANAGER)
            again = await app.tasks.complete(task.id, Reject("e-1", "late"), actor="cho", roles=["manager"])
            assert (first.status, again.answered_by, again.message) == ("suspended", "bob", Approve("e-1"))
            await app.instance(Expenses, "e-1").resume()
            assert await app.instance(Expenses, "e-1").result() == Approved("e-1", "bob")
            assert (await events(app))[-3:] == ["Received", "TaskClosed", "Completed"]

    run(main)


def test_an_answer_on_which_decide_fails_is_kept_and_suspends_its_instance(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app) as app:
            task = await opened(app)
            outcome = await app.tasks.complete(task.id, Approve("e-1", "boom"), **MANAGER)
            assert (outcome.first, outcome.status, outcome.message) == (True, "suspended", Approve("e-1", "boom"))
            assert [row.message_id for row in await app.instance(Expenses, "e-1").waiting()] == [f"{task.id}/answer"]

    run(main)


# ---- looking and filling in


def test_tasks_are_listed_page_by_page_by_role_and_workflow(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with app_of(make_app, clock) as app:
            ids = [f"e-{n}" for n in range(5)]
            for id in ids:
                await opened(app, id)
                clock.advance(60)
            page = await app.tasks.list(limit=3)
            rest = await app.tasks.list(limit=3, after=page[-1].id)
            assert [task.instance for task in page + rest] == ids
            # The page's last one may be answered before the next page is asked for.
            await app.tasks.complete(page[-1].id, Approve("e-2"), **MANAGER)
            assert await app.tasks.list(limit=3, after=page[-1].id) == rest
            assert await app.tasks.list(role="director") == await app.tasks.list(workflow="Others") == []
            assert len(await app.tasks.list(role=["director", "manager"], workflow="Expenses")) == 4

    run(main)


def test_a_task_is_overdue_when_its_time_has_passed(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with app_of(make_app, clock) as app:
            await opened(app)
        client = app_of(make_app, clock)
        await client.start(work=False)  # nobody escalates
        clock.advance(7 * DAY_SECONDS)
        assert await client.tasks.list(overdue=True) == []
        clock.advance(1)
        assert [task.overdue for task in await client.tasks.list(overdue=True)] == [True]
        await client.stop()

    run(main)


def test_the_form_has_the_fields_of_each_answer_with_what_is_known(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app) as app:
            task = await opened(app)
            approve, reject = await app.tasks.forms(task.id)
            assert [(f.name, f.schema["type"], f.required, f.value) for f in approve.fields] == [
                ("id", "string", True, "e-1"),
                ("note", "string", False, None),
            ]
            assert (approve.rejects, reject.rejects, reject.answer) == (False, True, "Reject")
            outcome = await app.tasks.complete(task.id, "Approve", {"note": "fine"}, **MANAGER)
            assert outcome.message == Approve("e-1", "fine")
            other = await opened(app, "e-2")
            no = await app.tasks.reject(other.id, "no receipt", **MANAGER)
            assert no.message == Reject("e-2", "no receipt")

    run(main)


def test_what_is_no_task_is_told(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_of(make_app) as app:
            await opened(app)
            for id in ("Expenses/e-1/2", "Expenses/e-9/3", "e-1", "Expenses/e-1/x", ""):
                with pytest.raises(NoSuchTaskError):
                    await app.tasks.get(id)
                with pytest.raises(NoSuchTaskError):
                    await app.tasks.claim(id, **MANAGER)

    run(main)


class Backwards:
    def close(self, body: bytes, about: About) -> bytes:
        return body[::-1]

    def open(self, stored: bytes, about: About) -> bytes:
        return stored[::-1]


def test_the_data_of_a_task_is_sealed_with_the_bodies(make_app: MakeApp) -> None:
    async def main() -> None:
        sealed = make_app()
        internals_of(sealed).seal = Backwards()  # the fixture makes apps without
        sealed.add(Expenses())
        async with sealed as app:
            task = await opened(app)
            assert task.data == {"id": "e-1", "amount": 100}
            (picked,) = await app.tasks.pick("manager", actor="bob")
            assert picked.data == (await app.tasks.get(task.id)).data == task.data
        async with app_of(make_app) as app:
            row = await internals_of(app).engine.store.task(Ref("Expenses", "e-1"), 3)
            assert row is not None
            assert row.data == b'{"id":"e-1","amount":100}'[::-1]

    run(main)


def test_a_program_without_an_event_loop_answers_tasks() -> None:
    app = Mainspring("memory://")
    app.add(Expenses())
    with app.blocking() as blocking:
        blocking.send(Submit("e-1"), actor="ann")
        (task,) = blocking.tasks.pick("manager", actor="bob")
        assert blocking.tasks.complete(task.id, Approve("e-1"), **MANAGER).first


# ---- in pure tests


def test_a_scenario_expects_what_is_asked() -> None:
    given(Expenses()).when(Submit("e-1"), actor="ann").then(asked("e-1", 100, "ann"))
    given(Expenses(), Submit("e-1")).when(Escalate("e-1")).then(
        Ask("Decide e-1", Approve | Reject, role="director", key=APPROVAL)
    )
    with pytest.raises(AssertionError, match="role: expected 'clerk', decided 'director'"):
        given(Expenses(), Submit("e-1")).when(Escalate("e-1")).then(
            Ask("Decide e-1", Approve | Reject, role="clerk", key=APPROVAL)
        )


def test_a_scenario_takes_what_answers_an_open_task_as_its_answer() -> None:
    approved, closed = Completed(Approved("e-1", "bob")), TaskClosed(APPROVAL)
    scenario = given(Expenses(), Submit("e-1"))
    scenario.when(Approve("e-1"), actor="bob").then_events(Received(Approve("e-1")), closed, approved)
    sealed = envelope(Approve("e-1"), kind=Kind.ANSWER, actor="bob")
    given(Expenses(), Submit("e-1")).when(sealed).then_events(Received(Approve("e-1")), closed, approved)
    sent = given(Expenses(), Submit("e-1")).when(Approve("e-1"), kind=Kind.COMMAND, actor="bob")
    sent.then_events(Received(Approve("e-1")), approved)
    none_open = given(Expenses(), Submit("e-1"), Pause("e-1")).when(Approve("e-1"), actor="bob")
    none_open.then_events(Received(Approve("e-1")), approved)


def test_fuzzing_understands_tasks_and_their_timers() -> None:
    messages = [envelope(Submit("e-1"), actor="ann"), Approve("e-1"), Reject("e-1", "no"), Pause("e-1")]
    assert fuzz(Expenses(), messages, max_examples=50).unseen_states == ()
