"""Registers steps and flows: a step is a handler of its own command, a flow a workflow."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import datetime, timedelta
from importlib import import_module
from types import UnionType
from typing import Any, Concatenate, Final, Literal, ParamSpec, Protocol, TypedDict, TypeVar, cast, get_args, overload

from mainspring.app.internals import Internals
from mainspring.core.messages import Message
from mainspring.core.workflow import Again, LateEvents, Mode
from mainspring.engine.handlers.handler import Apart, Context
from mainspring.engine.handlers.policies.breaker import Breaker
from mainspring.engine.handlers.policies.limits import RateLimit
from mainspring.engine.handlers.policies.retry import Retry
from mainspring.engine.registry import registering
from mainspring.errors import DoNotRetryError, RetryLaterError, SettingError, WiringError
from mainspring.flows.calls import Step
from mainspring.flows.code import Drift
from mainspring.flows.flow import Flow, Id, make_flow

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound=Message)


class StepOptions(TypedDict, total=False):
    """How a step is run: the options of a handler that mean something to it.

    >>> options: StepOptions = {"concurrency": 10}
    """

    retry: Retry
    timeout: timedelta
    concurrency: int
    executor: Literal["process"] | None
    rate: RateLimit | None
    breaker: Breaker | None
    idempotency_key: Callable[[Any], str] | None
    remember: timedelta
    priority: int
    pool: str


class FlowOptions(TypedDict, total=False):
    """What may be said of a flow.

    >>> options: FlowOptions = {"id": "order_id", "version": 2}
    """

    id: Id
    name: str | None
    version: int
    drift: Drift
    deadline: timedelta | None
    expected_within: timedelta | None
    retention: timedelta | None
    steps_per_hour: int | None
    again: Again
    late_events: LateEvents
    mode: Mode | Mapping[type[Any], Mode]
    attributes: Callable[[Any], Mapping[str, str | int | float | bool | datetime]]
    retry: Retry | None
    receives: Types
    from_outside: Types
    sends: Types
    steps: tuple[Step[..., Any], ...]
    stages: tuple[str, ...]


Types = type[Any] | UnionType | tuple[type[Any], ...]


class StepDecorator(Protocol):
    """What `app.step(…)` returns.

    >>> from mainspring import Mainspring
    >>> decorate: StepDecorator = Mainspring("memory://").step(name="charge")
    """

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], Awaitable[T]], /) -> Step[P, T]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], T], /) -> Step[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, Awaitable[T]], /) -> Step[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> Step[P, T]: ...
    def __call__(self, function: Any, /) -> Any:
        """Make a step of a function."""
        ...


class FlowDecorator(Protocol):
    """What `app.flow(…)` returns.

    >>> from mainspring import Mainspring
    >>> decorate: FlowDecorator = Mainspring("memory://").flow(id="order_id")
    """

    def __call__(self, function: Callable[[M], Coroutine[Any, Any, T]], /) -> Flow[M, T]:
        """Make a flow of an async function."""
        ...


def add_step(
    internals: Internals,
    function: Callable[..., Any] | None,
    name: str | None,
    raises: Any,
    options: dict[str, Any],
) -> Any:
    """Make a step of a function, and register it as the handler of its commands."""

    def decorate(function: Callable[..., Any]) -> Step[..., Any]:
        step: Step[..., Any] = Step(function, name, _checked_raises(name or function.__name__, raises))
        registering(internals.wiring.add_handler, handler_of(step), {**options, "name": step.name})
        return step

    return decorate if function is None else decorate(function)


_UNKNOWN: Final = {
    "history": "The state of a flow is its history: it is kept, and again(…) begins it anew.",
    "snapshot_every": "The state of a flow is its history: there is nothing shorter to store.",
}


def add_flow(internals: Internals, function: Callable[..., Any] | None, options: dict[str, Any]) -> Any:
    """Make a flow of an async function, and register it."""
    for option, value in options.items():
        if option not in FlowOptions.__annotations__:
            raise SettingError(option, value, _UNKNOWN.get(option, "A flow has no such option."))
    given: dict[str, Any] = {
        "id": None,
        "version": 1,
        "drift": "refuse",
        "deadline": None,
        "steps": (),
        "stages": (),
    } | options
    name, retry = given.pop("name", None), given.pop("retry", None)
    given["from_outside"] = _types(given.get("from_outside"))
    given["receives"], given["sends"] = _types(given.get("receives")), _types(given.get("sends"))
    if given["drift"] not in get_args(Drift):
        raise SettingError("drift", given["drift"], 'Use "refuse" or "adopt".')

    def decorate(function: Callable[..., Any]) -> Flow[Any, Any]:
        flow = make_flow(function, name, **given)
        internals.declare_flow(flow, retry)
        return flow

    return decorate if function is None else decorate(function)


def _types(given: Any) -> tuple[type[Any], ...]:
    if given is None:
        return ()
    return cast("tuple[type[Any], ...]", given) if isinstance(given, tuple) else get_args(given) or (given,)


def handler_of(step: Step[..., Any]) -> Callable[..., Any]:
    """Return the handler of a step's commands."""
    function, done = step.plain, step.done

    def arguments(command: Any, context: Context) -> dict[str, Any]:
        given = step.arguments_of(command)
        return given if step.context is None else given | {step.context: context}

    async def handle_async(command: Any, context: Any) -> Any:
        try:
            return done(await function(**arguments(command, context)))
        except step.raises as error:
            raise as_final(error, step.raises) from error

    def handle_plain(command: Any, context: Any) -> Any:
        try:
            return done(function(**arguments(command, context)))
        except step.raises as error:
            raise as_final(error, step.raises) from error

    handle: Any = handle_async if step.is_async else handle_plain
    functools.update_wrapper(handle, function, updated=())
    del handle.__wrapped__
    handle.__mainspring_apart__ = Apart(
        _InProcess(function.__module__, function.__name__), step.arguments_of, done, lambda: _problem_apart(step)
    )
    handle.__annotations__ = {"command": step.command, "context": Context, "return": done}
    return handle


class _InProcess:
    """A step's function, as another process finds it: by the name under which the step stands in its module."""

    def __init__(self, module: str, name: str) -> None:
        self.__module__, self.__name__ = module, name
        self.__qualname__ = name

    def __call__(self, arguments: dict[str, Any]) -> Any:
        step = getattr(import_module(self.__module__), self.__name__)
        try:
            return step.plain(**arguments)
        except step.raises as error:
            raise as_final(error, step.raises) from error


def _problem_apart(step: Step[..., Any]) -> str | None:
    """Return why a step cannot run in another process, None if it can."""
    if step.is_async:
        return "is async"
    if step.context is not None:
        return "takes a context: heartbeats, resources and the envelope are not there"
    name = step.plain.__name__
    if step.plain.__qualname__ != name or name == "<lambda>":
        return "is not at the top of a module, where that process could find it"
    return None


def as_final(error: Exception, raises: tuple[type[Exception], ...]) -> Exception:
    """Return what says that an error is an answer, and no reason to try again: a flow may catch it by its type.

    >>> as_final(KeyError("o-1"), (LookupError,))
    DoNotRetryError("LookupError: KeyError: 'o-1'")
    """
    if isinstance(error, DoNotRetryError | RetryLaterError):
        return error
    text = f"{type(error).__name__}: {error}"
    if type(error) not in raises:  # the declared type is what the flow can rebuild, and what it catches
        declared = next((each for each in raises if isinstance(error, each)), None)
        text = text if declared is None else f"{declared.__name__}: {text}"
    return DoNotRetryError(text)


def _checked_raises(name: str, raises: Any) -> tuple[type[Exception], ...]:
    """Return the errors that a step declares, as a tuple."""
    given = cast("tuple[Any, ...]", raises) if isinstance(raises, tuple) else (raises,)
    if not all(isinstance(each, type) and issubclass(each, Exception) for each in given):
        raise WiringError(f"{name} has raises={raises!r}", "Use types of exceptions, as in raises=(CardDeclined,).")
    return given
