"""An expense: ask the managers, remind, escalate, and lapse in the end rather than wait for ever.

People click twice, and click what was not theirs to click. None of it is seen here: a task knows who may answer it,
takes one answer, and gives everybody else the outcome of that. Its reminder and its escalation go when it goes.
"""

from dataclasses import dataclass
from datetime import timedelta

from mainspring import Ask, Complete, Completed, Decisions, Envelope, Event, Received, Schedule, Send, Sent, Workflow

REMINDER_AFTER = timedelta(days=3)
ESCALATION_AFTER = timedelta(days=7)
LAPSE_AFTER = timedelta(days=7)


@dataclass(frozen=True)
class Expense:
    employee: str
    purpose: str
    amount_cents: int


@dataclass(frozen=True)
class SubmitExpense:
    expense_id: str
    expense: Expense
    senior_manager: str


@dataclass(frozen=True)
class ApproveExpense:
    expense_id: str


@dataclass(frozen=True)
class RejectExpense:
    expense_id: str
    reason: str


@dataclass(frozen=True)
class ReminderDue:
    expense_id: str


@dataclass(frozen=True)
class EscalationDue:
    expense_id: str


@dataclass(frozen=True)
class ApprovalTimedOut:
    expense_id: str


@dataclass(frozen=True)
class ExpenseReimbursed:
    expense_id: str
    transfer_id: str


Input = (
    SubmitExpense | ApproveExpense | RejectExpense | ReminderDue | EscalationDue | ApprovalTimedOut | ExpenseReimbursed
)


@dataclass(frozen=True)
class RemindManagers:
    expense_id: str
    purpose: str


@dataclass(frozen=True)
class ReimburseEmployee:
    expense_id: str
    employee: str
    amount_cents: int
    approver: str


@dataclass(frozen=True)
class NotifyEmployee:
    expense_id: str
    employee: str
    text: str


@dataclass(frozen=True)
class ExpenseApproved:
    expense_id: str
    approver: str


@dataclass(frozen=True)
class ExpenseRejected:
    expense_id: str
    approver: str
    reason: str


@dataclass(frozen=True)
class ExpenseLapsed:
    expense_id: str


Output = RemindManagers | ReimburseEmployee | NotifyEmployee | ExpenseApproved | ExpenseRejected | ExpenseLapsed


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class AwaitingManager:
    expense: Expense
    senior_manager: str


@dataclass(frozen=True)
class Escalated:
    expense: Expense


@dataclass(frozen=True)
class Reimbursing:
    approver: str


@dataclass(frozen=True)
class Reimbursed:
    approver: str
    transfer_id: str


@dataclass(frozen=True)
class Rejected:
    approver: str
    reason: str


@dataclass(frozen=True)
class Lapsed:
    pass


State = New | AwaitingManager | Escalated | Reimbursing | Reimbursed | Rejected | Lapsed


class ExpenseApproval(Workflow[Input, State, Output]):
    """One expense, from the employee's form to the money or the no."""

    begins = SubmitExpense
    initial_state = New()

    def route(self, message: Input) -> str | None:
        return message.expense_id

    def evolve(self, state: State, event: Event[Input, Output]) -> State | None:
        match state, event:
            case New(), Received(SubmitExpense(_, expense, senior_manager)):
                return AwaitingManager(expense, senior_manager)
            case AwaitingManager(expense), Received(EscalationDue()):
                return Escalated(expense)
            # An answer does not say whose it is, so the state follows what was decided about it.
            case AwaitingManager() | Escalated(), Sent(ReimburseEmployee(approver=approver)):
                return Reimbursing(approver)
            case AwaitingManager() | Escalated(), Completed(ExpenseRejected(_, approver, reason)):
                return Rejected(approver, reason)
            case Escalated(), Received(ApprovalTimedOut()):
                return Lapsed()
            case Reimbursing(approver), Received(ExpenseReimbursed(_, transfer_id)):
                return Reimbursed(approver, transfer_id)

    def decide(self, envelope: Envelope[Input], state: State) -> Decisions[Input, Output] | None:
        # Whoever the task list let answer. A message that came past it may claim anybody as its actor.
        approver = envelope.actor if envelope.task else None
        match envelope.message, state:
            case SubmitExpense(expense_id, expense), New():
                return [
                    ask(
                        expense_id,
                        expense,
                        due=ESCALATION_AFTER,
                        remind=Schedule(ReminderDue(expense_id), after=REMINDER_AFTER),
                        escalate=Schedule(EscalationDue(expense_id), after=ESCALATION_AFTER),
                    )
                ]
            case ReminderDue(expense_id), AwaitingManager(expense):
                return [Send(RemindManagers(expense_id, expense.purpose))]
            case EscalationDue(expense_id), AwaitingManager(expense, senior_manager):
                lapse = Schedule(ApprovalTimedOut(expense_id), after=LAPSE_AFTER)
                return [ask(expense_id, expense, person=senior_manager, due=LAPSE_AFTER, escalate=lapse)]
            case ApproveExpense(expense_id), AwaitingManager(expense) | Escalated(expense) if approver:
                return [Send(ReimburseEmployee(expense_id, expense.employee, expense.amount_cents, approver))]
            case RejectExpense(expense_id, reason), AwaitingManager(expense) | Escalated(expense) if approver:
                return [
                    Send(NotifyEmployee(expense_id, expense.employee, f"{approver} said no: {reason}")),
                    Complete(ExpenseRejected(expense_id, approver, reason)),
                ]
            case ApproveExpense() | RejectExpense(), _:
                return []
            case ApprovalTimedOut(expense_id), Escalated(expense):
                return [
                    Send(NotifyEmployee(expense_id, expense.employee, "nobody answered; please hand it in again")),
                    Complete(ExpenseLapsed(expense_id)),
                ]
            # No timer guards the payout: a handler that never succeeds becomes a dead letter, which somebody will see.
            case ExpenseReimbursed(expense_id), Reimbursing(approver):
                return [Complete(ExpenseApproved(expense_id, approver))]
            case SubmitExpense(), AwaitingManager() | Escalated() | Reimbursing():
                return []


def ask(
    expense_id: str,
    expense: Expense,
    *,
    due: timedelta,
    escalate: Schedule[Input],
    remind: Schedule[Input] | None = None,
    person: str | None = None,
) -> Ask[Input]:
    """Ask the managers and, with `person`, somebody else as well. The second task takes the place of the first."""
    return Ask(
        f"{expense.employee} asks for {expense.amount_cents / 100:.2f} EUR for {expense.purpose}",
        ApproveExpense | RejectExpense,
        role="manager",
        person=person,
        excludes=(expense.employee,),
        key="approval",
        reject=RejectExpense,
        due=due,
        remind=remind,
        escalate=escalate,
        data={"expense_id": expense_id},
    )
