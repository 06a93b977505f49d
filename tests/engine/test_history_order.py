"""An order in the history style, in the real engine: its whole history, its failure, and a crash after any commit."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Context, Mainspring, Retry
from mainspring.app.internals import internals_of
from mainspring.engine.inputs.branches import live
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.recording.stored_values import moment
from mainspring.errors import InstanceFailedError, InstanceSuspendedError
from mainspring.port.records import Ref
from mainspring.styles.history import HistoryWorkflow
from mainspring.styles.history_events import History
from mainspring.styles.history_words import (
    CompleteWorkflow,
    ExternalEventReceived,
    FailWorkflow,
    HistoryCommand,
    HistoryEvent,
    RunTask,
    ScheduleTask,
    StartTimer,
    StartWorkflow,
    TaskCompleted,
    TaskFailed,
    TaskScheduled,
    TimerScheduled,
    WorkflowCompleted,
    WorkflowFailed,
    WorkflowStarted,
)
from mainspring.testing.clock import VirtualClock
from tests.engine.coordination.dying import dies_after
from tests.support.apps import MakeApp
from tests.support.running import run

WAY = ("validate", "charge", "ship")
ORDER = {"sku": "teapot", "pieces": 2}
START = StartWorkflow("o-1", ORDER)


class Order(HistoryWorkflow):
    """Has an order validated, charged and shipped, one after the other, and ends when one of them fails."""

    def decide(self, events: Sequence[HistoryEvent]) -> list[HistoryCommand]:
        done = 0
        for event in events:
            match event:
                case TaskFailed(_, error):
                    return [FailWorkflow(error)]
                case TaskCompleted():
                    done += 1
                case _:
                    pass
        if done == len(WAY):
            return [CompleteWorkflow("delivered")]
        return [ScheduleTask(f"{WAY[done]}-1", WAY[done], ORDER)]


def office(app: Mainspring, calls: list[str], refused: str | None = None) -> Mainspring:
    """An app with one handler for all tasks, which goes by their names."""
    app.add(Order())

    async def run_task(task: RunTask) -> TaskCompleted | TaskFailed:
        calls.append(task.task_name)
        if task.task_name == refused:
            return TaskFailed(task.task_id, "not today")
        return TaskCompleted(task.task_id, {"by": task.task_name})

    app.handler(run_task)
    return app


def whole_history() -> list[HistoryEvent]:
    history: list[HistoryEvent] = [WorkflowStarted("o-1", ORDER)]
    for name in WAY:
        history += [TaskScheduled(f"{name}-1", name, ORDER), TaskCompleted(f"{name}-1", {"by": name})]
    return [*history, WorkflowCompleted("delivered")]


async def history_of(app: Mainspring) -> list[HistoryEvent]:
    return list((await app.instance(Order, "o-1").state()).events)


def test_an_order_is_validated_charged_and_shipped_and_its_history_tells_it(make_app: MakeApp) -> None:
    calls: list[str] = []

    async def main() -> None:
        async with office(make_app(), calls) as app:
            assert await (await app.send(START)).result() == "delivered"
            assert await history_of(app) == whole_history()

    run(main)
    assert calls == list(WAY)


def test_a_task_that_fails_ends_the_order_and_no_other_is_begun(make_app: MakeApp) -> None:
    calls: list[str] = []

    async def main() -> None:
        async with office(make_app(), calls, refused="charge") as app:
            with pytest.raises(InstanceFailedError, match="not today"):
                await (await app.send(START)).result()
            assert (await history_of(app))[-2:] == [TaskFailed("charge-1", "not today"), WorkflowFailed("not today")]

    run(main)
    assert calls == ["validate", "charge"]


@pytest.mark.parametrize("commits", [1, 2, 3, 4])
def test_an_order_goes_on_where_a_dead_worker_left_it_and_repeats_no_task(make_app: MakeApp, commits: int) -> None:
    """Whoever dies right behind a commit has begun nothing of what it ordered: so each task is done once."""
    before: list[str] = []
    after: list[str] = []

    async def story(app: Mainspring) -> Any:
        return await app.send(START, id="m-1")

    async def main() -> None:
        await dies_after(commits, office(make_app(), before), story)
        async with office(make_app(), after) as app:
            assert await app.instance(Order, "o-1").result() == "delivered"
            assert await history_of(app) == whole_history()

    run(main)
    assert before == list(WAY[: commits - 1])
    assert after == list(WAY[commits - 1 :])


# ---- times, ends from outside, handlers that give up


class Napping(HistoryWorkflow):
    """Has one task done, waits a little, and completes with what the task gave."""

    def decide(self, events: History) -> list[HistoryCommand]:
        commands: list[HistoryCommand] = [ScheduleTask("ask-1", "ask", None), StartTimer("nap", 60)]
        if events.end_of("ask-1") and events.has_fired("nap"):
            commands.append(CompleteWorkflow(events.result_of("ask-1")))
        return commands


class Suspending(Napping):
    on_task_error = "suspend"


NAP = Ref("Napping", "n-1")


def times_of(history: History) -> list[tuple[str, float, float | None]]:
    return [(type(event).__name__, event.timestamp, getattr(event, "fire_at", None)) for event in history]


async def times_in_rows(app: Mainspring) -> list[float]:
    rows = live(await whole_stream(internals_of(app).engine.store, NAP))
    return [moment(row.time_us).timestamp() for row in rows if row.event != "Began"]


def test_timestamps_are_those_of_the_rows_and_no_timer_is_due_before_it_says(make_app: MakeApp) -> None:
    async def main() -> None:
        # Of PostgreSQL's time a worker knows only within half a round trip what it is.
        app = make_app(VirtualClock())
        app.add(Napping())
        app.external(RunTask)
        async with app:
            await app.send(StartWorkflow("n-1", None))
            history = await app.instance(Napping, "n-1").state()
            assert [time for _, time, _ in times_of(history)] == await times_in_rows(app)
            [timer] = history.of(TimerScheduled)
            assert timer.fire_at == pytest.approx(timer.timestamp + 60)
            [output] = await app.instance(Napping, "n-1").outputs(timers=True)
            assert timer.fire_at <= output.due.timestamp() + 1e-6
            lane = internals_of(app).engine.stepper.lanes.get(NAP)
            assert lane is not None
            assert times_of(lane.state) == times_of(history)

    run(main)


def test_behind_a_reset_and_a_takeover_the_times_are_those_that_were_recorded(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        app.add(Napping())
        app.external(RunTask)
        async with app:
            receipt = await app.send(StartWorkflow("n-1", None))
            before = times_of(await receipt_state(app))
            await app.send(TaskCompleted("ask-1", "first", workflow_id="n-1"))
            await app.instance(Napping, "n-1").reset(4)
            assert times_of(await receipt_state(app)) == before
            await app.send(TaskCompleted("ask-1", "second", workflow_id="n-1"))
            after = times_of(await receipt_state(app))
            lane = internals_of(app).engine.stepper.lanes.get(NAP)
            assert lane is not None
            assert times_of(lane.state) == after
            assert receipt.message_id
        again = make_app()
        again.add(Napping())
        again.external(RunTask)
        async with again:
            await again.send(ExternalEventReceived("n-1", "hello", None))
            found = await receipt_state(again)
            assert times_of(found)[:-1] == after
            lane = internals_of(again).engine.stepper.lanes.get(NAP)
            assert lane is not None
            assert times_of(lane.state) == times_of(found)
            assert found.result_of("ask-1") == "second"

    run(main)


async def receipt_state(app: Mainspring) -> History:
    return await app.instance(Napping, "n-1").state()


def test_a_task_may_be_ended_from_outside_once(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        app.add(Napping())
        app.external(RunTask)
        async with app:
            receipt = await app.send(StartWorkflow("n-1", None))
            await app.send(TaskCompleted("ask-1", {"said": "yes"}, workflow_id="n-1"))
            await app.send(TaskCompleted("ask-1", {"said": "no"}, workflow_id="n-1"))
            await app.send(TaskFailed("no such", "?", workflow_id="n-1"))
            clock.advance(60)
            assert await receipt.result() == {"said": "yes"}

    run(main)


def refusing(app: Mainspring, workflow: HistoryWorkflow) -> list[int]:
    """Let every task fail at each of two attempts, and count them."""
    attempts: list[int] = []
    app.add(workflow)

    @app.handler(retry=Retry(max_attempts=2, first=timedelta(0)))
    async def run_task(task: RunTask, context: Context) -> TaskCompleted:
        attempts.append(context.attempt)
        raise ValueError("not today")

    return attempts


def test_a_task_whose_handler_gives_up_has_failed_and_decide_hears_of_it(make_app: MakeApp) -> None:
    class Asking(HistoryWorkflow):
        def decide(self, events: History) -> list[HistoryCommand]:
            end = events.end_of("ask-1")
            return [FailWorkflow(end.error) if isinstance(end, TaskFailed) else ScheduleTask("ask-1", "ask", None)]

    async def main() -> None:
        app = make_app()
        attempts = refusing(app, Asking())
        async with app:
            with pytest.raises(InstanceFailedError, match="ValueError: not today"):
                await (await app.send(StartWorkflow("n-1", None))).result()
            assert await app.dead_letters() == []
        assert attempts == [1, 2]

    run(main)


def test_where_the_workflow_says_so_a_handler_that_gives_up_suspends_the_instance(make_app: MakeApp) -> None:
    async def main() -> None:
        app = make_app()
        refusing(app, Suspending())
        async with app:
            receipt = await app.send(StartWorkflow("n-1", None))
            with pytest.raises(InstanceSuspendedError, match="not today"):
                await receipt.result()
            assert len(await app.dead_letters()) == 1

    run(main)


class Diary(HistoryWorkflow):
    """Hears of one thing after the other, and stores its history every ten events."""

    snapshot_every = 10

    def decide(self, events: Sequence[HistoryEvent]) -> list[HistoryCommand]:
        return []


def test_a_snapshot_saves_the_reading_of_a_history_before_it(make_app: MakeApp) -> None:
    async def main() -> None:
        for restarted in (False, True):
            app = make_app()
            app.add(Diary())
            async with app:
                if not restarted:
                    await app.send(StartWorkflow("d-1", None))
                    await app.send_many([ExternalEventReceived("d-1", "page", n) for n in range(25)])
                [loaded] = await internals_of(app).engine.store.load([Ref("Diary", "d-1")])
                assert loaded is not None
                assert loaded.snapshot is not None
                assert len(loaded.events) < 10
                history = await app.instance(Diary, "d-1").state()
                assert [event.payload for event in history.of(ExternalEventReceived)] == [*range(25)]
                assert all(time > 0 for _, time, _ in times_of(history))

    run(main)
