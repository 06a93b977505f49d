"""What an author's workflow can do wrong."""

from __future__ import annotations

from typing import Any, Final

from mainspring.errors.base import MainspringError, names, shown, told

_TAKE_OR_ASK: Final = "Take the value from the message, or ask a handler for it."
_NO_CASE: Final = "Add a case to decide, return [] there if nothing is to be decided"
_PARAMETERS: Final = {"inputs": "first", "states": "second", "outputs": "third", "results": "fourth"}


class DefinitionError(MainspringError):
    """A workflow class is written in a way that cannot work.

    >>> str(DefinitionError("Orders", "has no route method", "Add `def route`."))
    'Orders has no route method. Add `def route`.'
    """

    def __init__(self, workflow: str, problem: str, fix: str) -> None:
        self.workflow = workflow
        self.problem = problem
        self.fix = fix
        super().__init__(f"{workflow} {problem}. {fix}")


class InvalidDecisionError(MainspringError):
    """A decision was built with arguments that make no sense, or decide returned no decisions at all.

    >>> str(InvalidDecisionError("Schedule got both", "Give one."))
    'Schedule got both. Give one.'
    """

    def __init__(self, problem: str, fix: str) -> None:
        self.problem = problem
        self.fix = fix
        super().__init__(f"{problem}. {fix}")


class UnaskedRefusalError(InvalidDecisionError):
    """decide refused a message that answers no task. One that was sent becomes a dead letter that says so.

    >>> UnaskedRefusalError("Expenses", "Approve('e-1')", "a note is missing").reason
    'a note is missing'
    """

    def __init__(self, workflow: str, message: str, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"{workflow} refuses {message}, which answers no task: {reason}",
            "Answer the task; or refuse only where `Envelope.task` names one, and decide otherwise where it does not.",
        )


class AttributeValueError(MainspringError):
    """An attribute that cannot be indexed, or a search for one that makes no sense.

    >>> str(AttributeValueError("amount", "is a list", "Use a number."))
    'The attribute amount is a list. Use a number.'
    """

    def __init__(self, name: str, problem: str, fix: str) -> None:
        self.name = name
        self.problem = problem
        self.fix = fix
        super().__init__(f"The attribute {name} {problem}. {fix}")


class StepError(MainspringError):
    """A step could not be taken. Nothing of it was recorded.

    `workflow`, `message` and `state` say where; `fix` says what to do.
    """

    def __init__(self, workflow: str, problem: str, fix: str, message: object, state: object) -> None:
        self.workflow = workflow
        self.problem = problem
        self.fix = fix
        self.message = message
        self.state = state
        super().__init__(f"{workflow} {problem}\n  message: {shown(message)}\n  state:   {shown(state)}\n{fix}")


class LeftError(StepError):
    """decide, evolve or attributes was left by what ends a process or a task: SystemExit, CancelledError and the like.

    >>> LeftError("Orders", "decide", SystemExit(3), message=None, state=None).method
    'decide'
    """

    def __init__(self, workflow: str, method: str, cause: BaseException, *, message: object, state: object) -> None:
        self.method = method
        problem = f"left {method} by {type(cause).__name__}."
        fix = "Raise an ordinary exception, or return [Fail(reason)] to end the instance."
        super().__init__(workflow, problem, fix, message, state)


class RouteError(MainspringError):
    """route raised. The message went nowhere, and nothing was recorded.

    >>> str(RouteError("Orders", "go", KeyError("id")))
    "Orders could not route 'go': KeyError: 'id'. Correct its route, or the message."
    """

    def __init__(self, workflow: str, message: object, cause: BaseException) -> None:
        self.workflow = workflow
        self.message = message
        super().__init__(
            f"{workflow} could not route {shown(message, 200)}: {told(cause, 500)}. Correct its route, or the message."
        )


class UnknownTransitionError(StepError):
    """decide has no case for this message in this state."""

    def __init__(self, workflow: str, message: object, state: object, fix: str = _NO_CASE) -> None:
        problem = f"has no transition for {type(message).__name__} in state {type(state).__name__}."
        fix = f'{fix}, or set unknown_transition = "ignore" on the class.'
        super().__init__(workflow, problem, fix, message, state)


class UndeclaredInputError(StepError):
    """The message's type is not among the workflow's inputs."""

    def __init__(self, workflow: str, message: object, state: object, declared: Any) -> None:
        name = type(message).__name__
        problem = f"does not take {name}: its inputs are {names(declared)}."
        step, dot, _ = name.partition(".")  # no class statement makes such a name: it answers a step of a flow
        fix = f"Add {name} to the first type parameter of {workflow}."
        if dot:
            fix = f"Name the step in @app.flow(steps=({step},)) as long as instances may have called it."
        super().__init__(workflow, problem, fix, message, state)


class CannotBeginError(StepError):
    """The message may not begin an instance, and there is none yet."""

    def __init__(self, workflow: str, message: object, state: object, begins: Any, *, told: bool = False) -> None:
        name = type(message).__name__
        instead = f": only instances that have begun get {name}." if told else f", or add {name} to `begins`."
        problem = f"cannot begin with {name}: it begins with {names(begins)}."
        fix = f"Send {names(begins)} first{instead}"
        super().__init__(workflow, problem, fix, message, state)


class UndeclaredOutputError(StepError):
    """decide returned a message whose type is not declared."""

    def __init__(
        self, workflow: str, decision: object, *, message: object, state: object, declared: Any, role: str
    ) -> None:
        self.decision = decision
        problem = f"decided {shown(decision)}, whose type is not among its {role}: {names(declared)}."
        fix = f"Add the type to the {_PARAMETERS[role]} type parameter of {workflow}."
        super().__init__(workflow, problem, fix, message, state)


class DecisionAfterEndError(StepError):
    """A decision stands behind Complete, Fail or Compensate."""

    def __init__(self, workflow: str, end: object, late: object, *, message: object, state: object) -> None:
        self.end = end
        self.late = late
        problem = f"decided {shown(late)} after {shown(end)}, which must be the last decision of its step."
        fix = "Put Complete, Fail or Compensate last, and only one of them."
        super().__init__(workflow, problem, fix, message, state)


class TooManyOutputsError(StepError):
    """One step decided more than the limit."""

    def __init__(self, workflow: str, count: int, limit: int, *, message: object, state: object) -> None:
        self.count = count
        self.limit = limit
        problem = f"decided {count:,} things in one step; the limit is {limit:,}."
        fix = "Work in chunks: send some, and schedule yourself a message for the rest."
        super().__init__(workflow, problem, fix, message, state)


class InvalidStateError(StepError):
    """evolve returned something that is not one of the declared states."""

    def __init__(self, workflow: str, returned: object, *, event: object, state: object, declared: Any) -> None:
        self.returned = returned
        problem = f"evolved to {shown(returned)}, which is not one of its states: {names(declared)}."
        fix = f"Return a declared state, or add the type to the second type parameter of {workflow}."
        super().__init__(workflow, problem, fix, event, state)


class InstanceEndedError(StepError):
    """The instance completed or failed before this message came."""

    def __init__(self, workflow: str, message: object, state: object, end: object) -> None:
        self.end = end
        problem = f"has already ended with {shown(end)}; nothing is decided any more."
        fix = "Send the message to a new instance, or let the workflow end later."
        super().__init__(workflow, problem, fix, message, state)


class InvalidIdError(MainspringError):
    """An id that cannot be stored or shown safely.

    >>> str(InvalidIdError("", "is empty", "Return None to skip the message."))
    "Instance id '' is empty. Return None to skip the message."
    """

    def __init__(self, id: object, problem: str, fix: str, what: str = "Instance id") -> None:
        self.id = id
        self.problem = problem
        self.fix = fix
        super().__init__(f"{what} {shown(id, 80)} {problem}. {fix}")


class ImpureCallError(MainspringError):
    """decide or evolve touched the clock, randomness or the outside world.

    >>> str(ImpureCallError("Orders.decide", "time.time", "orders.py", 12))
    'Orders.decide called time.time (orders.py, line 12). Take the value from the message, or ask a handler for it.'
    """

    def __init__(self, where: str, call: str, file: str, line: int, fix: str = _TAKE_OR_ASK) -> None:
        self.where = where
        self.call = call
        self.file = file
        self.line = line
        self.fix = fix
        super().__init__(f"{where} called {call} ({file}, line {line}). {fix}")


class StepBudgetError(MainspringError):
    """An instance was to take more steps within an hour than its budget has. The next input waits first in its queue.

    >>> print(StepBudgetError("Orders/o-1", 1_000_000, "Again, which it sends to itself"))
    Orders/o-1 has taken 1,000,000 steps within an hour, and was about to take Again, which it sends to itself. If it \
goes on for ever, mend that; if it has so much to do, give it more steps_per_hour. Then resume it.
    """

    def __init__(self, instance: str, steps: int, next_input: str) -> None:
        self.instance = instance
        self.steps = steps
        self.next_input = next_input
        super().__init__(
            f"{instance} has taken {steps:,} steps within an hour, and was about to take {next_input}. If it goes on "
            "for ever, mend that; if it has so much to do, give it more steps_per_hour. Then resume it."
        )


class SlowStepError(MainspringError):
    """A step did not end, and was ended: decide and evolve have to return within milliseconds.

    >>> print(SlowStepError("Orders/o-1", "PlaceOrder", 10.0))
    Orders/o-1: its step for PlaceOrder had not ended after 10 s. Look for a loop without an end in decide or evolve; \
then resume the instance.
    """

    def __init__(self, instance: str, message_type: str, seconds: float) -> None:
        self.instance = instance
        self.message_type = message_type
        self.seconds = seconds
        super().__init__(
            f"{instance}: its step for {message_type} had not ended after {seconds:g} s. "
            "Look for a loop without an end in decide or evolve; then resume the instance."
        )
