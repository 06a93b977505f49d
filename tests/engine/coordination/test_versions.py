"""Several versions of one workflow in one app, and instances that migrate between them (C11)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Completed, Decisions, Event, Mainspring, Received, Workflow
from mainspring.app.internals import internals_of
from mainspring.core.events import InitiatedBy, Migrated
from mainspring.errors import OperationError, SettingError, WiringError
from mainspring.port.records import EventRow, Unit
from mainspring.testing.clock import VirtualClock
from tests.engine.coordination.expenses import Approved, Expenses, Open, Submit
from tests.engine.coordination.parcels import (
    Addressed,
    BringParcel,
    Forgotten,
    Parcel,
    ParcelSent,
    ParcelV2,
    ParcelV3,
    ParcelV4,
    Waiting,
    Weighed,
    parcels,
)
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


async def begun(make_app: MakeApp, *ids: str, grams: int = 10) -> None:
    """Let parcels begin while only the first version is deployed."""
    async with parcels(make_app(), Parcel()) as app:
        await app.send_many([BringParcel(id, grams) for id in ids])


async def version_of(app: Mainspring, id: str) -> int:
    return (await app.instance_at(f"Parcel/{id}").row()).workflow_version


def test_an_instance_ends_under_the_version_that_it_began_with(make_app: MakeApp) -> None:
    async def main() -> None:
        await begun(make_app, "old")
        async with parcels(make_app(), Parcel(), ParcelV2()) as app:
            await app.send(BringParcel("new", 20))
            old, new = await app.send(Addressed("old")), await app.send(Addressed("new"))
            assert await old.result() == ParcelSent("old", 10)
            assert await new.result() == ParcelSent("new", 700)
            assert (await version_of(app, "old"), await version_of(app, "new")) == (1, 2)

    run(main)


def test_the_order_in_which_versions_are_added_does_not_matter(make_app: MakeApp) -> None:
    async def main() -> None:
        async with parcels(make_app(), ParcelV2(), Parcel()) as app:
            receipt = await app.send(BringParcel("p", 20))
            assert await version_of(app, "p") == 2
            await app.send(Addressed("p"))
            assert await receipt.result() == ParcelSent("p", 700)
            assert await app.instance(Parcel, "p").state() == Waiting(700, weighed=True)

    run(main)


def test_without_its_version_an_instance_runs_under_the_nearest_newer_one(make_app: MakeApp) -> None:
    async def main() -> None:
        await begun(make_app, "old")
        async with parcels(make_app(), ParcelV2(), ParcelV3()) as app:
            receipt = await app.send(Addressed("old"))
            assert await receipt.result() == ParcelSent("old", 700)
            # It is still said which one it began with.
            assert await version_of(app, "old") == 1

    run(main)


def test_a_worker_that_knows_only_older_versions_leaves_an_instance_to_others(make_app: MakeApp) -> None:
    async def main() -> None:
        async with parcels(make_app(), Parcel(), ParcelV2()) as app:
            await app.send(BringParcel("new", 20))
        async with parcels(make_app(), Parcel()) as behind:
            receipt = await behind.send(Addressed("new"))
            assert receipt.status == "accepted"
            with pytest.raises(
                OperationError, match="runs under version 2 of its definition, and this process knows 1"
            ):
                await receipt.state()
            async with parcels(make_app(), Parcel(), ParcelV2()) as app:
                assert await app.instance(ParcelV2, "new").result() == ParcelSent("new", 700)

    run(main)


def test_a_message_that_only_a_newer_version_takes_is_told_to_its_sender(make_app: MakeApp) -> None:
    async def main() -> None:
        await begun(make_app, "old")
        async with parcels(make_app(), Parcel(), ParcelV2()) as app:
            assert (await app.send(Weighed("old", 30))).status == "dead letter"
            letter = (await app.dead_letters())[0]
            assert letter.reason == "Parcel/old runs under version 1, which does not take Weighed"
            await app.instance(Parcel, "old").migrate(2)
            await app.retry_dead_letter(letter.id)
            assert await app.instance(ParcelV2, "old").result() == ParcelSent("old", 30)

    run(main)


def test_one_version_cannot_be_added_twice() -> None:
    with pytest.raises(WiringError, match="Two workflows are named 'Parcel' and have version 1"):
        Mainspring("memory://").add(Parcel(), Parcel())


def test_a_migrated_instance_goes_on_under_the_new_version(make_app: MakeApp) -> None:
    async def main() -> None:
        await begun(make_app, "old")
        async with parcels(make_app(), Parcel(), ParcelV2()) as app:
            old = app.instance(Parcel, "old")
            await old.migrate(2, actor="ann")
            assert await version_of(app, "old") == 2
            last = (await old.stream())[-1]
            assert (last.event, last.actor) == (Migrated(2), "ann")
            await app.send(Addressed("old"))
            assert await old.result() == ParcelSent("old", 700)
            assert await old.state() == Waiting(700, weighed=True)

    run(main)


def test_a_migration_can_be_taken_back(make_app: MakeApp) -> None:
    async def main() -> None:
        await begun(make_app, "old")
        async with parcels(make_app(), Parcel(), ParcelV2()) as app:
            old = app.instance(Parcel, "old")
            await old.migrate(2)
            await old.migrate(1)
            await app.send(Addressed("old"))
            assert await old.result() == ParcelSent("old", 10)

    run(main)


def test_a_stream_that_does_not_fold_under_the_new_version_refuses_and_nothing_is_changed(make_app: MakeApp) -> None:
    async def main() -> None:
        await begun(make_app, "old", grams=0)
        async with parcels(make_app(), Parcel(), ParcelV3()) as app:
            old = app.instance(Parcel, "old")
            before = await old.row()
            with pytest.raises(OperationError, match=r"does not fold under it .*a parcel without weight"):
                await old.migrate(3)
            assert await old.row() == before

    run(main)


def test_what_waits_must_be_taken_by_the_new_version(make_app: MakeApp) -> None:
    async def main() -> None:
        await begun(make_app, "old")
        async with parcels(make_app(), Parcel(), ParcelV4()) as app:
            with pytest.raises(OperationError, match="it waits for Forgotten, which that version does not take"):
                await app.instance(Parcel, "old").migrate(4)

    run(main)


class SilentExpenses(Workflow[Submit, Open, Approved]):
    """A second version that forgot that people answer."""

    name = "Expenses"
    version = 2
    initial_state = Open()

    def route(self, message: Submit) -> str | None:
        return message.id

    def decide(self, message: Submit, state: Open) -> Decisions[Submit, Approved] | None:
        return []

    def evolve(self, state: Open, event: Event[Any, Any]) -> Open | None:
        return None


def test_what_people_may_answer_must_be_taken_by_the_new_version(make_app: MakeApp) -> None:
    async def main() -> None:
        old, app = make_app(), make_app()
        old.add(Expenses())
        app.add(Expenses(), SilentExpenses())
        async with old:
            await old.send(Submit("e-1"))
        async with app:
            expense = app.instance(Expenses, "e-1")
            with pytest.raises(OperationError, match="it waits for Approve, Escalate, Reject, Remind, which"):
                await expense.migrate(2)

    run(main)


@pytest.mark.parametrize(
    ("to", "why"),
    [(1, "runs under version 1 already"), (7, "is not part of this app, which knows 1, 2")],
)
def test_a_migration_that_makes_no_sense_is_refused(make_app: MakeApp, to: int, why: str) -> None:
    async def main() -> None:
        await begun(make_app, "old")
        async with parcels(make_app(), Parcel(), ParcelV2()) as app:
            with pytest.raises(OperationError, match=why):
                await app.instance(Parcel, "old").migrate(to)
            await app.send(Addressed("old"))
            with pytest.raises(OperationError, match="it has completed"):
                await app.instance(Parcel, "old").migrate(2)

    run(main)


def test_a_worker_that_remembers_the_old_version_learns_of_the_migration(make_app: MakeApp) -> None:
    async def main() -> None:
        await begun(make_app, "old")
        async with parcels(make_app(), Parcel(), ParcelV2()) as app, parcels(make_app(), Parcel(), ParcelV2()) as other:
            # Both know it by now, and one of them is not told.
            await app.instance(Parcel, "old").suspend()
            await app.instance(Parcel, "old").resume()
            await other.instance(Parcel, "old").migrate(2)
            await app.send(Addressed("old"))
            assert await other.instance(Parcel, "old").result() == ParcelSent("old", 700)

    run(main)


def test_migrations_race_with_inputs_and_every_parcel_is_sent_once(make_app: MakeApp) -> None:
    async def main() -> None:
        ids = [f"p-{n}" for n in range(20)]
        await begun(make_app, *ids)
        async with parcels(make_app(), Parcel(), ParcelV2()) as app:
            migrating = asyncio.create_task(app.bulk("migrate", workflow="Parcel", to=2, per_second=10_000))
            receipts = await app.send_many([Addressed(id) for id in ids])
            report = await migrating
            assert report.done + report.refusals == 20
            for receipt in receipts:
                sent = await receipt.result()
                assert sent is not None
                versions = [entry.position for entry in await receipt.stream()]
                assert versions == list(range(1, len(versions) + 1))
                assert sent.grams == (700 if (await receipt.state()).weighed else 10)

    run(main)


def test_many_migrate_with_a_look_first(make_app: MakeApp) -> None:
    async def main() -> None:
        async with parcels(make_app(), Parcel()) as app:
            await app.send_many([BringParcel("light", 0), BringParcel("a", 5), BringParcel("b", 5)])
        async with parcels(make_app(), Parcel(), ParcelV3()) as app:
            looked = await app.bulk("migrate", workflow="Parcel", to=3, dry_run=True, per_second=10_000)
            assert (looked.matched, looked.done, looked.refusals) == (3, 0, 1)
            assert looked.refused[0].instance == "Parcel/light"
            assert [await version_of(app, id) for id in ("light", "a", "b")] == [1, 1, 1]
            report = await app.bulk("migrate", workflow="Parcel", to=3, per_second=10_000)
            assert (report.matched, report.done, report.refusals) == (3, 2, 1)
            assert [await version_of(app, id) for id in ("light", "a", "b")] == [1, 3, 3]
            with pytest.raises(SettingError, match="to"):
                await app.bulk("migrate", workflow="Parcel")

    run(main)


# What version 1 recorded a year ago, before BringParcel was renamed and had a weight.
GOLDEN = (
    EventRow(1, "Began", 1_700_000_000_000_000),
    EventRow(
        2,
        "InitiatedBy",
        1_700_000_000_000_000,
        "ParcelBrought",
        1,
        b'{"parcel_id":"gold"}',
        kind="command",
        message_id="m-1",
        context=b'{"correlation_id":"m-1"}',
        state="Waiting",
    ),
)


@pytest.mark.parametrize("versions", [(Parcel,), (Parcel, ParcelV2), (ParcelV2,)])
def test_a_golden_stream_of_the_first_version_is_still_read(make_app: MakeApp, versions: Any) -> None:
    async def main() -> None:
        async with parcels(make_app(), *(version() for version in versions)) as app:
            unit = Unit("Parcel", "gold", expected_version=0, events=GOLDEN, state="Waiting", context=b"{}")
            await internals_of(app).engine.committer.commit(unit)
            gold = app.instance_at("Parcel/gold")
            assert await gold.state() == Waiting(0)
            assert (await gold.stream())[1].event == InitiatedBy(BringParcel("gold", 0))
            await app.send(Addressed("gold"))
            assert await gold.result() == ParcelSent("gold", 700 if versions == (ParcelV2,) else 0)

    run(main)


def test_a_timer_set_by_the_old_version_fires_in_the_new_one(make_app: MakeApp) -> None:
    async def main() -> None:
        clock = VirtualClock()
        async with parcels(make_app(clock), Parcel()) as app:
            await app.send(BringParcel("old", 10))
        async with parcels(make_app(clock), Parcel(), ParcelV2()) as app:
            await app.instance(Parcel, "old").migrate(2)
            clock.advance(timedelta(days=30).total_seconds())

            async def ended() -> bool:
                clock.advance(1)  # who leaped over its lease has to come to its next heartbeat
                return (await app.instance(Parcel, "old").row()).status == "completed"

            await until(ended)
            *_, migrated, fired, completed = [entry.event for entry in await app.instance(Parcel, "old").stream()]
            assert isinstance(migrated, Migrated)
            assert (fired, completed) == (Received(Forgotten("old")), Completed())
            assert (await app.instance(Parcel, "old").row()).workflow_version == 2

    run(main)


def test_those_under_one_version_of_a_workflow_are_found_and_moved_together(make_app: MakeApp) -> None:
    async def main() -> None:
        await begun(make_app, "a", "b")
        async with parcels(make_app(), Parcel(), ParcelV2()) as app:
            await app.send(BringParcel("new", 20))
            assert [row.id for row in await app.instances(workflow_version=1)] == ["a", "b"]
            report = await app.bulk("migrate", to=2, workflow_version=1, actor="ann")
            assert (report.matched, report.done, await app.instances(workflow_version=1)) == (2, 2, [])
            with pytest.raises(SettingError, match="workflow_version"):
                await app.instances(workflow_version=0)

    run(main)
