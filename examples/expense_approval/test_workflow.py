import asyncio
from datetime import timedelta

import pytest

from examples.expense_approval import handlers
from examples.expense_approval.workflow import (
    ApprovalTimedOut,
    ApproveExpense,
    AwaitingManager,
    Escalated,
    EscalationDue,
    Expense,
    ExpenseApproval,
    ExpenseApproved,
    ExpenseLapsed,
    ExpenseReimbursed,
    ExpenseRejected,
    Input,
    Lapsed,
    NotifyEmployee,
    Reimbursed,
    ReimburseEmployee,
    Reimbursing,
    Rejected,
    RejectExpense,
    ReminderDue,
    RemindManagers,
    SubmitExpense,
)
from mainspring import Ask, Complete, Envelope, Kind, Mainspring, Schedule, Send
from mainspring.errors import CannotBeginError, InstanceEndedError, TaskRefusedError, UnknownTransitionError
from mainspring.testing import World, envelope, given, simulate

DAY = timedelta(days=1)
TRAIN = Expense("ann", "the train to Lyon", 12_900)
SUBMIT = SubmitExpense("e-1", TRAIN, senior_manager="cho")
APPROVED = envelope(ApproveExpense("e-1"), kind=Kind.ANSWER, actor="bob")
ESCALATION = EscalationDue("e-1")
TIMEOUT = ApprovalTimedOut("e-1")


def test_the_managers_are_asked_but_never_the_employee() -> None:
    (
        given(ExpenseApproval())
        .when(SUBMIT)
        .then(
            Ask(
                "ann asks for 129.00 EUR for the train to Lyon",
                ApproveExpense | RejectExpense,
                role="manager",
                excludes=("ann",),
                key="approval",
                reject=RejectExpense,
                due=7 * DAY,
                remind=Schedule(ReminderDue("e-1"), after=3 * DAY),
                escalate=Schedule(ESCALATION, after=7 * DAY),
                data={"expense_id": "e-1"},
            )
        )
        .then_state(AwaitingManager(TRAIN, "cho"))
    )


def test_managers_who_have_not_answered_are_reminded() -> None:
    (
        given(ExpenseApproval(), SUBMIT)
        .when(ReminderDue("e-1"))
        .then(Send(RemindManagers("e-1", "the train to Lyon")))
        .then_state(AwaitingManager(TRAIN, "cho"))
    )


def test_after_a_week_the_senior_manager_is_asked_as_well() -> None:
    (
        given(ExpenseApproval(), SUBMIT, ReminderDue("e-1"))
        .when(ESCALATION)
        .then(
            Ask(
                "ann asks for 129.00 EUR for the train to Lyon",
                ApproveExpense | RejectExpense,
                role="manager",
                person="cho",
                excludes=("ann",),
                key="approval",
                reject=RejectExpense,
                due=7 * DAY,
                escalate=Schedule(TIMEOUT, after=7 * DAY),
                data={"expense_id": "e-1"},
            )
        )
        .then_state(Escalated(TRAIN))
    )


@pytest.mark.parametrize("past", [[SUBMIT], [SUBMIT, ESCALATION]])
def test_an_approved_expense_is_paid_out(past: list[Input]) -> None:
    (
        given(ExpenseApproval(), *past)
        .when(ApproveExpense("e-1"), actor="bob")
        .then(Send(ReimburseEmployee("e-1", "ann", 12_900, "bob")))
        .then_state(Reimbursing("bob"))
    )


@pytest.mark.parametrize("past", [[SUBMIT], [SUBMIT, ESCALATION]])
def test_a_rejected_expense_ends_and_the_employee_is_told(past: list[Input]) -> None:
    (
        given(ExpenseApproval(), *past)
        .when(RejectExpense("e-1", "no receipt"), actor="bob")
        .then(
            Send(NotifyEmployee("e-1", "ann", "bob said no: no receipt")),
            Complete(ExpenseRejected("e-1", "bob", "no receipt")),
        )
        .then_state(Rejected("bob", "no receipt"))
    )


@pytest.mark.parametrize("answer", [ApproveExpense("e-1"), RejectExpense("e-1", "too dear")])
@pytest.mark.parametrize("past", [[SUBMIT], [SUBMIT, ESCALATION], [SUBMIT, APPROVED]])
def test_an_answer_that_came_past_the_task_list_counts_for_nothing(
    past: list[Input | Envelope[Input]], answer: Input
) -> None:
    given(ExpenseApproval(), *past).when(answer, kind=Kind.COMMAND, actor="cho").then()


def test_an_expense_that_nobody_answers_lapses_and_the_employee_is_told() -> None:
    (
        given(ExpenseApproval(), SUBMIT, ESCALATION)
        .when(TIMEOUT)
        .then(
            Send(NotifyEmployee("e-1", "ann", "nobody answered; please hand it in again")),
            Complete(ExpenseLapsed("e-1")),
        )
        .then_state(Lapsed())
    )


def test_the_payout_completes_the_expense() -> None:
    (
        given(ExpenseApproval(), SUBMIT, APPROVED)
        .when(ExpenseReimbursed("e-1", "transfer-e-1"), kind=Kind.RESULT)
        .then(Complete(ExpenseApproved("e-1", "bob")))
        .then_state(Reimbursed("bob", "transfer-e-1"))
    )


@pytest.mark.parametrize("past", [[SUBMIT], [SUBMIT, ESCALATION], [SUBMIT, APPROVED]])
def test_handing_in_the_same_expense_again_asks_nobody_again(past: list[Input | Envelope[Input]]) -> None:
    given(ExpenseApproval(), *past).when(SUBMIT).then()


@pytest.mark.parametrize("late", [ReminderDue("e-1"), ESCALATION])
def test_a_timer_that_the_approval_overtook_is_ignored(late: Input) -> None:
    given(ExpenseApproval(), SUBMIT, APPROVED).when(late).then().then_state(Reimbursing("bob"))


def test_a_payout_that_nobody_asked_for_is_an_unknown_transition() -> None:
    given(ExpenseApproval(), SUBMIT).when(ExpenseReimbursed("e-1", "transfer-e-1"), kind=Kind.RESULT).then_raises(
        UnknownTransitionError, match="ExpenseReimbursed in state AwaitingManager"
    )


def test_an_approval_cannot_begin_an_expense() -> None:
    given(ExpenseApproval()).when(ApproveExpense("e-1"), actor="bob").then_raises(
        CannotBeginError, match="SubmitExpense"
    )


def test_nothing_is_decided_after_the_end() -> None:
    rejected = envelope(RejectExpense("e-1", "no receipt"), kind=Kind.ANSWER, actor="bob")
    given(ExpenseApproval(), SUBMIT, rejected).when(ApproveExpense("e-1"), actor="bob").then_raises(InstanceEndedError)


def test_in_two_weeks_of_the_real_engine_only_whoever_was_asked_can_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "letters", {})
    monkeypatch.setattr(handlers, "transfers", {})
    app = Mainspring("memory://")
    app.add(ExpenseApproval())
    for handler in (handlers.remind_managers, handlers.notify_employee, handlers.reimburse_employee):
        app.handler(handler)

    async def story(world: World) -> None:
        await world.send(SUBMIT, actor="ann")
        (first,) = await app.tasks.list(role="manager", person="bob")
        with pytest.raises(TaskRefusedError, match="cho"):
            await app.tasks.complete(first.id, ApproveExpense("e-1"), actor="cho")
        with pytest.raises(TaskRefusedError, match="ann"):
            await app.tasks.complete(first.id, ApproveExpense("e-1"), actor="ann", roles=["manager"])
        await world.advance(days=8)
        assert handlers.letters == {("e-1", "managers"): "the train to Lyon is waiting for you in the task list"}
        (second,) = await app.tasks.list(person="cho")
        with pytest.raises(TaskRefusedError):
            await app.tasks.complete(first.id, ApproveExpense("e-1"), actor="bob", roles=["manager"])
        approved = await app.tasks.complete(second.id, ApproveExpense("e-1"), actor="cho")
        again = await app.tasks.reject(second.id, "too dear", actor="bob", roles=["manager"])
        assert (approved.first, again.first, again.answered_by) == (True, False, "cho")
        await world.advance(days=30)
        assert await world.instance(ExpenseApproval, "e-1").result() == ExpenseApproved("e-1", "cho")
        assert handlers.transfers == {"transfer-e-1": 12_900}

    async def main() -> None:
        async with asyncio.timeout(20), simulate(app) as world:
            await story(world)

    asyncio.run(main())


def test_a_repeated_payout_is_one_transfer_and_the_workflow_takes_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "transfers", {})
    command = ReimburseEmployee("e-1", "ann", 12_900, "bob")
    result = asyncio.run(handlers.reimburse_employee(command))
    assert asyncio.run(handlers.reimburse_employee(command)) == result
    assert handlers.transfers == {"transfer-e-1": 12_900}
    given(ExpenseApproval(), SUBMIT, APPROVED).when(result, kind=Kind.RESULT).then_state(
        Reimbursed("bob", "transfer-e-1")
    )


def test_people_get_one_letter_for_each_thing_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "letters", {})

    async def deliver_twice() -> None:
        for _ in range(2):
            await handlers.remind_managers(RemindManagers("e-1", "the train to Lyon"))
            await handlers.notify_employee(NotifyEmployee("e-1", "ann", "bob said no: no receipt"))

    asyncio.run(deliver_twice())
    assert handlers.letters == {
        ("e-1", "managers"): "the train to Lyon is waiting for you in the task list",
        ("e-1", "ann"): "bob said no: no receipt",
    }
