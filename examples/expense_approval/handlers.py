"""Letters to people, and the payout, with lists in memory where a real system has a mail server and a bank."""

from examples.expense_approval.workflow import (
    ExpenseReimbursed,
    NotifyEmployee,
    ReimburseEmployee,
    RemindApprover,
    RequestApproval,
)

# Keyed by what makes a letter or a transfer the same one, so that a repeated command adds nothing.
letters: dict[tuple[str, str, str], str] = {}
transfers: dict[str, int] = {}


async def request_approval(command: RequestApproval) -> None:
    amount = _euros(command.expense.amount_cents)
    text = f"{command.expense.employee} asks for {amount} for {command.expense.purpose}"
    letters[command.expense_id, command.approver, "request"] = text


async def remind_approver(command: RemindApprover) -> None:
    letters[command.expense_id, command.approver, "reminder"] = f"Expense {command.expense_id} is waiting for you"


async def notify_employee(command: NotifyEmployee) -> None:
    letters[command.expense_id, command.employee, "outcome"] = command.text


async def reimburse_employee(command: ReimburseEmployee) -> ExpenseReimbursed:
    transfer_id = f"transfer-{command.expense_id}"
    transfers[transfer_id] = command.amount_cents
    return ExpenseReimbursed(command.expense_id, transfer_id)


def _euros(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02} EUR"
