import asyncio

import pytest

from examples.expense_approval import handlers
from examples.expense_approval.workflow import (
    ESCALATION_AFTER,
    LAPSE_AFTER,
    REMINDER_AFTER,
    UNANSWERED,
    AnswerNotCounted,
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
    RemindApprover,
    ReminderDue,
    RequestApproval,
    SubmitExpense,
)
from mainspring import CancelSchedule, Complete, Kind, Reply, Schedule, Send
from mainspring.errors import CannotBeginError, InstanceEndedError, UnknownTransitionError
from mainspring.testing import given

TRAIN = Expense("ann", "the train to Lyon", 12_900)
SUBMIT = SubmitExpense("e-1", TRAIN, manager="bob", senior_manager="cho")
REMINDER = ReminderDue("e-1")
ESCALATION = EscalationDue("e-1")
TIMEOUT = ApprovalTimedOut("e-1")


def test_the_manager_is_asked_first() -> None:
    (
        given(ExpenseApproval())
        .when(SUBMIT)
        .then(
            Send(RequestApproval("e-1", TRAIN, "bob")),
            Schedule(REMINDER, after=REMINDER_AFTER, key=UNANSWERED),
            Schedule(ESCALATION, after=ESCALATION_AFTER, key=UNANSWERED),
        )
        .then_state(AwaitingManager(TRAIN, "bob", "cho"))
    )


def test_a_manager_who_has_not_answered_is_reminded() -> None:
    (
        given(ExpenseApproval(), SUBMIT)
        .when(REMINDER)
        .then(Send(RemindApprover("e-1", "bob")))
        .then_state(AwaitingManager(TRAIN, "bob", "cho"))
    )


def test_after_a_week_the_senior_manager_is_asked_as_well() -> None:
    (
        given(ExpenseApproval(), SUBMIT, REMINDER)
        .when(ESCALATION)
        .then(
            Send(RequestApproval("e-1", TRAIN, "cho")),
            Schedule(TIMEOUT, after=LAPSE_AFTER, key=UNANSWERED),
        )
        .then_state(Escalated(TRAIN, "bob", "cho"))
    )


@pytest.mark.parametrize(
    ("past", "approver"),
    [([SUBMIT], "bob"), ([SUBMIT, ESCALATION], "bob"), ([SUBMIT, ESCALATION], "cho")],
)
def test_whoever_was_asked_may_approve(past: list[Input], approver: str) -> None:
    (
        given(ExpenseApproval(), *past)
        .when(ApproveExpense("e-1", approver))
        .then(
            CancelSchedule(UNANSWERED),
            Reply(ExpenseApproved("e-1", approver)),
            Send(ReimburseEmployee("e-1", "ann", 12_900)),
        )
        .then_state(Reimbursing(approver))
    )


@pytest.mark.parametrize(
    ("past", "approver"),
    [([SUBMIT], "bob"), ([SUBMIT, ESCALATION], "bob"), ([SUBMIT, ESCALATION], "cho")],
)
def test_whoever_was_asked_may_reject(past: list[Input], approver: str) -> None:
    rejected = ExpenseRejected("e-1", approver, "no receipt")
    (
        given(ExpenseApproval(), *past)
        .when(RejectExpense("e-1", approver, "no receipt"))
        .then(
            Reply(rejected),
            Send(NotifyEmployee("e-1", "ann", f"{approver} said no: no receipt")),
            Complete(rejected),
        )
        .then_state(Rejected(approver, "no receipt"))
    )


@pytest.mark.parametrize("answer", [ApproveExpense("e-1", "cho"), RejectExpense("e-1", "cho", "too dear")])
def test_the_senior_managers_answer_does_not_count_before_the_escalation(answer: Input) -> None:
    (
        given(ExpenseApproval(), SUBMIT)
        .when(answer)
        .then(Reply(AnswerNotCounted("e-1", "this is for bob to decide")))
        .then_state(AwaitingManager(TRAIN, "bob", "cho"))
    )


def test_a_strangers_answer_never_counts() -> None:
    (
        given(ExpenseApproval(), SUBMIT, ESCALATION)
        .when(ApproveExpense("e-1", "ann"))
        .then(Reply(AnswerNotCounted("e-1", "this is for bob or cho to decide")))
        .then_state(Escalated(TRAIN, "bob", "cho"))
    )


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
        given(ExpenseApproval(), SUBMIT, ApproveExpense("e-1", "bob"))
        .when(ExpenseReimbursed("e-1", "transfer-e-1"), kind=Kind.RESULT)
        .then(Complete(ExpenseApproved("e-1", "bob")))
        .then_state(Reimbursed("bob", "transfer-e-1"))
    )


@pytest.mark.parametrize("second", [ApproveExpense("e-1", "cho"), RejectExpense("e-1", "cho", "too dear")])
def test_a_second_click_gets_the_first_clicks_outcome_and_pays_nothing(second: Input) -> None:
    (
        given(ExpenseApproval(), SUBMIT, ESCALATION, ApproveExpense("e-1", "bob"))
        .when(second)
        .then(Reply(ExpenseApproved("e-1", "bob")))
        .then_state(Reimbursing("bob"))
    )


@pytest.mark.parametrize("past", [[SUBMIT], [SUBMIT, ESCALATION], [SUBMIT, ApproveExpense("e-1", "bob")]])
def test_handing_in_the_same_expense_again_asks_nobody_again(past: list[Input]) -> None:
    given(ExpenseApproval(), *past).when(SUBMIT).then()


@pytest.mark.parametrize("late", [REMINDER, ESCALATION])
def test_a_timer_that_the_approval_overtook_is_ignored(late: Input) -> None:
    (given(ExpenseApproval(), SUBMIT, ApproveExpense("e-1", "bob")).when(late).then().then_state(Reimbursing("bob")))


def test_a_reminder_that_the_escalation_overtook_is_ignored() -> None:
    given(ExpenseApproval(), SUBMIT, ESCALATION).when(REMINDER).then().then_state(Escalated(TRAIN, "bob", "cho"))


def test_a_final_timeout_that_the_approval_overtook_is_ignored() -> None:
    (
        given(ExpenseApproval(), SUBMIT, ESCALATION, ApproveExpense("e-1", "cho"))
        .when(TIMEOUT)
        .then()
        .then_state(Reimbursing("cho"))
    )


def test_a_payout_that_nobody_asked_for_is_an_unknown_transition() -> None:
    given(ExpenseApproval(), SUBMIT).when(ExpenseReimbursed("e-1", "transfer-e-1"), kind=Kind.RESULT).then_raises(
        UnknownTransitionError, match="ExpenseReimbursed in state AwaitingManager"
    )


def test_an_approval_cannot_begin_an_expense() -> None:
    given(ExpenseApproval()).when(ApproveExpense("e-1", "bob")).then_raises(CannotBeginError, match="SubmitExpense")


def test_nothing_is_decided_after_the_end() -> None:
    given(ExpenseApproval(), SUBMIT, RejectExpense("e-1", "bob", "no receipt")).when(
        ApproveExpense("e-1", "bob")
    ).then_raises(InstanceEndedError)


def test_a_repeated_payout_is_one_transfer_and_the_workflow_takes_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "transfers", {})
    command = ReimburseEmployee("e-1", "ann", 12_900)
    result = asyncio.run(handlers.reimburse_employee(command))
    assert asyncio.run(handlers.reimburse_employee(command)) == result
    assert handlers.transfers == {"transfer-e-1": 12_900}
    given(ExpenseApproval(), SUBMIT, ApproveExpense("e-1", "bob")).when(result, kind=Kind.RESULT).then_state(
        Reimbursed("bob", "transfer-e-1")
    )


def test_people_get_one_letter_for_each_thing_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "letters", {})

    async def deliver_twice() -> None:
        for _ in range(2):
            await handlers.request_approval(RequestApproval("e-1", TRAIN, "bob"))
            await handlers.remind_approver(RemindApprover("e-1", "bob"))
            await handlers.notify_employee(NotifyEmployee("e-1", "ann", "bob said no: no receipt"))

    asyncio.run(deliver_twice())
    assert handlers.letters == {
        ("e-1", "bob", "request"): "ann asks for 129.00 EUR for the train to Lyon",
        ("e-1", "bob", "reminder"): "Expense e-1 is waiting for you",
        ("e-1", "ann", "outcome"): "bob said no: no receipt",
    }
