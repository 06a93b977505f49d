"""Every error mainspring raises, each with the facts in fields and a message that says what to do.

MainspringError
├── DefinitionError             a workflow class is written in a way that cannot work
├── InvalidDecisionError        a decision was built or returned wrongly
├── StepError                   a step could not be taken; nothing was recorded
│   ├── UnknownTransitionError  decide has no case for this message in this state
│   ├── UndeclaredInputError    the message's type is not among the workflow's inputs
│   ├── CannotBeginError        the message may not begin an instance
│   ├── UndeclaredOutputError   decide returned a message type that is not declared
│   ├── DecisionAfterEndError   a decision stands behind Complete or Fail
│   ├── TooManyOutputsError     one step decided more than the limit
│   ├── InvalidStateError       evolve returned something that is not a declared state
│   └── InstanceEndedError      the instance completed or failed before this message came
├── InvalidIdError              an id that cannot be stored or shown safely
├── CodecError                  data and types do not fit together
│   ├── RegistrationError       a type that could not be stored and read back
│   ├── UnknownTypeError        a type name, or a version of it, that nobody registered
│   ├── EncodeError             a value that would not come back as it was
│   ├── DecodeError             bytes that are not what their type says
│   └── BodyTooLargeError       a body over its limit
├── ImpureCallError             decide or evolve touched clock, randomness or the outside
├── SettingError                a setting that makes no sense
├── DoNotRetryError             raised by a handler: trying again is useless
└── StoreError                  the database could not do what it was asked; nothing was changed
    ├── StoreClosedError        the store is not open
    ├── StoreBusyError          somebody else holds the database's lock for too long
    ├── StoreFullError          the disk, or a limit set on the database, is full
    ├── StoreReadOnlyError      the database may not be written
    ├── NewerSchemaError        a newer release has changed the database
    ├── DamagedStoreError       the file is not a database, or its structure is broken
    ├── DamagedRecordError      a stored record is not what was written
    └── FaultyUnitError         units of a commit that cannot be stored; the others are committed
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

SHOWN_CHARACTERS: Final = 2_000

_PARAMETERS: Final = {"inputs": "first", "states": "second", "outputs": "third"}


def shown(value: object, limit: int = SHOWN_CHARACTERS) -> str:
    """Return `repr(value)`, shortened to `limit` characters, for use in an error's message.

    >>> shown("x" * 50, limit=10)
    "'xxxxxxxxx… (52 characters)"
    """
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def names(types: Any) -> str:
    """Return the names of some types as an English list.

    >>> names([int, str])
    'int, str'
    """
    return ", ".join(t.__name__ for t in types) or "none"


class MainspringError(Exception):
    """The base of every error that mainspring raises.

    >>> issubclass(UnknownTransitionError, MainspringError)
    True
    """


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


class StepError(MainspringError):
    """A step could not be taken. Nothing of it was recorded.

    `workflow`, `message` and `state` say where; `fix` says what to do.
    """

    def __init__(self, workflow: str, problem: str, fix: str, *, message: object, state: object) -> None:
        self.workflow = workflow
        self.problem = problem
        self.fix = fix
        self.message = message
        self.state = state
        super().__init__(f"{workflow} {problem}\n  message: {shown(message)}\n  state:   {shown(state)}\n{fix}")


class UnknownTransitionError(StepError):
    """decide has no case for this message in this state."""

    def __init__(self, workflow: str, message: object, state: object) -> None:
        super().__init__(
            workflow,
            f"has no transition for {type(message).__name__} in state {type(state).__name__}.",
            "Add a case to decide, return [] there if nothing is to be decided, "
            'or set unknown_transition = "ignore" on the class.',
            message=message,
            state=state,
        )


class UndeclaredInputError(StepError):
    """The message's type is not among the workflow's inputs."""

    def __init__(self, workflow: str, message: object, state: object, declared: Any) -> None:
        super().__init__(
            workflow,
            f"does not take {type(message).__name__}: its inputs are {names(declared)}.",
            f"Add {type(message).__name__} to the first type parameter of {workflow}.",
            message=message,
            state=state,
        )


class CannotBeginError(StepError):
    """The message may not begin an instance, and there is none yet."""

    def __init__(self, workflow: str, message: object, state: object, begins: Any) -> None:
        super().__init__(
            workflow,
            f"cannot begin with {type(message).__name__}: it begins with {names(begins)}.",
            f"Send {names(begins)} first, or add {type(message).__name__} to `begins`.",
            message=message,
            state=state,
        )


class UndeclaredOutputError(StepError):
    """decide returned a message whose type is not declared."""

    def __init__(
        self, workflow: str, decision: object, *, message: object, state: object, declared: Any, role: str
    ) -> None:
        self.decision = decision
        super().__init__(
            workflow,
            f"decided {shown(decision)}, whose type is not among its {role}: {names(declared)}.",
            f"Add the type to the {_PARAMETERS[role]} type parameter of {workflow}.",
            message=message,
            state=state,
        )


class DecisionAfterEndError(StepError):
    """A decision stands behind Complete or Fail."""

    def __init__(self, workflow: str, end: object, late: object, *, message: object, state: object) -> None:
        self.end = end
        self.late = late
        super().__init__(
            workflow,
            f"decided {shown(late)} after {shown(end)}, which ends the instance.",
            "Put Complete or Fail last, and only once.",
            message=message,
            state=state,
        )


class TooManyOutputsError(StepError):
    """One step decided more than the limit."""

    def __init__(self, workflow: str, count: int, limit: int, *, message: object, state: object) -> None:
        self.count = count
        self.limit = limit
        super().__init__(
            workflow,
            f"decided {count:,} things in one step; the limit is {limit:,}.",
            "Work in chunks: send some, and schedule yourself a message for the rest.",
            message=message,
            state=state,
        )


class InvalidStateError(StepError):
    """evolve returned something that is not one of the declared states."""

    def __init__(self, workflow: str, returned: object, *, event: object, state: object, declared: Any) -> None:
        self.returned = returned
        super().__init__(
            workflow,
            f"evolved to {shown(returned)}, which is not one of its states: {names(declared)}.",
            f"Return a declared state, or add the type to the second type parameter of {workflow}.",
            message=event,
            state=state,
        )


class InstanceEndedError(StepError):
    """The instance completed or failed before this message came."""

    def __init__(self, workflow: str, message: object, state: object, end: object) -> None:
        self.end = end
        super().__init__(
            workflow,
            f"has already ended with {shown(end)}; nothing is decided any more.",
            "Send the message to a new instance, or let the workflow end later.",
            message=message,
            state=state,
        )


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


class WiringError(MainspringError):
    """The parts of an app do not fit together.

    >>> str(WiringError("Two handlers take ChargeCard", "Remove one."))
    'Two handlers take ChargeCard. Remove one.'
    """

    def __init__(self, problem: str, fix: str) -> None:
        self.problem = problem
        self.fix = fix
        super().__init__(f"{problem}. {fix}")


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


class InstanceFailedError(MainspringError):
    """The instance whose result is awaited did not complete: it failed, or was cancelled.

    >>> str(InstanceFailedError("OrderFulfilment/o-1", "failed", "out of stock"))
    'OrderFulfilment/o-1 has failed: out of stock. Read its stream to see how it came to that.'
    """

    def __init__(self, instance: str, status: str, reason: str | None) -> None:
        self.instance = instance
        self.status = status
        self.reason = reason
        super().__init__(
            f"{instance} has {status}: {reason or 'no reason given'}. Read its stream to see how it came to that."
        )


class WaitTimeoutError(MainspringError, TimeoutError):
    """What was awaited did not come in time. It may still come: nothing was cancelled.

    >>> WaitTimeoutError("OrderFulfilment/o-1", 5.0, "it is running").seconds
    5.0
    """

    def __init__(self, what: str, seconds: float, status: str) -> None:
        self.what = what
        self.seconds = seconds
        super().__init__(f"Waited {seconds:g} s for {what}; {status}. Wait longer, or look at its stream.")


class OperationError(MainspringError):
    """An operator asked for something that makes no sense in the instance's present status.

    >>> str(OperationError("OrderFulfilment/o-1", "cannot be resumed: it is running", "Nothing is to be done."))
    'OrderFulfilment/o-1 cannot be resumed: it is running. Nothing is to be done.'
    """

    def __init__(self, instance: str, problem: str, fix: str) -> None:
        self.instance = instance
        self.problem = problem
        self.fix = fix
        super().__init__(f"{instance} {problem}. {fix}")


class CodecError(MainspringError):
    """Data and types do not fit together.

    `type_name` says which type, `problem` what is wrong, `fix` what to do.
    """

    def __init__(self, type_name: str, problem: str, fix: str) -> None:
        self.type_name = type_name
        self.problem = problem
        self.fix = fix
        super().__init__(f"{type_name}: {problem}. {fix}")


class RegistrationError(CodecError):
    """A type that could not be stored and read back faithfully."""


class UnknownTypeError(CodecError):
    """A type name, or a version of it, that nobody registered."""


class EncodeError(CodecError):
    """A value that would not come back from its bytes as it was."""


class DecodeError(CodecError):
    """Bytes that are not what their type says."""


class BodyTooLargeError(CodecError):
    """A body over its limit."""


class ImpureCallError(MainspringError):
    """decide or evolve touched the clock, randomness or the outside world.

    >>> str(ImpureCallError("Orders.decide", "time.time", "orders.py", 12))
    'Orders.decide called time.time (orders.py, line 12). Take the value from the message, or ask a handler for it.'
    """

    def __init__(self, where: str, call: str, file: str, line: int) -> None:
        self.where = where
        self.call = call
        self.file = file
        self.line = line
        super().__init__(
            f"{where} called {call} ({file}, line {line}). Take the value from the message, or ask a handler for it."
        )


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


class DoNotRetryError(MainspringError):
    """Raised by a handler that knows that trying again is useless: the message becomes a dead letter at once.

    >>> str(DoNotRetryError("the card is stolen"))
    'the card is stolen'
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class StoreError(MainspringError):
    """The database could not do what it was asked, and nothing was changed.

    `store` says which, `problem` what is wrong, `fix` what to do.

    >>> str(StoreError("orders.db", "cannot be opened", "Create the directory first."))
    'orders.db cannot be opened. Create the directory first.'
    """

    def __init__(self, store: str, problem: str, fix: str) -> None:
        self.store = store
        self.problem = problem
        self.fix = fix
        super().__init__(f"{store} {problem}. {fix}")


class StoreClosedError(StoreError):
    """The store is not open (any more)."""

    def __init__(self, store: str) -> None:
        super().__init__(store, "is not open", "Call `await store.open()` first, and nothing after `close()`.")


class StoreBusyError(StoreError):
    """Somebody else held the database's lock for longer than the store waits."""

    def __init__(self, store: str, waited_seconds: float) -> None:
        self.waited_seconds = waited_seconds
        super().__init__(
            store,
            f"was locked by another process for more than {waited_seconds:g} s",
            "Try again; end or shorten the transaction that holds the lock.",
        )


class StoreFullError(StoreError):
    """The disk, or a limit set on the database, is full."""

    def __init__(self, store: str) -> None:
        super().__init__(store, "has no room left", "Free some space on its disk and try again; nothing was lost.")


class StoreReadOnlyError(StoreError):
    """The database may not be written."""

    def __init__(self, store: str) -> None:
        super().__init__(
            store,
            "cannot be written",
            "Let this user write the file and its directory, and mount the disk for writing.",
        )


class NewerSchemaError(StoreError):
    """A newer release of mainspring has changed the database. Nothing was touched."""

    def __init__(self, store: str, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            store,
            f"has schema version {found}; this release knows versions up to {known}",
            "Upgrade mainspring here, or use a database of this release.",
        )


class DamagedStoreError(StoreError):
    """The file is not a database, or its structure is broken."""

    def __init__(self, store: str, found: str) -> None:
        self.found = found
        super().__init__(
            store, f"is damaged or no database of mainspring ({found})", "Check the path, or restore a backup."
        )


class DamagedRecordError(StoreError):
    """A stored record is not what was written: its checksum does not fit, or it is missing. It is never replayed."""

    def __init__(self, table: str, record: str) -> None:
        self.table = table
        self.record = record
        super().__init__(
            table, f"holds a damaged record ({record})", "Restore it from a backup; do not edit it by hand."
        )


class FaultyUnitError(StoreError):
    """Units of a commit that cannot be stored. The others of the same commit are as `outcomes` says.

    `outcomes` has one entry for each unit, in order: its outcome, or the error that made it faulty.
    """

    def __init__(self, store: str, outcomes: Sequence[Any]) -> None:
        self.outcomes = outcomes
        faults = [(index, outcome) for index, outcome in enumerate(outcomes) if isinstance(outcome, Exception)]
        index, first = faults[0]
        super().__init__(
            store,
            f"cannot store {len(faults)} of {len(outcomes)} units: unit {index}: {shown(first, 300)}",
            "This is a mistake in the caller; the other units are not affected, see `outcomes`.",
        )
