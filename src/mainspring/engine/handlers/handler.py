"""Handlers: the code with side effects, as it was registered."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import pickle
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Final, Literal, cast, get_type_hints

from msgspec import Struct

from mainspring.core.messages import Envelope
from mainspring.core.type_parameters import union_members
from mainspring.engine.handlers.policies.breaker import Breaker
from mainspring.engine.handlers.policies.checks import microseconds
from mainspring.engine.handlers.policies.limits import RateLimit
from mainspring.engine.handlers.policies.retry import Retry
from mainspring.errors import LendingError, WiringError
from mainspring.port.loans import Connection

TIMEOUT: Final = timedelta(seconds=60)
REMEMBER: Final = timedelta(hours=24)
CONCURRENCY: Final = 1_000
LONGEST_TRANSACTION: Final = timedelta(seconds=10)
HIGHEST_PRIORITY: Final = 1_000_000


class HandlerOptions(Struct, frozen=True):
    """How a handler is to be run. Each has a safe default.

    >>> HandlerOptions().timeout
    datetime.timedelta(seconds=60)
    """

    retry: Retry = Retry()
    timeout: timedelta = TIMEOUT
    concurrency: int = CONCURRENCY
    rate: RateLimit | None = None
    breaker: Breaker | None = None
    batch: int | None = None
    idempotency_key: Callable[[Any], str] | None = None
    remember: timedelta = REMEMBER
    priority: int = 0
    pool: str = "default"
    name: str | None = None
    transaction: timedelta | None = None
    executor: Literal["process"] | None = None


class Context:
    """What a handler may ask for as its second parameter.

    `idempotency_key` is the same at every attempt; pass it to the service that is called. `attempt` counts from 1.
    `instance` is the one that sent the command, `envelope` the command in its envelope. `resources` are what the app
    opened. `heartbeat()` says that long work is still running: it restarts the timeout. `connection` is the database,
    for a handler that asked for its result's transaction: what it writes and what it returns are committed together, or
    neither. `cancelled` turns true when the instance was cancelled or the attempt timed out; an async handler is
    cancelled as well.

    >>> async def charge(command: int, context: Context) -> None:
    ...     await context.resources["bank"].charge(command, key=context.idempotency_key)
    """

    __slots__ = (
        "_beat",
        "_connection",
        "_in_thread",
        "attempt",
        "cancelled",
        "envelope",
        "idempotency_key",
        "instance",
        "resources",
    )

    def __init__(
        self,
        *,
        idempotency_key: str,
        attempt: int,
        instance: str,
        envelope: Envelope[Any],
        resources: Mapping[str, Any],
        beat: Callable[[], None],
        connection: Connection | None = None,
        in_thread: Callable[[Callable[[], Any]], Awaitable[Any]] = asyncio.to_thread,
    ) -> None:
        self.idempotency_key = idempotency_key
        self.attempt = attempt
        self.instance = instance
        self.envelope = envelope
        self.resources = resources
        self.cancelled = False
        self._beat = beat
        self._connection = connection
        self._in_thread = in_thread

    @property
    def connection(self) -> Connection:
        """The transaction in which the result will be recorded."""
        if self._connection is None:
            raise LendingError(
                "This handler did not ask for its result's transaction",
                "Register it with @app.handler(transaction=timedelta(seconds=2)).",
            )
        return self._connection

    async def in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a plain function that blocks, from an async handler, in one of the threads of plain handlers."""
        return await self._in_thread(functools.partial(function, *arguments))

    def heartbeat(self) -> None:
        """Say that the work is still running: the timeout begins again. May be called from a thread."""
        self._beat()


class Apart(Struct, frozen=True):
    """What another process calls instead of a handler's function, as that cannot be found there by its name.

    `function` is picklable, and called with what `given` makes of the message; `result` makes the answer of what it
    returns. `problem` says why it cannot be called there, if it cannot.
    """

    function: Any
    given: Any
    result: Any
    problem: Callable[[], str | None]


class Handler:
    """A registered function: what it takes, how it is called, how it is run."""

    def __init__(self, function: Callable[..., Any], options: HandlerOptions) -> None:
        self.function = function
        self.options = options
        self.name = options.name or getattr(function, "__qualname__", type(function).__qualname__)
        _check_options(self.name, options)
        # A transaction is never longer than it was promised to be, whatever the handler says of itself.
        self.timeout_us = microseconds(options.transaction or options.timeout)
        self.message_type = message_type_of(function, self.name, batch=options.batch is not None)
        self.result_types = result_types_of(function)
        self.apart: Apart | None = getattr(function, "__mainspring_apart__", None)
        """What another process calls in its place."""
        self.is_async = inspect.iscoroutinefunction(inspect.unwrap(function))
        self.wants_context = len(_positional(function)) > 1
        if options.transaction is not None:
            _check_transaction(self)
        if self.in_process:
            _check_process(self)

    @property
    def in_process(self) -> bool:
        """Whether it runs in a process of its own, and not in a thread."""
        return self.options.executor == "process"

    def results(self, result: Any, count: int) -> list[Any]:
        """Return a batch's results, one for each command, or raise what is wrong with them."""
        if result is None:
            return [None] * count
        if not isinstance(result, list | tuple):
            kind = type(result).__name__
            raise TypeError(f"{self.name} takes batches and returned {kind}; it must return a list, or None")
        results = list(cast("list[Any]", result))
        if len(results) != count:
            raise ValueError(f"{self.name} took {count} commands and returned {len(results)} results")
        return results

    def bind(self, message: Any, context: Context | None) -> Callable[[], Any]:
        """Return the call, ready to be made."""
        return (
            functools.partial(self.function, message, context)
            if self.wants_context
            else functools.partial(self.function, message)
        )

    def call(self, message: Any, context: Context | None) -> Awaitable[Any]:
        """Make the call of an async handler."""
        return self.function(message, context) if self.wants_context else self.function(message)


def message_type_of(function: Callable[..., Any], name: str, *, batch: bool) -> type[Any]:
    """Return the type of the first parameter: the message that the function takes.

    >>> def charge(command: int) -> None: ...
    >>> message_type_of(charge, "charge", batch=False)
    <class 'int'>
    """
    parameters = _positional(function)
    if not parameters:
        raise WiringError(f"{name} takes no message", "Give it one parameter, annotated with the message's type.")
    try:
        hint = get_type_hints(inspect.unwrap(function)).get(parameters[0].name)
    except NameError as error:
        raise WiringError(
            f"The annotations of {name} cannot be read: {error}", "Import the names at run time."
        ) from None
    if batch:
        arguments = getattr(hint, "__args__", ())
        hint = arguments[0] if len(arguments) == 1 else None
    members = union_members(hint)
    if len(members) != 1 or not isinstance(hint, type) or hint is Any:
        kind = "list[ChargeCard]" if batch else "ChargeCard"
        raise WiringError(
            f"{name} does not say which message it takes",
            f"Annotate its first parameter with one message type, as in `def {name}(command: {kind})`.",
        )
    return hint


def result_types_of(function: Callable[..., Any]) -> list[type[Any]]:
    """Return the message types that a function says it returns, as far as they can be seen.

    >>> def charge(command: int) -> str | None: ...
    >>> result_types_of(charge)
    []
    """
    try:
        hint = get_type_hints(inspect.unwrap(function)).get("return")
    except NameError:
        return []
    parts: tuple[Any, ...] = (hint, *getattr(hint, "__args__", ()))
    members: set[Any] = {member for part in parts for member in union_members(part)}
    return sorted(filter(_is_record, members), key=_name)


def _name(cls: type[Any]) -> str:
    return cls.__name__


def _is_record(member: Any) -> bool:
    if not isinstance(member, type):
        return False
    cls = cast("type[Any]", member)
    return dataclasses.is_dataclass(cls) or issubclass(cls, Struct) or hasattr(cls, "model_fields")


def _positional(function: Callable[..., Any]) -> list[inspect.Parameter]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in kinds and parameter.default is inspect.Parameter.empty
    ]


def _check_options(name: str, options: HandlerOptions) -> None:
    """Refuse options of a wrong kind now: in the middle of an attempt there is no caller to raise to."""
    instances = (
        ("retry", options.retry, Retry, "Use a Retry, such as Retry(max_attempts=5)."),
        ("breaker", options.breaker, Breaker | None, "Use a Breaker, such as Breaker(failures=5), or None."),
        ("rate", options.rate, RateLimit | None, "Use a RateLimit, such as RateLimit(per_second=10), or None."),
        ("pool", options.pool, str, 'Use a name, such as pool="slow".'),
        ("name", options.name, str | None, 'Use a text, such as name="charge".'),
    )
    for label, value, kind, advice in instances:
        if not isinstance(value, kind):
            raise WiringError(f"{name} has {label}={value!r}", advice)
    for label, value in (("concurrency", options.concurrency), ("batch", options.batch)):
        if not (label == "batch" and value is None) and (type(value) is not int or value < 1):
            raise WiringError(f"{name} has {label}={value!r}", "Use a whole number from 1.")
    if type(options.priority) is not int or abs(options.priority) > HIGHEST_PRIORITY:
        advice = f"Use a whole number from -{HIGHEST_PRIORITY:,} to {HIGHEST_PRIORITY:,}, such as priority=5."
        raise WiringError(f"{name} has priority={options.priority!r}", advice)
    for label, value in (("timeout", options.timeout), ("remember", options.remember)):
        if type(value) is not timedelta or value <= timedelta(0):
            advice = f"Use a positive timedelta, such as {label}=timedelta(seconds=30)."
            raise WiringError(f"{name} has {label}={value!r}", advice)
    limit = options.transaction
    if limit is not None and (type(limit) is not timedelta or not timedelta(0) < limit <= LONGEST_TRANSACTION):
        advice = (
            f"Say how long it may take, at most {LONGEST_TRANSACTION.seconds} s: transaction=timedelta(seconds=2). "
            "Others wait for a transaction; what takes longer is no part of it."
        )
        raise WiringError(f"{name} has transaction={limit!r}", advice)
    if options.executor not in (None, "process"):
        advice = (
            'Use executor="process", or leave it out: async functions run in the event loop, plain ones in threads.'
        )
        raise WiringError(f"{name} has executor={options.executor!r}", advice)
    if options.idempotency_key is not None and not callable(options.idempotency_key):
        advice = "Use a function of the command, such as `lambda command: command.id`."
        raise WiringError(f"{name} has idempotency_key={options.idempotency_key!r}", advice)


def _check_transaction(handler: Handler) -> None:
    """A transaction belongs to one command, and is written in by an async function that asks for it."""
    problem = None
    if not handler.is_async:
        problem = "is not async"
    elif not handler.wants_context:
        problem = "takes no context"
    elif handler.options.batch is not None:
        problem = "takes batches"
    if problem is not None:
        name = handler.name
        advice = f"Write it as `async def {name}(command, context)`, for one command, and use context.connection."
        raise WiringError(f"{name} asks for its result's transaction and {problem}", advice)


def _check_process(handler: Handler) -> None:
    """What runs in another process is found there by its name, and has nothing but its message."""
    function, problem = handler.function, None
    if handler.apart is not None:
        problem = handler.apart.problem()
    elif handler.is_async:
        problem = "is async"
    elif handler.wants_context:
        problem = "takes a context: heartbeats, resources and the envelope are not there"
    elif not inspect.isfunction(function) or function.__qualname__ != function.__name__:
        problem = "is not at the top of a module, where that process could find it"
    elif function.__name__ == "<lambda>":
        problem = "has no name by which that process could find it"
    if problem is not None:
        name = handler.name.rpartition(".")[2]
        parameters = "…" if handler.apart is not None else "command"
        advice = f"Write it as `def {name}({parameters})`, a plain function at the top of a module."
        raise WiringError(f"{handler.name} runs in a process and {problem}", advice)


def check_process(handler: Handler) -> None:
    """Refuse what another process would not find: the function itself, its message, its results.

    Not before the app starts: while a function is being registered, its name does not stand for it yet.
    """
    if handler.apart is not None:
        return
    for part in (handler.function, handler.message_type, *handler.result_types):
        try:
            pickle.dumps(part)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise WiringError(
                f"{handler.name} runs in a process, where {part.__qualname__} cannot be found: {error}",
                "Put it at the top of a module under its own name, with no other decorator above the handler's.",
            ) from None
