"""One operation on many instances (F11)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring import Mainspring
from mainspring.app import Instance
from mainspring.engine.runtime import Runtime
from mainspring.engine.schedules.recurring import RECURRING
from mainspring.errors import SettingError
from mainspring.stores.memory import MemoryStore
from mainspring.testing.clock import VirtualClock
from mainspring.views import BulkReport
from tests.engine.jobs import Done, Job, Start, Work, job
from tests.support.apps import MakeApp
from tests.support.running import run


def waiting(app: Mainspring) -> Mainspring:
    async def work(command: Work) -> Done:
        return Done(command.id, command.part)

    return job(app, work)


async def statuses(app: Mainspring) -> list[str]:
    return [row.status for row in await app.instances(workflow="Job")]


def test_many_instances_are_operated_on_by_a_filter_and_others_left_alone(make_app: MakeApp) -> None:
    async def main() -> None:
        async with waiting(make_app()) as app:
            await app.send_many([Start(f"a-{n}", times=0) for n in range(5)])
            await app.send_many([Start(f"b-{n}", times=0) for n in range(3)])
            heard: list[int] = []
            report = await app.bulk(
                "cancel", id_prefix="a-", actor="ann", per_second=10_000, on_progress=lambda r: heard.append(r.done)
            )
            assert (report.matched, report.done, report.refusals) == (5, 5, 0)
            assert heard == [0, 1, 2, 3, 4, 5]
            assert await statuses(app) == ["cancelled"] * 5 + ["running"] * 3
            log = await app.instance(Job, "a-0").log()
            assert (log[-1].what, log[-1].actor) == ("Cancelled", "ann")

    run(main)


def test_one_that_comes_to_match_while_it_goes_on_is_left_alone(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.app.bulk.PAGE", 1)
    cancel = Instance.cancel

    async def meanwhile(instance: Instance[Any, Any], *reason: str, **by: Any) -> None:
        await cancel(instance, *reason, **by)
        if str(instance) == "Job/a-0":
            await app.instance(Job, "a-1").suspend()

    app = waiting(make_app())

    async def main() -> None:
        async with app:
            await app.send_many([Start(f"a-{n}", times=0) for n in range(3)])
            for id in ("a-0", "a-2"):
                await app.instance(Job, id).suspend()
            monkeypatch.setattr(Instance, "cancel", meanwhile)
            report = await app.bulk("cancel", status="suspended", per_second=10_000)
            assert (report.matched, report.done) == (2, 2)
            assert await statuses(app) == ["cancelled", "suspended", "cancelled"]

    run(main)


def test_a_dry_run_counts_and_changes_nothing(make_app: MakeApp) -> None:
    async def main() -> None:
        async with waiting(make_app()) as app:
            await app.send_many([Start(f"a-{n}", times=0) for n in range(5)])
            report = await app.bulk("cancel", workflow="Job", dry_run=True)
            assert report == BulkReport("cancel", matched=5, dry_run=True)
            assert await statuses(app) == ["running"] * 5

    run(main)


def test_one_that_refuses_does_not_stop_the_rest(make_app: MakeApp) -> None:
    async def main() -> None:
        async with waiting(make_app()) as app:
            await app.send_many([Start(f"a-{n}", times=0) for n in range(4)])
            await app.instance(Job, "a-1").suspend()
            report = await app.bulk("suspend", workflow="Job", per_second=10_000)
            assert (report.done, report.refusals) == (3, 1)
            assert report.refused[0].instance == "Job/a-1"
            assert "it is suspended" in report.refused[0].why

    run(main)


def test_it_goes_no_faster_than_allowed() -> None:
    class Watched(VirtualClock):
        async def sleep(self, seconds: float) -> None:
            if seconds < 1:
                self.advance(seconds)
            else:  # who looks every few seconds for something else waits for time as ever
                await super().sleep(seconds)

    async def main() -> None:
        watched = Watched()
        app = Mainspring("memory://", runtime=Runtime(watched), store=MemoryStore(watched))
        app.add(Job())
        app.external(Work)
        await app.start(work=False)
        begun_us = watched.now_us()
        await app.send_many([Start(f"a-{n}", times=0) for n in range(11)])
        await app.bulk("suspend", workflow="Job", per_second=2)
        assert watched.now_us() - begun_us == 5_000_000
        await app.stop()

    run(main)


@pytest.mark.parametrize(
    ("action", "filters", "problem"),
    [
        ("cancel", {}, "everything"),
        ("explode", {"workflow": "Job"}, "suspend, resume"),
        ("skip", {"workflow": "Job", "per_second": 0}, "positive"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_happens(
    action: str, filters: dict[str, object], problem: str
) -> None:
    async def main() -> None:
        async with waiting(Mainspring("memory://")) as app:
            with pytest.raises(SettingError, match=problem):
                await app.bulk(action, **filters)  # pyright: ignore[reportArgumentType]  that is what is tried

    run(main)


def test_what_the_engine_began_for_itself_is_left_alone_unless_it_is_named(make_app: MakeApp) -> None:
    async def main() -> None:
        app = waiting(make_app())
        app.schedules.add("nightly", message=Start("a-2"), cron="0 3 * * *")
        async with app:
            await app.send(Start("a-1", times=0))
            assert (await app.bulk("suspend", status="running")).done == 1
            assert await statuses(app) == ["suspended"]
            assert (await app.bulk("suspend", workflow=f"{RECURRING}nightly", dry_run=True)).matched == 1

    run(main)


def test_many_go_back_to_a_version(make_app: MakeApp) -> None:
    async def main() -> None:
        async with waiting(make_app()) as app:
            await app.send_many([Start(f"a-{n}", times=1) for n in range(3)])
            for n in range(3):
                await app.instance(Job, f"a-{n}").result()
            report = await app.bulk("reset", workflow="Job", to=3, reason="again", actor="ann", per_second=10_000)
            assert (report.done, report.refused) == (3, ())
            for n in range(3):
                await app.instance(Job, f"a-{n}").result()
                assert [line.what for line in await app.instance(Job, f"a-{n}").log()].count("Reset") == 1
            with pytest.raises(SettingError, match="to which position to reset"):
                await app.bulk("reset", workflow="Job")

    run(main)


def test_a_policy_lets_go_on_what_a_passing_fault_suspended_some_time_ago(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on the page on operating: neither what was suspended just now, nor what has another error."""
    clock, faults = VirtualClock(), {"a-1": "the rates are away", "a-2": "no such rate", "a-3": "the rates are away"}
    decide = Job.decide

    def faulty(self: Job, message: Any, state: Any) -> Any:
        if message.id in faults:
            raise LookupError(faults[message.id])
        return decide(self, message, state)

    monkeypatch.setattr(Job, "decide", faulty)

    async def main() -> None:
        async with waiting(make_app(clock)) as app:
            for id in ("a-1", "a-2"):
                await app.send(Start(id, times=0))
            clock.advance(600)
            await app.send(Start("a-3", times=0))
            faults.clear()
            a_while_ago = datetime.fromtimestamp(clock.now_us() / 1e6, UTC) - timedelta(minutes=5)
            report = await app.bulk(
                "retry", status="suspended", error="rates are away", updated_to=a_while_ago, actor="policy"
            )
            assert (report.done, report.refusals) == (1, 0)
            assert await statuses(app) == ["running", "suspended", "suspended"]

    run(main)
