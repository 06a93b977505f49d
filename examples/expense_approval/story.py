from examples.expense_approval.workflow import (
    ApprovalTimedOut,
    ApproveExpense,
    EscalationDue,
    Expense,
    ExpenseApproval,
    ExpenseReimbursed,
    RejectExpense,
    ReminderDue,
    SubmitExpense,
)
from examples.stories import Story
from mainspring import Kind

STORIES = [
    Story(
        "An expense that the senior manager approves, because the managers are away",
        ExpenseApproval(),
        (
            (SubmitExpense("e-1", Expense("ann", "the train to Lyon", 12_900), senior_manager="cho"), "ann"),
            ReminderDue("e-1"),
            EscalationDue("e-1"),
            (ApproveExpense("e-1"), "cho"),
            (ExpenseReimbursed("e-1", "transfer-e-1"), Kind.RESULT),
        ),
    ),
    Story(
        "An expense without a receipt",
        ExpenseApproval(),
        (
            (SubmitExpense("e-2", Expense("eve", "a dinner for two", 8_700), senior_manager="cho"), "eve"),
            (RejectExpense("e-2", "no receipt"), "bob"),
        ),
    ),
    Story(
        "An expense that nobody answers",
        ExpenseApproval(),
        (
            (SubmitExpense("e-3", Expense("dan", "a new chair", 34_000), senior_manager="cho"), "dan"),
            ReminderDue("e-3"),
            EscalationDue("e-3"),
            ApprovalTimedOut("e-3"),
        ),
    ),
]
