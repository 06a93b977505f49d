"""What a second start with the same id does is a choice per workflow."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from mainspring import Complete, Decisions, Mainspring, Receipt, Workflow
from mainspring.app.internals import internals_of
from mainspring.core.definition import definition_of
from mainspring.engine.engine import RELIEVE_SECONDS
from mainspring.errors import DefinitionError, StoreUnreachableError
from mainspring.port.records import Outcome, Ref, Unit
from mainspring.testing.clock import VirtualClock
from tests.edges.web.support import served
from tests.engine.jobs import Done, Job, Start, Work, Working
from tests.support.apps import MakeApp
from tests.support.running import run
from tests.support.waiting import until


class Refusing(Job):
    again = "refuse"


class Recurring(Job):
    again = "anew"


def app_with(app: Mainspring, workflow: Job) -> Mainspring:
    app.add(workflow)

    @app.handler
    async def work(command: Work) -> Done:
        return Done(command.id, command.part)

    return app


def test_a_second_start_is_refused_and_kept_where_the_workflow_says_so(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_with(make_app(), Refusing()) as app:
            await app.send(Start("j-1", times=0), id="m-1")
            assert (await app.send(Start("j-1", times=0), id="m-1")).status == "duplicate"
            assert (await app.send(Start("j-1", times=5), id="m-2")).status == "dead letter"
            (letter,) = await app.dead_letters()
            assert letter.reason == "Refusing/j-1 has begun already"
            assert len(await app.instance(Refusing, "j-1").stream()) == 2

    run(main)


ENVELOPES: dict[str, dict[str, str]] = {
    "to nobody": {},
    "to the instance": {"instance": "Refusing/j-1"},
    "as a reply": {"instance": "Refusing/j-1", "kind": "reply"},
    "as an event": {"instance": "Refusing/j-1", "kind": "event"},
    "as a result": {"instance": "Refusing/j-1", "kind": "result", "causationid": "Refusing/j-1/2"},
}


@pytest.mark.parametrize("way", ENVELOPES)
def test_a_second_start_in_an_envelope_is_refused_whatever_that_says(make_app: MakeApp, way: str) -> None:
    start = {"specversion": "1.0", "id": "7", "source": "/shop", "type": "Start", "data": {"id": "j-1", "times": 5}}

    async def main() -> None:
        app = app_with(make_app(), Refusing())
        async with served(app) as client:
            await app.send(Start("j-1", times=0), id="m-1")
            taken = await client.post("/api/envelopes", json=start | ENVELOPES[way])
            assert [receipt["status"] for receipt in taken.json()["receipts"]] == ["dead letter"], taken.text
            (letter,) = await app.dead_letters()
            assert letter.reason == "Refusing/j-1 has begun already"
            assert len(await app.instance(Refusing, "j-1").stream()) == 2

    run(main)


def test_an_envelope_begins_no_instance_under_another_id_than_its_route_gives(make_app: MakeApp) -> None:
    start = {"specversion": "1.0", "id": "7", "source": "/shop", "type": "Start", "data": {"id": "j-1", "times": 0}}

    async def main() -> None:
        app = app_with(make_app(), Refusing())
        async with served(app) as client:
            refused = await client.post("/api/envelopes", json=start | {"instance": "Refusing/j-2"})
            assert refused.status_code == 422, refused.text
            assert "Start begins 'j-1' by its route, and was sent to 'j-2'" in refused.json()["detail"]
            taken = await client.post("/api/envelopes", json=start | {"instance": "Refusing/j-1"})
            assert [receipt["status"] for receipt in taken.json()["receipts"]] == ["stepped"], taken.text

    run(main)


def test_a_second_start_begins_it_when_the_commit_of_the_first_fails(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with app_with(make_app(), Refusing()) as app:
            store = internals_of(app).engine.store
            commit = store.commit
            second: list[asyncio.Task[Receipt[Any]]] = []

            async def refused(worker: int, units: list[Unit]) -> list[Outcome]:
                monkeypatch.setattr(store, "commit", commit)
                second.append(asyncio.create_task(app.send(Start("j-1", times=0), id="m-2")))
                lane = internals_of(app).engine.stepper.lanes.get(Ref("Refusing", "j-1"))
                await until(lambda: lane is not None and len(lane.queue) == 1)
                raise StoreUnreachableError("the store", "refused")

            monkeypatch.setattr(store, "commit", refused)
            with pytest.raises(StoreUnreachableError):
                await app.send(Start("j-1", times=0), id="m-1")
            assert (await second[0]).status == "stepped"
            assert not await app.dead_letters()

    run(main)


def test_an_ended_instance_begins_anew_with_a_fresh_state_in_the_same_stream(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_with(make_app(), Recurring()) as app:
            for run_number in (1, 2, 3):
                receipt = await app.send(Start("j-1", times=2), id=f"m-{run_number}")
                await receipt.result()
            events = [type(entry.event).__name__ for entry in await app.instance(Recurring, "j-1").stream()]
            once = ["Began", "InitiatedBy", "Sent", "Sent", "Received", "Received", "Completed"]
            assert events == once * 3
            assert (await app.send(Start("j-1", times=2), id="m-1")).status == "duplicate"
            assert await app.instance(Recurring, "j-1").state() == Working(0)
        async with app_with(make_app(), Recurring()) as app:
            assert await app.instance(Recurring, "j-1").state() == Working(0)
            await (await app.send(Start("j-1", times=1), id="m-4")).result()

    run(main)


def test_while_it_runs_a_second_start_is_an_input_like_any_other(make_app: MakeApp) -> None:
    async def main() -> None:
        async with app_with(make_app(), Recurring()) as app:
            await app.send(Start("j-1", times=0))
            assert (await app.send(Start("j-1", times=0))).status == "stepped"
            assert len(await app.instance(Recurring, "j-1").stream()) == 3

    run(main)


def test_a_late_result_of_an_earlier_run_is_kept_and_not_stepped(make_app: MakeApp) -> None:
    class Hasty(Job):
        again = "anew"

        def decide(self, message: Start | Done, state: Working) -> Decisions[Start | Done, Work] | None:
            decided = super().decide(message, state)
            return [*(decided or []), Complete()] if isinstance(message, Start) and message.times == 1 else decided

    release = asyncio.Event()

    async def main() -> None:
        app = make_app()
        app.add(Hasty())

        @app.handler
        async def work(command: Work) -> Done:
            await release.wait()
            return Done(command.id, command.part)

        async with app:
            await (await app.send(Start("j-1", times=1))).result()
            await app.send(Start("j-1", times=0))
            release.set()

            async def kept() -> bool:
                return type((await app.instance(Hasty, "j-1").stream())[-1].event).__name__ == "Kept"

            await until(kept)
            assert (await app.instance(Hasty, "j-1").row()).status == "running"

    run(main)


def test_one_that_cannot_begin_anew_stays_as_it_ended(make_app: MakeApp, caplog: pytest.LogCaptureFixture) -> None:
    class Picky(Job):
        again = "anew"

        def decide(self, message: Start | Done, state: Working) -> Decisions[Start | Done, Work] | None:
            if isinstance(message, Start) and message.times > 1:
                raise ValueError("too many")
            return super().decide(message, state)

    async def main() -> None:
        async with app_with(make_app(), Picky()) as app:
            await (await app.send(Start("j-1", times=1))).result()
            assert (await app.send(Start("j-1", times=2))).status == "dead letter"
            assert (await app.instance(Picky, "j-1").row()).status == "completed"
            (letter,) = await app.dead_letters()
            assert (letter.reason, letter.error) == ("Picky/j-1 could not begin anew", "ValueError: too many")
            assert "Picky/j-1: Start failed, and is a dead letter" in caplog.text
            await (await app.send(Start("j-1", times=1))).result()

    run(main)


def test_another_word_is_refused_at_definition() -> None:
    class Odd(Job):
        again = "sometimes"  # pyright: ignore[reportAssignmentType]  that is what is tried

    with pytest.raises(DefinitionError, match="refuse"):
        definition_of(Odd)
    assert issubclass(Odd, Workflow)


def test_what_an_earlier_run_is_told_too_late_does_not_cancel_the_new_one(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process cancels it; it begins anew while this one still reads that it is cancelled."""
    clock, gate, reads = VirtualClock(), asyncio.Event(), asyncio.Event()
    begun, told = list[int](), list[int]()

    def on(app: Mainspring) -> Mainspring:
        app.add(Recurring())

        @app.handler
        async def work(command: Work) -> Done:
            run_number = len(begun)
            begun.append(run_number)
            try:
                await gate.wait()
            except asyncio.CancelledError:
                told.append(run_number)
                raise
            return Done(command.id, command.part)

        return app

    async def main() -> None:
        client = on(make_app(clock))
        await client.start(work=False)
        async with on(make_app(clock)) as app:
            await app.send(Start("j-1"))
            await until(lambda: begun == [0])
            await client.instance(Recurring, "j-1").cancel()
            store, answered = internals_of(app).engine.store, asyncio.Event()
            load = store.load

            async def read_slowly(refs: Sequence[Ref], most: int | None = None) -> Any:
                if Ref("Recurring", "j-1") not in refs:
                    return await load(refs, most)  # of what is paused, for instance
                monkeypatch.setattr(store, "load", load)
                found = await load(refs, most)
                reads.set()
                await answered.wait()
                return found

            monkeypatch.setattr(store, "load", read_slowly)
            clock.advance(2 * RELIEVE_SECONDS)
            await reads.wait()
            assert (await app.send(Start("j-1"), id="m-2")).status == "stepped"
            await until(lambda: begun == [0, 1])
            answered.set()
            await until(lambda: bool(told))
            gate.set()
            await app.instance(Recurring, "j-1").result()
        await client.stop()

    run(main)
    assert told == [0]
