"""Letters to people, and the payout, with lists in memory where a real system has a mail server and a bank."""

from examples.expense_approval.workflow import ExpenseReimbursed, NotifyEmployee, ReimburseEmployee, RemindManagers

# Keyed by what makes a letter or a transfer the same one, so that a repeated command adds nothing.
letters: dict[tuple[str, str], str] = {}
transfers: dict[str, int] = {}


async def remind_managers(command: RemindManagers) -> None:
    letters[command.expense_id, "managers"] = f"{command.purpose} is waiting for you in the task list"


async def notify_employee(command: NotifyEmployee) -> None:
    letters[command.expense_id, command.employee] = command.text


async def reimburse_employee(command: ReimburseEmployee) -> ExpenseReimbursed:
    transfer_id = f"transfer-{command.expense_id}"
    transfers[transfer_id] = command.amount_cents
    return ExpenseReimbursed(command.expense_id, transfer_id)
