"""The machines of the eight examples, written down by hand from reading them.

Each line is a transition: the state, the message (`+` if it begins an instance), the guard, what is decided, the state
after it, and how the instance has ended. `=` stands for a message that is ignored: nothing is decided or moves.
"""

from __future__ import annotations

from typing import TypeAlias

Row: TypeAlias = tuple[str, str, str, str, str, str]

_CODE_OVERDUE = "Schedule(IdentificationCodeOverdue, after=1 day)"

TRAFFIC_FINE: list[Row] = [
    (
        "AwaitingReport",
        "+PoliceReportPublished",
        "message.offence is SpeedingViolation",
        "Send(GenerateSystemNumber), Schedule(SystemNumberOverdue, after=1 day)",
        "AwaitingSystemNumber",
        "",
    ),
    (
        "AwaitingReport",
        "+PoliceReportPublished",
        "message.offence is ParkingViolation",
        "Complete()",
        "NoFineDue",
        "completed",
    ),
    (
        "AwaitingSystemNumber",
        "SystemNumberGenerated",
        "",
        f"CancelSchedule(SystemNumberOverdue), Send(GenerateIdentificationCode), {_CODE_OVERDUE}",
        "AwaitingIdentificationCode",
        "",
    ),
    ("AwaitingSystemNumber", "SystemNumberOverdue", "", "Publish(TrafficFineDelayed)", "AwaitingSystemNumber", ""),
    (
        "AwaitingIdentificationCode",
        "IdentificationCodeGenerated",
        "",
        "Send(IssueTrafficFine), Complete()",
        "FineIssued",
        "completed",
    ),
    (
        "AwaitingIdentificationCode",
        "IdentificationCodeOverdue",
        "",
        "Publish(TrafficFineDelayed)",
        "AwaitingIdentificationCode",
        "",
    ),
]

ORDER_PROCESSING: list[Row] = [
    ("New", "+PlaceOrder", "", "Send(ValidateOrder)", "AwaitingValidation", ""),
    (
        "AwaitingValidation",
        "OrderValidated",
        "",
        "Send(ChargeCard, compensate=ReturnPayment), Schedule(PaymentTimedOut, after=5 min)",
        "AwaitingPayment",
        "",
    ),
    (
        "AwaitingValidation",
        "OrderInvalidated",
        "",
        "Publish(OrderFailed), Fail(message.reason)",
        "Abandoned",
        "failed",
    ),
    (
        "AwaitingPayment",
        "CardCharged",
        "",
        "CancelSchedule(PaymentTimedOut), Send(ShipOrder), Schedule(ShippingOverdue, after=2 days)",
        "AwaitingShipment",
        "",
    ),
    ("AwaitingPayment", "CardDeclined", "", "Publish(OrderFailed), Fail(message.reason)", "Abandoned", "failed"),
    (
        "AwaitingPayment",
        "PaymentTimedOut",
        "",
        "Publish(OrderFailed), Compensate('the bank did not answer in time')",
        "ReturningPayment",
        "",
    ),
    ("AwaitingShipment", "OrderShipped", "", "Complete(OrderFulfilled)", "Fulfilled", "completed"),
    ("AwaitingShipment", "ShippingOverdue", "", "Publish(OrderDelayed)", "AwaitingShipment", ""),
    (
        "AwaitingShipment",
        "ShippingRefused",
        "",
        "Publish(OrderFailed), Compensate(message.reason)",
        "ReturningPayment",
        "",
    ),
    ("ReturningPayment", "Compensated", "", "", "ReturningPayment", ""),
    ("ReturningPayment", "Compensated", "", "", "Abandoned", "failed"),
]

_ALL_OUT = "state.answered(message) is Pending((), checked_out, ())"
_NOT_ALL_OUT = "state.answered(message) is not Pending((), checked_out, ())"
_ALL_ANSWERED = "state.answered(message) is Pending((), checked_out, failed)"
_NOT_ALL_ANSWERED = "state.answered(message) is not Pending((), checked_out, failed)"

GROUP_CHECKOUT: list[Row] = [
    (
        "NotInitiated",
        "+InitiateGroupCheckout",
        "message.stays == ()",
        "Publish(GroupCheckoutCompleted), Complete()",
        "Finished",
        "completed",
    ),
    (
        "NotInitiated",
        "+InitiateGroupCheckout",
        "message.stays != ()",
        "*Send(CheckOutGuest), Schedule(GroupCheckoutOverdue, after=10 min)",
        "Pending",
        "",
    ),
    *(
        row
        for answer in ("GuestCheckedOut", "GuestCheckoutFailed")
        for row in (
            (
                "Pending",
                answer,
                _ALL_OUT,
                "Publish(GroupCheckoutCompleted), Complete()",
                "Finished",
                "completed",
            ),
            (
                "Pending",
                answer,
                f"{_NOT_ALL_OUT} and {_ALL_ANSWERED}",
                "Publish(GroupCheckoutFailed), Complete()",
                "Finished",
                "completed",
            ),
            ("Pending", answer, f"{_NOT_ALL_OUT} and {_NOT_ALL_ANSWERED}", "", "Pending", ""),
        )
    ),
    ("Pending", "GroupCheckoutOverdue", "", "Publish(GroupCheckoutTimedOut), Complete()", "Finished", "completed"),
]

ORDER: list[Row] = [
    ("New", "+PlaceOrder", "", "Send(ReserveStock), Schedule(InventoryTimedOut, after=30 s)", "AwaitingStock", ""),
    (
        "AwaitingStock",
        "StockReserved",
        "",
        "CancelSchedule(InventoryTimedOut), Send(TakeStock), Send(PackOrder), Schedule(PackingOverdue, after=1 day)",
        "AwaitingPacking",
        "",
    ),
    ("AwaitingStock", "StockShort", "", "Publish(OrderRejected), Complete()", "Rejected", "completed"),
    ("AwaitingStock", "InventoryTimedOut", "", "Publish(OrderRejected), Complete()", "Rejected", "completed"),
    ("AwaitingPacking", "OrderPacked", "", "Complete(OrderConfirmed)", "Confirmed", "completed"),
    ("AwaitingPacking", "PackingOverdue", "", "Publish(OrderDelayed)", "AwaitingPacking", ""),
]

_RESERVING = "Reply(StockReserved), Schedule(ReservationExpired, after=1 h, key=message.order_id)"
_ENOUGH = "0 < quantity <= state.available"

INVENTORY: list[Row] = [
    ("Stock", "+StockDelivered", "", "", "Stock", ""),
    ("Stock", "+ReserveStock", _ENOUGH, _RESERVING, "Stock", ""),
    ("Stock", "+ReserveStock", f"not ({_ENOUGH})", "Reply(StockShort)", "Stock", ""),
    ("Stock", "StockDelivered", "", "", "Stock", ""),
    ("Stock", "ReserveStock", "state.reserved_by(order_id)", "Reply(StockReserved)", "Stock", ""),
    ("Stock", "ReserveStock", f"not state.reserved_by(order_id) and {_ENOUGH}", _RESERVING, "Stock", ""),
    (
        "Stock",
        "ReserveStock",
        f"not state.reserved_by(order_id) and not ({_ENOUGH})",
        "Reply(StockShort)",
        "Stock",
        "",
    ),
    ("Stock", "TakeStock", "state.reserved_by(order_id)", "CancelSchedule(message.order_id)", "Stock", ""),
    ("Stock", "TakeStock", "not state.reserved_by(order_id)", "Publish(ReservationMissed)", "Stock", ""),
    ("Stock", "ReservationExpired", "", "", "Stock", ""),
]

PAYMENT: list[Row] = [
    (
        "New",
        "+CollectPayment",
        "",
        "Send(ChargeCard), Schedule(AcceptanceTimedOut, after=10 min)",
        "Charging",
        "",
    ),
    ("Charging", "CollectPayment", "", "=", "Charging", ""),
    (
        "Charging",
        "ChargeAccepted",
        "",
        "CancelSchedule(AcceptanceTimedOut), Schedule(ConfirmationTimedOut, after=1 day)",
        "AwaitingConfirmation",
        "",
    ),
    ("Charging", "AcceptanceTimedOut", "", "Send(VoidCharge)", "Voiding", ""),
    *(
        row
        for state in ("Charging", "AwaitingConfirmation")
        for row in (
            (state, "ChargeDeclined", "", "Publish(PaymentFailed), Complete()", "NotCollected", "completed"),
            (state, "PaymentConfirmed", "", "Publish(PaymentCollected), Complete()", "Collected", "completed"),
            (state, "PaymentRefused", "", "Publish(PaymentFailed), Complete()", "NotCollected", "completed"),
        )
    ),
    ("AwaitingConfirmation", "CollectPayment", "", "=", "AwaitingConfirmation", ""),
    ("AwaitingConfirmation", "ConfirmationTimedOut", "", "Send(VoidCharge)", "Voiding", ""),
    ("Voiding", "CollectPayment", "", "=", "Voiding", ""),
    ("Voiding", "ChargeAccepted", "", "=", "Voiding", ""),
    ("Voiding", "ChargeDeclined", "", "=", "Voiding", ""),
    ("Voiding", "PaymentConfirmed", "", "=", "Voiding", ""),
    ("Voiding", "PaymentRefused", "", "=", "Voiding", ""),
    ("Voiding", "ChargeVoided", "", "Publish(PaymentFailed), Fail(state.reason)", "NotCollected", "failed"),
]

EXPENSE_APPROVAL: list[Row] = [
    ("New", "+SubmitExpense", "", "Ask(approval, role='manager', due=7 days)", "AwaitingManager", ""),
    ("AwaitingManager", "SubmitExpense", "", "=", "AwaitingManager", ""),
    *(
        row
        for state in ("AwaitingManager", "Escalated")
        for row in (
            (state, "ApproveExpense", "it answers a task", "Send(ReimburseEmployee)", "Reimbursing", ""),
            (state, "ApproveExpense", "it answers no task", "=", state, ""),
            (
                state,
                "RejectExpense",
                "it answers a task",
                "Send(NotifyEmployee), Complete(ExpenseRejected)",
                "Rejected",
                "completed",
            ),
            (state, "RejectExpense", "it answers no task", "=", state, ""),
        )
    ),
    ("AwaitingManager", "ReminderDue", "", "Send(RemindManagers)", "AwaitingManager", ""),
    (
        "AwaitingManager",
        "EscalationDue",
        "",
        "Ask(approval, role='manager', person=state.senior_manager, due=7 days)",
        "Escalated",
        "",
    ),
    ("Escalated", "SubmitExpense", "", "=", "Escalated", ""),
    ("Escalated", "ApprovalTimedOut", "", "Send(NotifyEmployee), Complete(ExpenseLapsed)", "Lapsed", "completed"),
    ("Reimbursing", "SubmitExpense", "", "=", "Reimbursing", ""),
    ("Reimbursing", "ApproveExpense", "", "=", "Reimbursing", ""),
    ("Reimbursing", "RejectExpense", "", "=", "Reimbursing", ""),
    ("Reimbursing", "ExpenseReimbursed", "", "Complete(ExpenseApproved)", "Reimbursed", "completed"),
]

_REVIEW = "Ask(review, role='checker', due=5 days)"
_GIVEN_UP = "Publish(DocumentGivenUp), Complete()"

DOCUMENT_APPROVAL: list[Row] = [
    (
        "New",
        "+SubmitDocument",
        "envelope.actor is None",
        "Fail('a document needs a maker: sign in first')",
        "New",
        "failed",
    ),
    ("New", "+SubmitDocument", "envelope.actor is not None", _REVIEW, "InReview", ""),
    ("InReview", "SubmitDocument", "", "=", "InReview", ""),
    (
        "InReview",
        "ApproveDocument",
        'it answers a task and state.draft == ""',
        "RefuseAnswer('there is no draft to archive: reject it, and its maker can add one')",
        "InReview",
        "",
    ),
    (
        "InReview",
        "ApproveDocument",
        'it answers a task and state.draft != ""',
        "Send(ArchiveDocument)",
        "Archiving",
        "",
    ),
    ("InReview", "ApproveDocument", "it answers no task", "=", "InReview", ""),
    (
        "InReview",
        "RejectDocument",
        "it answers a task and round < ROUNDS",
        "Ask(revision, person=state.maker, due=14 days)",
        "InRevision",
        "",
    ),
    ("InReview", "RejectDocument", "it answers a task and round >= ROUNDS", _GIVEN_UP, "GivenUp", "completed"),
    ("InReview", "RejectDocument", "it answers no task", "=", "InReview", ""),
    ("InReview", "ReviseDocument", "", "=", "InReview", ""),
    ("InReview", "ReviewTimedOut", "", _GIVEN_UP, "GivenUp", "completed"),
    ("InRevision", "SubmitDocument", "", "=", "InRevision", ""),
    ("InRevision", "ApproveDocument", "", "=", "InRevision", ""),
    ("InRevision", "RejectDocument", "", "=", "InRevision", ""),
    ("InRevision", "ReviseDocument", "it answers a task", _REVIEW, "InReview", ""),
    ("InRevision", "ReviseDocument", "it answers no task", "=", "InRevision", ""),
    ("InRevision", "RevisionTimedOut", "", _GIVEN_UP, "GivenUp", "completed"),
    ("Archiving", "SubmitDocument", "", "=", "Archiving", ""),
    ("Archiving", "ApproveDocument", "", "=", "Archiving", ""),
    ("Archiving", "RejectDocument", "", "=", "Archiving", ""),
    ("Archiving", "ReviseDocument", "", "=", "Archiving", ""),
    ("Archiving", "DocumentArchived", "", "Complete(DocumentApproved)", "Archived", "completed"),
]

ORDER_ON_CREDIT: list[Row] = [
    (
        "New",
        "+PlaceOrder",
        "",
        "Send(ReserveCredit), Schedule(CreditCheckTimedOut, after=30 s)",
        "CheckingCredit",
        "",
    ),
    ("CheckingCredit", "PlaceOrder", "", "=", "CheckingCredit", ""),
    ("CheckingCredit", "CreditReserved", "", "CancelSchedule(CreditCheckTimedOut), Send(ShipOrder)", "Shipping", ""),
    ("CheckingCredit", "CreditRefused", "", "Publish(OrderRejected), Complete()", "Rejected", "completed"),
    ("CheckingCredit", "CreditCheckTimedOut", "", "Publish(OrderRejected)", "AwaitingLateAnswer", ""),
    ("AwaitingLateAnswer", "PlaceOrder", "", "=", "AwaitingLateAnswer", ""),
    ("AwaitingLateAnswer", "CreditReserved", "", "Send(ReleaseCredit), Complete()", "Rejected", "completed"),
    ("AwaitingLateAnswer", "CreditRefused", "", "Complete()", "Rejected", "completed"),
    ("Shipping", "PlaceOrder", "", "=", "Shipping", ""),
    ("Shipping", "OrderShipped", "", "Publish(OrderAccepted), Complete()", "Accepted", "completed"),
    (
        "Shipping",
        "ShipmentFailed",
        "",
        "Send(ReleaseCredit), Publish(OrderRejected), Complete()",
        "Rejected",
        "completed",
    ),
]

CUSTOMER_CREDIT: list[Row] = [
    ("CreditLine", "+SetCreditLimit", "", "", "CreditLine", ""),
    (
        "CreditLine",
        "+ReserveCredit",
        "amount_cents <= state.available_cents",
        "Reply(CreditReserved)",
        "CreditLine",
        "",
    ),
    ("CreditLine", "+ReserveCredit", "amount_cents > state.available_cents", "Reply(CreditRefused)", "CreditLine", ""),
    ("CreditLine", "SetCreditLimit", "", "", "CreditLine", ""),
    (
        "CreditLine",
        "ReserveCredit",
        "reserved is not None or amount_cents <= state.available_cents",
        "Reply(CreditReserved)",
        "CreditLine",
        "",
    ),
    (
        "CreditLine",
        "ReserveCredit",
        "reserved is None and amount_cents > state.available_cents",
        "Reply(CreditRefused)",
        "CreditLine",
        "",
    ),
    ("CreditLine", "ReleaseCredit", "", "", "CreditLine", ""),
]

EXPECTED: dict[str, list[Row]] = {
    "TrafficFine": TRAFFIC_FINE,
    "OrderProcessing": ORDER_PROCESSING,
    "GroupCheckout": GROUP_CHECKOUT,
    "Order": ORDER,
    "Inventory": INVENTORY,
    "Payment": PAYMENT,
    "ExpenseApproval": EXPENSE_APPROVAL,
    "DocumentApproval": DOCUMENT_APPROVAL,
    "OrderOnCredit": ORDER_ON_CREDIT,
    "CustomerCredit": CUSTOMER_CREDIT,
}
