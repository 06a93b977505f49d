"""What can go wrong around a running app."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from mainspring.errors.base import MainspringError, shown, told


class WiringError(MainspringError):
    """The parts of an app do not fit together.

    >>> str(WiringError("Two handlers take ChargeCard", "Remove one."))
    'Two handlers take ChargeCard. Remove one.'
    """

    def __init__(self, problem: str, fix: str) -> None:
        self.problem = problem
        self.fix = fix
        super().__init__(f"{problem}. {fix}")


class SettingError(MainspringError):
    """A setting that makes no sense: `name` says which, `value` what it was, `fix` what to write instead.

    >>> str(SettingError("Retry.max_attempts", 0, "Use a whole number of 1 or more."))
    'Retry.max_attempts is 0. Use a whole number of 1 or more.'
    """

    def __init__(self, name: str, value: object, fix: str) -> None:
        self.name = name
        self.value = value
        self.fix = fix
        super().__init__(f"{name} is {shown(value, 200)}. {fix}")


class BrokerError(MainspringError):
    """A broker could not do what it was asked: what came is not acknowledged, and what was to go is tried again.

    `of_message`: it says something of one message, or of where that was to go, and not that the broker is away.

    >>> str(BrokerError("nats", "has no stream for orders.placed", "Create one."))
    'The broker nats has no stream for orders.placed. Create one.'
    """

    def __init__(self, broker: str, problem: str, fix: str, *, of_message: bool = False) -> None:
        self.broker = broker
        self.problem = problem
        self.fix = fix
        self.of_message = of_message
        super().__init__(f"The broker {broker} {problem}. {fix}")


class DuplicateIdError(MainspringError):
    """A message id was used before, for another message to the same instance.

    >>> DuplicateIdError("OrderFulfilment/o-1", "m-1").id
    'm-1'
    """

    def __init__(self, instance: str, id: str) -> None:
        self.instance = instance
        self.id = id
        super().__init__(
            f"{instance} has taken another message with the id {shown(id, 200)}. "
            "Use a new id for a new message, and the same one only for the same message."
        )


class NoSuchInstanceError(MainspringError):
    """There is no instance with this identity.

    >>> NoSuchInstanceError("OrderFulfilment/o-1").instance
    'OrderFulfilment/o-1'
    """

    def __init__(self, instance: str) -> None:
        self.instance = instance
        super().__init__(f"There is no instance {instance}. Check the id, or send a message that begins it.")


class InstancePurgedError(NoSuchInstanceError):
    """The instance ended and was purged: that it was there is all that is left of it.

    >>> str(InstancePurgedError("OrderFulfilment/o-1", "completed", datetime(2026, 1, 31)))
    'OrderFulfilment/o-1 ended (completed) and was purged on 2026-01-31. Look into the archive, if the purge wrote one.'
    """

    def __init__(self, instance: str, status: str, purged: datetime) -> None:
        MainspringError.__init__(
            self,
            f"{instance} ended ({status}) and was purged on {purged:%Y-%m-%d}. "
            "Look into the archive, if the purge wrote one.",
        )
        self.instance = instance
        self.status = status
        self.purged = purged


class InstanceFailedError(MainspringError):
    """The instance whose result is awaited did not complete: it failed, or was cancelled or terminated.

    >>> str(InstanceFailedError("OrderFulfilment/o-1", "failed", "out of stock"))
    'OrderFulfilment/o-1 has failed: out of stock. Read its stream to see why.'
    """

    def __init__(self, instance: str, status: str, reason: str | None) -> None:
        self.instance = instance
        self.status = status
        self.reason = reason
        super().__init__(f"{instance} has {status}: {reason or 'no reason given'}. Read its stream to see why.")


class InstanceSuspendedError(MainspringError):
    """The instance whose result or reply is awaited is suspended: it waits for an operator, and so would its caller.

    >>> str(InstanceSuspendedError("OrderFulfilment/o-1", "KeyError: 'price'"))
    "OrderFulfilment/o-1 is suspended: KeyError: 'price'. Mend the cause and resume it; it continues from there."
    >>> str(InstanceSuspendedError("OrderFulfilment/o-1", "ChargeCard failed for good: TimeoutError")).split(". ")[1]
    'Mend the cause and retry its dead letter; it continues from there.'
    """

    def __init__(self, instance: str, error: str | None) -> None:
        self.instance = instance
        self.error = error
        what = f"{instance} is suspended: {error or 'no reason given'}"
        # A command's type stands before it: to resume alone would let it wait for what has failed.
        command, failed, _ = (error or "").partition(" failed for good: ")
        how = "retry its dead letter" if failed and " " not in command else "resume it"
        super().__init__(f"{what}. Mend the cause and {how}; it continues from there.")


class NoReplyError(MainspringError):
    """A reply that is awaited does not come: the instance that was asked has ended, and has not replied.

    >>> str(NoReplyError("Quotes/q-1", "m-7", "completed"))
    "Quotes/q-1 has completed and does not reply to 'm-7'. Read its stream, or ask one that is still running."
    """

    def __init__(self, instance: str, request: str, status: str) -> None:
        self.instance = instance
        self.request = request
        self.status = status
        super().__init__(
            f"{instance} has {status} and does not reply to {shown(request, 200)}. "
            "Read its stream, or ask one that is still running."
        )


class UnexpectedReplyError(MainspringError):
    """A request was answered, and not by what its caller asked for. The `reply` is there.

    >>> str(UnexpectedReplyError("Stock/A-1", "r-1", 0, bool | None))
    "Stock/A-1 replied 0 to 'r-1', which is no bool | None. Ask for that type, or for a union with it."
    """

    def __init__(self, instance: str, request: str, reply: object, wanted: Any) -> None:
        self.instance = instance
        self.request = request
        self.reply = reply
        name = wanted.__name__ if isinstance(wanted, type) else wanted
        super().__init__(
            f"{instance} replied {shown(reply, 200)} to {shown(request, 200)}, which is no {name}. "
            "Ask for that type, or for a union with it."
        )


class PositionConflictError(MainspringError):
    """An instance is not where the sender of a message has seen it: it moved on, or inputs wait that will move it.

    `expected` is the position that the sender gave, `actual` where the stream ends (0: there is none), and `waiting`
    whether inputs wait. Nothing was taken in.

    >>> str(PositionConflictError("Drafts/d-1", 7, 9, waiting=False))
    'Drafts/d-1 is at position 9 and not at 7. Read it again, and decide again on what it is now.'
    >>> str(PositionConflictError("Drafts/d-2", 7, 0, waiting=False)).partition(". ")[0]
    'Drafts/d-2 has no stream, and was expected at position 7'
    """

    def __init__(self, instance: str, expected: int, actual: int, *, waiting: bool) -> None:
        self.instance = instance
        self.expected = expected
        self.actual = actual
        self.waiting = waiting
        there = f"is at position {actual}" if actual else "has no stream"
        if actual != expected and not actual:
            problem = f"{there}, and was expected at position {expected}"
            fix = "Check its id; position 0 is that of an instance that has not begun"
        elif actual != expected:
            problem, fix = f"{there} and not at {expected}", "Read it again, and decide again on what it is now"
        else:
            problem = f"{there} as expected, but inputs wait that it has not taken"
            fix = "Read it again when they are taken, and decide again on what it is then"
        super().__init__(f"{instance} {problem}. {fix}.")


class WaitTimeoutError(MainspringError, TimeoutError):
    """What was awaited did not come in time. It may still come: nothing was cancelled.

    >>> WaitTimeoutError("OrderFulfilment/o-1", 5.0, "it is running").seconds
    5.0
    """

    def __init__(self, what: str, seconds: float, status: str) -> None:
        self.what = what
        self.seconds = seconds
        super().__init__(f"Waited {seconds:g} s for {what}; {status}. Wait longer, or read its stream.")


class OperationError(MainspringError):
    """An operator asked for something that makes no sense in the instance's present status.

    >>> str(OperationError("OrderFulfilment/o-1", "cannot be resumed: it is running", "There is nothing to do."))
    'OrderFulfilment/o-1 cannot be resumed: it is running. There is nothing to do.'
    """

    def __init__(self, instance: str, problem: str, fix: str) -> None:
        self.instance = instance
        self.problem = problem
        self.fix = fix
        super().__init__(f"{instance} {problem}. {fix}")


class NoSuchNameError(OperationError):
    """There is nothing by this name: no handler or workflow to pause, no schedule, projection or dead letter.

    >>> str(NoSuchNameError("Schedule nightly", "is not declared", "This app declares none."))
    'Schedule nightly is not declared. This app declares none.'
    """


class SimulationError(MainspringError):
    """A simulation cannot go on as it was asked to.

    >>> str(SimulationError("charge waits for something real", "Stub it."))
    'charge waits for something real. Stub it.'
    """

    def __init__(self, problem: str, fix: str) -> None:
        self.problem = problem
        self.fix = fix
        super().__init__(f"{problem}. {fix}")


class NoSuchTaskError(MainspringError):
    """There is no task with this id.

    >>> NoSuchTaskError("ExpenseApproval/e-1/3").task
    'ExpenseApproval/e-1/3'
    """

    def __init__(self, task: str) -> None:
        self.task = task
        super().__init__(f"There is no task {task}. An id is workflow/instance/position; list tasks to see them.")


class TaskRefusedError(MainspringError):
    """A person may not do this to a task, or not any more. Nothing was changed.

    `reason` is `answered`, `closed`, `missing`, `not asked`, `excluded`, `held` (by another person), `answer` (not of a
    type that answers it), `instance` (it names another one) or `guard` (the workflow refuses this answer, which is
    recorded, and `detail` says why; the task is open).

    >>> TaskRefusedError("ExpenseApproval/e-1/3", "excluded", "ann").reason
    'excluded'
    """

    def __init__(self, task: str, reason: str, actor: str | None, detail: str = "") -> None:
        self.task = task
        self.reason = reason
        self.actor = actor
        self.detail = detail
        who = actor or "no person"
        problem, fix = {
            "answered": ("has been answered before", "Look at its outcome."),
            "closed": ("is closed: the workflow has moved on", "There is nothing to do."),
            "missing": ("does not exist", "List tasks to see which exist."),
            "not asked": (f"was not asked of {who}, nor of a role of theirs", "Let it be delegated first."),
            "excluded": (f"may not be done by {who}: another person has to check it", "Delegate it to another person."),
            "held": ("is held by another person", "Let it be released or delegated first."),
            "instance": (detail, "Answer the task of that instance, or name this one."),
            "guard": (f"is open still: the answer was refused: {detail.rstrip('.')}", "Answer it otherwise, or later."),
        }.get(reason, (detail, "Look at the form to see what answers it."))
        super().__init__(f"Task {task} {problem}. {fix}")


class NotFromOutsideError(MainspringError):
    """A message came from outside that its workflow takes from inside only. Nothing was changed.

    `reason` is `answer` (it answers a task), `unread` (it may: the code does not show what does), `engine` (it tells
    of a command, a child or a deadline) or `undeclared` (the workflow names what it takes from outside, and not this).

    >>> NotFromOutsideError("Expenses", "Approve", "answer").reason
    'answer'
    """

    def __init__(self, workflow: str, name: str, reason: str) -> None:
        self.workflow = workflow
        self.name = name
        self.reason = reason
        problem, fix = {
            "answer": ("it answers a task, which knows who may", "Answer the task; or name"),
            "unread": ("its code does not show which inputs answer its tasks, so this may be one", "Name"),
            "engine": ("only the engine knows what became of what it sent, or of time", "Leave that to it; or name"),
        }.get(reason, ("its `from_outside` does not name it", "Let the app's own code send it; or name"))
        super().__init__(
            f"{workflow} does not take {name} from outside: {problem}. {fix} {name} in the workflow's `from_outside`, "
            "if all who may send may decide."
        )


class LendingError(MainspringError):
    """A handler used the transaction of its result in a way that cannot be committed.

    >>> str(LendingError("The transaction is over: it took more than 2 s", "Do less in it."))
    'The transaction is over: it took more than 2 s. Do less in it.'
    """

    def __init__(self, problem: str, fix: str) -> None:
        self.problem = problem
        self.fix = fix
        super().__init__(f"{problem}. {fix}")


class StatementError(LendingError):
    """A statement of your own failed in a transaction, of which nothing is kept.

    `refused` says that a constraint of a table forbids what it would have written. What the database's driver raised is
    its `__cause__`.

    >>> str(StatementError("INSERT INTO seats VALUES (1)", ValueError("no"), refused=False))
    "'INSERT INTO seats VALUES (1)' failed (ValueError: no). Correct it, or avoid that, as with INSERT … ON CONFLICT."
    """

    def __init__(self, statement: str, cause: BaseException, *, refused: bool) -> None:
        self.statement = statement
        self.refused = refused
        self.failure = told(cause)
        super().__init__(
            f"{shown(statement, 200)} failed ({self.failure})",
            "Correct it, or avoid that, as with INSERT … ON CONFLICT.",
        )


class WorkersLostError(MainspringError):
    """Worker after worker was lost while it held this; it is not tried again by itself.

    >>> str(WorkersLostError("Charge (Orders/o-1/3)", 5))
    'Charge (Orders/o-1/3) was lost with 5 workers, the last times tried alone. Find out why they ended (out of \
memory, a crash, a loop that never ends), mend that, and retry its dead letter or resume its instance.'
    """

    def __init__(self, name: str, lost: int) -> None:
        self.name = name
        self.lost = lost
        super().__init__(
            f"{name} was lost with {lost} workers, the last times tried alone. Find out why they ended (out of memory, "
            "a crash, a loop that never ends), mend that, and retry its dead letter or resume its instance."
        )


class PostingError(MainspringError):
    """A message cannot be posted through this connection, or in its present state.

    >>> str(PostingError("This connection has no transaction", "Begin one: async with connection.transaction()."))
    'This connection has no transaction. Begin one: async with connection.transaction().'
    """

    def __init__(self, problem: str, fix: str) -> None:
        self.problem = problem
        self.fix = fix
        super().__init__(f"{problem}. {fix}")


class CallError(MainspringError):
    """Another service could not be called, or did not answer as agreed. It may be called again, with the same key.

    `of_message`: it answered, and what it answered to this one message is wrong.

    >>> str(CallError("https://payments.example.com/", "answered 502", "Look at its log."))
    'https://payments.example.com/ answered 502. Look at its log.'
    """

    def __init__(self, url: str, problem: str, fix: str, *, of_message: bool = False) -> None:
        self.url = url
        self.problem = problem
        self.fix = fix
        self.of_message = of_message
        super().__init__(f"{url} {problem}. {fix}")


class RetryLaterError(MainspringError):
    """Raised by a handler that knows when trying again makes sense: not before `after` has passed, a day at most.

    >>> RetryLaterError("the bank is closed", timedelta(minutes=5)).after
    datetime.timedelta(seconds=300)
    """

    def __init__(self, reason: str, after: timedelta) -> None:
        if not isinstance(after, timedelta):
            raise SettingError("after", after, "Use a timedelta, as in timedelta(minutes=5).")
        self.reason = reason
        self.after = after
        super().__init__(reason)


class DoNotRetryError(MainspringError):
    """Raised by a handler that knows that trying again is useless: there is no further attempt.

    Its workflow gets `SendFailed`; of one that does not take that, the message is a dead letter. It says that nothing
    has happened, at no attempt, so that nothing is undone. Who cannot say so of an earlier attempt says
    `definite=False`.

    >>> str(DoNotRetryError("the card is stolen"))
    'the card is stolen'
    """

    def __init__(self, reason: str, *, definite: bool = True) -> None:
        self.reason = reason
        self.definite = definite
        super().__init__(reason)


class BreakerOpenError(DoNotRetryError):
    """A command was not carried out because the breaker of its handler is open and fails fast (`Breaker.fail_fast`).

    >>> str(BreakerOpenError("charge", "TimeoutError: ", definite=True))
    'charge was not called: its breaker is open (TimeoutError: )'
    """

    def __init__(self, handler: str, why: str, *, definite: bool) -> None:
        self.handler = handler
        self.why = why
        super().__init__(f"{handler} was not called: its breaker is open ({why})", definite=definite)
