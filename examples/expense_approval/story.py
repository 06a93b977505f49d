from examples.expense_approval.workflow import (
    ApprovalTimedOut,
    ApproveExpense,
    EscalationDue,
    Expense,
    ExpenseApproval,
    ExpenseReimbursed,
    ReminderDue,
    SubmitExpense,
)
from examples.stories import Story
from mainspring import Kind

STORIES = [
    Story(
        "An expense that the senior manager approves, because the manager is away",
        ExpenseApproval(),
        (
            SubmitExpense("e-1", Expense("ann", "the train to Lyon", 12_900), manager="bob", senior_manager="cho"),
            ReminderDue("e-1"),
            EscalationDue("e-1"),
            ApproveExpense("e-1", "cho"),
            (ExpenseReimbursed("e-1", "transfer-e-1"), Kind.RESULT),
        ),
    ),
    Story(
        "An expense that nobody answers",
        ExpenseApproval(),
        (
            SubmitExpense("e-2", Expense("dan", "a new chair", 34_000), manager="bob", senior_manager="cho"),
            ReminderDue("e-2"),
            EscalationDue("e-2"),
            ApprovalTimedOut("e-2"),
        ),
    ),
]
