"""Tasks of the history style: from their names to the functions that do them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from mainspring.errors import DoNotRetryError, RetryLaterError, WiringError
from mainspring.styles.history_words import RunTask, TaskCompleted, TaskFailed

F = TypeVar("F", bound=Callable[..., Any])


class Tasks:
    """The functions that do tasks, by name: `app.handler(tasks.run)`, or `app.handler(retry=tasks.retry)(tasks.run)`.

    A function gets the task's input, and the Context as well if it has a second parameter. What it returns is the
    result, any JSON value. It may be async or plain; plain ones run in threads. One that raises is tried again as
    `retry` says, all tasks as that of these Tasks says, and then its task has failed. So has a task that has no
    function.

    >>> tasks = Tasks()
    >>> @tasks("greet")
    ... def greet(name: str) -> str:
    ...     return f"Hello, {name}"
    >>> tasks.names
    ('greet',)
    """

    def __init__(self, functions: Mapping[str, Callable[..., Any]] | None = None, *, retry: Any = None) -> None:
        self._functions: dict[str, Callable[..., Any]] = {}
        self._retry = retry
        self._retries: dict[str, Any] = {}
        for name, function in (functions or {}).items():
            self(name)(function)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tasks that can be done."""
        return tuple(self._functions)

    @property
    def retry(self) -> Any:
        """The Retry to register `run` with: these Tasks' own, with attempts enough for each of them."""
        if self._retry is None:
            raise WiringError(
                "These Tasks have no retry of their own",
                "Make them with one, as in Tasks(retry=Retry(max_attempts=3)).",
            )
        most = max(each.max_attempts for each in (self._retry, *self._retries.values()))
        return replace(self._retry, max_attempts=most)

    def __call__(self, name: str, *, retry: Any = None) -> Callable[[F], F]:
        """Let a function do the tasks of a name; its waits are never shorter than those of these Tasks' own retry."""
        if retry is not None and self._retry is None:
            raise WiringError(
                f"The task {name!r} has a retry, and these Tasks have none",
                "Make them with one, and register run with `retry=tasks.retry`.",
            )
        if name in self._functions:
            raise WiringError(f"Two functions do the task {name!r}", "Name one of them otherwise.")

        def register(function: F) -> F:
            self._functions[name] = function
            if retry is not None:
                self._retries[name] = retry
            return function

        return register

    async def run(self, task: RunTask, context: Any) -> TaskCompleted | TaskFailed:
        """Do a task: the handler of RunTask."""
        function = self._functions.get(task.task_name)
        if function is None:
            return TaskFailed(task.task_id, f"Unknown activity: {task.task_name}")
        arguments = (task.input, context)[: _count(function)]
        try:
            if inspect.iscoroutinefunction(inspect.unwrap(function)):
                result = await function(*arguments)
            else:
                result = await context.in_thread(function, *arguments)
        except (DoNotRetryError, RetryLaterError):
            raise
        except Exception as error:
            self._give_up(task.task_name, error, context.attempt)
            raise
        return TaskCompleted(task.task_id, result)

    def _give_up(self, name: str, error: Exception, attempt: int) -> None:
        """Raise what ends the attempts at a task, or lets the next one wait as long as it says itself."""
        own = self._retries.get(name)
        policy = own or self._retry
        reason = f"{type(error).__name__}: {error}"
        if policy is not None and not policy.wants_another(error, attempt):
            raise DoNotRetryError(reason, definite=False) from error
        if own is not None:
            raise RetryLaterError(reason, own.delay(attempt, 1.0)) from error


def _count(function: Callable[..., Any]) -> int:
    """Return how many arguments a function takes that have no default: the input, and perhaps the context."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return sum(each.kind in kinds and each.default is each.empty for each in parameters)
