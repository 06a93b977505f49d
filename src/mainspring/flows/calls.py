"""Calls and steps: what a flow awaits, and the functions that do what reaches outside."""

from __future__ import annotations

import inspect
import sys
from asyncio import Future, events
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from types import CodeType
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast, get_type_hints

from msgspec import Struct, defstruct

from mainspring.core.decisions import Decision, FanOut, Send, StartChild
from mainspring.core.failures import ChildCompleted, ChildFailed, SendFailed
from mainspring.core.messages import type_of
from mainspring.errors import FlowError, WiringError, shown
from mainspring.flows.asked import Place
from mainspring.flows.ends import AnswerError, StepFailed, error_text, rebuilt
from mainspring.flows.loop import FlowLoop
from mainspring.flows.run import Run

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def running() -> Run | None:
    """Return the run of the flow whose code this is called from, None outside of flows."""
    loop = events._get_running_loop()  # noqa: SLF001
    return loop.run if type(loop) is FlowLoop else None


def current(word: str) -> Run:
    """Return the run of the flow whose code this is called from, or say that there is none."""
    run = running()
    if run is None:
        raise FlowError(
            f"{word}(…) was called outside of a flow", "Call it in a function with @app.flow, or below one."
        )
    return run


def place_of_caller(depth: int = 2) -> tuple[CodeType, int]:
    """Return the code and the line from which the caller was called."""
    frame = sys._getframe(depth)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return frame.f_code, frame.f_lineno


class Awaited(Coroutine[Any, Any, T_co], Generic[T_co]):
    """A coroutine that has to be awaited: a flow that ends and has forgotten that is told so, with the line."""

    __slots__ = ("_at", "_coroutine", "name")

    def __init__(self, name: str, coroutine: Coroutine[Any, Any, T_co], at: tuple[CodeType, int]) -> None:
        self.name = name
        self._coroutine = coroutine
        self._at = at
        current(name).created(self)

    @property
    def place(self) -> Place:
        """The line that made it."""
        return Place.of(*self._at)

    def __await__(self) -> Generator[Any, Any, T_co]:
        self._use()
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        self._use()
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        self._use()
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    def _use(self) -> None:
        run = running()
        if run is not None:
            run.used(self)


class Call(Coroutine[Any, Any, T_co], Generic[T_co]):
    """Something to be awaited, once: a step, a command, a child. In a flow it is sent when it is awaited.

    Outside of flows it calls the function, so that code which awaits steps can be tested as it is.
    """

    __slots__ = (
        "_at",
        "_awaited",
        "_compensation",
        "_generator",
        "_kind",
        "_plain",
        "_run",
        "_types",
        "answer",
        "message",
        "name",
    )

    def __init__(
        self,
        name: str,
        message: Any,
        answer: Callable[[Any], Any],
        at: tuple[CodeType, int],
        *,
        kind: type[Any] = Send,
        plain: Callable[[], Any] | None = None,
        types: tuple[type[Any], ...] = (),
    ) -> None:
        self.name = name
        """What is called."""
        self.message = message
        """What is sent."""
        self.answer = answer
        """Makes of the message that comes back what its await returns, or raises."""
        self._at = at
        self._kind = kind
        self._plain = plain
        self._types = types
        self._compensation: Any = None
        self._generator: Generator[Any, Any, T_co] | None = None
        self._awaited = False
        self._run = run = running()
        if run is not None:
            run.created(self)

    @property
    def place(self) -> Place:
        """The line that made it."""
        return Place.of(*self._at)

    @property
    def code(self) -> CodeType:
        """The code of the function that made it."""
        return self._at[0]

    @property
    def generator(self) -> Generator[Any, Any, T_co] | None:
        """What runs where it is a task by itself; None where it is awaited."""
        return self._generator

    @property
    def decision(self) -> Decision[Any, Any]:
        """What it asks for."""
        return Send(self.message, self._compensation) if self._kind is Send else StartChild(self.message)

    def undone_by(self, call: Call[Any]) -> Call[T_co]:
        """Let another call undo it: it is made when the flow raises Undo, fails by a step, or is cancelled."""
        if self._kind is not Send:
            raise FlowError(f"{self.name} is a child, which undoes itself", "Leave undone_by out.")
        call.use()
        self._compensation = call.message
        return self

    @property
    def is_undone(self) -> bool:
        """Whether another call undoes it."""
        return self._compensation is not None

    def use(self) -> None:
        """Count as awaited."""
        if self._run is not None:
            self._run.used(self)

    def __await__(self) -> Generator[Any, Any, T_co]:
        if self._awaited:
            raise FlowError(
                f"{self.name}(…) of {self.place} is awaited twice", "Keep its result, or call the step once more."
            )
        self._awaited = True
        run = self._run or running()
        if run is None:
            return (yield from self._outside().__await__())
        run.used(self)
        future: Future[T_co] = run.ask(self.decision, self._at, self.answer, self._types)
        return (yield from future)

    async def _outside(self) -> T_co:
        if self._plain is None:
            raise FlowError(f"{self.name} was awaited outside of a flow", "Await it in a function with @app.flow.")
        result = self._plain()
        return cast("T_co", await result if inspect.isawaitable(result) else result)

    # ---- a coroutine, so that a TaskGroup takes it

    def send(self, value: Any) -> Any:
        if self._generator is None:
            self._generator = self.__await__()
        return self._generator.send(value)

    def throw(self, *error: Any) -> Any:
        self.use()  # a task that is cancelled before it has begun: nothing was forgotten
        if self._generator is None:
            self._generator = self.__await__()
        return self._generator.throw(*error)

    def close(self) -> None:
        if self._generator is not None:
            self._generator.close()

    def __repr__(self) -> str:
        text = shown(self.message, 200)
        return text if self._kind is Send and type(self.message).__name__ == self.name else f"{self.name}({text})"


class Step(Generic[P, T]):
    """A function that does something outside, as a flow calls it: `await charge("o-1", 500)`.

    Its arguments are recorded as a command, its result as the answer.
    """

    def __init__(
        self, function: Callable[P, Any], name: str | None = None, raises: tuple[type[Exception], ...] = ()
    ) -> None:
        self.plain = function
        """The function itself."""
        self.name = name or function.__name__
        """What its calls are stored under."""
        self.raises = raises
        """The errors that are results: a flow may catch them by their type."""
        self.__doc__ = function.__doc__
        self.__name__, self.__module__ = self.name, function.__module__
        self.context: str | None = None
        """The parameter that gets a handler's Context, if there is one."""
        self._signature = inspect.signature(function)
        fields, returns = self._read()
        taken = [each for each in self._signature.parameters.values() if each.name != self.context]
        self._signature = self._signature.replace(parameters=taken)
        module = function.__module__
        self._takes_in_order = positional = all(each.kind is not each.KEYWORD_ONLY for each in taken)
        self.command: Any = defstruct(self.name, fields, frozen=True, kw_only=not positional, module=module)
        """The type of its commands."""
        self.done: Any = defstruct(f"{self.name}.done", [("value", returns)], frozen=True, module=module)
        """The type of its answers."""
        self.all_done: Any = defstruct(
            f"{self.name}.all_done",
            [("results", tuple[self.done, ...]), ("failures", tuple[ChildFailed, ...]), ("key", str, "")],  # type: ignore[name-defined]
            frozen=True,
            module=module,
        )
        """The type of what joins many of its calls."""
        self.is_async = inspect.iscoroutinefunction(inspect.unwrap(function))
        """Whether the function is async; a plain one runs in a thread."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Call[T]:
        command = self.command_of(*args, **kwargs)
        return Call(self.name, command, self._answer, place_of_caller(), plain=lambda: self._plainly(command))

    def _plainly(self, command: Any) -> Any:
        """Call the function, outside of flows; there is no context."""
        if self.context is not None:
            raise FlowError(
                f"The step {self.name} was awaited outside of a flow, where there is no Context for it",
                f"Call the function itself, as in `{self.name}.plain(…)`, with one of yours.",
            )
        plain: Any = self.plain
        return plain(**self.arguments_of(command))

    def command_of(self, *args: Any, **kwargs: Any) -> Any:
        """Return the command that stands for a call with these arguments."""
        if self._takes_in_order:
            try:
                return self.command(*args, **kwargs)
            except TypeError:
                pass  # Python's own text says more of what is wrong with a call
        return self.command(**self._signature.bind(*args, **kwargs).arguments)

    def arguments_of(self, command: Any) -> dict[str, Any]:
        """Return what to call the function with."""
        return {name: getattr(command, name) for name in command.__struct_fields__}

    # ---- words of tests

    def returned(self, value: T) -> Struct:
        """Return the message that answers a call, for tests: `when(charge.returned(Charge("c-1")))`."""
        return self.done(value)

    def all_returned(self, *values: T) -> Any:
        """Return the message that `each(…)` is answered by, for tests: `when(pack.all_returned(1, 2))`."""
        return self.all_done(tuple(self.done(value) for value in values), ())

    def failed(self, error: str | Exception, attempts: int = 1, *, definite: bool = False) -> SendFailed:
        """Return the message that a call has failed for good, for tests."""
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        return SendFailed(type_of(self.command).name, "", text, attempts, definite)

    def __repr__(self) -> str:
        return f"<step {self.name}>"

    # ---- what comes back

    def _answer(self, message: Any) -> Any:
        if type(message) is self.done:
            return message.value
        raise failure_of(self.name, message, self.raises)

    def each_answer(self, message: Any, count: int, *, return_failures: bool) -> list[Any]:
        """Return the results of many calls in their order, or raise what failed."""
        failed = {part.part: StepFailed(self.name, part.error) for part in message.failures}
        if failed and not return_failures:
            problem = f"{len(failed)} of {count} calls of {self.name} failed"
            raise AnswerError(ExceptionGroup(problem, list(failed.values())))
        results = iter(message.results)
        return [failed[place] if place in failed else next(results).value for place in range(count)]

    def _read(self) -> tuple[list[Any], Any]:
        function = self.plain
        try:
            hints = get_type_hints(inspect.unwrap(function))
        except NameError as error:
            raise WiringError(
                f"The annotations of {self.name} cannot be read: {error}", "Import the names at run time."
            ) from None
        fields: list[Any] = []
        for parameter in self._signature.parameters.values():
            if parameter.kind in _VARIADIC:
                raise WiringError(
                    f"The step {self.name} takes {parameter}",
                    "Name its parameters: they are what is recorded of a call.",
                )
            hint = hints.get(parameter.name)
            if getattr(hint, "__name__", "") == "Context" and getattr(hint, "__module__", "").startswith("mainspring."):
                self.context = parameter.name
                continue
            if hint is None:
                raise WiringError(
                    f"The step {self.name} does not say of what type {parameter.name} is",
                    f"Annotate it, as in `{parameter.name}: str`: it is stored, and read back as that type.",
                )
            default = () if parameter.default is parameter.empty else (parameter.default,)
            fields.append((parameter.name, hint, *default))
        if "return" not in hints:
            raise WiringError(
                f"The step {self.name} does not say what it returns",
                "Annotate it, as in `-> str` or `-> None`: its result is stored, and read back as that type.",
            )
        return fields, hints["return"]


def failure_of(name: str, message: Any, raises: tuple[type[Exception], ...] = ()) -> AnswerError:
    """Return what an await raises for a failure."""
    if isinstance(message, SendFailed):
        text = error_text(message.error)
        declared = rebuilt(text, raises)
        return AnswerError(declared or StepFailed(name, text, message.attempts, definite=message.definite))
    if isinstance(message, ChildFailed):
        return AnswerError(StepFailed(message.child, f"{message.status}: {message.error}"))
    return AnswerError(FlowError(f"{name} was answered by {message!r}", "Say so where it is called: call(…, Answer)."))


def answer_of(name: str, types: Sequence[type[Any]]) -> Callable[[Any], Any]:
    """Return what makes of a message that answers a command what its await returns."""

    def answer(message: Any) -> Any:
        if isinstance(message, (SendFailed, ChildFailed)):
            raise failure_of(name, message)
        if isinstance(message, ChildCompleted):
            return None
        if types and not isinstance(message, tuple(types)):
            raise failure_of(name, message)
        return message.carried if isinstance(message, Result) else message

    return answer


def fan_out(step: Step[Any, Any], calls: Sequence[Call[Any]], key: str) -> FanOut[Any, Any]:
    """Return the decision to make many calls and to be told once."""
    return FanOut([call.message for call in calls], into=step.all_done, key=key)


class Result(Struct, frozen=True):
    """The base of what carries a flow's result that is no message."""

    @property
    def carried(self) -> Any:
        """The result."""
        return getattr(self, "value", None)


def plain_call(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return a function that may be awaited, whether it is async or not."""

    async def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return await result if inspect.isawaitable(result) else result

    return call
