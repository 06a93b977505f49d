"""What a task's function gets, and what its result or its error means at which attempt."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import wraps
from typing import Any

import pytest

from mainspring import Retry
from mainspring.errors import DoNotRetryError, RetryLaterError, WiringError
from mainspring.styles.history_tasks import Tasks
from mainspring.styles.history_words import RunTask, TaskCompleted, TaskFailed

TASK = RunTask("t-1", "work", "input")
SECOND = timedelta(seconds=1)


class FakeContext:
    """As much of a Context as a task needs."""

    def __init__(self, attempt: int = 1) -> None:
        self.attempt = attempt
        self.threads = 0

    async def in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self.threads += 1
        return function(*arguments)


def run(tasks: Tasks, context: FakeContext | None = None, task: RunTask = TASK) -> Any:
    return asyncio.run(tasks.run(task, context or FakeContext()))


def fails(error: Exception) -> Callable[[Any], None]:
    def work(input: Any) -> None:
        raise error

    return work


def test_a_function_gets_the_input_and_the_context_where_it_asks_for_both() -> None:
    context = FakeContext()

    def both(input: Any, asked: Any, /) -> list[Any]:
        return [input, asked is context]

    assert run(Tasks({"work": both}), context) == TaskCompleted("t-1", ["input", True])
    assert run(Tasks({"work": lambda: "nothing"}), context) == TaskCompleted("t-1", "nothing")


def test_what_has_a_default_and_what_only_has_a_name_is_not_asked_for() -> None:
    def work(input: Any, times: int = 2, *more: Any, last: Any = None) -> list[Any]:
        return [input, times, more, last]

    assert run(Tasks({"work": work})) == TaskCompleted("t-1", ["input", 2, (), None])


def test_plain_functions_run_in_a_thread_and_async_ones_do_not_however_they_are_wrapped() -> None:
    async def work(input: Any) -> Any:
        return input

    @wraps(work)
    def wrapped(input: Any) -> Awaitable[Any]:
        return work(input)

    def plain(input: Any) -> Any:
        return input

    for function, threads in ((work, 0), (wrapped, 0), (plain, 1)):
        context = FakeContext()
        assert run(Tasks({"work": function}), context) == TaskCompleted("t-1", "input")
        assert context.threads == threads


def test_a_task_without_a_function_has_failed_under_its_own_id() -> None:
    assert run(Tasks(), task=RunTask("t-2", "fly", None)) == TaskFailed("t-2", "Unknown activity: fly")


def test_without_a_retry_an_error_is_the_handlers_to_judge() -> None:
    error = ValueError("no")
    with pytest.raises(ValueError, match="no") as raised:
        run(Tasks({"work": fails(error)}), FakeContext(1_000))
    assert raised.value is error


def test_with_a_retry_the_last_attempt_is_the_last_and_those_before_it_are_not() -> None:
    tasks = Tasks({"work": fails(ValueError("no"))}, retry=Retry(max_attempts=3))
    for attempt in (1, 2):
        with pytest.raises(ValueError, match="no"):
            run(tasks, FakeContext(attempt))
    with pytest.raises(DoNotRetryError, match=r"^ValueError: no$") as raised:
        run(tasks, FakeContext(3))
    assert (raised.value.definite, type(raised.value.__cause__)) == (False, ValueError)


def test_a_retry_of_its_own_says_how_often_a_task_is_tried_and_how_long_it_waits() -> None:
    tasks = Tasks(retry=Retry(max_attempts=1))
    tasks("work", retry=Retry(max_attempts=3, first=SECOND, jitter=False))(fails(ValueError("no")))
    for attempt, seconds in ((1, 1), (2, 2)):
        with pytest.raises(RetryLaterError, match=r"^ValueError: no$") as raised:
            run(tasks, FakeContext(attempt))
        assert (raised.value.after, type(raised.value.__cause__)) == (seconds * SECOND, ValueError)
    with pytest.raises(DoNotRetryError):
        run(tasks, FakeContext(3))


def test_of_a_random_wait_the_task_takes_the_longest() -> None:
    tasks = Tasks(retry=Retry())
    tasks("work", retry=Retry(first=SECOND))(fails(ValueError("no")))
    with pytest.raises(RetryLaterError) as raised:
        run(tasks)
    assert raised.value.after == SECOND


@pytest.mark.parametrize("error", [DoNotRetryError("useless"), RetryLaterError("closed", SECOND)])
def test_what_says_itself_when_to_go_on_is_left_as_it_is(error: Exception) -> None:
    tasks = Tasks(retry=Retry(max_attempts=2))
    tasks("work", retry=Retry(max_attempts=2))(fails(error))
    for attempt in (1, 2):
        with pytest.raises(type(error)) as raised:
            run(tasks, FakeContext(attempt))
        assert raised.value is error


def test_run_is_registered_with_attempts_enough_for_every_task() -> None:
    tasks = Tasks(retry=Retry(max_attempts=5, first=3 * SECOND))
    assert tasks.retry == Retry(max_attempts=5, first=3 * SECOND)
    tasks("plain")(print)
    for name, attempts in (("often", 9), ("once", 1)):
        tasks(name, retry=Retry(max_attempts=attempts))(print)
    assert tasks.retry == Retry(max_attempts=9, first=3 * SECOND)


def test_a_function_stays_what_it_was_and_its_name_is_taken() -> None:
    tasks = Tasks({"greet": print})
    assert tasks("work")(len) is len
    assert tasks.names == ("greet", "work")
    with pytest.raises(WiringError, match="Two functions do the task 'greet'"):
        tasks("greet")
    with pytest.raises(WiringError, match="have no retry of their own"):
        assert tasks.retry
    with pytest.raises(WiringError, match="The task 'part' has a retry, and these Tasks have none"):
        tasks("part", retry=Retry())
