"""What is purged is archived before: whole, durable, and never lost between the two."""

import json
from pathlib import Path
from typing import Any

import pytest

from mainspring import DoNotRetryError
from mainspring.app.archive import Archive
from mainspring.app.internals import internals_of
from mainspring.errors import InstanceFailedError, OperationError
from mainspring.port.records import Committed, Ref, Unit
from mainspring.testing.clock import VirtualClock
from mainspring.testing.store_contract.rig import received
from mainspring.views import PurgeReport
from tests.engine import jobs
from tests.engine.ended_jobs import DAY_SECONDS, MONTH, Finish, Job, Recurring, Start, crash_after, finished, on
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_archive_holds_whole_streams(make_app: MakeApp, tmp_path: Path) -> None:
    path = tmp_path / "streams.jsonl"

    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            await app.send(Start("j-1"), id="start-j-1", actor="ann")
            await finished(app, clock, "j-1")
            stream = await app.instance(Job, "j-1").stream()
            report = await app.purge(older_than=MONTH, archive=path)
            assert report == PurgeReport(instances=1, events=len(stream), archived=len(stream))
            archived = lines(path)
            assert [line["version"] for line in archived] == [entry.position for entry in stream]
            assert [line["event"] for line in archived] == [type(entry.event).__name__ for entry in stream]
            assert archived[1] == {
                "workflow": "Job",
                "instance": "j-1",
                "version": 2,
                "event": "InitiatedBy",
                "time": "2026-01-01T00:00:00Z",
                "type": "Start",
                "type_version": 1,
                "body": {"id": "j-1", "asks": False},
                "kind": "command",
                "message_id": "start-j-1",
                "context": {"correlation_id": "start-j-1"},
                "actor": "ann",
                "state": "Notes",
            }
            assert archived[-1]["event"] == "Completed"
            assert archived[-1]["body"] == {"id": "j-1"}

    run(main)


def test_an_archive_is_appended_to_and_a_line_that_was_cut_short_spoils_no_other(
    make_app: MakeApp, tmp_path: Path
) -> None:
    path = tmp_path / "streams.jsonl"
    path.write_text('{"version":1}\n{"vers')

    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            for id in ("j-1", "j-2"):
                await finished(app, clock, id)
                await app.purge(older_than=MONTH, archive=path)

    run(main)
    text = path.read_text().splitlines()
    assert text[:2] == ['{"version":1}', '{"vers']
    assert [json.loads(line)["instance"] for line in text[2:]] == ["j-1"] * 5 + ["j-2"] * 5


def test_a_crash_between_archive_and_purge_archives_a_stream_twice_and_never_not(
    make_app: MakeApp, tmp_path: Path
) -> None:
    path = tmp_path / "streams.jsonl"

    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            await finished(app, clock)
            with crash_after(0, app), pytest.raises(KeyboardInterrupt):
                await app.purge(older_than=MONTH, archive=path)
            assert len(lines(path)) == len(await app.instance(Job, "j-1").stream()) == 5
            await app.purge(older_than=MONTH, archive=path)
            assert lines(path)[:5] == lines(path)[5:]

    run(main)


def test_nothing_is_purged_that_cannot_be_archived(make_app: MakeApp, tmp_path: Path) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            await finished(app, clock)
            with pytest.raises(OperationError, match="cannot be written"):
                await app.purge(older_than=MONTH, archive=tmp_path / "nowhere" / "streams.jsonl")
            assert len(await app.instance(Job, "j-1").stream()) == 5

    run(main)


def test_nothing_is_purged_before_its_archive_is_on_the_disk(
    make_app: MakeApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Archive) -> None:
        raise OSError("no room")

    monkeypatch.setattr(Archive, "sync", full)

    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            await finished(app, clock)
            with pytest.raises(OSError, match="no room"):
                await app.purge(older_than=MONTH, archive=tmp_path / "streams.jsonl")
            assert len(await app.instance(Job, "j-1").stream()) == 5

    run(main)


def test_what_moves_while_it_is_archived_is_left_for_another_time(
    make_app: MakeApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock) as app:
            await finished(app, clock, "j-1", "j-2")
            store = internals_of(app).engine.store
            read, met = store.stream, list[int]()

            async def meanwhile(ref: Ref, after: int, limit: int) -> Any:
                if ref.id == "j-1" and not met:
                    met.append(after)
                    late = Unit("Job", "j-1", None, 5, (received(6, "late", "Kept", type="Answer"),), "completed")
                    assert isinstance((await store.commit(0, [late]))[0], Committed)
                return await read(ref, after, limit)

            with monkeypatch.context() as patch:
                patch.setattr(store, "stream", meanwhile)
                assert (await app.purge(older_than=MONTH, archive=tmp_path / "a.jsonl")).instances == 1
            assert len(await store.stream(Ref("Job", "j-1"), 0, 10)) == 6
            assert await store.stream(Ref("Job", "j-2"), 0, 10) == []

    run(main)


def test_an_instance_that_began_anew_is_counted_and_archived_once(make_app: MakeApp, tmp_path: Path) -> None:
    path = tmp_path / "streams.jsonl"

    async def main() -> None:
        clock = VirtualClock()
        async with on(make_app, clock, Recurring()) as app:
            for turn in range(3):
                await app.send(Start("j-1"), id=f"start-{turn}")
                await app.send(Finish("j-1"))
                clock.advance(1)
            clock.advance(31 * DAY_SECONDS)
            events = len(await app.instance(Recurring, "j-1").stream())
            once = PurgeReport(instances=1, events=events)
            assert await app.purge(older_than=MONTH, dry_run=True) == once
            report = await app.purge(older_than=MONTH, archive=path)
            assert report == PurgeReport(instances=1, events=events, archived=events)
            assert len(lines(path)) == events
            assert await app.purge(older_than=MONTH, archive=path) == PurgeReport()

    run(main)


def test_attempts_that_failed_go_with_their_instance_and_are_not_archived(make_app: MakeApp, tmp_path: Path) -> None:
    path = tmp_path / "streams.jsonl"

    async def work(command: jobs.Work) -> jobs.Done:
        raise DoNotRetryError("refused")

    async def main() -> None:
        clock = VirtualClock()
        app = make_app(clock)
        app.add(jobs.Listening())
        app.handler(work)
        async with app:
            receipt = await app.send(jobs.Start("j-1"))
            with pytest.raises(InstanceFailedError):
                await receipt.result()
            assert len(await receipt.attempts()) == 1
            await until(lambda: internals_of(app).engine.committer.idle)
            clock.advance(60 * DAY_SECONDS)
            await app.purge(older_than=MONTH, archive=path)
            assert await receipt.attempts() == []
            assert all("event" in line for line in lines(path))

    run(main)
