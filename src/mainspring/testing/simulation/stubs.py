"""Stubs: what stands in for handlers in a simulation, and the record of every call."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from mainspring.app.flows import as_final
from mainspring.engine.handlers.handler import Context, Handler, HandlerOptions
from mainspring.engine.registry import Registry
from mainspring.errors import SettingError, SimulationError
from mainspring.flows.calls import Step
from mainspring.testing.simulation.chronicle import Call, Chronicle
from mainspring.testing.simulation.gate import Gate
from mainspring.testing.simulation.machine import SimulatedClock, SimulatedRuntime


class Stub(Struct, frozen=True):
    """What a handler does instead: `outcome` by the rules of `world.stub`, after `takes` of virtual time."""

    outcome: Any
    takes: timedelta = timedelta(0)


def of_step(cls: Any, outcome: Any) -> tuple[type[Any], Any]:
    """Return for a step the type of its commands, and what their handler does where the step would do that.

    For a message type both are returned as they are.

    >>> of_step(int, 3)
    (<class 'int'>, 3)
    """
    if not isinstance(cls, Step):
        return cls, outcome
    step = cast("Step[..., Any]", cls)
    if isinstance(outcome, list):
        return step.command, [_done(step, each) for each in cast("list[Any]", outcome)]
    return step.command, _done(step, outcome)


def _done(step: Step[..., Any], outcome: Any) -> Any:
    if _is_exception(outcome):
        error = outcome() if isinstance(outcome, type) else outcome
        return as_final(error, step.raises) if isinstance(error, step.raises) else error
    if not inspect.isroutine(outcome):
        return outcome if type(outcome) is step.done else step.done(outcome)

    async def call(message: Any) -> Any:
        try:
            result = cast("Any", outcome)(**step.arguments_of(message))
            return step.done(await result if inspect.isawaitable(result) else result)
        except step.raises as error:
            raise as_final(error, step.raises) from error

    return call


class Stubs:
    """Puts a twin in front of every handler and subscriber, which calls the stub if there is one."""

    def __init__(
        self, registry: Registry, clock: SimulatedClock, runtime: SimulatedRuntime, gate: Gate, chronicle: Chronicle
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._runtime = runtime
        self._gate = gate
        self._chronicle = chronicle
        self._stubs: dict[type[Any], Stub] = {}
        self._own = registry.handlers, registry.subscribers

    def install(self, stubs: Mapping[type[Any], Any]) -> None:
        """Replace the handlers. Types without a handler get one, which is only the stub."""
        stubs = dict(of_step(cls, outcome) for cls, outcome in stubs.items())
        for cls, outcome in stubs.items():
            self._stubs[cls] = Stub(outcome)
        handlers, subscribers = self._own
        self._registry.replace_functions(
            {name: self._twin(handler) for name, handler in handlers.items()},
            {name: [self._twin(handler) for handler in known] for name, known in subscribers.items()},
        )
        known = {handler.message_type for handler in self._all()}
        for cls in stubs:
            if cls not in known:
                self._registry.add_handler(self._twin(_handler_for(cls)))

    def remove(self) -> None:
        """Restore the handlers."""
        self._registry.replace_functions(*self._own)

    def put(self, cls: type[Any], stub: Stub) -> None:
        """Stub the handler of a type from now on."""
        if stub.takes < timedelta(0):
            raise SettingError("takes", stub.takes, "Time does not go backwards: use a positive timedelta.")
        if all(handler.message_type is not cls for handler in self._all()):
            raise SimulationError(
                f"No handler takes {cls.__name__}",
                f"Stub it before the app starts: simulate(app, stubs={{{cls.__name__}: …}}).",
            )
        self._stubs[cls] = stub

    def _all(self) -> list[Handler]:
        subscribed = (handler for known in self._registry.subscribers.values() for handler in known)
        return [*self._registry.handlers.values(), *subscribed]

    def _twin(self, handler: Handler) -> Handler:
        """Return a handler that is run like this one, and calls the stub or this one's function."""
        twin = copy.copy(handler)
        twin.is_async = twin.wants_context = True
        # There is no database here whose transaction could be lent, and no process whose time is the world's.
        twin.options = replace(handler.options, transaction=None, executor=None)

        async def call(message: Any, context: Context) -> Any:
            if handler.is_async or handler.message_type in self._stubs:
                await self._gate.passed()
            stub = self._stubs.get(handler.message_type)
            if stub is None:
                return await self._recorded(handler, message, context, self._real(handler, message, context))
            if handler.options.batch is None:
                return await self._recorded(handler, message, context, self._stubbed(stub, message, context))
            return [
                await self._settled(self._recorded(handler, each, context, self._stubbed(stub, each, context)))
                for each in message
            ]

        twin.function = call
        return twin

    async def _recorded(self, handler: Handler, message: Any, context: Context, work: Any) -> Any:
        outcome: Any = None
        try:
            outcome = await work
        except BaseException as error:
            outcome = error
            raise
        else:
            return outcome
        finally:
            call = Call(message, context.attempt, handler.name, context.instance, outcome)
            self._chronicle.call(self._clock.now_us(), call)

    async def _settled(self, work: Any) -> Any:
        try:
            return await work
        except Exception as error:  # noqa: BLE001  a batch returns the errors of its members
            return error

    async def _real(self, handler: Handler, message: Any, context: Context) -> Any:
        if handler.is_async:
            return await handler.call(message, context)
        await self._gate.passed()
        return await self._runtime.in_thread(handler.bind(message, context))

    async def _stubbed(self, stub: Stub, message: Any, context: Context) -> Any:
        if stub.takes:
            await self._clock.sleep(stub.takes.total_seconds())
        outcome = _by_attempt(stub.outcome, context.attempt)
        if _is_exception(outcome):
            raise outcome
        if inspect.isroutine(outcome):
            outcome = _called(outcome, message, context)
        return await outcome if inspect.isawaitable(outcome) else outcome


def _by_attempt(outcome: Any, attempt: int) -> Any:
    outcomes = cast("list[Any]", outcome) if isinstance(outcome, list) else [outcome]
    return outcomes[min(attempt, len(outcomes)) - 1] if outcomes else None


def _is_exception(outcome: object) -> bool:
    return isinstance(outcome, BaseException) or (isinstance(outcome, type) and issubclass(outcome, BaseException))


def _called(function: Callable[..., Any], message: Any, context: Context) -> Any:
    wants = len(inspect.signature(function).parameters)
    return function(message, context) if wants > 1 else function(message)


def _handler_for(cls: type[Any]) -> Handler:
    async def stubbed(command: Any) -> None:
        raise SimulationError(f"{command} has no handler", "Stub it.")

    stubbed.__annotations__ = {"command": cls, "return": None}
    return Handler(stubbed, HandlerOptions(name=f"stub of {cls.__name__}"))
