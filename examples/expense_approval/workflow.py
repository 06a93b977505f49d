"""An expense: ask the manager, remind, escalate, and lapse in the end rather than wait for ever.

People click twice, and click what was not theirs to click. Each click is answered: the first with its outcome, a second
one with the outcome of the first, a stranger's with the reason why it does not count.
"""

from dataclasses import dataclass
from datetime import timedelta

from mainspring import CancelSchedule, Complete, Decisions, Event, Received, Replied, Reply, Schedule, Send, Workflow

REMINDER_AFTER = timedelta(days=3)
ESCALATION_AFTER = timedelta(days=7)
LAPSE_AFTER = timedelta(days=7)

# One key for all that is scheduled only because nobody has answered yet: one answer cancels the lot.
UNANSWERED = "unanswered"


@dataclass(frozen=True)
class Expense:
    employee: str
    purpose: str
    amount_cents: int


@dataclass(frozen=True)
class SubmitExpense:
    expense_id: str
    expense: Expense
    manager: str
    senior_manager: str


@dataclass(frozen=True)
class ApproveExpense:
    expense_id: str
    approver: str


@dataclass(frozen=True)
class RejectExpense:
    expense_id: str
    approver: str
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
class RequestApproval:
    expense_id: str
    expense: Expense
    approver: str


@dataclass(frozen=True)
class RemindApprover:
    expense_id: str
    approver: str


@dataclass(frozen=True)
class ReimburseEmployee:
    expense_id: str
    employee: str
    amount_cents: int


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


@dataclass(frozen=True)
class AnswerNotCounted:
    expense_id: str
    reason: str


Output = (
    RequestApproval
    | RemindApprover
    | ReimburseEmployee
    | NotifyEmployee
    | ExpenseApproved
    | ExpenseRejected
    | ExpenseLapsed
    | AnswerNotCounted
)


@dataclass(frozen=True)
class New:
    pass


@dataclass(frozen=True)
class AwaitingManager:
    expense: Expense
    manager: str
    senior_manager: str

    @property
    def approvers(self) -> tuple[str, ...]:
        return (self.manager,)


@dataclass(frozen=True)
class Escalated:
    expense: Expense
    manager: str
    senior_manager: str

    @property
    def approvers(self) -> tuple[str, ...]:
        return (self.manager, self.senior_manager)


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
            case New(), Received(SubmitExpense(_, expense, manager, senior_manager)):
                return AwaitingManager(expense, manager, senior_manager)
            case AwaitingManager(expense, manager, senior_manager), Received(EscalationDue()):
                return Escalated(expense, manager, senior_manager)
            # Not every answer counts, so the state follows what was decided about it, not the answer itself.
            case AwaitingManager() | Escalated(), Replied(ExpenseApproved(_, approver)):
                return Reimbursing(approver)
            case AwaitingManager() | Escalated(), Replied(ExpenseRejected(_, approver, reason)):
                return Rejected(approver, reason)
            case Escalated(), Received(ApprovalTimedOut()):
                return Lapsed()
            case Reimbursing(approver), Received(ExpenseReimbursed(_, transfer_id)):
                return Reimbursed(approver, transfer_id)

    def decide(self, message: Input, state: State) -> Decisions[Input, Output] | None:
        match message, state:
            case SubmitExpense(expense_id, expense, manager), New():
                return [
                    Send(RequestApproval(expense_id, expense, manager)),
                    Schedule(ReminderDue(expense_id), after=REMINDER_AFTER, key=UNANSWERED),
                    Schedule(EscalationDue(expense_id), after=ESCALATION_AFTER, key=UNANSWERED),
                ]
            case ReminderDue(expense_id), AwaitingManager(_, manager):
                return [Send(RemindApprover(expense_id, manager))]
            case EscalationDue(expense_id), AwaitingManager(expense, _, senior_manager):
                return [
                    Send(RequestApproval(expense_id, expense, senior_manager)),
                    Schedule(ApprovalTimedOut(expense_id), after=LAPSE_AFTER, key=UNANSWERED),
                ]
            case (
                ApproveExpense(expense_id, approver) | RejectExpense(expense_id, approver),
                AwaitingManager() | Escalated(),
            ) if approver not in state.approvers:
                return [Reply(AnswerNotCounted(expense_id, f"this is for {' or '.join(state.approvers)} to decide"))]
            case ApproveExpense(expense_id, approver), AwaitingManager(expense) | Escalated(expense):
                return [
                    CancelSchedule(UNANSWERED),
                    Reply(ExpenseApproved(expense_id, approver)),
                    Send(ReimburseEmployee(expense_id, expense.employee, expense.amount_cents)),
                ]
            case RejectExpense(expense_id, approver, reason), AwaitingManager(expense) | Escalated(expense):
                rejected = ExpenseRejected(expense_id, approver, reason)
                return [
                    Reply(rejected),
                    Send(NotifyEmployee(expense_id, expense.employee, f"{approver} said no: {reason}")),
                    Complete(rejected),
                ]
            case ApprovalTimedOut(expense_id), Escalated(expense):
                return [
                    Send(NotifyEmployee(expense_id, expense.employee, "nobody answered; please hand it in again")),
                    Complete(ExpenseLapsed(expense_id)),
                ]
            # No timer guards the payout: a handler that never succeeds becomes a dead letter, which somebody will see.
            case ExpenseReimbursed(expense_id), Reimbursing(approver):
                return [Complete(ExpenseApproved(expense_id, approver))]
            case ApproveExpense(expense_id) | RejectExpense(expense_id), Reimbursing(approver):
                return [Reply(ExpenseApproved(expense_id, approver))]
            case SubmitExpense(), AwaitingManager() | Escalated() | Reimbursing():
                return []
