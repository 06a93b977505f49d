"""Ended instances are purged, by hand or by themselves, and never begun anew."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring import FeedEntry, Mainspring
from mainspring.app import purging
from mainspring.app.internals import internals_of
from mainspring.engine.inputs import stored_streams
from mainspring.engine.inputs.stored_streams import whole_stream
from mainspring.engine.recording.stored_values import moment
from mainspring.errors import DefinitionError, InstancePurgedError, SettingError
from mainspring.port.records import Ref
from mainspring.testing.clock import VirtualClock
from mainspring.views import PurgeReport
from tests.engine.ended_jobs import (
    DAY_SECONDS,
    MONTH,
    Brief,
    Finish,
    Job,
    Kept,
    Note,
    Notes,
    Oracle,
    Start,
    Tell,
    crash_after,
    finished,
    on,
)
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


def test_a_purged_instance_is_gone_and_says_so(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            await finished(app, clock)
            job = app.instance(Job, "j-1")
            before = await job.row()
            assert await app.purge(older_than=MONTH) == PurgeReport(instances=1, events=5)
            for ask in (job.stream, job.state, job.result, lambda: job.stream(after=2)):
                with pytest.raises(
                    InstancePurgedError, match=r"^Job/j-1 ended \(completed\) and was purged on 2026-02-01"
                ):
                    await ask()
            row = await job.row()
            assert (row.position, row.status, row.purged) == (before.position, "completed", moment(clock.now_us()))
            assert await app.instances() == []
            assert (await app.stats()).instances == {}

    run(main)


def test_a_redelivery_does_not_begin_a_purged_instance_anew(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            await finished(app, clock)
            await app.purge(older_than=MONTH)
            for id in ("start-j-1", "another"):
                assert (await app.send(Start("j-1"), id=id)).status == "dead letter"
            assert (await app.send(Start("j-1"), id="another")).status == "duplicate"
            assert (await app.send(Note("j-1"))).status == "dead letter"
            letters = await app.dead_letters()
            assert [letter.type for letter in letters] == ["Start", "Start", "Note"]
            assert {letter.reason for letter in letters} == {"Job/j-1 ended (completed) and was purged on 2026-02-01"}
            await app.retry_dead_letter(letters[0].id)
            assert len(await app.dead_letters()) == 3

        async with on(make_app, clock) as app:
            assert (await app.send(Start("j-1"), id="later")).status == "dead letter"
            assert await internals_of(app).engine.store.stream(Ref("Job", "j-1"), 0, 10) == []

    run(main)


def test_a_late_answer_to_a_purged_instance_is_a_dead_letter(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            await app.send(Start("j-1", asks=True))
            await until(lambda: asked(app))
            clock.advance(31 * DAY_SECONDS)
            assert (await app.purge(older_than=MONTH)).instances == 1
            await app.send(Tell("j-1"))
            await until(lambda: kept(app, clock))
            (letter,) = await app.dead_letters()
            assert (letter.workflow, letter.type) == ("Job", "Answer")
            assert "was purged on 2026-02-01" in letter.reason

    async def asked(app: Mainspring) -> bool:
        return len(await app.instances(workflow="Oracle")) == 1 and not await app.instance(Job, "j-1").outputs()

    async def kept(app: Mainspring, clock: VirtualClock) -> bool:
        clock.advance(1)  # the worker was asleep for a month, and is registered anew
        return len(await app.dead_letters()) == 1

    run(main)


def test_only_what_ended_so_long_ago_goes_and_only_of_the_workflow_that_is_named(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock, Job(), Oracle()) as app:
            await finished(app, clock, "old")
            await app.send_many(
                [Start("runs"), Start("stuck"), Note("stuck", "break"), Start("young"), Finish("young")]
            )
            assert (await app.purge(older_than=MONTH, workflow="Oracle")).instances == 0
            assert (await app.purge(older_than=MONTH, workflow="Job")).instances == 1
            assert sorted(row.id for row in await app.instances()) == ["runs", "stuck", "young"]

    run(main)


def test_a_dead_letter_keeps_its_instance(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            await finished(app, clock)
            await app.send(Note("j-1", "too late"))
            assert await app.purge(older_than=MONTH) == PurgeReport()
            (letter,) = await app.dead_letters()
            await app.discard_dead_letter(letter.id)
            assert (await app.purge(older_than=MONTH)).instances == 1

    run(main)


def test_what_a_projection_has_not_seen_is_not_purged(make_app: MakeApp, caplog: pytest.LogCaptureFixture) -> None:
    seen: set[str] = set()
    faulty = True

    async def main() -> None:
        nonlocal faulty
        clock = VirtualClock()
        app = on(make_app, clock)

        @app.projections.add(key=lambda entry: entry.instance)
        def events(_document: Notes | None, entry: FeedEntry) -> Notes:
            if faulty and entry.instance == "j-2":
                raise ZeroDivisionError
            seen.add(f"{entry.instance}/{entry.stream_position}")
            return Notes()

        async with app:
            await finished(app, clock, "j-1")
            await until(lambda: clock.advance(1) or len(seen) == 5)
            await finished(app, clock, "j-2")
            assert (await app.purge(older_than=MONTH, dry_run=True)).instances == 1
            assert (await app.purge(older_than=MONTH)).instances == 1
            assert [row.id for row in await app.instances()] == ["j-2"]
            assert "Job is not purged further: the projection events is behind" in caplog.text
            faulty = False
            await until(lambda: gone(app, clock))
            assert len(seen) == 10

    async def gone(app: Mainspring, clock: VirtualClock) -> bool:
        clock.advance(1)
        return (await app.purge(older_than=MONTH)).instances == 1

    run(main)


def test_a_dry_run_counts_and_changes_nothing(make_app: MakeApp, tmp_path: Path) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            await finished(app, clock, "j-1", "j-2")
            before = await app.instance(Job, "j-1").stream()
            would = await app.purge(older_than=MONTH, dry_run=True, archive=tmp_path / "streams.jsonl")
            assert would == PurgeReport(instances=2, events=10)
            assert await app.instance(Job, "j-1").stream() == before
            assert not (tmp_path / "streams.jsonl").exists()
            assert await app.purge(older_than=MONTH) == would

    run(main)


def test_progress_is_told_after_every_batch(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purging, "INSTANCES_PER_BATCH", 2)
    told: list[PurgeReport] = []

    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            await finished(app, clock, *(f"j-{n}" for n in range(5)))
            assert await app.purge(older_than=MONTH, progress=told.append) == told[-1]
        assert told == [PurgeReport(2, 10), PurgeReport(4, 20), PurgeReport(5, 25)]

    run(main)


def test_a_purge_that_is_killed_in_the_middle_leaves_nothing_half_visible(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purging, "EVENTS_PER_BATCH", 4)

    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            await finished(app, clock, "j-1", "j-2", notes=7)
            with crash_after(2, app), pytest.raises(KeyboardInterrupt):
                await app.purge(older_than=MONTH)

        async with on(make_app, clock) as app:
            store = internals_of(app).engine.store
            for id in ("j-1", "j-2"):
                assert await store.stream(Ref("Job", id), 0, 100) == []
                with pytest.raises(InstancePurgedError):
                    await app.instance(Job, id).stream()
            assert await store.feed(0, 100) == []
            assert len((await store.purgeable("Job", clock.now_us(), 10)).found) == 2
            assert await app.purge(older_than=MONTH) == PurgeReport(instances=0, events=2 * 11 - 2 * 4)
            assert (await store.purgeable("Job", clock.now_us(), 10)).found == []

    run(main)


# ---- by itself


def test_a_worker_purges_by_itself_what_was_kept_long_enough(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        app = on(make_app, clock)
        internals_of(app).retention = MONTH
        async with app:
            await finished(app, clock, "j-1", "j-2")
            await app.send_many([Start("young"), Finish("young")])
            await until(lambda: gone(app, clock))
            assert [row.id for row in await app.instances()] == ["young"]

    async def gone(app: Mainspring, clock: VirtualClock) -> bool:
        clock.advance(1)
        return len(await app.instances()) == 1

    run(main)


def test_nothing_goes_by_itself_where_the_app_does_not_say_so(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            await finished(app, clock)
            assert "mainspring-purge" not in {task.get_name() for task in asyncio.all_tasks()}

    run(main)


@pytest.mark.parametrize("retention", [timedelta(0), -MONTH, 30])
def test_a_retention_that_makes_no_sense_is_refused(retention: Any) -> None:
    with pytest.raises(SettingError, match="retention"):
        Mainspring("memory://", retention=retention)


@pytest.mark.parametrize("value", [timedelta(0), 30, "30d"])
def test_a_workflows_retention_that_makes_no_sense_is_refused(value: Any) -> None:
    class Wrong(Job):
        retention = value

    with pytest.raises(DefinitionError, match="has retention ="):
        Mainspring("memory://").add(Wrong())


def test_a_workflow_says_its_own_retention_where_the_app_purges() -> None:
    app = Mainspring("memory://", retention=MONTH)
    app.add(Job(), Brief(), Kept())

    assert purging.retentions(internals_of(app).registry, internals_of(app).retention) == {
        "Job": MONTH,
        "Brief": timedelta(days=1),
        "Kept": timedelta.max,
    }
    assert purging.retentions(internals_of(app).registry, None) == {}


def test_what_is_kept_for_ever_is_never_purged(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            await finished(app, clock)
            assert await app.purge(older_than=timedelta.max) == PurgeReport()

    run(main)


def test_a_negative_age_is_refused(make_app: MakeApp) -> None:
    async def main() -> None:
        async with on(make_app, VirtualClock()) as app:
            with pytest.raises(SettingError, match="older_than"):
                await app.purge(older_than=-MONTH)

    run(main)


def test_a_stream_that_is_purged_while_it_is_read_page_by_page_is_not_read_in_part(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_streams, "EVENTS_PER_PAGE", 3)

    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            await finished(app, clock)
            store = internals_of(app).engine.store
            assert len(await whole_stream(store, Ref("Job", "j-1"))) == 5
            read, pages = store.stream, list[int]()

            async def meanwhile(ref: Ref, after: int, limit: int) -> Any:
                pages.append(after)
                if len(pages) == 2:
                    await app.purge(older_than=MONTH)
                return await read(ref, after, limit)

            monkeypatch.setattr(store, "stream", meanwhile)
            assert await whole_stream(store, Ref("Job", "j-1")) == []

    run(main)
