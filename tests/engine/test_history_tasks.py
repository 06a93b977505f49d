"""Tasks of the history style, done by functions that are found by their names."""

import threading
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Context, Mainspring, Retry
from mainspring.errors import DoNotRetryError, InstanceFailedError, InstanceSuspendedError, WiringError
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_events import History
from mainspring.styles.history_tasks import Tasks
from mainspring.styles.history_words import (
    CompleteWorkflow,
    FailWorkflow,
    HistoryCommand,
    ScheduleTask,
    StartWorkflow,
    TaskFailed,
    WorkflowStarted,
)
from tests.engine.coordination.dying import dies_after
from tests.support.apps import MakeApp
from tests.support.running import run

NOW = timedelta(0)


class Errand(HistoryWorkflow):
    """Has the one task done that its input names, and ends as that ended."""

    def decide(self, events: History) -> list[HistoryCommand]:
        started, end = events[0], events.end_of("t-1")
        assert isinstance(started, WorkflowStarted)
        if isinstance(end, TaskFailed):
            return [FailWorkflow(end.error)]
        name, input = started.input
        return [CompleteWorkflow(end.result)] if end else [ScheduleTask("t-1", name, input)]


async def done(app: Mainspring, name: str, input: Any = None) -> Any:
    return await (await app.send(StartWorkflow(f"{name}-1", [name, input]))).result()


def errands(app: Mainspring, tasks: Tasks, **options: Any) -> Mainspring:
    app.add(Errand())
    app.handler(**options)(tasks.run)
    return app


@pytest.mark.parametrize("value", [None, True, 3, 2.5, "text", [1, "two", None], {"a": {"b": []}}])
def test_any_json_value_is_an_input_and_a_result_without_a_wrapper(make_app: MakeApp, value: Any) -> None:
    async def echo(input: Any) -> Any:
        return input

    async def main() -> None:
        async with errands(make_app(), Tasks({"echo": echo})) as app:
            assert await done(app, "echo", value) == value
            assert await app.instance(Errand, "echo-1").result() == value

    run(main)


def test_plain_functions_run_in_threads_and_may_ask_for_the_context(make_app: MakeApp) -> None:
    tasks = Tasks()

    @tasks("where")
    def where(input: Any, context: Context) -> list[Any]:
        return [threading.current_thread() is threading.main_thread(), context.attempt, context.instance]

    @tasks("here")
    async def here(input: Any, context: Context) -> bool:
        return threading.current_thread() is threading.main_thread()

    async def main() -> None:
        async with errands(make_app(), tasks) as app:
            assert await done(app, "where") == [False, 1, "Errand/where-1"]
            assert await done(app, "here") is True

    run(main)


def test_a_task_that_nobody_does_has_failed(make_app: MakeApp) -> None:
    async def main() -> None:
        async with errands(make_app(), Tasks()) as app:
            with pytest.raises(InstanceFailedError, match="Unknown activity: fly"):
                await done(app, "fly")

    run(main)


def test_a_task_is_tried_so_often_and_then_it_has_failed(make_app: MakeApp) -> None:
    attempts: list[int] = []
    tasks = Tasks(retry=Retry(max_attempts=3, first=NOW))

    @tasks("charge")
    def charge(input: Any, context: Context) -> None:
        attempts.append(context.attempt)
        raise ValueError("the bank is away")

    async def main() -> None:
        async with errands(make_app(), tasks, retry=tasks.retry) as app:
            with pytest.raises(InstanceFailedError, match="failed: ValueError: the bank is away"):
                await done(app, "charge")
            [attempt] = [
                each for each in (await app.instance(Errand, "charge-1").state()) if isinstance(each, TaskFailed)
            ]
            assert attempt.error == "ValueError: the bank is away"

    run(main)
    assert attempts == [1, 2, 3]


def test_a_task_may_have_a_retry_of_its_own(make_app: MakeApp) -> None:
    attempts: list[str] = []
    tasks = Tasks(retry=Retry(max_attempts=2, first=NOW))

    @tasks("often", retry=Retry(max_attempts=4, first=NOW))
    async def often(input: Any) -> None:
        attempts.append("often")
        raise ValueError("no")

    @tasks("once", retry=Retry(max_attempts=1))
    async def once(input: Any) -> None:
        attempts.append("once")
        raise ValueError("no")

    @tasks("twice")
    async def twice(input: Any) -> None:
        attempts.append("twice")
        raise ValueError("no")

    @tasks("never")
    async def never(input: Any) -> None:
        attempts.append("never")
        raise DoNotRetryError("useless")

    async def main() -> None:
        async with errands(make_app(), tasks, retry=tasks.retry) as app:
            for name, error in (("often", "ValueError: no"), ("once", "no"), ("twice", "no"), ("never", "useless")):
                with pytest.raises(InstanceFailedError, match=error):
                    await done(app, name)

    run(main)
    assert attempts == ["often"] * 4 + ["once"] + ["twice"] * 2 + ["never"]


def test_an_attempt_that_failed_is_kept_with_its_own_error(make_app: MakeApp) -> None:
    tasks = Tasks(retry=Retry(max_attempts=3, first=NOW))

    @tasks("often", retry=Retry(max_attempts=3, first=NOW))
    async def often(input: Any) -> None:
        raise ValueError("no")

    async def main() -> None:
        async with errands(make_app(), tasks, retry=tasks.retry) as app:
            with pytest.raises(InstanceFailedError):
                await done(app, "often")
            [row] = await app.instances()
            attempts = await app.instance(Errand, row.id).attempts()
            assert len(attempts) >= 2
            assert all("ValueError: no" in (attempt.error or "") for attempt in attempts)

    run(main)


def test_what_cannot_be_wired_is_refused() -> None:
    tasks = Tasks({"greet": print})
    assert tasks.names == ("greet",)
    with pytest.raises(WiringError, match="Two functions do the task 'greet'"):
        tasks("greet")(print)
    with pytest.raises(WiringError, match="have no retry of their own"):
        assert tasks.retry
    with pytest.raises(WiringError, match="The task 'part' has a retry, and these Tasks have none"):
        tasks("part", retry=Retry())


WAY = ("validate", "charge", "ship")


class Order(HistoryWorkflow):
    """Has three tasks done, one after the other."""

    def decide(self, events: History) -> list[HistoryCommand]:
        open = [name for name in WAY if events.end_of(name) is None]
        return [ScheduleTask(open[0], open[0], None)] if open else [CompleteWorkflow("delivered")]


def order_app(app: Mainspring, calls: list[str]) -> Mainspring:
    async def do(input: Any, context: Context) -> None:
        calls.append(context.envelope.message.task_name)

    app.add(Order())
    app.handler(Tasks(dict.fromkeys(WAY, do)).run)
    return app


@pytest.mark.parametrize("commits", [1, 2, 3])
def test_after_a_crash_the_functions_go_on_and_repeat_no_task(make_app: MakeApp, commits: int) -> None:
    before: list[str] = []
    after: list[str] = []

    async def main() -> None:
        await dies_after(
            commits, order_app(make_app(), before), lambda app: app.send(StartWorkflow("o-1", None), id="m-1")
        )
        async with order_app(make_app(), after) as app:
            assert await app.instance(Order, "o-1").result() == "delivered"

    run(main)
    assert before + after == list(WAY)


class Heedless(Errand):
    """Has no case for a task that failed."""

    name = "Errand"

    def decide(self, events: History) -> list[HistoryCommand]:
        return [CompleteWorkflow(None)] if events.result_of("t-1") else [ScheduleTask("t-1", "walk", None)]


def test_a_failure_that_decide_has_no_case_for_suspends_until_the_code_is_mended(make_app: MakeApp) -> None:
    tasks = Tasks()

    @tasks("walk")
    async def walk(input: Any) -> None:
        raise DoNotRetryError("it rains")

    async def main() -> None:
        app = make_app()
        app.add(Heedless())
        app.handler(tasks.run)
        async with app:
            with pytest.raises(InstanceSuspendedError, match="no transition for TaskFailed"):
                await (await app.send(StartWorkflow("walk-1", ["walk", None]))).result()
        async with errands(make_app(), tasks) as mended:
            await mended.instance(Errand, "walk-1").resume()
            with pytest.raises(InstanceFailedError, match="it rains"):
                await mended.instance(Errand, "walk-1").result()
            assert await mended.dead_letters() == []

    run(main)
